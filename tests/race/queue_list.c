// A list without a lock: nodes that are pushed at the same time are lost.
#include "race.h"
enum { EACH = 50000 };
struct node {
    struct node *next;
    int value;
};
static struct node node[3][EACH];
static struct node *volatile list;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        struct node *n = &node[me][i];
        n->value = (int)me * EACH + i;
        n->next = list;
        window();
        list = n;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    int n = 0, by[3] = {0};
    uint64_t h = 0;
    for (struct node *p = list; p && n < 3 * EACH; p = p->next, n++) {
        by[p->value / EACH]++;
        h = mix(h, (uint64_t)p->value);
    }
    printf("%d of %d nodes (%d %d %d), %016lx\n", n, 3 * EACH, by[0], by[1], by[2], h);
    return 0;
}
