// Children that execute programs race for stdout.
#include "race.h"
#include <sys/wait.h>
int main(int argc, char **argv) {
    if (argc > 1) {
        for (int i = 0; i < 6; i++) {
            printf("%s says %d, pid %d\n", argv[1], i, getpid());
            fflush(stdout);
            work(4000);
        }
        return argv[1][0] % 16;
    }
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            char name[8];
            snprintf(name, sizeof name, "%c%d", 'a' + i, i);
            execl("/proc/self/exe", "proc_exec", name, (char *)NULL);
            _exit(127);
        }
    int status;
    while (wait(&status) > 0) printf("status %d\n", WEXITSTATUS(status));
    return 0;
}
