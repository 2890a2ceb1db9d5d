/* Children, one after the other, each with all the pages that the one before had when it ended. */
#include "shared.h"

#define PAGES 40
#define CHILDREN 12

int main(void) {
    volatile long *c = share(PAGES * 4096);
    for (int child = 0; child < CHILDREN; child++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (int i = 0; i < PAGES; i++) c[i * 512] = c[i * 512] * 3 + child;
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    uint64_t h = 0;
    for (int i = 0; i < PAGES; i++) h = mix(h, (uint64_t)c[i * 512]);
    printf("%lx\n", h);
}
