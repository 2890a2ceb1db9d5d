// Asynchronous cancellation in the middle of a computation.
#include "race.h"
static volatile uint64_t reached[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (reached[me] = 1; reached[me] < 300000000; reached[me]++) {}
    return NULL;
}
int main(void) {
    for (int round = 0; round < 4; round++) {
        pthread_t t[4];
        for (intptr_t i = 0; i < 4; i++) {
            reached[i] = 0;
            pthread_create(&t[i], NULL, body, (void *)i);
        }
        sleep_us(700);
        for (int i = 0; i < 4; i++) pthread_cancel(t[i]);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
        printf("%lu %lu %lu %lu\n", reached[0], reached[1], reached[2], reached[3]);
    }
    return 0;
}
