// cflags: -Wno-infinite-recursion
/* The stack ends where its limit says, also when that was lowered, and a gap above what the program has mapped below it. What was used
 * before stays. */
#include "guest.h"

#include <sys/resource.h>

#define KB 1024ul
#define MB (1024 * KB)

static sigjmp_buf out;
static char *top, *where;
static char alternate[65536];

static void on(int sig, siginfo_t *si, void *uc) {
    where = si->si_addr;
    siglongjmp(out, 1);
}

__attribute__((noinline, noipa)) static int eat(int n) {
    volatile char pad[500];
    pad[0] = (char)n;
    return eat(n + 1) + pad[0];
}

__attribute__((noinline, noipa)) static long deep(long bytes) {
    volatile char page[4000];
    page[bytes % sizeof page] = 1;
    return bytes > 0 ? deep(bytes - 4096) + page[bytes % sizeof page] : 0;
}

/* How far it gets, to a whole number of `unit`: arguments and environment are above us. */
static void overflow(const char *what, unsigned long unit) {
    where = NULL;
    if (sigsetjmp(out, 1) == 0) eat(0);
    printf("%s: %lu\n", what, (unsigned long)(top - where + unit / 2) / unit);
}

static void set(unsigned long bytes) {
    struct rlimit r;
    getrlimit(RLIMIT_STACK, &r);
    r.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_STACK, &r) == 0);
}

static char *map(char *at, int flags) {
    return mmap(at, 64 * KB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void limits(void) {
    set(1 * MB);
    overflow("1 MB", MB);
    overflow("again", MB);
    set(4 * MB);
    overflow("4 MB", MB);
    set(2 * MB);
    overflow("2 MB, but 4 are there", MB);
    set(6 * MB);
    printf("%d\n", deep(5 * MB) > 1000);
    overflow("6 MB", MB);
}

static void neighbour(void) {
    set(8 * MB);
    char *low = (char *)((uintptr_t)top & ~(MB - 1)) - 5 * MB; /* its end is 64 KB above */
    char *got = map(low, MAP_FIXED_NOREPLACE);
    printf("mapped below: %d\n", got == low);
    memset(low, 7, 64 * KB);
    char *high = low + 64 * KB;
    where = NULL;
    if (sigsetjmp(out, 1) == 0) eat(0);
    printf("stopped a gap above: %d\n", where >= high + MB - 8 * KB && where < high + MB);
    int changed = 0;
    for (unsigned long i = 0; i < 64 * KB; i++) changed += low[i] != 7;
    printf("changed %d\n", changed);
    munmap(low, 64 * KB);
    printf("%d\n", deep(7 * MB) > 1000);
    printf("in use: %d\n", map(low, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST);
}

/* Memory that nobody can touch stops it, too, but without a gap. */
static void inaccessible(void) {
    set(8 * MB);
    char *low = (char *)((uintptr_t)top & ~(MB - 1)) - 3 * MB, *high = low + 64 * KB;
    printf("mapped below: %d\n",
           mmap(low, 64 * KB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == low);
    where = NULL;
    if (sigsetjmp(out, 1) == 0) eat(0);
    printf("stopped at it: %d\n", where < high && where >= high - 8 * KB);
    printf("still there: %d\n", map(low, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST);
    munmap(low, 64 * KB);
    printf("%d\n", deep(7 * MB) > 1000);
}

static void child(const char *what, void (*f)(void)) {
    printf("-- %s\n", what);
    pid_t pid = fork();
    if (pid == 0) {
        f();
        _exit(0);
    }
    printf("%s\n", wait_text(pid));
}

static void started_with(char **argv, unsigned long bytes, const char *arg) {
    pid_t pid = fork();
    if (pid == 0) {
        set(bytes);
        execl("/proc/self/exe", argv[0], arg, NULL);
        _exit(1);
    }
    printf("%s\n", wait_text(pid));
}

int main(int argc, char **argv) {
    top = (char *)__builtin_frame_address(0);
    stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&ss, NULL);
    handle(SIGSEGV, on, SA_ONSTACK);
    if (argc > 1) {
        overflow(argv[1], MB);
        return 0;
    }
    child("limits", limits);
    child("a neighbour", neighbour);
    child("a neighbour that nobody can touch", inaccessible);
    started_with(argv, 2 * MB, "2 MB from the start");
    started_with(argv, 20 * MB, "20 MB from the start");
    return finish();
}
