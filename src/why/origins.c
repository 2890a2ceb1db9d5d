#include "why/origins.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "log/event_text.h"
#include "why/inputs.h"

#define NAME_SHOWN 400

/* ---- calls as text ---- */

static int arguments_of(unsigned nr) {
    switch (nr) {
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid: return 0;
    case SYS_time:
    case SYS_close:
    case SYS_brk: return 1;
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_fstat:
    case SYS_stat:
    case SYS_getcwd:
    case SYS_pipe2: return 2;
    case SYS_pread64:
    case SYS_openat:
    case SYS_newfstatat:
    case SYS_preadv:
    case SYS_wait4: return 4;
    case SYS_recvfrom:
    case SYS_mmap: return 6;
    case SYS_mremap: return 5;
    default: return 3;
    }
}

static void print_call(FILE *to, const struct call *c) {
    const char *name = syscall_name(c->number);
    fprintf(to, name ? "%s(" : "system call %s%u(", name ? name : "", c->number);
    for (int i = 0, n = arguments_of(c->number); i < n; i++)
        fprintf(to, c->args[i] < 65536 ? "%s%lu" : "%s%#lx", i ? ", " : "", c->args[i]);
    fprintf(to, c->ret >= -4095 && c->ret < 65536 ? ") = %ld" : ") = %#lx", c->ret);
}

/* ---- what a descriptor is open on ---- */

static void print_string_at(struct why *w, FILE *to, uint64_t addr) {
    char text[NAME_SHOWN + 1] = "";
    size_t n = 0;
    while (n < NAME_SHOWN && w->target->ops->read_memory(w->target, addr + n, text + n, 1) == 1 && text[n]) n++;
    text[n] = '\0';
    fprintf(to, "\"%s\"", text);
}

/* Goes to the call that opened it: its name is in memory there. */
static void print_opened(struct why *w, FILE *to, const struct opened *o) {
    static const char *const standard[] = {"standard input", "standard output", "standard error"};
    if (!o->is_known) {
        fputs("a descriptor of unknown origin", to);
    } else if (o->is_standard) {
        fputs(standard[o->standard], to);
    } else {
        bool at = o->by.number == SYS_openat || o->by.number == SYS_openat2;
        bool named = at || o->by.number == SYS_open || o->by.number == SYS_creat;
        struct position call = {o->by.event, o->by.ticks, 0};
        if (named && o->in_this_stream && w->target->ops->seek(w->target, call).reason != STOP_FAILED) {
            print_string_at(w, to, o->by.args[at ? 1 : 0]);
            return;
        }
        print_call(to, &o->by);
    }
}

/* Which byte of what the call transferred is at addr. False: not known. */
static bool byte_of_transfer(struct why *w, const struct call *c, uint64_t addr, uint64_t *byte) {
    struct iovec v;
    uint64_t before = 0;
    switch (c->number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_recvfrom: *byte = addr - c->args[1]; return *byte < c->args[2];
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
        for (uint64_t i = 0; i < c->args[2] && i < 1024; i++, before += v.iov_len) {
            if (w->target->ops->read_memory(w->target, c->args[1] + i * sizeof v, &v, sizeof v) != sizeof v)
                return false;
            if (addr - (uint64_t)v.iov_base >= v.iov_len) continue;
            *byte = before + (addr - (uint64_t)v.iov_base);
            return true;
        }
        return false;
    default: return false;
    }
}

static bool takes_descriptor(unsigned nr) {
    switch (nr) {
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_getdents64:
    case SYS_fstat:
    case SYS_ioctl: return true;
    default: return false;
    }
}

