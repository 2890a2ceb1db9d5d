/* A spin lock with an unprotected counter behind it, and one without any lock. */
#include "shared.h"

struct both {
    atomic_flag lock;
    long counted;
    volatile long lost;
};
static struct both *b;

static void count(int self) {
    for (int k = 0; k < 2000; k++) {
        while (atomic_flag_test_and_set(&b->lock)) {}
        b->counted++;
        atomic_flag_clear(&b->lock);
        b->lost = b->lost + 1;
    }
}

int main(void) {
    b = share(sizeof *b);
    in_children(3, count);
    printf("%ld counted, %ld left\n", b->counted, b->lost);
    return b->counted != 6000;
}
