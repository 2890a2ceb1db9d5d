// The kernel fills a buffer that another thread is looking at.
#include "race.h"
enum { SIZE = 60000 };
static volatile unsigned char buf[SIZE];
static int fd[2];
static volatile int done, round_no;
static void *body(void *arg) {
    static unsigned char out[SIZE];
    switch ((intptr_t)arg) {
    case 0:
        for (int i = 1; i <= 12; i++) {
            memset(out, i, SIZE);
            if (write(fd[1], out, SIZE) != SIZE) break;
            work(3000);
        }
        close(fd[1]);
        break;
    case 1:
        while (read(fd[0], (void *)buf, SIZE) > 0) round_no++;
        done = 1;
        break;
    default: {
        uint64_t h = 0;
        int looks = 0, partly = 0;
        for (; !done && looks < 200000; looks++) {
            unsigned char a = buf[0], b = buf[SIZE / 2], c = buf[SIZE - 1];
            if (a != b || b != c) partly++;
            h = mix(h, (uint64_t)(a << 16 | b << 8 | c));
            if (looks % 50 == 0) sched_yield();
        }
        printf("%d looks, %d partly, %016lx\n", looks, partly, h);
    }
    }
    return NULL;
}
int main(void) {
    if (pipe(fd)) return 1;
    race(3, body);
    printf("%d reads, last %d %d\n", round_no, buf[0], buf[SIZE - 1]);
    return 0;
}
