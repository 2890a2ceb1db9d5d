/* Data through a ring buffer of several pages; readers and writers wait by system calls. */
#include "shared.h"

#define SLOTS 64
static struct {
    sem_t free, used;
    uint64_t slot[SLOTS][100];
} * q;

static void either(int self) {
    uint64_t h = 0;
    for (uint64_t k = 0; k < 400; k++) {
        sem_wait(self ? &q->used : &q->free);
        for (int i = 0; i < 100; i++)
            if (self)
                h = mix(h, q->slot[k % SLOTS][i]);
            else
                q->slot[k % SLOTS][i] = k * 100 + (uint64_t)i;
        sem_post(self ? &q->free : &q->used);
    }
    if (self) printf("%016lx\n", h);
}

int main(void) {
    q = share(sizeof *q);
    sem_init(&q->free, 1, SLOTS);
    sem_init(&q->used, 1, 0);
    in_children(2, either);
    return 0;
}
