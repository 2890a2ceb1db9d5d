/* The packets, one row each. */
#include "rsp/packets.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsp/libraries.h"

#define OBJECT_MAX (16u << 20)
#define THREADS_MAX 65536
#define MONITOR_MAX (PACKET_MAX / 2 - 16)

static void ok(struct gdb *g) { out_str(&g->reply, "OK"); }
static void fail(struct gdb *g) { out_str(&g->reply, "E01"); }
static void ok_if(struct gdb *g, bool fine) { fine ? ok(g) : fail(g); }

static void say_bytes(struct gdb *g, const char *text, size_t n) {
    struct out o = {.most = PACKET_MAX};
    if (!g->wire) return;
    out_str(&o, "O");
    out_hex(&o, text, n);
    wire_put(g->wire, o.bytes, o.len);
    out_free(&o);
}

void gdb_say(struct gdb *g, const char *text) { say_bytes(g, text, strlen(text)); }

void gdb_say_printed(struct gdb *g) {
    char text[2048];
    off_t from = g->printed_to;
    if (!g->printed) return;
    for (ssize_t n; (n = pread(g->printed, text, sizeof text, g->printed_to)) > 0; g->printed_to += n)
        say_bytes(g, text, (size_t)n);
    if (g->printed_to > from)
        fallocate(g->printed, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, g->printed_to - from);
}

/* ---- registers ---- */

static struct registers *read_regs(struct gdb *g) {
    static struct registers r;
    struct target *t = g->target;
    int tid = thread_or_current(g, g->general_thread);
    if (t->ops->read_registers(t, tid, &r)) return &r;
    /* gdb is told later that the thread which it steps does not exist where it was sent, and looks at it until then */
    return g->settles && t->ops->read_registers(t, t->ops->current_thread(t), &r) ? &r : NULL;
}

static bool write_regs(struct gdb *g, const struct registers *r) {
    return g->target->ops->write_registers(g->target, thread_or_current(g, g->general_thread), r);
}

static void packet_g(struct gdb *g, struct in *in) {
    struct registers *r = read_regs(g);
    if (!r) return fail(g);
    regs_get(&g->description, r, &g->reply);
}

static void packet_G(struct gdb *g, struct in *in) {
    struct registers *r = read_regs(g);
    ok_if(g, r && regs_set(&g->description, r, in) && write_regs(g, r));
}

static void packet_p(struct gdb *g, struct in *in) {
    uint64_t n;
    uint8_t value[REG_MAX];
    struct registers *r = read_regs(g);
    if (!in_hex(in, &n) || n >= g->description.n || !r) return fail(g);
    size_t size = reg_size(&g->description, (unsigned)n);
    if (reg_get(&g->description, r, (unsigned)n, value))
        out_hex(&g->reply, value, size);
    else
        for (size_t i = 0; i < size; i++) out_str(&g->reply, "xx");
}

static void packet_P(struct gdb *g, struct in *in) {
    uint64_t n;
    uint8_t value[REG_MAX] = {0};
    struct registers *r = read_regs(g);
    if (!in_hex(in, &n) || !in_char(in, '=') || n >= g->description.n || !r) return fail(g);
    if (in_bytes(in, value, sizeof value) != (long)reg_size(&g->description, (unsigned)n)) return fail(g);
    ok_if(g, reg_set(&g->description, r, (unsigned)n, value) && write_regs(g, r));
}

/* ---- memory ---- */

static bool parse_range(struct in *in, uint64_t *addr, uint64_t *n) {
    return in_hex(in, addr) && in_char(in, ',') && in_hex(in, n);
}

/* What can be read from addr on, at most n bytes; free() it. */
static uint8_t *read_some(struct gdb *g, uint64_t addr, uint64_t *n) {
    if (*n && addr + *n - 1 < addr) *n = -addr; /* not around the end */
    uint8_t *bytes = malloc(*n + 1);
    size_t got = bytes ? g->target->ops->read_memory(g->target, addr, bytes, *n) : 0;
    if (got < *n) *n = got;
    return bytes;
}

static void packet_m(struct gdb *g, struct in *in) {
    uint64_t addr, n;
    if (!parse_range(in, &addr, &n)) return fail(g);
    if (n > (PACKET_MAX - 16) / 2) n = (PACKET_MAX - 16) / 2;
    uint64_t want = n;
    uint8_t *bytes = read_some(g, addr, &n);
    if (!bytes || (want && !n))
        fail(g);
    else
        out_hex(&g->reply, bytes, n);
    free(bytes);
}

