/* Events as text, see event_text.h. */
#include "log/event_text.h"

#include <string.h>

#include "log/print_text.h"

#define SHOWN 32 /* bytes of memory in a line */

const char *syscall_name(unsigned number) {
    switch (number) {
#define SYSCALL(nr, name, ...) \
    case nr:                   \
        return #name;
#define SYSCALL_NEW SYSCALL
#include "sphere/sys/model.def"
#undef SYSCALL
#undef SYSCALL_NEW
    default: return NULL;
    }
}

static const char *insn_name(unsigned code) {
    static const char *const names[] = {"",      "rdtsc",  "rdtscp", "cpuid",  "rdrand", "rdseed",
                                        "rdpid", "xgetbv", "lsl",    "shared", "x87",    "rdpru"};
    return code < sizeof names / sizeof *names ? names[code] : "";
}

static void print_object(FILE *to, struct object_name name) {
    char hex[OBJECT_HEX];
    if (!name.lo && !name.hi) return;
    object_hex(name, hex);
    fprintf(to, " object %s", hex);
}

static void print_field(FILE *to, const char *text, size_t cap) { print_text(to, text, strnlen(text, cap)); }

static void print_start(FILE *to, const struct ev_start *s) {
    fprintf(to, "pid %u ppid %u exe ", s->pid, s->ppid);
    print_field(to, s->exe, sizeof s->exe);
    fprintf(to, " pc %#lx rsp %#lx brk %#lx maps %u memory %u", s->pc, s->rsp, s->brk_start, s->n_maps, s->n_memory);
    if (s->parent != UINT64_MAX) fprintf(to, " parent %lu", s->parent);
}

static void print_map(FILE *to, const struct ev_map *m) {
    fprintf(to, "%#lx-%#lx %c%c%c flags %#x offset %#lx ", m->start, m->end, m->prot & 1 ? 'r' : '-',
            m->prot & 2 ? 'w' : '-', m->prot & 4 ? 'x' : '-', m->flags, m->offset);
    print_field(to, m->name, sizeof m->name);
    print_object(to, m->object);
    if (m->prot & MAP_UNSURE) fputs(" unsure", to);
}

static void print_memory(FILE *to, const struct event *e) {
    const struct ev_memory *m = EVENT_PAYLOAD(e, ev_memory);
    if (e->kind == EV_POKE && e->code == POKE_BORROWS) {
        fprintf(to, "borrows what is private of object %lu", m->addr);
        return;
    }
    fprintf(to, "%#lx %u bytes \"", m->addr, m->len);
    print_text(to, (const char *)event_bytes(e), m->len < SHOWN ? m->len : SHOWN);
    fputs(m->len > SHOWN ? "\"..." : "\"", to);
}

static void print_syscall(FILE *to, const struct event *e) {
    const struct ev_syscall *s = EVENT_PAYLOAD(e, ev_syscall);
    const char *name = syscall_name(e->code);
    if (name)
        fputs(name, to);
    else if (e->code & 0x8000)
        fprintf(to, "int 0x80 %u", e->code & 0x7fff);
    else
        fprintf(to, "syscall %u", e->code);
    for (int i = 0; i < 6; i++) fprintf(to, "%s%#lx", i ? ", " : "(", s->args[i]);
    fprintf(to, ") = ");
    const char *error = s->ret < 0 && s->ret > -4096 ? strerrorname_np((int)-s->ret) : NULL;
    if (error)
        fprintf(to, "-%s", error);
    else
        fprintf(to, "%#lx", (unsigned long)s->ret);
    if (s->outs) fprintf(to, " outs %u", s->outs);
    if (e->flags & EVF_OUTPUT) fprintf(to, " output %lu to %u", s->out_seq, s->out_fd);
}

