// link: src/engine/decode.c src/engine/decode_table.c
/* Counts and positions against ground truth: a program is single-stepped with ptrace, every instruction decoded; the totals
 * must be what the counting policies report, no two moments may share a position (ticks, pc, rsp), and whatever the budget of
 * ticks, the thread leaves the cache at exactly the tick points. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#undef PAGE_SIZE
#undef PAGE_MASK
#include "engine/decode.h"

#define MAX_TICKS 65536

struct truth {
    unsigned long insns, loads, stores, ticks;
    unsigned long repeated_positions;
    int status;                 /* of the program */
    uint64_t points[MAX_TICKS]; /* pc of the instruction that made each tick */
};

static const char *program(const char *name, char *buf, size_t cap) {
    const char *build = getenv("BUILD");
    snprintf(buf, cap, "%s/guest/%s", build ? build : "build", name);
    return buf;
}

/* Every position seen so far: open addressing, never full. */
#define POSITIONS (1u << 20)
static struct {
    uint64_t tick, pc, rsp;
    int used;
} seen[POSITIONS];

static int position_is_new(uint64_t tick, uint64_t pc, uint64_t rsp) {
    uint64_t mixed = tick * 0x9e3779b97f4a7c15ull ^ pc * 0xc2b2ae3d27d4eb4full ^ rsp * 0x165667b19e3779f9ull;
    uint32_t i = (uint32_t)(mixed >> 40) % POSITIONS;
    for (; seen[i].used; i = (i + 1) % POSITIONS)
        if (seen[i].tick == tick && seen[i].pc == pc && seen[i].rsp == rsp) return 0;
    seen[i].tick = tick;
    seen[i].pc = pc;
    seen[i].rsp = rsp;
    seen[i].used = 1;
    return 1;
}

/* Whether the bytes in front of pc, in its page, end in what decodes as a push. */
static int is_behind_push(pid_t pid, uint64_t pc) {
    for (unsigned len = 1; len <= 7 && len <= (pc & 0xfff); len++) {
        uint8_t bytes[8];
        struct insn in;
        for (unsigned i = 0; i < len; i++) bytes[i] = (uint8_t)ptrace(PTRACE_PEEKTEXT, pid, pc - len + i, 0);
        if (decode_insn(&in, bytes, len, pc - len) && in.len == len && in.push_size && in.cls == INSN_PLAIN) return 1;
    }
    return 0;
}

/* The definition of a tick: a taken direct transfer to an address not above its own, every call, every indirect jump; a return
 * that drops arguments is one, and so is a return behind a push; other returns make none. */
static int is_tick(pid_t pid, const struct insn *in, uint64_t next_pc) {
    switch (in->cls) {
    case INSN_JMP:
    case INSN_JCC:
    case INSN_LOOP: return next_pc == in->target && in->target <= in->pc && next_pc != in->pc + in->len;
    case INSN_CALL:
    case INSN_CALL_IND:
    case INSN_JMP_IND: return 1;
    case INSN_RET: return in->imm != 0 || is_behind_push(pid, in->pc);
    default: return 0;
    }
}

static void count_one(struct truth *t, const struct insn *in) {
    t->insns++;
    t->loads += (in->load_size != 0) + (in->pop_size != 0);
    t->stores += (in->store_size != 0) + (in->push_size != 0);
}

static void single_step(const char *path, struct truth *t) {
    memset(seen, 0, sizeof seen);
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFSTOPPED(status));
    for (uint64_t last_pc = 0;;) {
        struct user_regs_struct r;
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
        uint8_t bytes[16];
        for (int i = 0; i < 16; i += 8) {
            long w = ptrace(PTRACE_PEEKTEXT, pid, r.rip + (unsigned)i, 0);
            memcpy(bytes + i, &w, 8);
        }
        struct insn in;
        assert_true(decode_insn(&in, bytes, 15, r.rip));
        /* a rep instruction stops after each iteration; it is one instruction and one position */
        if (!(in.rep && r.rip == last_pc)) {
            count_one(t, &in);
            t->repeated_positions += !position_is_new(t->ticks, r.rip, r.rsp);
        }
        last_pc = r.rip;
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        waitpid(pid, &status, 0);
        t->status = status;
        if (WIFEXITED(status)) break;
        assert_true(WIFSTOPPED(status));
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
        if (!is_tick(pid, &in, r.rip)) continue;
        assert_true(t->ticks < MAX_TICKS);
        t->points[t->ticks++] = in.pc;
    }
}

