/* The main thread leaves by pthread_exit; the last thread's end is the process's end, with status 0. */
#include "guest.h"

static pthread_t main_thread;
static void at_exit(void) { puts("atexit ran"); }
static void *last(void *arg) {
    void *r = NULL;
    pthread_join(main_thread, &r);
    printf("joined main: %ld\n", (long)r);
    int fd = open("/proc/self/status", O_RDONLY);
    printf("process still there: %d\n", fd >= 0);
    sleep_ms(20);
    puts("last thread ends");
    return arg;
}

int main(void) {
    pthread_t t;
    main_thread = pthread_self();
    atexit(at_exit);
    pthread_create(&t, NULL, last, NULL);
    pthread_detach(t);
    pthread_exit((void *)5);
}
