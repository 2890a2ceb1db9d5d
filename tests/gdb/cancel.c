/* Signals that find threads in calls, sent by a thread that goes on and then waits itself. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, begun = PTHREAD_COND_INITIALIZER;
static int waiting, handled, cleaned;

static void on_usr1(int sig) { handled++; }

static void clean(void *arg) {
    cleaned++;
    pthread_mutex_unlock(&lock);
}

static void *wait_long(void *arg) {
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean, NULL);
    waiting++;
    pthread_cond_signal(&begun);
    for (;;) pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    signal(SIGUSR1, on_usr1);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, wait_long, NULL);
    pthread_mutex_lock(&lock);
    while (waiting < 3) pthread_cond_wait(&begun, &lock);
    pthread_mutex_unlock(&lock);
    usleep(50000); /* until all wait */
    for (int i = 0; i < 3; i++) {
        pthread_kill(threads[i], SIGUSR1);
        usleep(10000);
        pthread_cancel(threads[i]);
        pthread_join(threads[i], NULL);
    }
    printf("%d %d\n", handled, cleaned);
    return 0;
}
