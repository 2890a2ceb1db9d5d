/* The owner of all pages is gone before its child looks at them. */
#include "shared.h"

int main(void) {
    volatile long *c = share(65536);
    int pipes[2];
    char go;
    for (int i = 0; i < 16; i++) c[i * 512] = i * i;
    if (pipe(pipes)) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t middle = fork();
        if (middle) {
            for (int i = 0; i < 16; i++) c[i * 512] += i;
            _exit(0);
        }
        while (getppid() == (pid_t)c[1]) usleep(1000);
        long sum = 0;
        for (int i = 0; i < 16; i++) sum += c[i * 512];
        printf("sum %ld\n", sum);
        fflush(stdout);
        _exit(0);
    }
    c[1] = pid;
    close(pipes[1]);
    waitpid(pid, NULL, 0);
    return (int)read(pipes[0], &go, 1); /* nothing comes: the end of the grandchild, who has the other end till then */
}
