#include "why/inputs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS 4096
#define CHAIN 64
#define PAGE 4096ull

static struct call call_of(const struct event *e, uint64_t number) {
    const struct ev_syscall *s = EVENT_PAYLOAD(e, ev_syscall);
    struct call c = {.event = number, .ticks = e->ticks, .number = e->code, .ret = s->ret};
    memcpy(c.args, s->args, sizeof c.args);
    return c;
}

/* Calls `each` for the events [from, to) of a stream, until it returns false. */
static bool for_events(const struct recording *r, uint64_t stream, uint64_t from, uint64_t to,
                       bool (*each)(void *arg, const struct event *, uint64_t number), void *arg) {
    const struct stream_ref *s = recording_stream(r, stream);
    struct event_reader reader;
    const struct event *e;
    if (!s || !event_reader_open(&reader, r, s)) return false;
    while (event_reader_next(&reader, &e) == READ_GOT && reader.number < to)
        if (reader.number >= from && !each(arg, e, reader.number)) break;
    event_reader_close(&reader);
    return true;
}

/* ---- one call ---- */

/* What is done at one place of the program may be several events: pages that come and go in front of a call, the call, and what it
 * wrote. They have the place's ticks and registers; those of the pager among them have none. */
struct one {
    uint64_t addr;
    struct call *out;
    unsigned kind, code;
    uint64_t ticks;
    uint32_t regs;
    bool has_kind, has_place, has_call;
};

static bool is_pages(unsigned kind) { return kind == EV_RELEASE || kind == EV_ACQUIRE; }

static bool is_written(const struct event *e, uint64_t addr) {
    const struct ev_memory *m = EVENT_PAYLOAD(e, ev_memory);
    return addr - m->addr < m->len;
}

static bool take_one(void *arg, const struct event *e, uint64_t number) {
    struct one *o = arg;
    bool is_pagers = !e->ticks && !e->regs;
    if (!o->has_kind) {
        o->has_kind = true;
        o->kind = e->kind;
        o->code = e->code;
    }
    if (is_pagers) return is_pages(o->kind);
    if (!o->has_place) {
        o->has_place = true;
        o->ticks = e->ticks;
        o->regs = e->regs;
    }
    if (e->ticks != o->ticks || e->regs != o->regs) return false;
    switch (e->kind) {
    case EV_ACQUIRE: o->kind = EV_ACQUIRE; break;
    case EV_SYSCALL:
        *o->out = call_of(e, number);
        o->has_call = true;
        if (o->kind == EV_RELEASE || !o->addr) o->kind = EV_SYSCALL;
        break;
    case EV_OUT:
        if (o->has_call && is_written(e, o->addr)) o->kind = EV_SYSCALL;
        break;
    case EV_RELEASE:
    case EV_MEMORY: break;
    default: return false;
    }
    return is_pages(o->kind);
}

#define AT_ONE_PLACE 256 /* events */

bool inputs_call(const struct recording *r, uint64_t stream, uint64_t event, uint64_t addr, struct call *out,
                 unsigned *kind, unsigned *code) {
    struct one o = {.out = out, .addr = addr};
    for_events(r, stream, event, event + AT_ONE_PLACE, take_one, &o);
    *kind = o.kind;
    *code = o.code;
    return o.kind == EV_SYSCALL;
}

/* ---- descriptors ---- */

/* Descriptors that were duplicated share what they are open on, and the offset in it. */
struct file {
    struct opened opened;
    uint64_t stream;
};

struct table {
    struct file *files;
    size_t n, room;
    uint32_t of_fd[FDS]; /* index plus one; 0: closed */
    uint64_t stream;
};

static struct file *file_of(struct table *t, uint64_t fd) {
    return fd < FDS && t->of_fd[fd] ? &t->files[t->of_fd[fd] - 1] : NULL;
}

