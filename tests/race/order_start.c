// The order in which threads start and end.
#include "race.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char trace[65];
static int n;
static void note(char c) {
    pthread_mutex_lock(&lock);
    trace[n++] = c;
    pthread_mutex_unlock(&lock);
}
static void *body(void *arg) {
    note((char)('A' + (intptr_t)arg));
    work(60000);
    note((char)('a' + (intptr_t)arg));
    return NULL;
}
int main(void) {
    pthread_t t[16];
    for (intptr_t i = 0; i < 16; i++) pthread_create(&t[i], NULL, body, (void *)i);
    for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
    puts(trace);
    return trace[0] % 8;
}
