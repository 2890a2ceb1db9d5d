/* Files of /proc about the program itself, answered from what the program knows.
 * Which file a path means is asked of the kernel, which knows links, mounts and working directories: it is opened with
 * O_PATH and its name is read back. Texts are put into a memory file that takes the place of the kernel's. */
#include "sphere/sys/proc_files.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/runtime.h"
#include "sphere/signals.h"
#include "sphere/sys/proc_maps.h"
#include "sphere/sys/proc_text.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"
#include "sphere/trace_table.h"

#define PROC_MAGIC 0x9fa0
#define NAME_CAP 256
#define ACCESS_MODE 3

/* ---- which file ---- */

static const struct {
    const char *name;
    enum proc_what what;
} leaves[] = {
    {"exe", PROC_EXE},          {"maps", PROC_MAPS},    {"smaps", PROC_SMAPS},      {"numa_maps", PROC_NUMA_MAPS},
    {"status", PROC_STATUS},    {"stat", PROC_STAT},    {"cmdline", PROC_CMDLINE},  {"environ", PROC_ENVIRON},
    {"auxv", PROC_AUXV},        {"fd", PROC_FOLDER_FD}, {"fdinfo", PROC_FOLDER_FD}, {"map_files", PROC_FOLDER_MAPS},
    {"task", PROC_FOLDER_TASK},
};

/* A whole string of digits; -1 otherwise. */
static int whole_number(const char *s, size_t n) {
    int v = 0;
    if (n == 0 || n > 9) return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

static bool is_word(const char *s, size_t n, const char *word) { return strlen(word) == n && memcmp(s, word, n) == 0; }

/* The word before `end`, which is cut off with its slash; its length. */
static size_t last_word(const char *text, size_t *end, const char **word) {
    size_t stop = *end;
    size_t start = stop;
    while (start > 0 && text[start - 1] != '/') start--;
    *word = text + start;
    *end = start ? start - 1 : 0;
    return stop - start;
}

/* LO-HI, as the kernel writes it. */
static bool is_range(const char *word, size_t n, gaddr *lo, gaddr *hi) {
    char canonical[40];
    const char *s = word;
    *lo = read_hex(&s);
    if (s == word || *s++ != '-') return false;
    *hi = read_hex(&s);
    return fmt_into(canonical, sizeof canonical, "%lx-%lx", *lo, *hi) == n && memcmp(canonical, word, n) == 0;
}

static bool maybe(const char *path) {
    size_t end = strlen(path);
    const char *word;
    while (end && path[end - 1] == '/') end--;
    size_t n = last_word(path, &end, &word);
    if (n == 0) return false;
    if (word[0] >= '0' && word[0] <= '9') return fd_is_own((uint64_t)whole_number(word, n));
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
        if (word[0] == leaves[i].name[0] && is_word(word, n, leaves[i].name)) return true;
    return false;
}

/* Our own number as /proc gives it: in a new PID namespace that is not what getpid() says. */
static int own_pid(void) {
    char link[32];
    long n = SYS(readlink, "/proc/self", link, sizeof link);
    int pid = n > 0 ? whole_number(link, (size_t)n) : -1;
    return pid > 0 ? pid : (int)SYS(getpid);
}

static struct thread *thread_by_tid(int tid) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->tid == tid) return t;
    return NULL;
}

/* Whether that process runs out of the same runtime's file as we do. */
static bool is_ours(int pid) {
    char link[48];
    struct stat own, its;
    fmt_into(link, sizeof link, "/proc/%d/exe", pid);
    return SYS(newfstatat, fd_own(), "", &own, AT_EMPTY_PATH) == 0 && SYS(newfstatat, AT_FDCWD, link, &its, 0) == 0 &&
           own.st_ino == its.st_ino && own.st_dev == its.st_dev;
}

