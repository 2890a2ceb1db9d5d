/* mlockall() within RLIMIT_MEMLOCK, without privileges: only what the program has mapped counts. */
#include "guest.h"

#include <sys/resource.h>

static void show(const char *what, int ret) { printf("%s: %d %s\n", what, ret, ret < 0 ? strerror(errno) : ""); }

static void limit(rlim_t bytes) {
    struct rlimit r = {bytes, bytes};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &r) == 0);
}

int main(void) {
    struct rlimit now;
    getrlimit(RLIMIT_MEMLOCK, &now);
    if (now.rlim_max < 8 << 20 && geteuid() != 0) return 77;
    limit(8 << 20);
    if (geteuid() == 0) CHECK(setresuid(65534, 65534, 65534) == 0);
    show("now", mlockall(MCL_CURRENT));
    show("now, when touched", mlockall(MCL_CURRENT | MCL_ONFAULT));
    CHECK(munlockall() == 0);
    show("later", mlockall(MCL_FUTURE));
    void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *q = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d %d\n", p != MAP_FAILED, q != MAP_FAILED);
    CHECK(munlockall() == 0);
    limit(8192);
    show("too much", mlockall(MCL_CURRENT));
    show("two pages", mlock(p, 8192));
    show("three pages", mlock(p, 12288));
    show("no such flag", mlockall(77));
    limit(0);
    show("none", mlockall(MCL_CURRENT));
    return finish();
}
