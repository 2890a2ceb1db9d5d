// The order in which children end, and what kills them.
#include "race.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
int main(void) {
    pid_t child[8];
    for (int i = 0; i < 8; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            work((unsigned)(now_ns() % 3000000));
            if (i == 3) raise(SIGTERM);
            _exit(i);
        }
    }
    kill(child[5], SIGKILL); /* before or after it has ended by itself */
    int status;
    pid_t p;
    while ((p = wait(&status)) > 0) {
        int i = 0;
        while (child[i] != p) i++;
        if (WIFSIGNALED(status))
            printf("%d was killed by %d\n", i, WTERMSIG(status));
        else
            printf("%d ended with %d\n", i, WEXITSTATUS(status));
    }
    return 0;
}
