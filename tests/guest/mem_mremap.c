/* mremap: in place, moved, fixed, shrinking, of shared memory, of executable code; the old place is gone. */
#include "guest.h"

static sigjmp_buf out;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    siglongjmp(out, 1);
}
static bool readable(char *p) {
    if (sigsetjmp(out, 1)) return false;
    (void)*(volatile char *)p;
    return true;
}

int main(void) {
    handle(SIGSEGV, on, 0);
    char *a = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(a, "start"), strcpy(a + 3 * 4096, "end");
    char *b = mremap(a, 4 * 4096, 100 * 4096, MREMAP_MAYMOVE);
    CHECK(b != MAP_FAILED && !strcmp(b, "start") && !strcmp(b + 3 * 4096, "end") && b[99 * 4096] == 0);
    CHECK(mremap(b, 100 * 4096, 2 * 4096, 0) == b);
    CHECK(!readable(b + 3 * 4096));
    char *c = (char *)0x234500000000;
    CHECK(mremap(b, 2 * 4096, 2 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, c) == c);
    CHECK(!strcmp(c, "start") && !readable(b));
    char *d = mremap(c, 2 * 4096, 2 * 4096, MREMAP_MAYMOVE | 4 /* DONTUNMAP */, NULL);
    CHECK(d != MAP_FAILED && !strcmp(d, "start") && c[0] == 0);

    /* code moves: the old address faults, the new one runs */
    static const uint8_t fn[] = {0xb8, 0x2a, 0, 0, 0, 0xc3};
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, fn, sizeof fn);
    CHECK(((int (*)(void))code)() == 42);
    char *place = (char *)0x234600000000;
    CHECK(mremap(code, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    CHECK(((int (*)(void))place)() == 42);
    volatile bool faulted = true;
    if (!sigsetjmp(out, 1)) ((int (*)(void))code)(), faulted = false;
    CHECK(faulted);
    uint8_t *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(other, fn, sizeof fn), other[1] = 43; /* different code comes to the same address */
    CHECK(mremap(other, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    printf("code at the old place: %d\n", ((int (*)(void))place)());

    int fd = memfd_create("m", 0);
    CHECK(ftruncate(fd, 8192) == 0);
    char *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy(s, "x");
    char *s2 = mremap(s, 0, 4096, MREMAP_MAYMOVE); /* a second view of shared memory */
    CHECK(s2 != MAP_FAILED && s2 != s);
    s2[0] = 'y';
    CHECK(s[0] == 'y');
    CHECK(mremap(a + 1, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap((void *)0x5000, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    return finish();
}