static void open_as(struct table *t, int64_t fd, const struct opened *o) {
    if (fd < 0 || fd >= FDS) return;
    if (t->n == t->room) {
        size_t room = t->room ? t->room * 2 : 64;
        void *more = realloc(t->files, room * sizeof *t->files);
        if (!more) return;
        t->files = more;
        t->room = room;
    }
    t->files[t->n] = (struct file){*o, t->stream};
    t->of_fd[fd] = (uint32_t)++t->n;
}

static void duplicate(struct table *t, uint64_t from, int64_t to) {
    if (from < FDS && to >= 0 && to < FDS) t->of_fd[to] = t->of_fd[from];
}

/* Whose result is a descriptor. */
static bool makes_descriptor(unsigned nr) {
    switch (nr) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
    case SYS_socket:
    case SYS_accept:
    case SYS_accept4:
    case SYS_memfd_create:
    case SYS_eventfd2:
    case SYS_signalfd4:
    case SYS_timerfd_create:
    case SYS_inotify_init1:
    case SYS_epoll_create1: return true;
    default: return false;
    }
}

static void move_offset(struct table *t, const struct call *c) {
    struct file *f = file_of(t, c->args[0]);
    if (!f) return;
    if (c->number == SYS_lseek)
        f->opened.offset = c->ret;
    else
        f->opened.offset += c->ret;
}

static void close_range_of(struct table *t, const struct call *c) {
    for (uint64_t fd = c->args[0]; fd <= c->args[1] && fd < FDS; fd++) t->of_fd[fd] = 0;
}

static void apply(struct table *t, const struct call *c) {
    if (c->ret < 0) return;
    if (makes_descriptor(c->number)) {
        bool file = c->number == SYS_open || c->number == SYS_openat || c->number == SYS_openat2;
        open_as(t, c->ret, &(struct opened){.is_known = true, .by = *c, .has_offset = file});
        return;
    }
    switch (c->number) {
    case SYS_dup:
    case SYS_dup2:
    case SYS_dup3: duplicate(t, c->args[0], c->ret); break;
    case SYS_fcntl:
        if (c->args[1] == F_DUPFD || c->args[1] == F_DUPFD_CLOEXEC) duplicate(t, c->args[0], c->ret);
        break;
    case SYS_close:
        if (c->args[0] < FDS) t->of_fd[c->args[0]] = 0;
        break;
    case SYS_close_range:
        if (!c->args[2]) close_range_of(t, c);
        break;
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_lseek:
    case SYS_getdents64: move_offset(t, c); break;
    default: break;
    }
}

static bool apply_event(void *arg, const struct event *e, uint64_t number) {
    struct table *t = arg;
    if (e->kind == EV_SYSCALL) {
        struct call c = call_of(e, number);
        apply(t, &c);
    }
    return true;
}

/* The pair that pipe or socketpair has made follows its call, as what it wrote. */
struct pair {
    struct table *table;
    struct call last;
    bool is_due;
};

static bool apply_with_pairs(void *arg, const struct event *e, uint64_t number) {
    struct pair *p = arg;
    int fds[2];
    if (e->kind == EV_OUT && p->is_due && EVENT_PAYLOAD(e, ev_memory)->len >= sizeof fds) {
        memcpy(fds, event_bytes(e), sizeof fds);
        for (int i = 0; i < 2; i++) open_as(p->table, fds[i], &(struct opened){.is_known = true, .by = p->last});
    }
    p->is_due = false;
    if (e->kind == EV_SYSCALL) {
        p->last = call_of(e, number);
        bool makes = e->code == SYS_pipe || e->code == SYS_pipe2 || e->code == SYS_socketpair;
        p->is_due = makes && p->last.ret == 0;
    }
    return apply_event(p->table, e, number);
}

/* A stream that a fork or an exec of another one began, and how far that one had come. */
struct ancestor {
    uint64_t stream, to;
};

struct child_search {
    uint64_t stream, at;
};

static bool look_for_child(void *arg, const struct event *e, uint64_t number) {
    struct child_search *s = arg;
    if ((e->kind != EV_FORK && e->kind != EV_EXEC) || EVENT_PAYLOAD(e, ev_child)->stream != s->stream) return true;
    s->at = number;
    return false;
}

