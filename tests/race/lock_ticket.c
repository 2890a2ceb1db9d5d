// A ticket lock whose tickets are not drawn atomically: two threads get the same one, others wait in vain.
#include "race.h"
static volatile int next_ticket, serving, twice, gave_up, count;
static volatile int holder = -1;
static void *body(void *arg) {
    for (int i = 0; i < 10000; i++) {
        int mine = next_ticket;
        window();
        next_ticket = mine + 1;
        int spin = 0;
        while (serving < mine && spin < 200) {
            if (++spin % 20 == 0) sched_yield();
        }
        if (spin == 200) gave_up++;
        if (holder != -1) twice++;
        holder = (int)(intptr_t)arg;
        count++;
        holder = -1;
        serving = mine + 1;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    printf("count %d, tickets %d, serving %d, together %d, gave up %d\n", count, next_ticket, serving, twice, gave_up);
    return 0;
}
