// A sum of doubles: which additions are lost, and the order of the others, decide every bit of the result.
#include "race.h"
static volatile double sum;
static void *body(void *arg) {
    double step = 1.0 / (double)((intptr_t)arg * 7 + 3);
    for (int i = 1; i < 200000; i++) {
        double v = sum;
        window();
        sum = v + step / i;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    printf("%a\n", sum);
    return 0;
}