static void packet_x(struct gdb *g, struct in *in) {
    uint64_t addr, n;
    if (!parse_range(in, &addr, &n)) return fail(g);
    if (n > PACKET_MAX / 2) n = PACKET_MAX / 2;
    uint64_t want = n;
    uint8_t *bytes = read_some(g, addr, &n);
    if (!bytes || (want && !n)) {
        fail(g);
    } else {
        out_str(&g->reply, "b");
        out_binary(&g->reply, bytes, n);
    }
    free(bytes);
}

static void packet_M(struct gdb *g, struct in *in) {
    uint64_t addr, n;
    if (!parse_range(in, &addr, &n) || !in_char(in, ':') || n > PACKET_MAX / 2) return fail(g);
    uint8_t *bytes = malloc(n + 1);
    ok_if(g, bytes && in_bytes(in, bytes, n) == (long)n &&
                 (!n || g->target->ops->write_memory(g->target, addr, bytes, n)));
    free(bytes);
}

static void packet_X(struct gdb *g, struct in *in) {
    uint64_t addr, n;
    if (!parse_range(in, &addr, &n) || !in_char(in, ':') || n != (uint64_t)(in->end - in->at)) return fail(g);
    ok_if(g, !n || g->target->ops->write_memory(g->target, addr, in->at, n));
}

/* ---- running ---- */

static void packet_status(struct gdb *g, struct in *in) {
    if (g->attached)
        stop_reply(g, g->last, REPORT_AGAIN);
    else
        out_str(&g->reply, "W00");
}

/* From another address: that would not be the recording any more. A signal to deliver is the recording's matter. */
static void packet_c(struct gdb *g, struct in *in) { in_is_empty(in) ? resume_simple(g, false, false) : fail(g); }
static void packet_s(struct gdb *g, struct in *in) { in_is_empty(in) ? resume_simple(g, false, true) : fail(g); }
static void packet_C(struct gdb *g, struct in *in) {
    uint64_t signo;
    in_hex(in, &signo) ? packet_c(g, in) : fail(g);
}
static void packet_S(struct gdb *g, struct in *in) {
    uint64_t signo;
    in_hex(in, &signo) ? packet_s(g, in) : fail(g);
}
static void packet_bc(struct gdb *g, struct in *in) { resume_simple(g, true, false); }
static void packet_bs(struct gdb *g, struct in *in) { resume_simple(g, true, true); }
static void packet_vcont(struct gdb *g, struct in *in) { resume_vcont(g, in); }
static void packet_vcont_actions(struct gdb *g, struct in *in) { out_str(&g->reply, "vCont;c;C;s;S;r"); }

static void packet_Z(struct gdb *g, struct in *in) {
    uint64_t type, addr, len;
    if (!in_hex(in, &type) || !in_char(in, ',') || !parse_range(in, &addr, &len)) return fail(g);
    if (type > 4) return;
    if (type < 2 && addr == g->unset_at) g->unset_at = 0;
    if (type < 2 && addr == g->unset_last) g->unset_last = 0;
    ok_if(g, g->is_at_child || breaks_set(&g->breaks, g->target, (unsigned)type, addr, len, in));
}

static void packet_z(struct gdb *g, struct in *in) {
    uint64_t type, addr, len;
    if (!in_hex(in, &type) || !in_char(in, ',') || !parse_range(in, &addr, &len)) return fail(g);
    if (type > 4) return;
    if (type < 2) resume_without(g, addr);
    ok_if(g, g->is_at_child || breaks_unset(&g->breaks, g->target, (unsigned)type, addr, len));
}

/* Signals that gdb need not know of; the target is told which ones are left. */
static void packet_pass(struct gdb *g, struct in *in) {
    uint64_t pass[(GDB_SIGNALS + 63) / 64] = {0}, wanted = 0;
    for (uint64_t n; in_hex(in, &n);) {
        if (n < GDB_SIGNALS) pass[n / 64] |= 1ull << n % 64;
        if (!in_char(in, ';')) break;
    }
    for (int signo = 1; signo <= 64; signo++) {
        int n = gdb_signal(signo);
        if (!(pass[n / 64] >> n % 64 & 1)) wanted |= 1ull << (signo - 1);
    }
    bool good = in_is_empty(in);
    if (good) g->target->ops->want_signals(g->target, g->wanted = wanted);
    ok_if(g, good);
}