/* PID, or PID/task/TID, at the end of text[0..end). */
static bool read_process(const char *text, size_t end, struct proc_file *out) {
    const char *word;
    size_t n = last_word(text, &end, &word);
    int self = own_pid();
    out->pid = out->tid = is_word(word, n, "self") ? self : whole_number(word, n);
    if (is_word(word, n, "thread-self")) out->pid = self, out->tid = (int)SYS(gettid);
    if (out->pid < 0) return false;
    n = last_word(text, &end, &word);
    if (is_word(word, n, "task")) {
        n = last_word(text, &end, &word);
        out->pid = is_word(word, n, "self") ? self : whole_number(word, n);
    }
    struct thread *t = out->pid == self ? NULL : thread_by_tid(out->pid); /* /proc/TID works, too */
    out->self = out->pid == self || (t && t->process == thread_self()->process && out->pid == out->tid);
    return out->self || (out->pid > 0 && is_ours(out->pid));
}

/* From the end of a name: .../PID/leaf, .../PID/task/TID/leaf, .../fd/N. */
static bool parse(const char *text, struct proc_file *out) {
    size_t end = strlen(text);
    const char *word;
    size_t n = last_word(text, &end, &word);
    int number = whole_number(word, n);
    if (number >= 0) {
        if (!fd_is_own((uint64_t)number)) return false;
        n = last_word(text, &end, &word);
        out->what = PROC_OWN_FD;
        return (is_word(word, n, "fd") || is_word(word, n, "fdinfo")) && read_process(text, end, out);
    }
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
        if (is_word(word, n, leaves[i].name)) {
            out->what = leaves[i].what;
            return read_process(text, end, out);
        }
    return false;
}

