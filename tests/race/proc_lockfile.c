// Processes compete for a lock file that is made with O_EXCL.
#include "race.h"
#include <fcntl.h>
#include <sys/wait.h>
int main(void) {
    char dir[] = "/tmp/race-XXXXXX";
    if (!mkdtemp(dir) || chdir(dir)) return 1;
    int log = open("log", O_CREAT | O_RDWR | O_APPEND, 0600);
    for (int p = 0; p < 3; p++)
        if (fork() == 0) {
            int won = 0, lost = 0;
            for (int i = 0; i < 60; i++) {
                int fd = open("lock", O_CREAT | O_EXCL | O_WRONLY, 0600);
                if (fd < 0) {
                    lost++;
                    work(10000);
                    continue;
                }
                char c = (char)('0' + p);
                won += write(log, &c, 1) == 1;
                work(20000);
                close(fd);
                unlink("lock");
            }
            printf("process %d won %d, lost %d\n", p, won, lost);
            fflush(stdout);
            _exit(won);
        }
    int status, sum = 0;
    while (wait(&status) > 0) sum += WEXITSTATUS(status);
    char text[256];
    ssize_t n = pread(log, text, sizeof text, 0);
    printf("%.*s\n%d\n", (int)n, text, sum);
    unlink("log");
    unlink("lock");
    return rmdir(dir) != 0;
}