/* 0, or 1[;CALL]... : none, all, or these. */
static void packet_catch(struct gdb *g, struct in *in) {
    struct catches c = {.forks = g->catches.forks};
    bool some = in_char(in, '1'), good = some || in_char(in, '0');
    if (some && in_is_empty(in)) memset(c.calls, 0xff, sizeof c.calls);
    for (uint64_t n; some && good && in_char(in, ';');) {
        good = in_hex(in, &n);
        if (good && n < CALLS_MAX) c.calls[n / 64] |= 1ull << n % 64;
    }
    good = good && in_is_empty(in);
    if (good) {
        g->catches = c;
        g->target->ops->want_catches(g->target, &c);
    }
    ok_if(g, good);
}

/* ---- the process comes and goes ---- */

static void attach(struct gdb *g) {
    g->attached = true;
    g->killed = false;
    g->general_thread = g->continue_thread = 0;
}

static bool enter_process(struct gdb *g, int pid) {
    struct target *t = g->target;
    if (!t->ops->enter_process || !t->ops->enter_process(t, pid)) return false;
    attach(g);
    g->last = (struct stop){.reason = STOP_STEP, .thread = t->ops->current_thread(t)};
    return true;
}

/* A child of vfork() or posix_spawn() begins with the program that it has executed: gdb takes it for that of the parent. */
static bool follow_child(struct gdb *g, int child) {
    struct target *t = g->target;
    char before[4096] = "", now[4096] = "";
    t->ops->exe_path(t, before, sizeof before);
    if (!enter_process(g, child)) return false;
    t->ops->exe_path(t, now, sizeof now);
    g->tells_exec = strncmp(before, now, sizeof now) != 0;
    return true;
}

static void packet_detach(struct gdb *g, struct in *in) {
    int child = g->child;
    uint64_t pid;
    g->child = 0;
    g->is_at_child = false;
    if (in_char(in, ';') && in_hex(in, &pid) && child && pid == (uint64_t)child)
        return ok(g); /* it is not here anyway */
    breaks_clear(&g->breaks, g->target);
    g->tells_exec = false;
    if (!child || !follow_child(g, child))
        g->attached = false; /* follow-fork-mode child: gdb goes on in the other one */
    ok(g);
}

static void packet_vkill(struct gdb *g, struct in *in) {
    packet_detach(g, in);
    g->killed = true;
}

static void packet_k(struct gdb *g, struct in *in) {
    g->killed = g->ended = g->silent = true;
    g->attached = false;
}

/* From the begin. */
static void restart(struct gdb *g) {
    attach(g);
    g->last = g->target->ops->seek_begin(g->target);
}

static void packet_vrun(struct gdb *g, struct in *in) {
    restart(g);
    stop_reply(g, g->last, REPORT_AGAIN);
}

static void packet_R(struct gdb *g, struct in *in) {
    restart(g);
    g->silent = true;
}

static void packet_vattach(struct gdb *g, struct in *in) {
    uint64_t pid;
    if (!in_hex(in, &pid) || pid > INT32_MAX) return fail(g);
    if ((int)pid != g->target->ops->pid(g->target) && !enter_process(g, (int)pid)) return fail(g);
    attach(g);
    stop_reply(g, g->last, REPORT_AGAIN);
}

/* ---- threads ---- */

/* All threads; free() them. */
static struct thread_facts *threads_of(struct gdb *g, size_t *n) {
    for (size_t cap = 64;; cap *= 4) {
        struct thread_facts *all = calloc(cap, sizeof *all);
        *n = all ? g->target->ops->threads(g->target, all, cap) : 0;
        if (*n < cap || cap >= THREADS_MAX) {
            if (*n > cap) *n = cap;
            for (size_t i = 0; i < *n; i++) {
                all[i].name[sizeof all->name - 1] = '\0';
                all[i].state[sizeof all->state - 1] = '\0';
            }
            return all;
        }
        free(all);
    }
}

static bool find_thread(struct gdb *g, int tid, struct thread_facts *found) {
    size_t n;
    struct thread_facts *all = threads_of(g, &n);
    bool there = false;
    for (size_t i = 0; i < n && !there; i++)
        if (all[i].tid == tid) {
            if (found) *found = all[i];
            there = true;
        }
    free(all);
    return there;
}

/* pCHILD[.THREAD] */
static bool parse_child(const struct gdb *g, struct in in) {
    uint64_t pid;
    return g->child && in_char(&in, 'p') && in_hex(&in, &pid) && pid == (uint64_t)g->child;
}