/* Asking for the file system is slow with those that sum up what is free: those on a device are told apart before. */
static bool in_proc(int fd) {
    struct stat st;
    struct statfs fs;
    if (SYS(fstat, fd, &st) != 0 || (st.st_dev >> 8 & 0xfff) != 0) return false;
    return SYS(fstatfs, fd, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

bool proc_find_fd(int fd, struct proc_file *out) {
    char link[32], name[NAME_CAP];
    if (!in_proc(fd)) return false;
    fmt_into(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = SYS(readlink, link, name, sizeof name - 1);
    if (n <= 0) return false;
    name[n] = '\0';
    return parse(name, out);
}

/* map_files/LO-HI, or LO-HI in a folder that is open. The kernel may have no such link. */
static bool find_link(int dirfd, const char *path, struct proc_file *out) {
    char folder[NAME_CAP];
    size_t len = strlen(path), end = len;
    const char *word;
    size_t n = last_word(path, &end, &word);
    gaddr lo, hi;
    if (likely(!is_range(word, n, &lo, &hi)) || len >= sizeof folder) return false;
    memcpy(folder, path, len - n);
    folder[len - n] = '\0';
    n = last_word(path, &end, &word);
    if (folder[0] && !is_word(word, n, "map_files")) return false;
    long fd = SYS(openat, dirfd, folder[0] ? folder : ".", O_PATH | O_CLOEXEC);
    if (fd < 0) return false;
    bool found = proc_find_fd((int)fd, out) && out->what == PROC_FOLDER_MAPS && out->self;
    SYS(close, fd);
    out->what = PROC_MAP_LINK;
    out->lo = lo;
    out->hi = hi;
    return found;
}

bool proc_find(int dirfd, const char *path, struct proc_file *out) {
    if (unlikely(find_link(dirfd, path, out))) return true;
    if (likely(!maybe(path))) return false;
    long fd = SYS(openat, dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -EMFILE && str_starts(path, "/proc/")) return parse(path, out);
    if (fd < 0) return false;
    bool found = proc_find_fd((int)fd, out);
    SYS(close, fd);
    return found;
}

bool proc_folder(int fd, struct proc_file *out) {
    return proc_find_fd(fd, out) &&
           (out->what == PROC_FOLDER_FD || out->what == PROC_FOLDER_MAPS || out->what == PROC_FOLDER_TASK);
}

/* Threads of this process that are the runtime's own. */
static bool is_service(const struct thread *t) { return t->in_use && t->service && t->tid; }

uint64_t proc_services(const struct proc_file *f) {
    uint64_t n = 0;
    if (!the_channel) return 0;
    if (!f->self) return task_services(f->pid);
    for (struct thread *t = threads_first(); t; t = t->next) n += is_service(t);
    return n;
}

/* `tid` is a thread's number in our namespace; names in folders of /proc are those of its mount, which are the same unless the
 * process has left for another one. */
static bool is_service_tid(int tid) {
    struct thread *t = tid > 0 ? thread_by_tid(tid) : NULL;
    return t && is_service(t);
}

bool proc_hides(const struct proc_file *folder, const char *name) {
    if (folder->what == PROC_FOLDER_TASK) {
        int tid = whole_number(name, strlen(name));
        return folder->self ? is_service_tid(tid) : the_channel && tid > 0 && task_is_service(tid);
    }
    if (folder->what == PROC_FOLDER_FD) return fd_is_own((uint64_t)whole_number(name, strlen(name)));
    if (name[0] == '.') return false;
    uint64_t lo = read_hex(&name);
    return aspace_is_runtime(lo, PAGE_SIZE);
}

/* ---- map_files ---- */

static bool is_link(const struct maps_link *l, void *wanted) {
    struct maps_link *w = wanted;
    if (l->start != w->start || l->end != w->end) return l->start < w->start;
    *w = *l;
    return false;
}

bool proc_map_link(const struct proc_file *f, const char *path, char *out, size_t cap) {
    struct maps_link l = {.start = f->lo, .end = f->hi};
    const char *word;
    size_t end = strlen(path);
    maps_each_link(is_link, &l);
    last_word(path, &end, &word);
    if (!l.kernel_end || (size_t)(word - path) >= cap) return false;
    memcpy(out, path, (size_t)(word - path));
    return fmt_into(out + (word - path), cap - (size_t)(word - path), "%lx-%lx", l.kernel_start, l.kernel_end);
}

struct listing {
    int fd;
    bool wide; /* getdents64 */
    char *records;
    size_t cap, len;
    uint64_t at, from; /* number of the entry; of the first that is wanted */
    bool is_full;
};

/* `kernels`: its name in the kernel's folder. */
static bool add_entry(struct listing *l, const char *name, const char *kernels, uint8_t type) {
    struct stat st = {0};
    size_t head = l->wide ? 19 : 18, size = (head + strlen(name) + (l->wide ? 1 : 2) + 7) & ~7ul;
    if (l->at++ < l->from) return true;
    l->is_full = l->len + size > l->cap;
    if (l->is_full) return false;
    SYS(newfstatat, l->fd, kernels, &st, AT_SYMLINK_NOFOLLOW);
    char *r = l->records + l->len;
    uint16_t reclen = (uint16_t)size;
    memset(r, 0, size);
    memcpy(r, &(uint64_t){st.st_ino}, 8);
    memcpy(r + 8, &l->at, 8); /* the next one */
    memcpy(r + 16, &reclen, 2);
    memcpy(r + head, name, strlen(name));
    r[l->wide ? 18 : size - 1] = (char)type;
    l->len += size;
    return true;
}

static bool add_link(const struct maps_link *m, void *arg) {
    char name[40], kernels[40];
    fmt_into(name, sizeof name, "%lx-%lx", m->start, m->end);
    fmt_into(kernels, sizeof kernels, "%lx-%lx", m->kernel_start, m->kernel_end);
    return add_entry(arg, name, kernels, 10 /* DT_LNK */);
}

long proc_list_links(int fd, bool wide, char *records, size_t cap) {
    enum { FOLDER = 4 /* DT_DIR */ };
    long from = SYS(lseek, fd, 0, 1 /* SEEK_CUR */);
    if (from < 0) return from;
    struct listing l = {.fd = fd, .wide = wide, .records = records, .cap = cap, .from = (uint64_t)from};
    if (add_entry(&l, ".", ".", FOLDER) && add_entry(&l, "..", "..", FOLDER)) maps_each_link(add_link, &l);
    if (l.is_full) l.at--;
    if (l.is_full && !l.len) return -EINVAL;
    if (l.len) SYS(lseek, fd, l.at, 0 /* SEEK_SET */);
    return (long)l.len;
}

/* ---- status, stat ---- */

struct masks {
    uint64_t blocked, ignored, caught;
    uint64_t pending, shared_pending; /* kept from the kernel */
};

static void collect_masks(const struct thread *t, struct masks *m) {
    *m = (struct masks){.blocked = t->sigmask, .pending = signals_held_for(t, true)};
    for (const struct thread *o = threads_first(); o; o = o->next)
        if (o->in_use && o->process == t->process) m->shared_pending |= signals_held_for(o, false);
    for (int s = 1; s <= NSIG_MAX; s++) {
        uint64_t handler = t->process->action[s].handler;
        if (handler == 1) m->ignored |= SIG_BIT(s);
        if (handler > 1) m->caught |= SIG_BIT(s);
    }
}

static uint64_t number_of(const char *s) {
    uint64_t v = 0;
    while (*s == ' ' || *s == '\t') s++;
    for (; *s >= '0' && *s <= '9'; s++) v = v * 10 + (uint64_t)(*s - '0');
    return v;
}

/* Who status and stat are about: a thread of ours, a tracee, or both; or one whose process has threads of the runtime's. */
struct subject {
    const struct thread *t;
    const struct tracee *e;
    uint64_t services;
};

/* It waits for its tracer, which the kernel takes for sleep. */
static bool is_trace_stopped(const struct subject *who) {
    return who->e && __atomic_load_n(&who->e->state, __ATOMIC_ACQUIRE) == TRACEE_STOPPED;
}

/* A process that has ended meanwhile has none. */
static uint64_t without_services(uint64_t threads, const struct subject *who) {
    return threads > who->services ? threads - who->services : threads;
}

static void row_of_tracing(const char *line, char *row, size_t cap, const struct subject *who) {
    if (str_starts(line, "State:") && is_trace_stopped(who)) fmt_into(row, cap, "State:\tt (tracing stop)");
    if (str_starts(line, "TracerPid:") && who->e) fmt_into(row, cap, "TracerPid:\t%d", who->e->tracer);
}

/* "SigPnd:" or "ShdPnd:", with what else is pending. */
static void row_of_pending(const char *line, const char *head, char *row, size_t cap, uint64_t more) {
    if (!str_starts(line, head)) return;
    const char *s = line + strlen(head) + 1;
    fmt_into(row, cap, "%s\t%016lx", head, read_hex(&s) | more);
}

static void row_of_thread(const char *line, char *row, size_t cap, const struct thread *t, const struct masks *m) {
    row_of_pending(line, "SigPnd:", row, cap, m->pending);
    row_of_pending(line, "ShdPnd:", row, cap, m->shared_pending);
    if (str_starts(line, "SigBlk:")) fmt_into(row, cap, "SigBlk:\t%016lx", m->blocked);
    if (str_starts(line, "SigIgn:")) fmt_into(row, cap, "SigIgn:\t%016lx", m->ignored);
    if (str_starts(line, "SigCgt:")) fmt_into(row, cap, "SigCgt:\t%016lx", m->caught);
    if (str_starts(line, "Seccomp:")) fmt_into(row, cap, "Seccomp:\t%d", t->seccomp.mode);
    if (str_starts(line, "Seccomp_filters:")) fmt_into(row, cap, "Seccomp_filters:\t%d", t->seccomp.count);
}

static void write_status(int from, struct text *out, const struct subject *who) {
    struct lines in = {.fd = from};
    struct masks m;
    if (who->t) collect_masks(who->t, &m);
    for (char *line; (line = lines_next(&in));) {
        char row[64] = "";
        row_of_tracing(line, row, sizeof row, who);
        if (str_starts(line, "Threads:"))
            fmt_into(row, sizeof row, "Threads:\t%lu", without_services(number_of(line + 8), who));
        if (who->t) row_of_thread(line, row, sizeof row, who->t, &m);
        text_put_line(out, row[0] ? row : line);
    }
}

/* Copies fields of stat up to the `to`th, which begins at *s. */
static void copy_fields(struct text *out, char **s, int *field, int to) {
    char *from = *s;
    for (; **s && *field < to; ++*s) *field += **s == ' ';
    text_put(out, from, (size_t)(*s - from));
}

/* Puts a number in the place of a field. */
static void put_field(struct text *out, char **s, int *field, uint64_t value) {
    char word[24];
    text_put(out, word, fmt_into(word, sizeof word, "%lu ", value));
    while (**s && **s != ' ') ++*s;
    if (**s) ++*s;
    ++*field;
}

/* Field 3 is the state; 20 the number of threads; 31 to 34 are the sets of the first 31 signals. */
static void write_stat(int from, struct text *out, const struct subject *who) {
    struct lines in = {.fd = from};
    char *line = lines_next(&in), *behind_name = line ? strrchr(line, ')') : NULL;
    if (!behind_name) return;
    char *s = behind_name;
    int field = 2;
    text_put(out, line, (size_t)(behind_name - line));
    copy_fields(out, &s, &field, 3);
    if (is_trace_stopped(who) && *s) *s = 't';
    copy_fields(out, &s, &field, 20);
    put_field(out, &s, &field, without_services(number_of(s), who));
    if (!who->t) {
        text_put_line(out, s);
        return;
    }
    struct masks m;
    collect_masks(who->t, &m);
    copy_fields(out, &s, &field, 31);
    const uint64_t value[] = {number_of(s) | m.pending, m.blocked, m.ignored, m.caught};
    for (int i = 0; i < 4 && *s; i++) put_field(out, &s, &field, value[i] & 0x7fffffff);
    text_put_line(out, s);
}

/* ---- memory ranges ---- */

static void write_range(struct text *out, gaddr from, gaddr to) {
    char buf[512];
    while (from < to) {
        size_t n = MIN(sizeof buf, to - from);
        if (!guest_read(buf, from, n)) return;
        text_put(out, buf, n);
        from += n;
    }
}

/* ---- the program's file ---- */

/* Another process: the file behind its program headers. Its auxv is the program's, if the kernel let us say so. */
static long other_exe(const struct proc_file *f, char *out, size_t cap) {
    char path[48];
    uint64_t auxv[64] = {0}, phdr = 0;
    fmt_into(path, sizeof path, "/proc/%d/auxv", f->pid);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fd;
    long n = SYS(read, fd, auxv, sizeof auxv);
    SYS(close, fd);
    for (long i = 0; i + 16 <= n && auxv[i / 8]; i += 16)
        if (auxv[i / 8] == AT_PHDR) phdr = auxv[i / 8 + 1];
    fmt_into(path, sizeof path, "/proc/%d/maps", f->pid);
    char name[MAPS_NAME_CAP];
    gaddr start, end;
    if (!maps_at(path, phdr, name, &start, &end) || name[0] != '/') return -ENOENT;
    return (long)MIN(fmt_into(out, cap, "%s", name), cap - 1);
}

long proc_exe_path(const struct proc_file *f, char *out, size_t cap) {
    if (!f->self) return other_exe(f, out, cap);
    return (long)MIN(fmt_into(out, cap, "%s", the_runtime.exe_path), cap - 1);
}

static bool is_exe(int fd) {
    struct stat st;
    return SYS(newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_dev == the_runtime.exe_dev &&
           st.st_ino == the_runtime.exe_ino;
}

/* Files without a path (deleted, outside of a new root) can still be had through their mapping, by root. */
static long open_by_mapping(uint64_t flags) {
    char path[80], name[MAPS_NAME_CAP];
    gaddr start, end;
    if (!maps_at("/proc/self/maps", the_runtime.exe_map, name, &start, &end)) return -ENOENT;
    fmt_into(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
    return SYS(openat, AT_FDCWD, path, flags);
}

long proc_exe_open(const struct proc_file *f, uint64_t flags) {
    char path[4096];
    long n = proc_exe_path(f, path, sizeof path);
    if (n <= 0) return n ? n : -ENOENT;
    if (f->self && (flags & ACCESS_MODE) != O_RDONLY) return -ETXTBSY;
    long fd = SYS(openat, AT_FDCWD, path, flags & ~(uint64_t)(O_CREAT | O_EXCL | O_TRUNC));
    if (!f->self || (fd >= 0 && is_exe((int)fd))) return fd;
    if (fd >= 0) SYS(close, fd);
    long mapped = open_by_mapping(flags);
    return mapped >= 0 ? mapped : fd >= 0 ? -ENOENT : fd;
}

/* ---- opening ---- */

/* A thread of this process, if it is one that we know. */
static const struct thread *own_thread(const struct proc_file *f) {
    int tid = f->tid;
    if (!f->self) return NULL;
    int self = own_pid();
    if (tid == self) tid = (int)SYS(getpid);
    struct thread *t = thread_by_tid(tid);
    return t && t->process == thread_self()->process ? t : NULL;
}

static struct subject subject(const struct proc_file *f) {
    struct subject who = {.t = own_thread(f), .services = proc_services(f)};
    if (trace_table_mapped()) who.e = trace_find(who.t ? who.t->tid : f->tid);
    if (who.e && who.e->visits) who.e = NULL;
    return who;
}

static bool has_own_text(const struct proc_file *f) {
    switch (f->what) {
    case PROC_MAPS:
    case PROC_SMAPS:
    case PROC_NUMA_MAPS: return true;
    case PROC_STATUS:
    case PROC_STAT: {
        struct subject who = subject(f);
        return who.t || who.e || who.services;
    }
    case PROC_CMDLINE:
    case PROC_ENVIRON:
    case PROC_AUXV: return f->self && !the_runtime.shown;
    default: return false;
    }
}

static void write_text(const struct proc_file *f, int from, struct text *out) {
    struct subject who;
    struct tracee *whose;
    switch (f->what) {
    case PROC_MAPS:
    case PROC_SMAPS:
        whose = f->self ? NULL : trace_stopped(f->pid);
        if (f->self || whose)
            maps_write(from, out, f->what == PROC_SMAPS, whose);
        else
            maps_write_without_runtime(from, out);
        break;
    case PROC_NUMA_MAPS: maps_write_without_runtime(from, out); break;
    case PROC_STATUS:
        who = subject(f);
        write_status(from, out, &who);
        break;
    case PROC_STAT:
        who = subject(f);
        write_stat(from, out, &who);
        break;
    case PROC_CMDLINE: write_range(out, the_runtime.arg_start, the_runtime.arg_end); break;
    case PROC_ENVIRON: write_range(out, the_runtime.env_start, the_runtime.env_end); break;
    case PROC_AUXV: write_range(out, the_runtime.auxv_start, the_runtime.auxv_end); break;
    default: break;
    }
    text_flush(out);
}

/* The finished text under the lowest free number, read-only as the kernel's file would be. */
static long give(int memory, uint64_t flags) {
    char path[32];
    fmt_into(path, sizeof path, "/proc/self/fd/%d", memory);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | (flags & (O_CLOEXEC | O_NONBLOCK)));
    if (fd < 0) {
        SYS(lseek, memory, 0, 0);
        fd = SYS(fcntl, memory, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    }
    SYS(close, memory);
    return fd;
}

long proc_open(const struct proc_file *f, int dirfd, const char *path, uint64_t flags) {
    if (f->what == PROC_EXE) return flags & O_NOFOLLOW ? PROC_AS_IS : proc_exe_open(f, flags);
    if ((flags & (O_PATH | O_DIRECTORY)) || (flags & ACCESS_MODE) != O_RDONLY || !has_own_text(f)) return PROC_AS_IS;
    long from = SYS(openat, dirfd, path, O_RDONLY | O_CLOEXEC);
    if (from < 0) return from;
    struct text out = {.fd = (int)SYS(memfd_create, "proc", MFD_CLOEXEC)};
    if (out.fd >= 0) write_text(f, (int)from, &out);
    SYS(close, from);
    if (out.fd < 0) return out.fd;
    SYS(fchmod, out.fd, f->what == PROC_ENVIRON || f->what == PROC_AUXV ? 0400 : 0444);
    return give(out.fd, flags);
}
