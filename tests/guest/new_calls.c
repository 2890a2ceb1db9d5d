/* Calls that Linux 6.x has added: each prints what it answers, here ENOSYS with an older kernel. */
#include "guest.h"

enum {
    NR_memfd_secret = 447,
    NR_cachestat = 451,
    NR_fchmodat2 = 452,
    NR_futex_wake = 454,
    NR_futex_wait = 455,
    NR_futex_requeue = 456,
    NR_statmount = 457,
    NR_listmount = 458,
    NR_lsm_list_modules = 461,
    NR_mseal = 462,
    NR_setxattrat = 463,
    NR_getxattrat = 464,
    NR_listxattrat = 465,
    NR_file_getattr = 468,
    NR_uretprobe = 335,
};
#define U32_PRIVATE (2 | 128)

static void show(const char *what, long ret) { printf("%s: %ld %s\n", what, ret, ret < 0 ? strerror(errno) : ""); }

static uint32_t sum(const void *p, size_t n) {
    const unsigned char *b = p;
    uint32_t h = 0;
    while (n--) h = h * 31 + *b++;
    return h;
}

/* ---- memory ---- */

static void secret(void) {
    int fd = (int)syscall(NR_memfd_secret, 0);
    if (fd < 0) return show("memfd_secret", fd);
    CHECK(ftruncate(fd, 8192) == 0);
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    strcpy(p + 4000, "kept");
    munmap(p, 8192);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fork() == 0) {
        strcat(p + 4000, " secret");
        _exit(0);
    }
    wait(NULL);
    printf("%s %d\n", p + 4000, p[0]);
    show("read", read(fd, p, 1));
    munmap(p, 8192);
    close(fd);
}

static void seal(void) {
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    show("mseal", syscall(NR_mseal, p, 4096, 0));
    show("munmap", munmap(p, 8192));
    strcpy(p, "written");
    show("mprotect", mprotect(p, 4096, PROT_READ));
    show("madvise", madvise(p, 4096, MADV_DONTNEED));
    printf("%s\n", p);
}

/* ---- futexes ---- */

static uint32_t word, other;
static int waiting;

static void *wait_for_word(void *arg) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    return (void *)syscall(NR_futex_wait, &word, 0, ~0u, U32_PRIVATE, NULL, 0);
}

static void futexes(void) {
    struct timespec past = {0, 1};
    struct {
        uint64_t value, at;
        uint32_t flags, reserved;
    } pair[2] = {{0, (uint64_t)&word, U32_PRIVATE, 0}, {0, (uint64_t)&other, U32_PRIVATE, 0}};
    long ret = syscall(NR_futex_wait, &word, 0, ~0u, U32_PRIVATE, &past, CLOCK_MONOTONIC);
    show("futex_wait", ret);
    if (errno == ENOSYS) return;
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, wait_for_word, NULL);
    int woken = 0, moved = 0;
    while (woken + moved < 3) { /* some may not wait yet */
        ret = syscall(NR_futex_requeue, pair, 0, 1 - woken, 3);
        CHECK(ret >= 0);
        int all = (int)ret;
        if (all && !woken) woken = 1, all--;
        moved += all;
        usleep(1000);
    }
    int rest = 0;
    while (rest < 2) rest += (int)syscall(NR_futex_wake, &other, ~0u, 10, U32_PRIVATE);
    for (int i = 0; i < 3; i++) {
        void *got;
        pthread_join(t[i], &got);
        CHECK(got == NULL);
    }
    printf("woken %d, moved %d\n", woken, moved);
}

/* ---- files ---- */

static void attributes(void) {
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    char buf[8192];
    memset(buf, 7, sizeof buf);
    CHECK(write(fd, buf, sizeof buf) == sizeof buf);
    uint64_t range[2] = {0, sizeof buf}, pages[5] = {0};
    show("cachestat", syscall(NR_cachestat, fd, range, pages, 0));
    CHECK(pages[0] <= 2);
    show("fchmodat2", syscall(NR_fchmodat2, fd, "", 0640, AT_EMPTY_PATH));
    struct {
        uint64_t value;
        uint32_t size, flags;
    } arg = {(uint64_t) "hello", 5, 0};
    show("setxattrat", syscall(NR_setxattrat, AT_FDCWD, "file", 0, "user.tested", &arg, sizeof arg));
    arg.value = (uint64_t)buf;
    arg.size = 64;
    show("getxattrat", syscall(NR_getxattrat, AT_FDCWD, "file", 0, "user.tested", &arg, sizeof arg));
    printf("%x\n", sum(buf, sizeof buf));
    show("listxattrat", syscall(NR_listxattrat, AT_FDCWD, "file", 0, buf + 100, 64));
    printf("%x\n", sum(buf, sizeof buf));
    memset(buf, 7, sizeof buf);
    show("file_getattr", syscall(NR_file_getattr, AT_FDCWD, "file", buf, 64, 0));
    show("beyond it", (buf[24] << 8) | buf[64]);
}

static void mounts(void) {
    struct {
        uint32_t size, spare;
        uint64_t id, param;
    } ask = {24, 0, UINT64_MAX, 0};
    uint64_t ids[4] = {0};
    char buf[4096];
    long ret = syscall(NR_listmount, &ask, ids, 1, 0);
    show("listmount", ret);
    ask.id = ids[0];
    ask.param = 0x18 /* its root and place */;
    memset(buf, 7, sizeof buf);
    ret = syscall(NR_statmount, &ask, buf, sizeof buf, 0);
    show("statmount", ret);
    printf("%x\n", sum(buf, sizeof buf));
    uint32_t size = 1;
    show("lsm_list_modules", syscall(NR_lsm_list_modules, buf, &size, 0));
    printf("%u\n", size);
}

/* Only the kernel's own code may make this call: others die, or there is none. */
static void not_for_us(void) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(syscall(NR_uretprobe) == -1 && errno == ENOSYS ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0 || (status & 0x7f) == SIGILL);
}

int main(void) {
    secret();
    seal();
    futexes();
    attributes();
    mounts();
    not_for_us();
    return finish();
}
