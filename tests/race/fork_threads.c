// fork while other threads change memory: the child has a snapshot of a moment.
#include "race.h"
#include <sys/wait.h>
static volatile uint64_t count[3], stop;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (uint64_t i = 0; i < 400000000 && !stop; i++) count[me]++;
    return NULL;
}
int main(void) {
    pthread_t t[3];
    for (intptr_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, body, (void *)i);
    for (int i = 0; i < 5; i++) {
        sleep_us(500);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            printf("child %d has %lu %lu %lu\n", i, count[0], count[1], count[2]);
            fflush(stdout);
            _exit((int)(count[0] % 50));
        }
        int status;
        waitpid(child, &status, 0);
        printf("it ended with %d\n", WEXITSTATUS(status));
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    printf("%lu %lu %lu\n", count[0], count[1], count[2]);
    return 0;
}
