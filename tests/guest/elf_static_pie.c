// cflags: -static-pie
/* A static position-independent program: TLS, threads, signals and exec without a dynamic loader. */
#include "guest.h"

static __thread int tls = 5;
static volatile int handled;
static void on(int sig) { (void)sig, handled++; }
static void *thread(void *arg) {
    tls += (long)arg;
    return (void *)(long)tls;
}
__attribute__((constructor)) static void early(void) { printf("constructor\n"); }
__attribute__((destructor)) static void late(void) { printf("destructor\n"); }

int main(void) {
    signal(SIGUSR1, on);
    raise(SIGUSR1);
    pthread_t t;
    void *r;
    pthread_create(&t, NULL, thread, (void *)4), pthread_join(t, &r);
    printf("handled %d, tls %d and %ld\n", handled, tls, (long)r);
    pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "exit 3", NULL), _exit(1);
    puts(wait_text(pid));
    double x = 0;
    for (int i = 1; i < 1000; i++) x += 1.0 / i;
    char buf[64];
    snprintf(buf, sizeof buf, "%.9f", x);
    puts(buf);
    return finish();
}
