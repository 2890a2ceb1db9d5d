/* A process that is about to end when the first one has ended: it has to wait a little before it can (as the parent of a vfork it
 * is not asleep for the kernel, as if it waited for a processor or a disk), but it is recorded to its end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    if (fork() == 0) {
        pid_t child = vfork();
        if (child == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        _exit(0);
    }
    printf("the first one ends\n");
    return 0;
}
