#include "sphere/sys/proc_maps.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/trace_table.h"

#define DETAILS 40

struct area { /* one line of maps, and what smaps says below it */
    uint64_t lo, hi, offset;
    uint64_t kernel_lo, kernel_hi; /* of the kernel's area that it begins in */
    char perms[5];
    char kernel_perms[5]; /* what the kernel was asked for */
    char device[48];      /* "08:01 1234", as in the line */
    const char *name;
    char name_buf[MAPS_NAME_CAP];
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
    a->kernel_lo = a->lo;
    a->kernel_hi = a->hi;
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

static bool is_file(const struct area *a) { return !str_starts(a->device, "00:00 0"); }

static void print_area(struct text *out, const struct area *a, bool details) {
    char line[256];
    size_t n = fmt_into(line, sizeof line, "%08lx-%08lx %s %08lx %s ", a->lo, a->hi, a->perms, a->offset, a->device);
    if (a->name[0])
        while (n < 73 && n < sizeof line - 1) line[n++] = ' '; /* where the kernel puts names */
    text_put(out, line, n);
    text_put_line(out, a->name);
    if (!details) return;
    for (int i = 0; i < a->n_details; i++) {
        fmt_into(line, sizeof line, "%s:", a->detail[i].key);
        char row[64];
        fmt_into(row, sizeof row, "%-16s%8lu%s", line, a->detail[i].value, a->detail[i].kb ? " kB" : "");
        text_put_line(out, row);
    }
    if (!a->flags[0]) return;
    text_put(out, "VmFlags: ", 9);
    bool executable = a->perms[2] == 'x' && !str_starts(a->flags, "ex ");
    for (const char *s = a->flags; executable && *s; s++)
        if (str_starts(s, " ex ")) executable = false;
    size_t first = str_starts(a->flags, "rd wr ")                               ? 6
                   : str_starts(a->flags, "rd ") || str_starts(a->flags, "wr ") ? 3
                                                                                : 0;
    text_put(out, a->flags, first);
    if (executable) text_put(out, "ex ", 3);
    text_put_line(out, a->flags + first);
}

/* Appends b to a if the kernel would have shown them as one. What it splits without our doing stays apart. */
static bool join(struct area *a, const struct area *b, bool same_line) {
    if (!same_line && memcmp(a->kernel_perms, b->kernel_perms, 4) == 0) return false;
    if (a->hi != b->lo || memcmp(a->perms, b->perms, 4) != 0 || strcmp(a->device, b->device) != 0 ||
        strcmp(a->name, b->name) != 0)
        return false;
    if (is_file(a) && a->offset + (a->hi - a->lo) != b->offset) return false;
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
    to->offset = is_file(from) ? from->offset + (to->lo - from->lo) : 0;
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

struct shown {                                                   /* what is done with the lines */
    bool (*show)(const struct area *a, const struct shown *how); /* false: that is enough */
    struct tracee *whose;                                        /* whose they are; NULL: our own */
    /* show_line: */
    struct text *out;
    bool details;
    /* show_link: */
    bool (*visit)(const struct maps_link *l, void *arg);
    void *arg;
};

struct map_writer {
    const struct shown *how;
    bool is_done;
    size_t next;      /* mapping to look at */
    struct mapping m; /* that one */
    bool has_m;
    bool has_held;
    struct area held; /* not printed yet: the next one may belong to it */
    struct mapping held_m;
    struct area piece;
};

static bool nth_mapping(const struct map_writer *w, size_t i, struct mapping *out) {
    if (!w->how->whose) return aspace_nth(i, out);
    return trace_ask(w->how->whose, LETTER_MAPPING, i, out, sizeof *out) == 0;
}

static bool show_line(const struct area *a, const struct shown *how) {
    print_area(how->out, a, how->details);
    return true;
}

static bool show_link(const struct area *a, const struct shown *how) {
    struct maps_link l = {a->lo, a->hi, a->kernel_lo, a->kernel_hi};
    return !is_file(a) || how->visit(&l, how->arg);
}

static void show(struct map_writer *w, const struct area *a) {
    if (!w->is_done) w->is_done = !w->how->show(a, w->how);
}

static void show_held(struct map_writer *w) {
    if (w->has_held) show(w, &w->held);
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
        show_held(w);
        show(w, kernel);
        return;
    }
    for (bool first = true;; first = false) {
        while (w->has_m && w->m.end <= kernel->lo) w->has_m = nth_mapping(w, ++w->next, &w->m);
        if (!w->has_m || w->m.start >= kernel->hi) return;
        if (!w->m.runtime && !is_stack_guard(w)) {
            cut(kernel, &w->m, &w->piece);
            if (!w->has_held || !join(&w->held, &w->piece, !first)) {
                show_held(w);
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

/* As the process itself sees them. */
static void show_maps(int from, const struct shown *how) {
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
    s->w.how = how;
    s->w.has_m = nth_mapping(&s->w, 0, &s->w.m);
    bool has = false;
    for (char *line; !s->w.is_done && (line = lines_next(&s->in));) {
        if (how->details && !is_area_line(line)) {
            parse_detail(line, &s->kernel);
            continue;
        }
        if (has) add_area(&s->w, &s->kernel);
        has = parse_area(line, &s->kernel);
    }
    if (has) add_area(&s->w, &s->kernel);
    show_held(&s->w);
    SYS(munmap, at, sizeof *s);
}

void maps_write(int from, struct text *out, bool details, struct tracee *whose) {
    show_maps(from, &(struct shown){.show = show_line, .out = out, .details = details, .whose = whose});
}

static long open_own(void) { return SYS(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC); }

void maps_each_link(bool (*visit)(const struct maps_link *l, void *arg), void *arg) {
    long fd = open_own();
    if (fd < 0) return;
    show_maps((int)fd, &(struct shown){.show = show_link, .visit = visit, .arg = arg});
    SYS(close, fd);
}

bool maps_at(const char *path, gaddr addr, char *name, gaddr *start, gaddr *end) {
    struct area a;
    bool found = false;
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct lines in = {.fd = (int)fd};
    for (char *line; !found && (line = lines_next(&in));) found = parse_area(line, &a) && addr >= a.lo && addr < a.hi;
    SYS(close, fd);
    if (!found) return false;
    fmt_into(name, MAPS_NAME_CAP, "%s", a.name);
    *start = a.lo;
    *end = a.hi;
    return true;
}

/* Whether the area shows the file with this inode. */
static bool has_inode(const struct area *a, const char *inode) {
    const char *number = strchr(a->device, ' ');
    return number && strcmp(number + 1, inode) == 0;
}

gaddr maps_anonymous(uint64_t ino) {
    struct area a;
    char inode[24];
    gaddr found = 0;
    long fd = open_own();
    if (fd < 0) return 0;
    fmt_into(inode, sizeof inode, "%lu", ino);
    struct lines in = {.fd = (int)fd};
    for (char *line; !found && (line = lines_next(&in));)
        if (parse_area(line, &a) && strcmp(a.name, "/dev/zero (deleted)") == 0 && has_inode(&a, inode)) found = a.lo;
    SYS(close, fd);
    return found;
}

uint64_t maps_segment_cuts(int pid, int id) {
    char path[40], inode[24];
    uint64_t cuts = 0, end = 0, offset = 0;
    struct area a;
    fmt_into(path, sizeof path, "/proc/%d/maps", pid);
    fmt_into(inode, sizeof inode, "%d", id);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    struct lines in = {.fd = (int)fd};
    for (char *line; (line = lines_next(&in));) {
        if (!strchr(line, '/') || !parse_area(line, &a) || !str_starts(a.name, "/SYSV")) continue;
        if (!has_inode(&a, inode)) continue;
        cuts += a.lo == end && a.offset == offset;
        end = a.hi;
        offset = a.offset + (a.hi - a.lo);
    }
    SYS(close, fd);
    return cuts;
}

/* Another process under Reprise, and numa_maps: what lies in the runtime's windows is left out. */
void maps_write_without_runtime(int from, struct text *out) {
    struct lines in = {.fd = from};
    bool hidden = false;
    for (char *line; (line = lines_next(&in));) {
        if (is_area_line(line)) {
            const char *s = line;
            uint64_t lo = read_hex(&s);
            bool anonymous = !strchr(line, '/') && !strchr(line, '[');
            /* what the kernel placed up there, the runtime uses */
            hidden =
                aspace_is_runtime(lo, PAGE_SIZE) || (anonymous && lo >= LAYOUT_THREADS_END && lo < LAYOUT_GUEST_END);
        }
        if (!hidden) text_put_line(out, line);
    }
}
