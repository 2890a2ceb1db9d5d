// getrandom and read of /dev/urandom into memory that another thread digests.
#include "race.h"
#include <fcntl.h>
#include <sys/random.h>
static volatile uint64_t pool[64];
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        int fd = open("/dev/urandom", O_RDONLY);
        for (int i = 0; i < 200; i++) {
            if (getrandom((void *)pool, 256, 0) != 256) abort();
            if (read(fd, (void *)(pool + 32), 256) != 256) abort();
            if (i % 10 == 0) sched_yield();
        }
        close(fd);
        done = 1;
        return NULL;
    }
    uint64_t h = 0, changes = 0, last = 0, n = 0;
    for (; !done && n < 500000; n++) {
        uint64_t v = pool[n % 64];
        if (pool[0] != last) {
            changes++;
            last = pool[0];
        }
        h = mix(h, v);
        if (n % 256 == 0) sched_yield();
    }
    printf("%lu looks, %lu changes, %016lx\n", n, changes, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}