static void print_source(struct why *w, FILE *to, const struct call *c, uint64_t addr) {
    struct opened o;
    uint64_t byte = 0;
    if (!takes_descriptor(c->number)) return;
    bool has_byte = byte_of_transfer(w, c, addr, &byte);
    inputs_descriptor(w->recording, w->stream, c->event, (int)c->args[0], &o);
    fputs(": ", to);
    if (has_byte) {
        bool at = c->number == SYS_pread64 || c->number == SYS_preadv || c->number == SYS_preadv2;
        if (at)
            fprintf(to, "offset %lu of ", c->args[3] + byte);
        else if (o.has_offset)
            fprintf(to, "offset %lu of ", (uint64_t)o.offset + byte);
        else
            fprintf(to, "byte %lu of what came from ", byte);
    }
    print_opened(w, to, &o);
}

void origins_of_result(struct why *w, struct why_step *s) {
    struct call c;
    unsigned kind, code;
    FILE *to = fmemopen(s->text, sizeof s->text, "w");
    if (!to) return;
    fputs("an input: the result of ", to);
    if (inputs_call(w->recording, w->stream, s->at.event, 0, &c, &kind, &code))
        print_call(to, &c);
    else
        fputs("a system call", to);
    fclose(to);
}

static void print_writer(struct why *w, FILE *to, uint64_t event, uint64_t addr) {
    struct call c;
    unsigned kind, code;
    if (inputs_call(w->recording, w->stream, event, addr, &c, &kind, &code)) {
        fputs("an input: ", to);
        print_call(to, &c);
        print_source(w, to, &c, addr);
    } else if (kind == EV_SIGNAL || kind == EV_FAULT) {
        const char *name = sigabbrev_np((int)code);
        fprintf(to, "the frame that the handler of SIG%s gets", name ? name : "?");
    } else if (kind == EV_ACQUIRE) {
        fputs("an input: it came with a page that is shared with other processes", to);
    } else {
        fprintf(to, "written by Reprise for event %lu, %s", event, event_kind_name(kind) ? event_kind_name(kind) : "?");
    }
}

void origins_of_call(struct why *w, const struct place *p, uint64_t pc) {
    struct why_step *s = why_add_step(w, WHY_INPUT, *p);
    if (!s) return;
    why_set_instruction(w, s, pc);
    s->n_before = why_read_value(w, p, s->before);
    w->target->ops->run(w->target, false, true);
    s->n_after = why_read_value(w, p, s->after);
    w->target->ops->seek(w->target, s->at);
    FILE *to = fmemopen(s->text, sizeof s->text, "w");
    if (!to) return;
    print_writer(w, to, s->at.event, p->addr);
    fclose(to);
}

/* ---- mappings ---- */

static void print_mapping(struct why *w, FILE *to, const struct call *c, uint64_t addr) {
    struct opened o;
    if (c->number == SYS_munmap) {
        fputs("there is no memory: munmap", to);
    } else if (c->number == SYS_mremap) {
        fputs("fresh memory, zero: ", to);
        print_call(to, c);
    } else if (c->args[3] & MAP_ANONYMOUS) {
        fputs("fresh memory, zero: ", to);
        print_call(to, c);
    } else {
        inputs_descriptor(w->recording, w->stream, c->event, (int)c->args[4], &o);
        fputs("an input: ", to);
        print_call(to, c);
        fprintf(to, ": offset %lu of ", c->args[5] + (addr - (uint64_t)c->ret));
        print_opened(w, to, &o);
    }
}

enum origin origins_of_mapping(struct why *w, struct position from, struct place *p) {
    struct position here = w->target->ops->where(w->target);
    struct call c;
    if (!inputs_mapping(w->recording, w->stream, here.event, from.event, p->addr, &c)) return ORIGIN_NONE;
    if (w->target->ops->seek(w->target, (struct position){c.event, c.ticks, 0}).reason == STOP_FAILED)
        return ORIGIN_NONE;
    bool moved = c.number == SYS_mremap && p->addr - (uint64_t)c.ret < c.args[1];
    struct why_step *s = why_add_step(w, moved ? WHY_MOVED : WHY_BEGIN, *p);
    FILE *to = s ? fmemopen(s->text, sizeof s->text, "w") : NULL;
    if (!to) return ORIGIN_FOUND;
    if (moved) {
        p->addr = p->addr - (uint64_t)c.ret + c.args[0];
        fprintf(to, "moved here from %#lx: ", p->addr);
        print_call(to, &c);
    } else {
        print_mapping(w, to, &c, p->addr);
    }
    fclose(to);
    return moved ? ORIGIN_MOVED : ORIGIN_FOUND;
}

