// A ring for one producer and one consumer, used by two and two.
#include "race.h"
enum { ROOM = 64, EACH = 30000 };
static volatile int ring[ROOM];
static volatile unsigned head, tail, finished;
static volatile int got[2], dropped[2];
static volatile uint64_t digest[2];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me < 2) {
        for (int i = 0; i < EACH; i++) {
            int spin = 0;
            while (head - tail >= ROOM && spin++ < 100) sched_yield();
            if (spin > 100) {
                if (++dropped[me] > 50) break;
                continue;
            }
            unsigned h = head;
            window();
            ring[h % ROOM] = (int)me * EACH + i;
            head = h + 1;
        }
        finished++;
        return NULL;
    }
    uint64_t h = 0;
    int n = 0;
    for (int idle = 0; idle < 200 && n < 100000;) {
        unsigned t = tail;
        if ((int)(head - t) <= 0) {
            if (finished == 2) idle += 20;
            idle++;
            sched_yield();
            continue;
        }
        h = mix(h, (uint64_t)ring[t % ROOM]);
        tail = t + 1;
        n++;
        idle = 0;
    }
    got[me - 2] = n;
    digest[me - 2] = h;
    return NULL;
}
int main(void) {
    race(4, body);
    printf("head %u tail %u, dropped %d %d\n", head, tail, dropped[0], dropped[1]);
    for (int i = 0; i < 2; i++) printf("consumer %d: %d, %016lx\n", i, got[i], digest[i]);
    return 0;
}
