// Four processes write lines into one pipe.
#include "race.h"
#include <sys/wait.h>
int main(void) {
    int fd[2];
    if (pipe(fd)) return 1;
    for (int p = 0; p < 4; p++)
        if (fork() == 0) {
            for (int i = 0; i < 30; i++) {
                char line[32];
                int n = snprintf(line, sizeof line, "%d.%d ", p, i);
                if (write(fd[1], line, (size_t)n) != n) _exit(1);
                if (i % 4 == p) work(100000);
            }
            _exit(p);
        }
    close(fd[1]);
    char buf[512];
    ssize_t n;
    int reads = 0;
    while ((n = read(fd[0], buf, sizeof buf)) > 0) {
        fwrite(buf, 1, (size_t)n, stdout);
        reads++;
    }
    printf("\n%d reads; ended:", reads);
    int status;
    while (wait(&status) > 0) printf(" %d", WEXITSTATUS(status));
    puts("");
    return 0;
}