/* ---- the begin ---- */

#define VECTORS_MOST (8ul << 20) /* bytes of pointers to arguments and environment */

/* Which of the strings in [start, end) addr is in, and where that begins. */
static unsigned string_number(struct why *w, uint64_t start, uint64_t addr, uint64_t *begin) {
    unsigned n = 0;
    char c;
    *begin = start;
    for (uint64_t at = start; at < addr && w->target->ops->read_memory(w->target, at, &c, 1) == 1; at++)
        if (!c) {
            n++;
            *begin = at + 1;
        }
    return n;
}

static void print_file_region(struct why *w, FILE *to, uint64_t addr) {
    static struct memory_region regions[1024];
    size_t n = w->target->ops->regions(w->target, regions, sizeof regions / sizeof *regions);
    for (size_t i = 0; i < n; i++) {
        const struct memory_region *r = &regions[i];
        if (addr < r->start || addr >= r->end) continue;
        if (r->name[0] == '/' && lines_has_bytes(w->lines, addr))
            fprintf(to, "as it is in \"%s\", offset %lu", r->name, addr - r->start + r->offset);
        else
            fputs("as the program found it when it began", to);
        return;
    }
    fputs("fresh memory, zero: nothing has written it since the program got it", to);
}

static uint64_t word_at(struct why *w, uint64_t addr) {
    uint64_t word = 0;
    return w->target->ops->read_memory(w->target, addr, &word, sizeof word) == sizeof word ? word : 0;
}

/* argc, argv and envp lie below the auxiliary vector. True: addr is there. */
static bool print_vector(struct why *w, FILE *to, const struct ev_start *start, uint64_t addr) {
    uint64_t at = addr & ~7ul, word = word_at(w, at), begin;
    if (at >= start->auxv_start || start->auxv_start - at > VECTORS_MOST) return false;
    if (word >= start->arg_start && word < start->arg_end) {
        fprintf(to, "an input: the address of argument %u of the program, ",
                string_number(w, start->arg_start, word, &begin));
    } else if (word >= start->env_start && word < start->env_end) {
        fputs("an input: the address of what the environment has, ", to);
    } else if (start->arg_start < start->arg_end && word_at(w, at + 8) == start->arg_start) {
        fprintf(to, "an input: the number of arguments of the program, %lu", word);
        return true;
    } else {
        return false;
    }
    print_string_at(w, to, word);
    return true;
}

static void print_begin(struct why *w, FILE *to, uint64_t addr) {
    struct ev_start start;
    uint64_t begin;
    bool known = inputs_start(w->recording, w->stream, &start);
    if (known && addr >= start.arg_start && addr < start.arg_end) {
        fprintf(to, "an input: argument %u of the program, ", string_number(w, start.arg_start, addr, &begin));
        print_string_at(w, to, begin);
    } else if (known && addr >= start.env_start && addr < start.env_end) {
        string_number(w, start.env_start, addr, &begin);
        fputs("an input: the environment, ", to);
        print_string_at(w, to, begin);
    } else if (known && addr >= start.auxv_start && addr < start.auxv_end) {
        fputs("an input: the auxiliary vector of the program", to);
    } else if (!known || !print_vector(w, to, &start, addr)) {
        print_file_region(w, to, addr);
    }
}

void origins_of_begin(struct why *w, const struct place *p) {
    struct why_step *s = why_add_step(w, WHY_BEGIN, *p);
    FILE *to = s ? fmemopen(s->text, sizeof s->text, "w") : NULL;
    if (!to) return;
    print_begin(w, to, p->addr);
    fclose(to);
}
