/* A fast timer while two processes pass bytes through pipes: with SA_RESTART no call may fail, nothing is lost. */
#include "guest.h"

static volatile int ticks;
static void tick(int sig, siginfo_t *si, void *uc) { (void)sig, (void)si, (void)uc, ticks++; }

int main(void) {
    int a[2], b[2];
    CHECK(pipe(a) == 0 && pipe(b) == 0);
    handle(SIGALRM, tick, SA_RESTART);
    struct itimerval t = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
    pid_t pid = fork();
    setitimer(ITIMER_REAL, &t, NULL);
    uint32_t v = 1;
    if (!pid) {
        for (int i = 0; i < 20000; i++) {
            if (read(a[0], &v, 4) != 4) _exit(1);
            v = v * 1103515245 + 12345;
            if (write(b[1], &v, 4) != 4) _exit(2);
        }
        _exit(0);
    }
    for (int i = 0; i < 20000; i++) {
        CHECK(write(a[1], &v, 4) == 4);
        CHECK(read(b[0], &v, 4) == 4);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(ticks > 10);
    printf("value %u, %s\n", v, wait_text(pid));
    return finish();
}
