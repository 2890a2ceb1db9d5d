// Threads are cancelled at a cancellation point of their choice: how far they came is a race.
#include "race.h"
static volatile int progress[6], cleaned;
static void clean(void *arg) { cleaned += 1 << (intptr_t)arg; }
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    pthread_cleanup_push(clean, arg);
    for (int i = 0; i < 100000; i++) {
        progress[me]++;
        if (i % (10 + me * 5) == 0) pthread_testcancel();
        if (i % 5000 == 0) sleep_us(50);
    }
    pthread_cleanup_pop(0);
    return NULL;
}
int main(void) {
    pthread_t t[6];
    for (intptr_t i = 0; i < 6; i++) pthread_create(&t[i], NULL, body, (void *)i);
    sleep_us(400);
    for (int i = 0; i < 6; i++) {
        void *ret;
        work(2000);
        pthread_cancel(t[i]);
        pthread_join(t[i], &ret);
        printf("thread %d %s at %d\n", i, ret == PTHREAD_CANCELED ? "cancelled" : "done", progress[i]);
    }
    printf("cleaned %x\n", cleaned);
    return 0;
}
