/* System calls that read and write shared memory: pipes, vectors, names, times. */
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "shared.h"

static struct {
    char path[64];
    char text[3][5000];
    struct timespec ts;
    struct stat st;
    struct iovec v[3];
    _Atomic int stop;
} * s;
static int pipes[2];

static void work(int self) {
    if (self == 1) { /* keeps the pages moving */
        while (!s->stop) {
            s->text[2][4000]++;
            s->text[0][10] = 'x';
            s->ts.tv_nsec++;
        }
        return;
    }
    long total = 0;
    for (int k = 0; k < 60; k++) {
        memset(s->text[0], 'a' + k % 26, 4000);
        s->v[0] = (struct iovec){s->text[0], 4000};
        s->v[1] = (struct iovec){s->text[2], 10};
        if (writev(pipes[1], s->v, 2) != 4010 || write(pipes[1], s->text[0] + 20, 100) != 100) printf("short\n");
        for (int got = 0; got < 4110;) got += (int)read(pipes[0], s->text[1] + got, (size_t)(4110 - got));
        total += s->text[1][4000 + 50];
        clock_gettime(CLOCK_MONOTONIC, &s->ts);
        if (stat(s->path, &s->st)) printf("stat\n");
        s->ts = (struct timespec){0, 1000};
        nanosleep(&s->ts, NULL);
    }
    printf("%ld %d\n", total, S_ISDIR(s->st.st_mode));
    s->stop = 1;
}

int main(void) {
    s = share(sizeof *s);
    strcpy(s->path, "/");
    if (pipe(pipes)) return 1;
    in_children(2, work);
    return 0;
}