static FILE *run_under(const char *options, const char *name) {
    char path[512], command[2048];
    const char *reprise = getenv("REPRISE");
    snprintf(command, sizeof command, "%s run --no-cache %s -- %s 2>&1", reprise ? reprise : "build/reprise", options,
             program(name, path, sizeof path));
    FILE *f = popen(command, "r");
    assert_non_null(f);
    return f;
}

/* The line that starts with `what` in what Reprise writes to stderr. */
static void reported(const char *options, const char *name, const char *what, char *line, size_t cap) {
    FILE *f = run_under(options, name);
    int found = 0;
    for (char text[1024]; fgets(text, sizeof text, f);)
        if (strstr(text, what)) {
            snprintf(line, cap, "%s", strstr(text, what));
            found = 1;
        }
    pclose(f);
    assert_true(found);
}

static struct truth count_me, tick_kinds;

static int find_truth(void **state) {
    char path[512];
    single_step(program("count_me", path, sizeof path), &count_me);
    single_step(program("tick_kinds", path, sizeof path), &tick_kinds);
    return 0;
}

static void counts_are_exact(void **state) {
    char line[1024];
    unsigned long insns, loads, stores;
    reported("--debug policy=count", "count_me", "counts:", line, sizeof line);
    assert_int_equal(sscanf(line, "counts: %lu instructions, %lu loads, %lu stores", &insns, &loads, &stores), 3);
    assert_true(count_me.insns > 1000);
    assert_int_equal(insns, count_me.insns);
    assert_int_equal(loads, count_me.loads);
    assert_int_equal(stores, count_me.stores);
}

static void expect_ticks(const char *options, const char *name, const struct truth *truth) {
    char line[1024];
    unsigned long ticks;
    reported(options, name, "ticks:", line, sizeof line);
    assert_int_equal(sscanf(line, "ticks: %lu", &ticks), 1);
    assert_int_equal(ticks, truth->ticks);
}

static void ticks_are_exact(void **state) {
    expect_ticks("--debug policy=ticks", "count_me", &count_me);
    expect_ticks("--debug policy=ticks", "tick_kinds", &tick_kinds);
}

/* The same totals when every instruction is a block of its own. */
static void block_cuts_do_not_matter(void **state) {
    expect_ticks("--debug policy=ticks --debug single-from=0", "count_me", &count_me);
    expect_ticks("--debug policy=ticks --debug single-from=0", "tick_kinds", &tick_kinds);
}

static void positions_are_unique(void **state) {
    assert_int_equal(count_me.repeated_positions, 0);
    assert_int_equal(tick_kinds.repeated_positions, 0);
}

/* Leaves the cache at the first tick point and at each step-th after it: where, and with what result? */
static void expect_stops(unsigned long step, const char *more) {
    char options[256];
    snprintf(options, sizeof options, "--debug policy=ticks --debug tick-trace=%lu %s", step, more);
    FILE *f = run_under(options, "tick_kinds");
    unsigned long expected = 0, n, pc;
    for (char text[1024]; fgets(text, sizeof text, f);) {
        const char *at = strstr(text, "tick point ");
        if (!at) continue;
        assert_int_equal(sscanf(at, "tick point %lu: %lx", &n, &pc), 2);
        assert_int_equal(n, expected);
        assert_true(n < tick_kinds.ticks);
        assert_int_equal(pc, tick_kinds.points[n]);
        expected += step;
    }
    int status = pclose(f);
    assert_int_equal(status, tick_kinds.status);
    assert_true(expected >= tick_kinds.ticks);
}

static void budgets_end_at_tick_points(void **state) {
    static const unsigned long steps[] = {1, 2, 3, 5, 7, 11, 64};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        expect_stops(steps[i], "");
        expect_stops(steps[i], "--debug single-from=0");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),           cmocka_unit_test(ticks_are_exact),
        cmocka_unit_test(block_cuts_do_not_matter),   cmocka_unit_test(positions_are_unique),
        cmocka_unit_test(budgets_end_at_tick_points),
    };
    return cmocka_run_group_tests(tests, find_truth, NULL);
}
