// Processes read a counter from a file, add one and write it back, without a lock.
#include "race.h"
#include <fcntl.h>
#include <sys/wait.h>
int main(void) {
    char name[] = "/tmp/race-XXXXXX";
    int fd = mkstemp(name);
    uint32_t v = 0;
    if (pwrite(fd, &v, 4, 0) != 4) return 1;
    for (int p = 0; p < 3; p++)
        if (fork() == 0) {
            uint64_t h = 0;
            for (int i = 0; i < 1500; i++) {
                if (pread(fd, &v, 4, 0) != 4) _exit(1);
                h = mix(h, v);
                v++;
                if (pwrite(fd, &v, 4, 0) != 4) _exit(1);
            }
            printf("process %d: %016lx\n", p, h);
            fflush(stdout);
            _exit(0);
        }
    while (wait(NULL) > 0) {}
    if (pread(fd, &v, 4, 0) != 4) return 1;
    printf("%u of 4500\n", v);
    unlink(name);
    return 0;
}
