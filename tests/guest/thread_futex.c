/* Raw futexes: ping-pong, wake counts, requeue, bitset, timeouts, wrong values; private and between processes. */
#include "guest.h"
#include <linux/futex.h>

static long futex(int *w, int op, int v, const struct timespec *t, int *w2, int v3) {
    return syscall(SYS_futex, w, op, v, t, w2, v3);
}
static int ball, gate, other, awake;
static void *pong(void *arg) {
    for (int i = 0; i < 5000; i++) {
        while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != 1) futex(&ball, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        __atomic_store_n(&ball, 0, __ATOMIC_RELEASE);
        futex(&ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return arg;
}
static void *sleeper(void *arg) {
    while (futex(&gate, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EINTR) {}
    __atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
    return arg;
}

int main(void) {
    pthread_t t[4];
    pthread_create(&t[0], NULL, pong, NULL);
    for (int i = 0; i < 5000; i++) {
        __atomic_store_n(&ball, 1, __ATOMIC_RELEASE);
        futex(&ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != 0) futex(&ball, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    }
    pthread_join(t[0], NULL);
    puts("ping-pong done");

    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, sleeper, NULL);
    long moved = 0;
    while (moved < 3)
        moved += futex(&gate, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)(3 - moved), &other, 0), sched_yield();
    while (futex(&gate, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) != 1) sched_yield();
    long woken = 0;
    while (woken < 3) woken += futex(&other, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    printf("requeued %ld, woken %ld, awake %d\n", moved, woken, awake);

    struct timespec ts = {0, 20000000};
    CHECK(futex(&gate, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) == -1 && errno == ETIMEDOUT);
    CHECK(futex(&gate, FUTEX_WAIT_PRIVATE, 1, &ts, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(futex((int *)0x10, FUTEX_WAIT_PRIVATE, 1, &ts, NULL, 0) == -1 && errno == EFAULT);
    CHECK(futex(&gate, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EINVAL);

    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (!pid) {
        for (int i = 0; i < 1000; i++) {
            while (__atomic_load_n(shared, __ATOMIC_ACQUIRE) % 2 == 0) futex(shared, FUTEX_WAIT, 2 * i, NULL, NULL, 0);
            __atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
            futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        _exit(0);
    }
    for (int i = 0; i < 1000; i++) {
        __atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
        futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (__atomic_load_n(shared, __ATOMIC_ACQUIRE) % 2) futex(shared, FUTEX_WAIT, 2 * i + 1, NULL, NULL, 0);
    }
    printf("between processes: %d, %s\n", *shared, wait_text(pid));
    return finish();
}
