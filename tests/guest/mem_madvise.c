/* madvise: DONTNEED zeroes and drops code, FREE, DONTFORK, WIPEONFORK; mlock; memfd sealing; execute-only pages. */
#include "guest.h"

static const uint8_t fn[] = {0xb8, 0x2a, 0, 0, 0, 0xc3};
static sigjmp_buf out;
static volatile int sig_seen;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)si, (void)uc;
    sig_seen = sig;
    siglongjmp(out, 1);
}

/* A private page that was populated for writing is the process's own, though it was never written to. */
static void populate(const char *how, int flags, int (*first)(void *, size_t)) {
    int fd = open("populated", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(fd, 8192) == 0 && pwrite(fd, "a", 1, 0) == 1 && pwrite(fd, "b", 1, 4096) == 1);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);
    char *q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);
    CHECK(p != MAP_FAILED && q != MAP_FAILED && (!first || first(p, 4096) == 0));
    CHECK(pwrite(fd, "A", 1, 0) == 1 && pwrite(fd, "B", 1, 4096) == 1);
    printf("%s: populated %c, not populated %c\n", how, p[0], q[0]);
    munmap(p, 4096), munmap(q, 4096), close(fd), unlink("populated");
}

static int advise(void *p, size_t n) { return madvise(p, n, MADV_POPULATE_WRITE); }
static int lock(void *p, size_t n) { return mlock(p, n); }
static int lock_all(void *p, size_t n) { return mlockall(MCL_CURRENT) != 0 && munlockall(); }

int main(void) {
    populate("advice", 0, advise);
    populate("flag", MAP_POPULATE, NULL);
    populate("lock", 0, lock);
    populate("all", 0, lock_all); /* what the other one says depends on how much may be locked */
    mlockall(MCL_FUTURE);
    populate("later", 0, NULL);
    munlockall();
    populate("no more", 0, NULL);
    handle(SIGSEGV, on, 0), handle(SIGILL, on, 0);
    char *a = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(a, 5, 16384);
    CHECK(madvise(a, 4096, MADV_DONTNEED) == 0 && a[0] == 0 && a[4096] == 5);
    CHECK(madvise(a + 4096, 4096, MADV_WIPEONFORK) == 0);
    CHECK(madvise(a + 8192, 4096, MADV_DONTFORK) == 0);
    pid_t pid = fork();
    if (!pid) {
        if (a[4096] != 0) _exit(1);
        if (!sigsetjmp(out, 1)) (void)*(volatile char *)(a + 8192), _exit(2);
        _exit(3);
    }
    printf("child: %s, parent keeps %d %d\n", wait_text(pid), a[4096], a[8192]);

    memset(a, 6, 16384);
    CHECK(mlock(a + 8192, 4096) == 0);
    CHECK(madvise(a, 16384, MADV_DONTNEED) == -1 && errno == EINVAL);
    printf("dropped up to what is locked: %d %d %d %d\n", a[0], a[4096], a[8192], a[12288]);
    CHECK(madvise(a + 8192, 8192, MADV_DONTNEED) == -1 && a[8192] == 6);
    munlock(a + 8192, 4096);

    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, fn, sizeof fn);
    printf("before %d\n", ((int (*)(void))code)());
    CHECK(madvise(code, 4096, MADV_DONTNEED) == 0);
    /* now zeros: add %al, (%rax), with rax pointing nowhere */
    if (!sigsetjmp(out, 1)) {
        __asm__ volatile("xor %%eax, %%eax\n call *%0" ::"r"(code) : "rax", "memory", "cc");
        puts("FAIL: old code ran");
    } else
        printf("zeroed code: signal %d\n", sig_seen);
    memcpy(code, fn, sizeof fn), code[1] = 44;
    printf("after %d\n", ((int (*)(void))code)());

    CHECK(mprotect(code, 4096, PROT_EXEC) == 0); /* runs, whether or not it can be read */
    printf("execute-only: %d\n", ((int (*)(void))code)());
    CHECK(mprotect(code, 4096, PROT_READ) == 0);
    sig_seen = 0;
    if (!sigsetjmp(out, 1))
        ((int (*)(void))code)(), puts("FAIL: ran without PROT_EXEC");
    else
        printf("not executable: signal %d\n", sig_seen);
    CHECK(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
    printf("again %d\n", ((int (*)(void))code)());
    munmap(code, 4096);
    sig_seen = 0;
    if (!sigsetjmp(out, 1))
        ((int (*)(void))code)(), puts("FAIL: ran after munmap");
    else
        printf("unmapped: signal %d\n", sig_seen);
    CHECK(madvise((char *)1, 4096, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(madvise(a, 4096, 9999) == -1 && errno == EINVAL);
    CHECK(mlock(a, 4096) == 0 && munlock(a, 4096) == 0);
    return finish();
}
