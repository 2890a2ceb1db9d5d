/* Processes: a child that goes its own way, one that becomes another program, and this one, which becomes itself at last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int stage, child_work;

static void in_child(void) {
    for (int i = 1; i <= 3; i++) child_work += i;
}

static void before_exec(int n) { stage = n; }
static void after_exec(int n) { stage = n; }

int main(int argc, char **argv) {
    int status;
    if (argc > 2 && strcmp(argv[1], "last") == 0) {
        after_exec(atoi(argv[2]));
        printf("last %d\n", stage);
        fflush(stdout);
        if (stage < 3) {
            char next[16];
            snprintf(next, sizeof next, "%d", stage + 1);
            execl(argv[0], argv[0], "last", next, NULL);
        }
        return stage;
    }
    if (fork() == 0) {
        in_child();
        _exit(child_work);
    }
    wait(&status);
    before_exec(WEXITSTATUS(status));
    if (fork() == 0) {
        before_exec(50);
        execl("/bin/echo", "echo", "from the child", NULL);
    }
    wait(NULL);
    before_exec(60);
    execl(argv[0], argv[0], "last", "1", NULL);
    return 99;
}
