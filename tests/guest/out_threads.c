/* Threads that write more to standard output than a pipe takes at once, in a program that has forked (cli/record_slow_output.sh). */
#include "guest.h"

#define THREADS 3
#define WRITES 40
#define SIZE 20000

static void *writer(void *arg) {
    char piece[SIZE];
    memset(piece, 'a' + (int)(long)arg, sizeof piece);
    for (int i = 0; i < WRITES; i++)
        for (size_t done = 0; done < sizeof piece;) {
            ssize_t n = write(1, piece + done, sizeof piece - done);
            CHECK(n > 0);
            done += (size_t)n;
        }
    return NULL;
}

int main(void) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, &status, 0);
    pthread_t t[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, writer, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    return failures;
}
