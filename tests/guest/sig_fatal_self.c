/* The program itself dies of SIGUSR2 in a thread while others compute: the caller must see that status. */
#include "guest.h"

static void *spin(void *arg) {
    for (volatile long i = 0;; i++) {}
    return arg;
}
static void *die(void *arg) {
    sleep_ms(30);
    raise(SIGUSR2);
    return arg;
}

int main(void) {
    pthread_t t;
    puts("about to die");
    for (int i = 0; i < 3; i++) pthread_create(&t, NULL, spin, NULL);
    pthread_create(&t, NULL, die, NULL);
    pthread_join(t, NULL);
    puts("FAIL: survived");
}
