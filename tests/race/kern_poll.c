// poll writes revents while others read them and write to the pipes.
#include "race.h"
#include <fcntl.h>
#include <poll.h>
static int fd[3][2];
static struct pollfd p[3];
static volatile int done;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me == 0) {
        uint64_t h = 0;
        int bytes = 0, zero = 0, rounds = 0;
        while (bytes < 90 && rounds < 3000) {
            rounds++;
            for (int i = 0; i < 3; i++) p[i] = (struct pollfd){fd[i][0], POLLIN, 0};
            int n = poll(p, 3, 2);
            if (n == 0) zero++;
            for (int i = 0; i < 3; i++) {
                char c[64];
                if (!(p[i].revents & POLLIN)) continue;
                ssize_t got = read(fd[i][0], c, sizeof c);
                bytes += (int)got;
                h = mix(h, (uint64_t)(i * 100 + got));
            }
        }
        done = 1;
        printf("%d bytes, %d rounds, %d times nothing, %016lx\n", bytes, rounds, zero, h);
        return NULL;
    }
    if (me == 4) {
        uint64_t h = 0;
        int n = 0, seen = 0;
        for (; !done && n < 100000; n++) {
            short r = ((volatile struct pollfd *)p)[n % 3].revents;
            if (r) seen++;
            h = mix(h, (uint64_t)r);
            if (n % 20 == 0) sched_yield();
        }
        printf("watcher: %d looks, %d events, %016lx\n", n, seen, h);
        return NULL;
    }
    for (int i = 0; i < 30; i++) {
        work((unsigned)(me * 1500));
        if (write(fd[me - 1][1], "x", 1) != 1) break;
    }
    return NULL;
}
int main(void) {
    for (int i = 0; i < 3; i++)
        if (pipe(fd[i])) return 1;
    race(5, body);
    return 0;
}
