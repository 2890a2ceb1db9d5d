/* Threads that wait for a word in shared memory while another process uses its page: it comes and goes during the calls. */
#include "guest.h"

#include <linux/futex.h>

#define ROUNDS 150
#define THREADS 3

struct page {
    uint32_t word, other, turns, done;
};
static struct page *page;
static int faults;

static void *waiter(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec most = {0, 200000};
        uint32_t seen = __atomic_load_n(&page->word, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&page->turns, 1, __ATOMIC_SEQ_CST);
        long ret = syscall(SYS_futex, &page->word, FUTEX_WAIT, seen, &most, NULL, 0);
        if (ret < 0 && errno == EFAULT) __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&page->word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &page->word, FUTEX_WAKE, 10, NULL, NULL, 0);
    }
    return NULL;
}

static void child(void) {
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, waiter, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    __atomic_store_n(&page->done, 1, __ATOMIC_SEQ_CST);
    _exit(faults > 0);
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) child();
    while (!__atomic_load_n(&page->done, __ATOMIC_SEQ_CST)) {
        __atomic_add_fetch(&page->other, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &page->word, FUTEX_WAKE, 10, NULL, NULL, 0);
        usleep(100);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(page->turns == ROUNDS * THREADS);
    return finish();
}
