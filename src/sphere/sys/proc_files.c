/* Files of /proc about the program itself, answered from what the program knows.
 * Which file a path means is asked of the kernel, which knows links, mounts and working directories: it is opened with
 * O_PATH and its name is read back. Texts are put into a memory file that takes the place of the kernel's. */
#include "sphere/sys/proc_files.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/runtime.h"
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

bool proc_find(int dirfd, const char *path, struct proc_file *out) {
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

/* ---- reading and writing texts ---- */

struct lines { /* of an open file */
    int fd;
    size_t at, len;
    char buf[8192];
};

/* The next line without its newline; NULL at the end. */
static char *next_line(struct lines *in) {
    for (;;) {
        for (size_t i = in->at; i < in->len; i++)
            if (in->buf[i] == '\n') {
                char *line = in->buf + in->at;
                in->buf[i] = '\0';
                in->at = i + 1;
                return line;
            }
        memmove(in->buf, in->buf + in->at, in->len - in->at);
        in->len -= in->at;
        in->at = 0;
        long n = in->len < sizeof in->buf ? SYS(read, in->fd, in->buf + in->len, sizeof in->buf - in->len) : 0;
        if (n <= 0) return NULL;
        in->len += (size_t)n;
    }
}

struct text { /* a memory file in the making */
    int fd;
    size_t len;
    char buf[4096];
};

static void flush(struct text *out) {
    SYS(write, out->fd, out->buf, out->len);
    out->len = 0;
}

static void put(struct text *out, const char *s, size_t n) {
    if (out->len + n > sizeof out->buf) flush(out);
    if (n > sizeof out->buf) {
        SYS(write, out->fd, s, n);
        return;
    }
    memcpy(out->buf + out->len, s, n);
    out->len += n;
}

static void put_line(struct text *out, const char *line) {
    put(out, line, strlen(line));
    put(out, "\n", 1);
}

/* ---- maps ---- */

#define DETAILS 40

struct area { /* one line of maps, and what smaps says below it */
    uint64_t lo, hi, offset;
    char perms[5];
    char kernel_perms[5]; /* what the kernel was asked for */
    char device[48];      /* "08:01 1234", as in the line */
    const char *name;
    char name_buf[4200];
    struct {
        char key[20];
        uint64_t value;
        bool kb;
    } detail[DETAILS];
    int n_details;
    char flags[160]; /* VmFlags */
};

static bool parse_area(const char *line, struct area *a) {
    const char *s = line;
    a->lo = read_hex(&s);
    if (*s++ != '-') return false;
    a->hi = read_hex(&s);
    if (*s++ != ' ') return false;
    memcpy(a->perms, s, 4);
    a->perms[4] = '\0';
    memcpy(a->kernel_perms, a->perms, sizeof a->perms);
    s += 5;
    a->offset = read_hex(&s);
    if (*s++ != ' ') return false;
    size_t n = 0;
    for (int words = 0; *s && n < sizeof a->device - 1; s++) {
        if (*s == ' ' && ++words == 2) break;
        a->device[n++] = *s;
    }
    a->device[n] = '\0';
    while (*s == ' ') s++;
    fmt_into(a->name_buf, sizeof a->name_buf, "%s", s);
    a->name = a->name_buf;
    a->n_details = 0;
    a->flags[0] = '\0';
    return true;
}

static void parse_detail(const char *line, struct area *a) {
    const char *colon = strchr(line, ':');
    if (!colon) return;
    if (str_starts(line, "VmFlags:")) {
        fmt_into(a->flags, sizeof a->flags, "%s", colon + 2);
        return;
    }
    if (a->n_details == DETAILS || (size_t)(colon - line) >= sizeof a->detail[0].key) return;
    int i = a->n_details++;
    memcpy(a->detail[i].key, line, (size_t)(colon - line));
    a->detail[i].key[colon - line] = '\0';
    const char *s = colon + 1;
    while (*s == ' ') s++;
    uint64_t v = 0;
    for (; *s >= '0' && *s <= '9'; s++) v = v * 10 + (uint64_t)(*s - '0');
    a->detail[i].value = v;
    a->detail[i].kb = str_starts(s, " kB");
}

/* Amounts that grow with the area; page sizes and yes-or-no values do not. */
static bool is_amount(const char *key) {
    return strcmp(key, "KernelPageSize") != 0 && strcmp(key, "MMUPageSize") != 0 && strcmp(key, "THPeligible") != 0 &&
           strcmp(key, "ProtectionKey") != 0;
}

static void print_area(struct text *out, const struct area *a, bool details) {
    char line[256];
    size_t n = fmt_into(line, sizeof line, "%08lx-%08lx %s %08lx %s ", a->lo, a->hi, a->perms, a->offset, a->device);
    if (a->name[0])
        while (n < 73 && n < sizeof line - 1) line[n++] = ' '; /* where the kernel puts names */
    put(out, line, n);
    put_line(out, a->name);
    if (!details) return;
    for (int i = 0; i < a->n_details; i++) {
        fmt_into(line, sizeof line, "%s:", a->detail[i].key);
        char row[64];
        fmt_into(row, sizeof row, "%-16s%8lu%s", line, a->detail[i].value, a->detail[i].kb ? " kB" : "");
        put_line(out, row);
    }
    if (!a->flags[0]) return;
    put(out, "VmFlags: ", 9);
    bool executable = a->perms[2] == 'x' && !str_starts(a->flags, "ex ");
    for (const char *s = a->flags; executable && *s; s++)
        if (str_starts(s, " ex ")) executable = false;
    size_t first = str_starts(a->flags, "rd wr ")                               ? 6
                   : str_starts(a->flags, "rd ") || str_starts(a->flags, "wr ") ? 3
                                                                                : 0;
    put(out, a->flags, first);
    if (executable) put(out, "ex ", 3);
    put_line(out, a->flags + first);
}

/* Appends b to a if the kernel would have shown them as one. What it splits without our doing stays apart. */
static bool join(struct area *a, const struct area *b, bool same_line) {
    if (!same_line && memcmp(a->kernel_perms, b->kernel_perms, 4) == 0) return false;
    if (a->hi != b->lo || memcmp(a->perms, b->perms, 4) != 0 || strcmp(a->device, b->device) != 0 ||
        strcmp(a->name, b->name) != 0)
        return false;
    bool file = !str_starts(a->device, "00:00 0");
    if (file && a->offset + (a->hi - a->lo) != b->offset) return false;
    a->hi = b->hi;
    memcpy(a->kernel_perms, b->kernel_perms, sizeof a->kernel_perms);
    for (int i = 0; i < MIN(a->n_details, b->n_details); i++)
        if (is_amount(a->detail[i].key)) a->detail[i].value += b->detail[i].value;
    return true;
}

/* The part of a kernel's area that one of the program's mappings covers, as the program sees it. */
static void cut(const struct area *from, const struct mapping *m, struct area *to) {
    *to = *from;
    to->name = to->name_buf;
    to->lo = MAX(from->lo, m->start);
    to->hi = MIN(from->hi, m->end);
    bool file = !str_starts(from->device, "00:00 0");
    to->offset = file ? from->offset + (to->lo - from->lo) : 0;
    bool shared = (m->flags & MAP_TYPE) == MAP_SHARED || (m->flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    to->perms[0] = m->prot & PROT_READ ? 'r' : '-';
    to->perms[1] = m->prot & PROT_WRITE ? 'w' : '-';
    to->perms[2] = m->prot & PROT_EXEC ? 'x' : '-';
    to->perms[3] = shared ? 's' : 'p';
    if (m->name[0] == '[' && !str_starts(from->name, "[v"))
        to->name = m->name;
    else if (strcmp(from->name, "[heap]") == 0 || strcmp(from->name, "[stack]") == 0)
        to->name = "";
    uint64_t part = to->hi - to->lo, whole = from->hi - from->lo;
    for (int i = 0; part != whole && i < to->n_details; i++)
        if (strcmp(to->detail[i].key, "Size") == 0)
            to->detail[i].value = part / 1024;
        else if (is_amount(to->detail[i].key))
            to->detail[i].value = to->detail[i].value * (part / PAGE_SIZE) / (whole / PAGE_SIZE);
}

struct map_writer {
    struct text *out;
    bool details;
    struct tracee *whose; /* NULL: our own */
    size_t next;          /* mapping to look at */
    struct mapping m;     /* that one */
    bool has_m;
    bool has_held;
    struct area held; /* not printed yet: the next one may belong to it */
    struct mapping held_m;
    struct area piece;
};

static bool nth_mapping(const struct map_writer *w, size_t i, struct mapping *out) {
    if (!w->whose) return aspace_nth(i, out);
    return trace_ask(w->whose, LETTER_MAPPING, i, out, sizeof *out) == 0;
}

static void print_held(struct map_writer *w) {
    if (w->has_held) print_area(w->out, &w->held, w->details);
    w->has_held = false;
}

/* The guard below the stack is ours, and natively not a mapping. */
static bool is_stack_guard(const struct map_writer *w) {
    struct mapping above;
    return aspace_is_guard(&w->m) && nth_mapping(w, w->next + 1, &above) && above.start == w->m.end &&
           strcmp(above.name, "[stack]") == 0;
}

static void add_area(struct map_writer *w, const struct area *kernel) {
    if (kernel->lo >= LAYOUT_GUEST_END) { /* [vsyscall] */
        print_held(w);
        print_area(w->out, kernel, w->details);
        return;
    }
    for (bool first = true;; first = false) {
        while (w->has_m && w->m.end <= kernel->lo) w->has_m = nth_mapping(w, ++w->next, &w->m);
        if (!w->has_m || w->m.start >= kernel->hi) return;
        if (!w->m.runtime && !is_stack_guard(w)) {
            cut(kernel, &w->m, &w->piece);
            if (!w->has_held || !join(&w->held, &w->piece, !first)) {
                print_held(w);
                w->held = w->piece;
                w->held_m = w->m;
                if (w->piece.name == w->m.name)
                    w->held.name = w->held_m.name;
                else if (w->piece.name == w->piece.name_buf)
                    w->held.name = w->held.name_buf;
                w->has_held = true;
            }
        }
        if (w->m.end >= kernel->hi) return;
        w->has_m = nth_mapping(w, ++w->next, &w->m);
    }
}

static bool is_area_line(const char *line) { return *line < 'A' || *line > 'Z'; }

/* As the process itself sees them: whose is one that is stopped for its tracer, or NULL for our own. */
static void write_maps(int from, struct text *out, bool details, struct tracee *whose) {
    /* too large for this stack, and rarely needed */
    struct scratch {
        struct lines in;
        struct map_writer w;
        struct area kernel;
    } * s;
    long at = SYS(mmap, 0, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(at)) return;
    s = (struct scratch *)at;
    s->in.fd = from;
    s->w.out = out;
    s->w.details = details;
    s->w.whose = whose;
    s->w.has_m = nth_mapping(&s->w, 0, &s->w.m);
    bool has = false;
    for (char *line; (line = next_line(&s->in));) {
        if (details && !is_area_line(line)) {
            parse_detail(line, &s->kernel);
            continue;
        }
        if (has) add_area(&s->w, &s->kernel);
        has = parse_area(line, &s->kernel);
    }
    if (has) add_area(&s->w, &s->kernel);
    print_held(&s->w);
    SYS(munmap, at, sizeof *s);
}

uint64_t proc_segment_cuts(int pid, int id) {
    char path[40], inode[24];
    uint64_t cuts = 0, end = 0, offset = 0;
    struct area a;
    fmt_into(path, sizeof path, "/proc/%d/maps", pid);
    fmt_into(inode, sizeof inode, " %d", id);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    struct lines in = {.fd = (int)fd};
    for (char *line; (line = next_line(&in));) {
        if (!strchr(line, '/') || !parse_area(line, &a) || !str_starts(a.name, "/SYSV")) continue;
        const char *number = strchr(a.device, ' ');
        if (!number || strcmp(number, inode) != 0) continue;
        cuts += a.lo == end && a.offset == offset;
        end = a.hi;
        offset = a.offset + (a.hi - a.lo);
    }
    SYS(close, fd);
    return cuts;
}

/* Another process under Reprise, and numa_maps: what lies in the runtime's windows is left out. */
static void write_without_runtime(int from, struct text *out) {
    struct lines in = {.fd = from};
    bool hidden = false;
    for (char *line; (line = next_line(&in));) {
        if (is_area_line(line)) {
            const char *s = line;
            uint64_t lo = read_hex(&s);
            bool anonymous = !strchr(line, '/') && !strchr(line, '[');
            /* what the kernel placed up there, the runtime uses */
            hidden =
                aspace_is_runtime(lo, PAGE_SIZE) || (anonymous && lo >= LAYOUT_THREADS_END && lo < LAYOUT_GUEST_END);
        }
        if (!hidden) put_line(out, line);
    }
}

/* ---- status, stat ---- */

struct masks {
    uint64_t blocked, ignored, caught;
};

static void collect_masks(const struct thread *t, struct masks *m) {
    *m = (struct masks){.blocked = t->sigmask};
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

static void row_of_thread(const char *line, char *row, size_t cap, const struct thread *t, const struct masks *m) {
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
    for (char *line; (line = next_line(&in));) {
        char row[64] = "";
        row_of_tracing(line, row, sizeof row, who);
        if (str_starts(line, "Threads:"))
            fmt_into(row, sizeof row, "Threads:\t%lu", without_services(number_of(line + 8), who));
        if (who->t) row_of_thread(line, row, sizeof row, who->t, &m);
        put_line(out, row[0] ? row : line);
    }
}

/* Copies fields of stat up to the `to`th, which begins at *s. */
static void copy_fields(struct text *out, char **s, int *field, int to) {
    char *from = *s;
    for (; **s && *field < to; ++*s) *field += **s == ' ';
    put(out, from, (size_t)(*s - from));
}

/* Puts a number in the place of a field. */
static void put_field(struct text *out, char **s, int *field, uint64_t value) {
    char word[24];
    put(out, word, fmt_into(word, sizeof word, "%lu ", value));
    while (**s && **s != ' ') ++*s;
    if (**s) ++*s;
    ++*field;
}

/* Field 3 is the state; 20 the number of threads; 32 to 34 are the masks of the first 31 signals. */
static void write_stat(int from, struct text *out, const struct subject *who) {
    struct lines in = {.fd = from};
    char *line = next_line(&in), *behind_name = line ? strrchr(line, ')') : NULL;
    if (!behind_name) return;
    char *s = behind_name;
    int field = 2;
    put(out, line, (size_t)(behind_name - line));
    copy_fields(out, &s, &field, 3);
    if (is_trace_stopped(who) && *s) *s = 't';
    copy_fields(out, &s, &field, 20);
    put_field(out, &s, &field, without_services(number_of(s), who));
    if (!who->t) {
        put_line(out, s);
        return;
    }
    struct masks m;
    collect_masks(who->t, &m);
    const uint64_t value[] = {m.blocked, m.ignored, m.caught};
    copy_fields(out, &s, &field, 32);
    for (int i = 0; i < 3 && *s; i++) put_field(out, &s, &field, value[i] & 0x7fffffff);
    put_line(out, s);
}

/* ---- memory ranges ---- */

static void write_range(struct text *out, gaddr from, gaddr to) {
    char buf[512];
    while (from < to) {
        size_t n = MIN(sizeof buf, to - from);
        if (!guest_read(buf, from, n)) return;
        put(out, buf, n);
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
    fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fd;
    struct lines in = {.fd = (int)fd};
    struct area a;
    n = -ENOENT;
    for (char *line; (line = next_line(&in));)
        if (parse_area(line, &a) && phdr >= a.lo && phdr < a.hi && a.name[0] == '/') {
            n = (long)MIN(fmt_into(out, cap, "%s", a.name), cap - 1);
            break;
        }
    SYS(close, fd);
    return n;
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
    char path[80];
    struct area a;
    long fd = SYS(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fd;
    struct lines in = {.fd = (int)fd};
    bool found = false;
    for (char *line; !found && (line = next_line(&in));)
        found = parse_area(line, &a) && the_runtime.exe_map >= a.lo && the_runtime.exe_map < a.hi;
    SYS(close, fd);
    if (!found) return -ENOENT;
    fmt_into(path, sizeof path, "/proc/self/map_files/%lx-%lx", a.lo, a.hi);
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
            write_maps(from, out, f->what == PROC_SMAPS, whose);
        else
            write_without_runtime(from, out);
        break;
    case PROC_NUMA_MAPS: write_without_runtime(from, out); break;
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
    flush(out);
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
