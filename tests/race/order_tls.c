// Threads take numbers from a shared counter on first use; who is who depends on the order.
#include "race.h"
static volatile int next_id;
static __thread int id;
static volatile int pairs[6], drawn[64];
static int self(void) {
    if (!id) {
        int v = next_id;
        work(300);
        next_id = v + 1;
        id = v + 1;
    }
    return id;
}
static void *body(void *arg) {
    work((unsigned)(intptr_t)arg * 137);
    pairs[(intptr_t)arg] = self();
    drawn[self()]++;
    return NULL;
}
int main(void) {
    for (int round = 0; round < 10; round++) {
        next_id = 0;
        memset((void *)drawn, 0, sizeof drawn);
        race(6, body);
        for (int i = 0; i < 6; i++) printf("%d%s ", pairs[i], drawn[pairs[i]] > 1 ? "!" : "");
        puts("");
    }
    return 0;
}
