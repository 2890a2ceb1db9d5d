/* RLIMIT_AS and RLIMIT_DATA: what fits is what fits natively, the numbers come back as they were set, and go on over fork and
 * exec; a limit that was reached goes away again. */
#include "guest.h"

#include <sys/resource.h>

#define MB (1ul << 20)

static bool set(int kind, rlim_t soft, rlim_t hard) { return setrlimit(kind, &(struct rlimit){soft, hard}) == 0; }
static void show(const char *what, int kind) {
    struct rlimit r;
    CHECK(getrlimit(kind, &r) == 0);
    printf("%s: %ld %ld\n", what, (long)r.rlim_cur, (long)r.rlim_max);
}
/* How many MB can be mapped: about. The libraries' sizes are in it. */
static long room(int prot, int flags) {
    static void *got[1000];
    long n = 0;
    while (n < 1000 && (got[n] = mmap(NULL, MB, prot, flags | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED) n++;
    for (long i = 0; i < n; i++) munmap(got[i], MB);
    return n;
}
static const char *about(long n, long low, long high) { return n < low ? "too few" : n > high ? "too many" : "right"; }

int main(int argc, char **argv) {
    if (argc > 1) {
        show("after exec, as", RLIMIT_AS);
        show("after exec, data", RLIMIT_DATA);
        printf("after exec: %s\n", about(room(PROT_READ, MAP_PRIVATE), 370, 400));
        return 0;
    }
    CHECK(set(RLIMIT_AS, 400 * MB, RLIM_INFINITY));
    show("as", RLIMIT_AS);
    printf("room: %s\n", about(room(PROT_READ | PROT_WRITE, MAP_PRIVATE), 370, 400));
    printf("room for none: %s\n", about(room(PROT_NONE, MAP_PRIVATE | MAP_NORESERVE), 370, 400));
    CHECK(!malloc(500 * MB) && errno == ENOMEM);
    char *p = mmap(NULL, 100 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && mmap(p, 100 * MB, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == p);
    CHECK(mremap(p, 100 * MB, 450 * MB, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
    munmap(p, 100 * MB);
    CHECK(set(RLIMIT_DATA, 100 * MB, 200 * MB));
    printf("data: %s\n", about(room(PROT_READ | PROT_WRITE, MAP_PRIVATE), 90, 100));
    printf("not data: %s\n", about(room(PROT_READ, MAP_PRIVATE), 370, 400));
    CHECK(sbrk(150 * MB) == (void *)-1 && errno == ENOMEM);
    CHECK(!set(RLIMIT_DATA, 300 * MB, 200 * MB) && errno == EINVAL);
    struct rlimit old;
    CHECK(prlimit(getpid(), RLIMIT_DATA, &(struct rlimit){50 * MB, 150 * MB}, &old) == 0 && old.rlim_cur == 100 * MB);
    pid_t pid = fork();
    if (!pid) {
        show("child, data", RLIMIT_DATA);
        execl("/proc/self/exe", argv[0], "again", NULL);
        _exit(1);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(set(RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY));
    p = mmap(NULL, 900 * MB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return finish();
}
