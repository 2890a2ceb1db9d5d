#include "replay/gather.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "controller/channel_host.h"
#include "controller/complain.h"
#include "log/page_log.h"
#include "replay/write_at.h"

#define LOOK_US 5000
#define BYTES_MOST (16ll << 30) /* of a page log */

/* ---- one that is there ---- */

static uint64_t identity(const struct recording *r) {
    uint64_t h = r->n_frames;
    for (size_t i = 0; i < r->n_frames; i++) h = h * 0x9e3779b97f4a7c15ull ^ r->frames[i].head.head_hash;
    return h;
}

static uint64_t head_hash(const struct page_log_head *h) {
    return XXH3_64bits(h, offsetof(struct page_log_head, head_hash));
}

/* Whether it is whole, and this recording's. */
static bool is_right(int fd, uint64_t recording) {
    struct page_log_head h;
    struct stat st;
    if (pread(fd, &h, sizeof h, 0) != sizeof h || fstat(fd, &st) != 0) return false;
    if (h.magic != PAGE_LOG_MAGIC || h.head_hash != head_hash(&h) || h.recording != recording) return false;
    if (h.size != (uint64_t)st.st_size || h.size < PAGE_LOG_START) return false;
    const char *p = mmap(NULL, h.size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return false;
    bool right = XXH3_64bits(p + PAGE_LOG_START, h.size - PAGE_LOG_START) == h.hash;
    munmap((void *)p, h.size);
    return right;
}

static int open_kept(const struct recording *r) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" PAGE_LOG_FILE, r->dir);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || is_right(fd, identity(r))) return fd;
    close(fd);
    return -1;
}

/* ---- a new one ---- */

struct making {
    const struct recording *recording;
    int fd;
    bool can_be_kept;
    char *why;
    size_t cap;
};

static bool fail(struct making *m, const char *what) {
    snprintf(m->why, m->cap, "%s", what);
    return false;
}

static bool make_file(struct making *m) {
    m->fd = open(m->recording->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    m->can_be_kept = m->fd >= 0;
    if (m->fd < 0) m->fd = memfd_create("reprise-pages", MFD_CLOEXEC);
    if (m->fd >= 0 && ftruncate(m->fd, PAGE_LOG_START) == 0) return true;
    return fail(m, "no room for what processes share");
}

/* In the child: this command, as if the user had asked for it. */
static void become_replay(const struct making *m) {
    char file[64], number[16];
    snprintf(file, sizeof file, "/proc/self/fd/%d", m->fd);
    int append = open(file, O_WRONLY | O_APPEND), null = open("/dev/null", O_RDWR);
    if (append < 0 || null < 0) _exit(EXIT_OURS);
    dup2(null, 0);
    dup2(null, 1);
    limits_restore();
    snprintf(number, sizeof number, "%d", append);
    execl("/proc/self/exe", "reprise", "replay", "--gather", number, m->recording->dir, NULL);
    _exit(EXIT_OURS);
}

static bool run(struct making *m, const uint32_t *stop) {
    struct stat st;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) become_replay(m);
    if (pid < 0) return fail(m, "cannot start a process");
    bool stopped = false, large = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        stopped = __atomic_load_n(stop, __ATOMIC_ACQUIRE);
        large = fstat(m->fd, &st) == 0 && st.st_size > BYTES_MOST;
        if (stopped || large) kill(pid, SIGTERM);
        usleep(LOOK_US);
    }
    if (stopped) return fail(m, "interrupted");
    if (large) return fail(m, "processes share more than can be kept");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    return fail(m, "all processes of the recording must be replayed, for the memory that they share: that fails");
}

static int compare(const void *a, const void *b) {
    const struct page_log_entry *x = a, *y = b;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

/* Entries for the records in [PAGE_LOG_START, end) of `bytes`; free(). NULL: out of memory. */
static struct page_log_entry *list_records(const char *bytes, uint64_t end, size_t *n) {
    size_t room = 1024;
    struct page_log_entry *list = malloc(room * sizeof *list);
    *n = 0;
    for (uint64_t at = PAGE_LOG_START; list && at + sizeof(struct page_log_record) <= end;) {
        struct page_log_record r;
        memcpy(&r, bytes + at, sizeof r);
        if (*n == room) {
            struct page_log_entry *more = realloc(list, (room *= 2) * sizeof *list);
            if (!more) free(list);
            list = more;
            if (!list) return NULL;
        }
        list[(*n)++] = (struct page_log_entry){r.stream, r.event, at};
        at += sizeof r + (uint64_t)__builtin_popcountll(r.blocks) * PAGE_LOG_BLOCK;
    }
    if (list) qsort(list, *n, sizeof *list, compare);
    return list;
}

static bool write_index(struct making *m) {
    struct stat st;
    size_t n = 0;
    if (fstat(m->fd, &st) != 0) return false;
    uint64_t end = (uint64_t)st.st_size;
    char *bytes = mmap(NULL, end, PROT_READ, MAP_SHARED, m->fd, 0);
    if (bytes == MAP_FAILED) return false;
    struct page_log_entry *list = list_records(bytes, end, &n);
    bool good = list && write_at(m->fd, list, n * sizeof *list, end);
    munmap(bytes, end);
    free(list);
    struct page_log_head h = {PAGE_LOG_MAGIC, identity(m->recording), end + n * sizeof *list, end, n, 0, 0};
    bytes = good ? mmap(NULL, h.size, PROT_READ, MAP_SHARED, m->fd, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) return false;
    h.hash = XXH3_64bits(bytes + PAGE_LOG_START, h.size - PAGE_LOG_START);
    munmap(bytes, h.size);
    h.head_hash = head_hash(&h);
    return write_at(m->fd, &h, sizeof h, 0);
}

/* If that fails it is for this time only. */
static void keep(const struct making *m) {
    char path[PATH_MAX], file[64];
    if (!m->can_be_kept) return;
    snprintf(path, sizeof path, "%s/" PAGE_LOG_FILE, m->recording->dir);
    snprintf(file, sizeof file, "/proc/self/fd/%d", m->fd);
    unlink(path);
    (void)!linkat(AT_FDCWD, file, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int gather(const struct recording *r, const uint32_t *stop, char *why, size_t cap) {
    int fd = open_kept(r);
    if (fd >= 0) return fd;
    struct making m = {.recording = r, .fd = -1, .why = why, .cap = cap};
    bool good = make_file(&m) && run(&m, stop);
    if (good && !write_index(&m)) good = fail(&m, "what processes share cannot be written");
    if (good) keep(&m);
    if (good) return m.fd;
    if (m.fd >= 0) close(m.fd);
    return -1;
}
