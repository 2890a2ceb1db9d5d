// main returns while other threads still print.
#include "race.h"
static void *body(void *arg) {
    for (int i = 0; i < 2000; i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "%d:%d\n", (int)(intptr_t)arg, i);
        if (write(1, line, (size_t)n) != n) break;
        work(500);
    }
    return NULL;
}
int main(void) {
    pthread_t t;
    for (intptr_t i = 0; i < 3; i++) pthread_create(&t, NULL, body, (void *)i);
    sleep_us(1500);
    return 5;
}
