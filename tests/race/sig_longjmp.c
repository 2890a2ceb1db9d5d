// A timer's handler jumps out of a computation: how far it came is a race.
#include "race.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
static sigjmp_buf back;
static volatile uint64_t reached;
static void handler(int s) { siglongjmp(back, 1); }
int main(void) {
    signal(SIGALRM, handler);
    for (int i = 0; i < 15; i++) {
        reached = 0;
        if (sigsetjmp(back, 1) == 0) {
            struct itimerval it = {{0, 0}, {0, 200 + i * 150}};
            setitimer(ITIMER_REAL, &it, NULL);
            while (reached < 200000000) reached++;
        }
        printf("%d: %lu\n", i, reached);
    }
    return 0;
}