static void print_signal(FILE *to, const struct event *e) {
    const struct ev_signal *s = EVENT_PAYLOAD(e, ev_signal);
    const char *name = sigabbrev_np(e->code);
    int32_t code;
    memcpy(&code, s->info + 8, sizeof code);
    fprintf(to, "%s%s si_code %d", name ? "SIG" : "signal", name ? name : "", code);
    if (!name) fprintf(to, " %u", e->code);
    if (e->kind == EV_FAULT) fprintf(to, " err %#lx trap %lu address %#lx", s->err, s->trapno, s->cr2);
}

static void print_contents(FILE *to, const struct event *e) {
    if (event_contents(e)) fprintf(to, ", %u bytes", contents_bytes(event_contents(e)->blocks));
}

static void print_insn(FILE *to, const struct event *e) {
    const struct ev_insn *i = EVENT_PAYLOAD(e, ev_insn);
    fprintf(to, "%s rax %#lx rbx %#lx rcx %#lx rdx %#lx flags %#lx", insn_name(e->code), i->rax, i->rbx, i->rcx, i->rdx,
            i->flags);
    print_contents(to, e);
}

static void print_flags(FILE *to, uint8_t flags) {
    static const char *const names[] = {"at-gate", "after", "restore-mask", "output",
                                        "retry",   "fault", "step",         "answered"};
    for (int i = 0; i < 8; i++)
        if (flags & 1 << i) fprintf(to, " +%s", names[i]);
}

void event_print(FILE *to, const struct event *e) {
    char text[48];
    switch ((enum event_kind)e->kind) {
    case EV_START: print_start(to, EVENT_PAYLOAD(e, ev_start)); break;
    case EV_FORKED: {
        const struct ev_forked *f = EVENT_PAYLOAD(e, ev_forked);
        fprintf(to, "pid %u ppid %u from stream %lu thread %u", f->pid, f->ppid, f->parent, f->parent_thread);
        break;
    }
    case EV_MAP: print_map(to, EVENT_PAYLOAD(e, ev_map)); break;
    case EV_MEMORY:
    case EV_POKE:
    case EV_OUT: print_memory(to, e); break;
    case EV_SYSCALL: print_syscall(to, e); break;
    case EV_FORK:
    case EV_EXEC: fprintf(to, "stream %lu", EVENT_PAYLOAD(e, ev_child)->stream); break;
    case EV_CLONE: fprintf(to, "thread %u", EVENT_PAYLOAD(e, ev_child)->thread); break;
    case EV_EXIT:
    case EV_END: fputs(status_text(EVENT_PAYLOAD(e, ev_exit)->status, text), to); break;
    case EV_SIGNAL:
    case EV_FAULT: print_signal(to, e); break;
    case EV_PREEMPT:
    case EV_STOP: break;
    case EV_TURN:
        if (e->code) fprintf(to, "signal %u", e->code);
        break;
    case EV_REGS:
        fprintf(to, "pc %lx rsp %lx", EVENT_PAYLOAD(e, ev_regs)->pc, EVENT_PAYLOAD(e, ev_regs)->gpr[4]);
        break;
    case EV_INSN: print_insn(to, e); break;
    case EV_HASH:
        fprintf(to, "%016lx over %lu bytes", EVENT_PAYLOAD(e, ev_hash)->hash, EVENT_PAYLOAD(e, ev_hash)->bytes);
        break;
    case EV_ACQUIRE:
    case EV_RELEASE: {
        const struct ev_page *p = EVENT_PAYLOAD(e, ev_page);
        if (p->writable == PAGE_COPIED) {
            fprintf(to, "copies %u pages at %lx", p->version, p->page * 4096);
            break;
        }
        if (p->writable == PAGE_AWAITED) {
            fprintf(to, "awaits the end of stream %u", p->from - 1);
            break;
        }
        fprintf(to, "object %lu page %lu version %u%s", p->object, p->page, p->version, p->writable ? " writable" : "");
        if (p->from) fprintf(to, " from stream %u", p->from - 1);
        print_contents(to, e);
        break;
    }
    case EV_EXTENDED: fprintf(to, "%u bytes", EVENT_PAYLOAD(e, ev_extended)->len); break;
    case EV_CHECKPOINT: {
        const struct ev_checkpoint *c = EVENT_PAYLOAD(e, ev_checkpoint);
        static const char *const why[] = {"by time", "before a fatal signal", "before the end", "as asked"};
        fprintf(to, "%lu %s, threads %u", c->number, c->why < 4 ? why[c->why] : "", c->n_threads);
        break;
    }
    case EV_CHANGE: {
        const struct ev_change *c = EVENT_PAYLOAD(e, ev_change);
        fprintf(to, "file %lx:%lu offset %lu length %u size %lu", c->dev, c->ino, c->offset, c->len, c->size);
        break;
    }
    case EV_MAPPED: {
        const struct ev_mapped *m = EVENT_PAYLOAD(e, ev_mapped);
        fprintf(to, "size %lu%s%s%s", m->size, m->flags & MAPPED_UNSURE ? " unsure" : "",
                m->flags & MAPPED_TRACKED ? " tracked" : "", m->flags & MAPPED_OWNED ? " owned" : "");
        print_object(to, m->object);
        break;
    }
    }
    print_flags(to, e->flags);
}