static bool take_parent(void *arg, const struct event *e, uint64_t number) {
    uint64_t *parent = arg;
    if (e->kind == EV_START) *parent = EVENT_PAYLOAD(e, ev_start)->parent;
    if (e->kind == EV_FORKED) *parent = EVENT_PAYLOAD(e, ev_forked)->parent;
    return false;
}

static size_t find_ancestors(const struct recording *r, uint64_t stream, uint64_t to, struct ancestor chain[CHAIN]) {
    size_t n = 0;
    while (n < CHAIN) {
        uint64_t parent = UINT64_MAX;
        chain[n++] = (struct ancestor){stream, to};
        if (!for_events(r, stream, 0, 1, take_parent, &parent) || parent == UINT64_MAX) break;
        struct child_search s = {.stream = stream, .at = UINT64_MAX};
        if (!for_events(r, parent, 0, UINT64_MAX, look_for_child, &s)) break;
        stream = parent;
        to = s.at;
    }
    return n;
}

void inputs_descriptor(const struct recording *r, uint64_t stream, uint64_t event, int fd, struct opened *out) {
    struct table *t = calloc(1, sizeof *t);
    struct ancestor chain[CHAIN];
    *out = (struct opened){0};
    if (!t) return;
    for (int i = 0; i < 3; i++) open_as(t, i, &(struct opened){.is_known = true, .is_standard = true, .standard = i});
    for (size_t i = find_ancestors(r, stream, event, chain); i-- > 0;) {
        struct pair p = {.table = t};
        t->stream = chain[i].stream;
        for_events(r, chain[i].stream, 0, chain[i].to, apply_with_pairs, &p);
    }
    struct file *f = fd >= 0 ? file_of(t, (uint64_t)fd) : NULL;
    if (f) {
        *out = f->opened;
        out->in_this_stream = f->stream == stream && !out->is_standard;
    }
    free(t->files);
    free(t);
}

/* ---- mappings ---- */

struct mapping_search {
    uint64_t addr;
    struct call *out;
    bool is_found;
};

static bool covers(uint64_t start, uint64_t len, uint64_t addr) {
    return addr >= start && addr - start < ((len + PAGE - 1) & ~(PAGE - 1));
}

static bool look_for_mapping(void *arg, const struct event *e, uint64_t number) {
    struct mapping_search *s = arg;
    if (e->kind != EV_SYSCALL) return true;
    struct call c = call_of(e, number);
    if (c.ret < 0 && c.ret > -4096) return true;
    bool mine = (c.number == SYS_mmap && covers((uint64_t)c.ret, c.args[1], s->addr)) ||
                (c.number == SYS_mremap && covers((uint64_t)c.ret, c.args[2], s->addr)) ||
                (c.number == SYS_munmap && covers(c.args[0], c.args[1], s->addr));
    bool stays = c.number == SYS_mremap && (uint64_t)c.ret == c.args[0] && s->addr - c.args[0] < c.args[1];
    if (!mine || stays) return true;
    *s->out = c;
    s->is_found = true;
    return true;
}

bool inputs_mapping(const struct recording *r, uint64_t stream, uint64_t from, uint64_t to, uint64_t addr,
                    struct call *out) {
    struct mapping_search s = {.addr = addr, .out = out};
    for_events(r, stream, from, to, look_for_mapping, &s);
    return s.is_found;
}

/* ---- the start ---- */

static bool take_start(void *arg, const struct event *e, uint64_t number) {
    struct ev_start *s = arg;
    if (e->kind == EV_START) *s = *EVENT_PAYLOAD(e, ev_start);
    return false;
}

bool inputs_start(const struct recording *r, uint64_t stream, struct ev_start *out) {
    struct ancestor chain[CHAIN];
    size_t n = find_ancestors(r, stream, 0, chain);
    *out = (struct ev_start){0};
    for (size_t i = 0; i < n && !out->pid; i++) for_events(r, chain[i].stream, 0, 1, take_start, out);
    return out->pid != 0;
}
