// A lock-free stack with the ABA problem: nodes get lost or appear twice.
#include "race.h"
enum { NODES = 16 };
struct node {
    struct node *volatile next;
    volatile int owners;
};
static struct node node[NODES];
static struct node *volatile top;
static volatile int popped[3], empty[3], doubled[3];
static void push(struct node *n) {
    struct node *old;
    do {
        old = top;
        n->next = old;
    } while (!__atomic_compare_exchange_n(&top, &old, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}
static struct node *pop(void) {
    for (int tries = 0; tries < 100; tries++) {
        struct node *old = top;
        if (!old) return NULL;
        struct node *next = old->next;
        if (tries % 2 == 0) window();
        if (__atomic_compare_exchange_n(&top, &old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
    }
    return NULL;
}
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 20000; i++) {
        struct node *a = pop(), *b = pop();
        if (!a) empty[me]++;
        for (int k = 0; k < 2; k++) {
            struct node *n = k ? b : a;
            if (!n) continue;
            popped[me]++;
            if (n->owners++) doubled[me]++;
            if (i % 50 == 0) sched_yield();
            n->owners--;
        }
        if (a) push(a);
        if (b && b != a) push(b);
    }
    return NULL;
}
int main(void) {
    for (int i = 0; i < NODES; i++) push(&node[i]);
    race(3, body);
    int left = 0;
    for (struct node *n = top; n && left < 1000; n = n->next) left++;
    for (int i = 0; i < 3; i++) printf("popped %d, empty %d, doubled %d\n", popped[i], empty[i], doubled[i]);
    printf("%d of %d left\n", left, NODES);
    return 0;
}
