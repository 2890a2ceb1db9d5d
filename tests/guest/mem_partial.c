/* Calls over ranges with holes do what comes before the hole; mappings that lie side by side can be moved as one; a segment is
 * detached however many pieces are left of it. */
#include "guest.h"

#include <sys/shm.h>

#define PAGE 4096ul

static bool is_writable(volatile char *p) {
    pid_t pid = fork();
    if (pid == 0) {
        *p = 1;
        _exit(0);
    }
    return strcmp(wait_text(pid), "exit 0") == 0;
}

/* Pages 0 and 1, a hole, page 3. */
static char *with_hole(int prot) {
    char *p = mmap(NULL, 4 * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 2 * PAGE, PAGE);
    return p;
}

static void protect(void) {
    char *p = with_hole(PROT_READ);
    CHECK(mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
    CHECK(is_writable(p) && is_writable(p + PAGE) && !is_writable(p + 3 * PAGE));
    p[0] = p[PAGE] = 1;
    CHECK(mprotect(p + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
    CHECK(!is_writable(p + 3 * PAGE));
    munmap(p, 4 * PAGE);
}

static void protect_refused(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mmap(p + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == p + PAGE);
    CHECK(mprotect(p, 2 * PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
    CHECK(is_writable(p));
    p[0] = 1;
    munmap(p, 2 * PAGE);
    close(fd);
}

static void discard(void) {
    char *p = with_hole(PROT_READ | PROT_WRITE);
    memset(p, 1, 2 * PAGE);
    memset(p + 3 * PAGE, 1, PAGE);
    CHECK(madvise(p, 4 * PAGE, MADV_DONTNEED) == -1 && errno == ENOMEM);
    printf("discarded: %d %d %d\n", p[0], p[PAGE], p[3 * PAGE]);
    munmap(p, 4 * PAGE);
}

static void move_two(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    char *p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == p);
    char *q = mremap(p, 3 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED);
    CHECK(q != MAP_FAILED && memcmp(q, "\177ELF", 4) == 0);
    close(fd);
}

static void detach(void) {
    int id = shmget(IPC_PRIVATE, 4 * PAGE, 0600);
    struct shmid_ds ds;
    char *p = shmat(id, NULL, 0);
    CHECK(munmap(p, PAGE) == 0);
    CHECK(shmdt(p) == 0);
    CHECK(shmdt(p) == -1 && errno == EINVAL);
    p = shmat(id, NULL, 0);
    CHECK(munmap(p + PAGE, PAGE) == 0);
    CHECK(mprotect(p + 3 * PAGE, PAGE, PROT_READ) == 0);
    CHECK(shmdt(p + 2 * PAGE) == -1 && errno == EINVAL);
    CHECK(shmdt(p) == 0);
    CHECK(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 0);
    CHECK(msync(p + 3 * PAGE, PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
    shmctl(id, IPC_RMID, NULL);
}

int main(void) {
    protect();
    protect_refused();
    discard();
    move_two();
    detach();
    return finish();
}