static void packet_H(struct gdb *g, struct in *in) {
    int tid;
    bool general = in_char(in, 'g');
    if (general) g->is_at_child = parse_child(g, *in);
    if (g->is_at_child) return ok(g);
    if ((!general && !in_char(in, 'c')) || !parse_thread_id(g, in, &tid)) return fail(g);
    if (tid > 0 && !g->settles && !find_thread(g, tid, NULL)) return fail(g);
    *(general ? &g->general_thread : &g->continue_thread) = tid > 0 ? tid : 0;
    ok(g);
}

static void packet_T(struct gdb *g, struct in *in) {
    int tid;
    ok_if(g, parse_thread_id(g, in, &tid) && find_thread(g, tid, NULL));
}

static void query_current(struct gdb *g, struct in *in) {
    out_str(&g->reply, "QC");
    put_thread_id(g, &g->reply, g->target->ops->current_thread(g->target));
}

static void query_threads(struct gdb *g, struct in *in) {
    size_t n;
    struct thread_facts *all = threads_of(g, &n);
    g->is_shown = true;
    for (size_t i = 0; i < n && g->reply.len < PACKET_MAX - 64; i++) {
        out_str(&g->reply, i ? "," : "m");
        put_thread_id(g, &g->reply, all[i].tid);
    }
    if (!n) out_str(&g->reply, "l");
    free(all);
}

static void query_no_more_threads(struct gdb *g, struct in *in) { out_str(&g->reply, "l"); }

static void query_thread_text(struct gdb *g, struct in *in) {
    int tid;
    struct thread_facts facts;
    char text[sizeof facts.name + sizeof facts.state + 8];
    if (!parse_thread_id(g, in, &tid) || !find_thread(g, tid, &facts)) return fail(g);
    snprintf(text, sizeof text, "%s%s%s", facts.name, facts.name[0] && facts.state[0] ? ": " : "", facts.state);
    out_hex(&g->reply, text, strlen(text));
}

static void query_attached(struct gdb *g, struct in *in) { out_str(&g->reply, "1"); }

/* Libraries have come or gone: all is asked anew. */
static void query_symbols(struct gdb *g, struct in *in) {
    g->tls = (struct tls){0};
    tls_ask(&g->tls, &g->reply);
}

static void query_symbol(struct gdb *g, struct in *in) { tls_answer(&g->tls, in, &g->reply); }

/* THREAD,OFFSET,LINK-MAP */
static void query_tls(struct gdb *g, struct in *in) {
    static struct registers r;
    int tid;
    uint64_t offset, link_map, at;
    bool good = parse_thread_id(g, in, &tid) && in_char(in, ',') && parse_range(in, &offset, &link_map) &&
                g->target->ops->read_registers(g->target, thread_or_current(g, tid), &r) &&
                tls_find(&g->tls, g->target, r.fs_base, link_map, offset, &at);
    if (good)
        out_format(&g->reply, "%lx", at);
    else
        fail(g);
}

/* ---- qXfer: objects, piece by piece ---- */

static bool object_features(struct gdb *g, const char *annex) {
    if (strcmp(annex, "target.xml") != 0) return false;
    description_xml(&g->description, &g->object);
    return true;
}

static bool object_auxv(struct gdb *g, const char *annex) {
    char bytes[8192];
    size_t n = g->target->ops->auxv(g->target, bytes, sizeof bytes);
    out_bytes(&g->object, bytes, n < sizeof bytes ? n : sizeof bytes);
    return n > 0;
}

static bool object_exec_file(struct gdb *g, const char *annex) {
    char path[4096];
    if (*annex && strtoul(annex, NULL, 16) != (unsigned long)g->target->ops->pid(g->target)) return false;
    if (!g->target->ops->exe_path(g->target, path, sizeof path)) return false;
    out_bytes(&g->object, path, strnlen(path, sizeof path));
    return true;
}

static bool object_siginfo(struct gdb *g, const char *annex) {
    char bytes[128];
    size_t n = g->target->ops->siginfo(g->target, bytes, sizeof bytes);
    out_bytes(&g->object, bytes, n < sizeof bytes ? n : sizeof bytes);
    return n > 0;
}

static bool object_threads(struct gdb *g, const char *annex) {
    size_t n;
    struct thread_facts *all = threads_of(g, &n);
    g->is_shown = true;
    out_str(&g->object, "<?xml version=\"1.0\"?>\n<threads>\n");
    for (size_t i = 0; i < n; i++) {
        out_str(&g->object, "<thread id=\"");
        put_thread_id(g, &g->object, all[i].tid);
        out_str(&g->object, "\" name=\"");
        out_xml(&g->object, all[i].name);
        out_str(&g->object, "\">");
        out_xml(&g->object, all[i].state);
        out_str(&g->object, "</thread>\n");
    }
    out_str(&g->object, "</threads>\n");
    free(all);
    return true;
}

