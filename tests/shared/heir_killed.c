/* An owner is killed after thousands of calls, and then who is about to take its page. The next one has what the owner has left. */
#include "shared.h"

#define ROUNDS 6

static volatile uint64_t *c;

static void own(void) {
    for (;;) {
        c[0] += getppid() > 0;
        c[100] = c[0] * 3;
    }
}

static void take_when_told(int fd) {
    char go;
    if (read(fd, &go, 1) == 1) c[0]++;
    pause();
}

int main(void) {
    c = share(8192);
    for (int round = 0; round < ROUNDS; round++) {
        int told[2];
        if (pipe(told) != 0) abort();
        pid_t heir = fork();
        if (heir == 0) take_when_told(told[0]);
        pid_t owner = fork();
        if (owner == 0) own();
        usleep(50000);
        kill(owner, SIGKILL);
        waitpid(owner, NULL, 0);
        if (write(told[1], "", 1) != 1) abort();
        usleep(100 * round);
        kill(heir, SIGKILL);
        waitpid(heir, NULL, 0);
        printf("%lu %lu\n", c[0], c[100]);
        close(told[0]), close(told[1]);
    }
}
