// cflags: -no-pie -fno-pie
/* 32-bit system calls from 64-bit code, also into pages with code; and the three calls of the vsyscall page. */
#include "kw_page.h"
#include <sys/utsname.h>

static long int80(long nr, long a, long b, long c, long d) {
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(0l)
                     : "memory", "r8", "r9", "r10", "r11");
    return r;
}

static char low[1024];
static volatile int handled;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    handled++;
}

int main(void) {
    int p[2];
    CHECK(int80(42 /* pipe */, (long)low, 0, 0, 0) == 0);
    memcpy(p, low, 8);
    CHECK(write(p[1], "through", 7) == 7 && int80(3 /* read */, p[0], (long)low, 100, 0) == 7 &&
          !memcmp(low, "through", 7));
    CHECK(int80(13 /* time */, 0, 0, 0, 0) == time(NULL) || int80(13, 0, 0, 0, 0) == time(NULL));
    CHECK(int80(122 /* uname */, (long)low, 0, 0, 0) >= 0 && !strcmp(low, "Linux"));
    CHECK(int80(265 /* clock_gettime */, CLOCK_REALTIME, (long)low, 0, 0) == 0 && *(int *)low > 1000000);
    CHECK(int80(64 /* getppid */, 0, 0, 0, 0) == getppid() && int80(224 /* gettid */, 0, 0, 0, 0) == gettid());
    strcpy(low, ".");
    CHECK(int80(195 /* stat64 */, (long)low, (long)low + 100, 0, 0) == 0);
    CHECK(int80(3, 99, (long)low, 10, 0) == -EBADF);
    pid_t pid = int80(2 /* fork */, 0, 0, 0, 0);
    if (!pid) int80(1 /* exit */, 6, 0, 0, 0);
    CHECK(pid > 0 && int80(7 /* waitpid */, pid, (long)low, 0, 0) == pid && WEXITSTATUS(*(int *)low) == 6);
    handle(SIGUSR1, on, 0);
    CHECK(int80(37 /* kill */, getpid(), SIGUSR1, 0, 0) == 0);
    CHECK(handled == 1);
    puts("int 0x80");

    uint8_t *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    page[0] = 0xb8, page[1] = 7, page[5] = 0xc3;
    for (int i = 0; i < 3; i++) {
        CHECK(((int (*)(void))page)() == 7);
        CHECK(write(p[1], "abc", 3) == 3 && int80(3, p[0], (long)page + 100, 10, 0) == 3 &&
              !memcmp(page + 100, "abc", 3));
        CHECK(((int (*)(void))page)() == 7 && int80(122, (long)page + 200, 0, 0, 0) >= 0 &&
              !memcmp(page + 200, "Linux", 6));
    }
    puts("into code pages");

    static char maps[1 << 16];
    slurp("/proc/self/maps", maps, sizeof maps);
    if (has_text(maps, "[vsyscall]")) {
        struct timeval tv = {0};
        unsigned cpu = 9999, node = 9999;
        CHECK(((int (*)(void *, void *))0xffffffffff600000)(&tv, NULL) == 0 && labs(tv.tv_sec - time(NULL)) <= 1);
        time_t t = 0;
        CHECK(((time_t(*)(time_t *))0xffffffffff600400)(&t) == t && labs(t - time(NULL)) <= 1);
        CHECK(((long (*)(void *, void *, void *))0xffffffffff600800)(&cpu, &node, NULL) == 0 && cpu < 9999);
        KW("vsyscall into a code page",
           CHECK(((int (*)(void *, void *))0xffffffffff600000)(out, NULL) == 0 && *(long *)out > 1000000););
    } else
        puts("vsyscall into a code page: ok");
    return finish();
}
