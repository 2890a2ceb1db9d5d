/* More code than a small cache holds, while one thread loops without ever leaving its loop and others wait in calls: the
 * cache goes on, results are right and nobody's call is interrupted. */
#include "guest.h"

#include <sys/epoll.h>

#define FUNCTIONS 12000
#define STRIDE 48

static volatile int stop;
static uint64_t spins;
static int pipe_fd[2], interrupted;

static void *spinner(void *arg) {
    uint64_t n = 0;
    do n += 1 + (n & 3);
    while (!stop);
    __atomic_add_fetch(&spins, n != 0, __ATOMIC_RELAXED);
    return arg;
}
static void note(long ret) {
    if (ret < 0) __atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
}
static void *reads(void *arg) {
    char c;
    note(read(pipe_fd[0], &c, 1));
    return arg;
}
static void *waits(void *arg) {
    int e = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN};
    epoll_ctl(e, EPOLL_CTL_ADD, pipe_fd[0], &ev);
    note(epoll_wait(e, &ev, 1, -1));
    close(e);
    return arg;
}
static void *naps(void *arg) {
    while (!stop) {
        struct timespec ts = {0, 100000};
        note(nanosleep(&ts, NULL));
        struct pollfd p = {-1, 0, 0};
        note(poll(&p, 1, 1));
    }
    return arg;
}

/* mov $v, %eax; some arithmetic; ret */
static int emit(uint8_t *p, uint32_t v) {
    uint8_t *at = p;
    *at++ = 0xb8, memcpy(at, &v, 4), at += 4;
    for (int i = 0; i < 8; i++) memcpy(at, (uint8_t[]){0x83, 0xc0, (uint8_t)i}, 3), at += 3; /* add $i, %eax */
    *at++ = 0xc3;
    return at - p;
}

static long run_all(int flags) {
    size_t len = FUNCTIONS * STRIDE;
    uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(p != MAP_FAILED);
    for (int i = 0; i < FUNCTIONS; i++) emit(p + i * STRIDE, (uint32_t)i * 7);
    CHECK(mprotect(p, len, PROT_READ | PROT_EXEC) == 0);
    long right = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FUNCTIONS; i++) right += ((int (*)(void))(p + i * STRIDE))() == i * 7 + 28;
    munmap(p, len);
    return right;
}

int main(void) {
    CHECK(pipe(pipe_fd) == 0);
    void *(*const what[])(void *) = {spinner, spinner, reads, waits, naps};
    pthread_t t[5];
    for (int i = 0; i < 5; i++) pthread_create(&t[i], NULL, what[i], NULL);
    sleep_ms(20);
    printf("low code: %ld right\n", run_all(MAP_32BIT));
    printf("far code: %ld right\n", run_all(0));
    stop = 1;
    CHECK(write(pipe_fd[1], "xx", 2) == 2);
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
    printf("spinners %lu, interrupted calls %d\n", (unsigned long)spins, interrupted);
    return finish();
}