static bool object_libraries(struct gdb *g, const char *annex) {
    libraries_xml(g->target, &g->object);
    return true;
}

static const struct {
    const char *name;
    bool (*make)(struct gdb *, const char *annex);
} objects[] = {
    {"features", object_features}, {"auxv", object_auxv},       {"exec-file", object_exec_file},
    {"siginfo", object_siginfo},   {"threads", object_threads}, {"libraries-svr4", object_libraries},
};

/* Made when its first piece is read, kept for the others. */
static bool make_object(struct gdb *g, const char *name, const char *annex, bool first) {
    char whole[sizeof g->object_name];
    if ((size_t)snprintf(whole, sizeof whole, "%s:%s", name, annex) >= sizeof whole) return false;
    if (!first && strcmp(whole, g->object_name) == 0) return true;
    g->object_name[0] = '\0';
    out_clear(&g->object);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (strcmp(objects[i].name, name) == 0 && objects[i].make(g, annex)) {
            strcpy(g->object_name, whole);
            return true;
        }
    return false;
}

/* OBJECT:read:ANNEX:OFFSET,LENGTH */
static void query_xfer(struct gdb *g, struct in *in) {
    char name[32], annex[32];
    uint64_t offset, length;
    struct in n = in_until(in, ':');
    bool reads = in_word(in, ":read:");
    struct in a = in_until(in, ':');
    if (!reads) return; /* nothing can be written: that packet does not exist */
    if (!in_char(in, ':') || !parse_range(in, &offset, &length)) {
        out_str(&g->reply, "E00");
        return;
    }
    if ((size_t)(n.end - n.at) >= sizeof name || (size_t)(a.end - a.at) >= sizeof annex) return fail(g);
    snprintf(name, sizeof name, "%.*s", (int)(n.end - n.at), n.at);
    snprintf(annex, sizeof annex, "%.*s", (int)(a.end - a.at), a.at);
    if ((!g->attached && strcmp(name, "features") != 0) || !make_object(g, name, annex, offset == 0)) return fail(g);
    if (offset > g->object.len) return fail(g);
    size_t left = g->object.len - offset;
    if (length > left) length = left;
    out_str(&g->reply, "l");
    size_t sent = out_binary(&g->reply, g->object.bytes + offset, length);
    if (sent < left) g->reply.bytes[0] = 'm';
}

/* ---- agreements ---- */

static void query_supported(struct gdb *g, struct in *in) {
    in_char(in, ':');
    while (!in_is_empty(in)) {
        struct in word = in_until(in, ';');
        in_char(in, ';');
        if (in_word(&word, "multiprocess+")) g->multiprocess = true;
        if (in_word(&word, "swbreak+")) g->swbreak = true;
        if (in_word(&word, "hwbreak+")) g->hwbreak = true;
        if (in_word(&word, "exec-events+")) g->exec_events = true;
        if (in_word(&word, "fork-events+")) g->fork_events = true;
    }
    out_format(
        &g->reply,
        "PacketSize=%x;QStartNoAckMode+;QPassSignals+;ReverseStep+;ReverseContinue+;vContSupported+;multiprocess+;"
        "swbreak+;hwbreak+;ConditionalBreakpoints+;exec-events+;fork-events+;QCatchSyscalls+;binary-upload+",
        PACKET_MAX);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        out_format(&g->reply, ";qXfer:%s:read+", objects[i].name);
}

static void packet_no_acks(struct gdb *g, struct in *in) {
    if (g->wire) { /* this one is still acknowledged */
        g->silent = true;
        if (wire_put(g->wire, "OK", 2)) g->wire->acks = false;
    } else {
        ok(g);
    }
}

static void query_command(struct gdb *g, struct in *in) {
    char text[1024];
    struct out o = {.most = MONITOR_MAX};
    if (!in_text(in, text, sizeof text)) return fail(g);
    if (monitor_command(g, text, &o)) {
        if (o.len)
            out_hex(&g->reply, o.bytes, o.len);
        else
            ok(g);
    } else {
        out_bytes(&o, "", 1);
        if (o.len > 1) {
            o.bytes[o.len - 1] = '\0';
            gdb_say(g, o.bytes);
        }
        fail(g);
    }
    out_free(&o);
}