/* ---- JSON ---- */

static void json_text(FILE *to, const char *name, const char *text, size_t cap) {
    fprintf(to, ", \"%s\": ", name);
    json_write_string(to, text, strnlen(text, cap));
}

static void json_object(FILE *to, struct object_name name) {
    char hex[OBJECT_HEX];
    object_hex(name, hex);
    if (name.lo || name.hi) fprintf(to, ", \"object\": \"%s\"", hex);
}

static void json_hex(FILE *to, const char *name, const uint8_t *bytes, size_t n) {
    fprintf(to, ", \"%s\": \"", name);
    for (size_t i = 0; i < n; i++) fprintf(to, "%02x", bytes[i]);
    putc('"', to);
}

#define NUMBER(p, field) fprintf(to, ", \"" #field "\": %lu", (unsigned long)(p)->field)

static void json_start(FILE *to, const struct ev_start *s) {
    NUMBER(s, pid), NUMBER(s, ppid), NUMBER(s, n_maps), NUMBER(s, n_memory), NUMBER(s, pc), NUMBER(s, rsp);
    NUMBER(s, rflags), NUMBER(s, brk_start), NUMBER(s, sigmask), NUMBER(s, ignored);
    if (s->parent != UINT64_MAX) NUMBER(s, parent);
    NUMBER(s, auxv_start), NUMBER(s, auxv_end), NUMBER(s, arg_start), NUMBER(s, arg_end), NUMBER(s, env_start);
    NUMBER(s, env_end);
    json_hex(to, "out_fds", s->out_fds, sizeof s->out_fds);
    json_text(to, "comm", s->comm, sizeof s->comm);
    json_text(to, "exe", s->exe, sizeof s->exe);
}

static void json_syscall(FILE *to, const struct event *e) {
    const struct ev_syscall *s = EVENT_PAYLOAD(e, ev_syscall);
    if (syscall_name(e->code)) fprintf(to, ", \"name\": \"%s\"", syscall_name(e->code));
    fprintf(to, ", \"ret\": %ld, \"args\": [%lu, %lu, %lu, %lu, %lu, %lu]", s->ret, s->args[0], s->args[1], s->args[2],
            s->args[3], s->args[4], s->args[5]);
    NUMBER(s, outs);
    if (e->flags & EVF_OUTPUT) NUMBER(s, out_fd), NUMBER(s, out_seq);
}

static void json_map(FILE *to, const struct ev_map *m) {
    NUMBER(m, start), NUMBER(m, end), NUMBER(m, offset), NUMBER(m, prot);
    fprintf(to, ", \"map_flags\": %u, \"file_size\": %lu", m->flags, m->size);
    json_object(to, m->object);
    NUMBER(m, dev), NUMBER(m, ino), NUMBER(m, mtime_ns), NUMBER(m, ctime_ns);
    json_text(to, "name", m->name, sizeof m->name);
}

