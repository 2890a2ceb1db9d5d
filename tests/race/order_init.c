// Used before it is ready: workers look at a configuration that main sets after it has started them.
#include "race.h"
static volatile int config[8];
static volatile int seen[8][8];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 8; i++) seen[me][i] = config[i];
    return NULL;
}
int main(void) {
    pthread_t t[8];
    for (intptr_t i = 0; i < 8; i++) {
        pthread_create(&t[i], NULL, body, (void *)i);
        work(2000);
        config[i] = (int)i + 1;
    }
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++) putchar('0' + seen[i][k]);
        putchar('\n');
    }
    return 0;
}
