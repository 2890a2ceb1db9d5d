// Processes seek to the end and write: what another one wrote meanwhile is lost.
#include "race.h"
#include <fcntl.h>
#include <sys/wait.h>
int main(void) {
    char name[] = "/tmp/race-XXXXXX";
    close(mkstemp(name));
    for (int p = 0; p < 3; p++)
        if (fork() == 0) {
            int fd = open(name, O_RDWR);
            for (int i = 0; i < 40; i++) {
                char c = (char)('a' + p);
                lseek(fd, 0, SEEK_END);
                if (write(fd, &c, 1) != 1) _exit(1);
                if (i % 8 == 0) work(150000);
            }
            _exit(0);
        }
    while (wait(NULL) > 0) {}
    char text[256];
    int fd = open(name, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text);
    printf("%zd of 120: %.*s\n", n, (int)n, text);
    unlink(name);
    return 0;
}
