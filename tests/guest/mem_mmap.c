/* mmap, munmap, mprotect, MAP_FIXED over parts, MAP_FIXED_NOREPLACE, MAP_32BIT, files, mincore, errors. */
#include "guest.h"

static sigjmp_buf out;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    siglongjmp(out, 1);
}
static const char *can(char *p) {
    if (sigsetjmp(out, 1)) return "nothing";
    (void)*(volatile char *)p;
    if (sigsetjmp(out, 1)) return "read";
    *(volatile char *)p = *p;
    return "write";
}

int main(void) {
    handle(SIGSEGV, on, 0), handle(SIGBUS, on, 0);
    char *a = mmap(NULL, 10 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(a, 1, 10 * 4096);
    mprotect(a + 2 * 4096, 4096, PROT_READ);
    mprotect(a + 3 * 4096, 4096, PROT_NONE);
    munmap(a + 4 * 4096, 4096);
    CHECK(mmap(a + 5 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          a + 5 * 4096);
    for (int i = 0; i < 7; i++) printf("%d:%s ", i, can(a + i * 4096));
    printf("value %d then %d\n", a[0], a[5 * 4096]);
    CHECK(mmap(a, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
          errno == EEXIST);
    CHECK(mmap(a + 4 * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          a + 4 * 4096);
    munmap(a + 6 * 4096, 4096);
    CHECK(mprotect(a, 10 * 4096, PROT_READ) == -1 && errno == ENOMEM); /* up to the hole it is done */
    printf("after mprotect over a hole: %s, %s\n", can(a), can(a + 8 * 4096));
    munmap(a, 10 * 4096);

    for (int i = 0; i < 20; i++) {
        char *low = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        CHECK(low != MAP_FAILED && (uintptr_t)low < 1ul << 31);
        low[5] = i;
    }
    char *hint = mmap((void *)0x123400000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hint == (char *)0x123400000000);
    CHECK(mmap((void *)0x10000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)0x10000);
    CHECK(mmap((void *)0xc000000000, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
          (void *)0xc000000000);
    char *tera = mmap(NULL, 1ul << 42, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(tera != MAP_FAILED);
    mprotect(tera + (1ul << 41), 4096, PROT_READ | PROT_WRITE);
    tera[1ul << 41] = 9;
    munmap(tera, 1ul << 42);

    int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(fd, 8192 + 100) == 0);
    char *sh = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
         *pr = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    strcpy(sh, "shared"), strcpy(pr + 4096, "private");
    char buf[16] = "";
    CHECK(pread(fd, buf, 7, 0) == 7 && !strcmp(buf, "shared"));
    CHECK(!strcmp(pr, "shared") && sh[4096] == 0);
    CHECK(pwrite(fd, "SHARED", 6, 0) == 6 && !strcmp(sh, "SHARED") && !strcmp(pr, "SHARED"));
    CHECK(ftruncate(fd, 8192) == 0);
    printf("beyond the end: %s\n", can(sh + 8192));
    CHECK(msync(sh, 4096, MS_SYNC) == 0);
    unlink("mapped"), close(fd);

    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED && errno == EBADF);
    CHECK(mmap((void *)123, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == EINVAL);
    CHECK(munmap((void *)123, 4096) == -1 && errno == EINVAL);
    CHECK(mprotect((void *)0x5000, 4096, PROT_READ) == -1 && errno == ENOMEM);
    CHECK(mmap((void *)-4096ul, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == ENOMEM);
    CHECK(munmap((void *)0x770000000000, 1ul << 32) == 0 || errno == ENOMEM); /* nothing there: fine */
    unsigned char vec[4];
    CHECK(mincore((void *)0x5000, 4096, vec) == -1 && errno == ENOMEM);
    for (int i = 0; i < 3000; i++) { /* many mappings with holes */
        char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            puts("FAIL: mmap");
            break;
        }
        p[0] = 1, munmap(p + 4096, 4096);
        if (i % 3) munmap(p, 4096);
    }
    return finish();
}
