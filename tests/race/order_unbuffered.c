// Threads write single characters straight to descriptors 1 and 2.
#include "race.h"
static void *body(void *arg) {
    char c = (char)('a' + (intptr_t)arg);
    for (int i = 0; i < 40; i++) {
        if (write(i % 8 == 7 ? 2 : 1, &c, 1) != 1) return NULL;
        if (i % 5 == 0) work(200000 + race_random % 200000);
    }
    return NULL;
}
int main(void) {
    race(3, body);
    return write(1, "\n", 1) != 1;
}
