/* An owner that is killed while it writes. */
#include "shared.h"

int main(void) {
    volatile uint64_t *c = share(8192);
    for (int round = 0; round < 4; round++) {
        uint64_t before = c[0];
        pid_t pid = fork();
        if (pid == 0)
            for (;;) c[0]++, c[512] = c[0] * 3;
        while (c[0] < before + 1000) {}
        usleep(3000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        printf("%lu %lu\n", c[0], c[512]);
    }
    return 0;
}