static void json_mapped(FILE *to, const struct ev_mapped *m) {
    json_object(to, m->object);
    fprintf(to, ", \"file_size\": %lu, \"mapped_flags\": %lu", m->size, m->flags);
    NUMBER(m, dev), NUMBER(m, ino), NUMBER(m, mtime_ns), NUMBER(m, ctime_ns);
}

static void json_signal(FILE *to, const struct ev_signal *s) {
    json_hex(to, "info", s->info, sizeof s->info);
    NUMBER(s, err), NUMBER(s, trapno), NUMBER(s, cr2);
}

static void json_contents(FILE *to, const struct event *e) {
    const struct ev_contents *c = event_contents(e);
    if (c) fprintf(to, ", \"blocks\": %lu, \"contents_flags\": %lu", c->blocks, c->flags);
}

void event_print_json(FILE *to, const struct event *e) {
    const void *p = e + 1;
    const struct ev_forked *forked = p;
    const struct ev_memory *memory = p;
    const struct ev_child *child = p;
    const struct ev_insn *insn = p;
    const struct ev_hash *hash = p;
    const struct ev_page *page = p;
    const struct ev_change *change = p;
    const struct ev_checkpoint *checkpoint = p;
    const struct ev_extended *registers = p;
    const struct ev_regs *regs = p;
    switch ((enum event_kind)e->kind) {
    case EV_START: json_start(to, p); break;
    case EV_FORKED:
        NUMBER(forked, pid), NUMBER(forked, ppid), NUMBER(forked, parent), NUMBER(forked, parent_thread);
        break;
    case EV_MAP: json_map(to, p); break;
    case EV_MEMORY:
    case EV_POKE:
    case EV_OUT:
        NUMBER(memory, addr), NUMBER(memory, len);
        json_hex(to, "bytes", event_bytes(e), memory->len);
        break;
    case EV_SYSCALL: json_syscall(to, e); break;
    case EV_FORK:
    case EV_CLONE:
    case EV_EXEC: fprintf(to, ", \"child_stream\": %lu, \"child_thread\": %u", child->stream, child->thread); break;
    case EV_EXIT:
    case EV_END: fprintf(to, ", \"status\": %d", ((const struct ev_exit *)p)->status); break;
    case EV_SIGNAL:
    case EV_FAULT: json_signal(to, p); break;
    case EV_PREEMPT:
    case EV_STOP:
    case EV_TURN: break;
    case EV_REGS: NUMBER(regs, pc), NUMBER(regs, rflags), NUMBER(regs, sigmask), NUMBER(regs, extended); break;
    case EV_INSN:
        fprintf(to, ", \"insn\": \"%s\", \"insn_flags\": %lu", insn_name(e->code), insn->flags);
        NUMBER(insn, rax), NUMBER(insn, rbx), NUMBER(insn, rcx), NUMBER(insn, rdx);
        json_contents(to, e);
        break;
    case EV_HASH: NUMBER(hash, hash), NUMBER(hash, bytes); break;
    case EV_ACQUIRE:
    case EV_RELEASE:
        NUMBER(page, object), NUMBER(page, page), NUMBER(page, version), NUMBER(page, writable);
        json_contents(to, e);
        break;
    case EV_MAPPED: json_mapped(to, p); break;
    case EV_EXTENDED: NUMBER(registers, xcr0), NUMBER(registers, len); break;
    case EV_CHECKPOINT:
        NUMBER(checkpoint, number), NUMBER(checkpoint, threads), NUMBER(checkpoint, why), NUMBER(checkpoint, n_threads);
        break;
    case EV_CHANGE:
        NUMBER(change, dev), NUMBER(change, ino), NUMBER(change, offset), NUMBER(change, size), NUMBER(change, len);
        break;
    }
}