static void packet_ok(struct gdb *g, struct in *in) { ok(g); }
static void packet_nothing(struct gdb *g, struct in *in) {}
static void packet_file(struct gdb *g, struct in *in) { files_packet(&g->files, g->target, in, &g->reply); }

/* ---- the table ---- */

enum { EXACT = 1, NEEDS_PROCESS = 2 };

/* The first row that fits. EXACT: nothing follows. A packet that fits none gets the empty reply, which says so. */
static const struct {
    const char *name;
    void (*act)(struct gdb *, struct in *);
    int flags;
} packets[] = {
    {"?", packet_status, EXACT},
    {"!", packet_ok, EXACT},
    {"g", packet_g, EXACT | NEEDS_PROCESS},
    {"G", packet_G, NEEDS_PROCESS},
    {"p", packet_p, NEEDS_PROCESS},
    {"P", packet_P, NEEDS_PROCESS},
    {"m", packet_m, NEEDS_PROCESS},
    {"M", packet_M, NEEDS_PROCESS},
    {"x", packet_x, NEEDS_PROCESS},
    {"X", packet_X, NEEDS_PROCESS},
    {"Z", packet_Z, NEEDS_PROCESS},
    {"z", packet_z, NEEDS_PROCESS},
    {"bc", packet_bc, EXACT | NEEDS_PROCESS},
    {"bs", packet_bs, EXACT | NEEDS_PROCESS},
    {"vCont?", packet_vcont_actions, EXACT},
    {"vCont", packet_vcont, NEEDS_PROCESS},
    {"vFile:", packet_file, 0},
    {"vKill", packet_vkill, 0},
    {"vRun", packet_vrun, 0},
    {"vAttach;", packet_vattach, 0},
    {"vMustReplyEmpty", packet_nothing, 0},
    {"c", packet_c, NEEDS_PROCESS},
    {"C", packet_C, NEEDS_PROCESS},
    {"s", packet_s, NEEDS_PROCESS},
    {"S", packet_S, NEEDS_PROCESS},
    {"H", packet_H, 0},
    {"T", packet_T, NEEDS_PROCESS},
    {"D", packet_detach, 0},
    {"k", packet_k, EXACT},
    {"R", packet_R, 0},
    {"qSupported", query_supported, 0},
    {"QStartNoAckMode", packet_no_acks, EXACT},
    {"QPassSignals:", packet_pass, 0},
    {"QCatchSyscalls:", packet_catch, 0},
    {"qXfer:", query_xfer, 0},
    {"qC", query_current, EXACT | NEEDS_PROCESS},
    {"qfThreadInfo", query_threads, EXACT | NEEDS_PROCESS},
    {"qsThreadInfo", query_no_more_threads, EXACT},
    {"qThreadExtraInfo,", query_thread_text, NEEDS_PROCESS},
    {"qAttached", query_attached, 0},
    {"qRcmd,", query_command, 0},
    {"qSymbol::", query_symbols, EXACT},
    {"qSymbol:", query_symbol, NEEDS_PROCESS},
    {"qGetTLSAddr:", query_tls, NEEDS_PROCESS},
    {"qTStatus", packet_nothing, 0},
};

void gdb_packet(struct gdb *g, const char *packet, size_t n) {
    out_clear(&g->reply);
    g->silent = false;
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
        struct in in = {packet, packet + n};
        if (!in_word(&in, packets[i].name) || (packets[i].flags & EXACT && !in_is_empty(&in))) continue;
        if (packets[i].flags & NEEDS_PROCESS && !g->attached)
            fail(g);
        else
            packets[i].act(g, &in);
        break;
    }
    if (g->reply.full) { /* half an answer would be a wrong one */
        out_clear(&g->reply);
        fail(g);
    }
}

void gdb_open(struct gdb *g, struct target *t, struct wire *w, struct stop at) {
    static struct registers r;
    *g = (struct gdb){.target = t, .wire = w, .attached = true, .last = at};
    t->ops->want_signals(t, g->wanted = UINT64_MAX);
    t->ops->want_catches(t, &g->catches);
    g->reply.most = PACKET_MAX;
    g->object.most = OBJECT_MAX;
    describe(&g->description, t->ops->read_registers(t, t->ops->current_thread(t), &r) ? r.xcr0 : 3);
}

void gdb_close(struct gdb *g) {
    breaks_clear(&g->breaks, g->target);
    files_close_all(&g->files);
    out_free(&g->reply);
    out_free(&g->object);
}
