// link: src/engine/decode.c src/engine/decode_table.c
/* Counts and positions against ground truth: a program is single-stepped with ptrace, every instruction decoded; the totals
 * must be what the counting policies report, and no two moments may share a position (ticks, pc). */
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

struct truth {
    unsigned long insns, loads, stores, ticks;
    unsigned long repeated_positions;
};

static const char *program(char *buf, size_t cap) {
    const char *build = getenv("BUILD");
    snprintf(buf, cap, "%s/guest/count_me", build ? build : "build");
    return buf;
}

/* Every position seen so far: open addressing, never full. */
#define POSITIONS (1u << 20)
static struct {
    uint64_t tick, pc;
    int used;
} seen[POSITIONS];

static int position_is_new(uint64_t tick, uint64_t pc) {
    uint32_t i = (uint32_t)((tick * 0x9e3779b97f4a7c15ull ^ pc * 0xc2b2ae3d27d4eb4full) >> 40) % POSITIONS;
    for (; seen[i].used; i = (i + 1) % POSITIONS)
        if (seen[i].tick == tick && seen[i].pc == pc) return 0;
    seen[i].tick = tick;
    seen[i].pc = pc;
    seen[i].used = 1;
    return 1;
}

/* The definition of a tick: a taken direct transfer to an address not above its own, every call, indirect transfer and return. */
static int is_tick(const struct insn *in, uint64_t next_pc) {
    switch (in->cls) {
    case INSN_JMP:
    case INSN_JCC:
    case INSN_LOOP: return next_pc == in->target && in->target <= in->pc && next_pc != in->pc + in->len;
    case INSN_CALL:
    case INSN_CALL_IND:
    case INSN_JMP_IND:
    case INSN_RET: return 1;
    default: return 0;
    }
}

static void count_one(struct truth *t, const struct insn *in) {
    t->insns++;
    t->loads += (in->load_size != 0) + (in->pop_size != 0);
    t->stores += (in->store_size != 0) + (in->push_size != 0);
}

static struct truth single_step(const char *path) {
    struct truth t = {0};
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
            count_one(&t, &in);
            t.repeated_positions += !position_is_new(t.ticks, r.rip);
        }
        last_pc = r.rip;
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        waitpid(pid, &status, 0);
        if (WIFEXITED(status)) break;
        assert_true(WIFSTOPPED(status));
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
        t.ticks += (unsigned)is_tick(&in, r.rip);
    }
    return t;
}

/* The line that starts with `what` in what `reprise run --debug OPTION` writes to stderr. */
static void reported(const char *option, const char *what, char *line, size_t cap) {
    char path[512], command[2048];
    const char *reprise = getenv("REPRISE");
    snprintf(command, sizeof command, "%s run --no-cache --debug %s -- %s 2>&1", reprise ? reprise : "build/reprise",
             option, program(path, sizeof path));
    FILE *f = popen(command, "r");
    assert_non_null(f);
    int found = 0;
    for (char text[1024]; fgets(text, sizeof text, f);)
        if (strstr(text, what)) {
            snprintf(line, cap, "%s", strstr(text, what));
            found = 1;
        }
    pclose(f);
    assert_true(found);
}

static struct truth truth;

static int find_truth(void **state) {
    char path[512];
    truth = single_step(program(path, sizeof path));
    return 0;
}

static void counts_are_exact(void **state) {
    char line[1024];
    unsigned long insns, loads, stores;
    reported("policy=count", "counts:", line, sizeof line);
    assert_int_equal(sscanf(line, "counts: %lu instructions, %lu loads, %lu stores", &insns, &loads, &stores), 3);
    assert_true(truth.insns > 1000);
    assert_int_equal(insns, truth.insns);
    assert_int_equal(loads, truth.loads);
    assert_int_equal(stores, truth.stores);
}

static void expect_ticks(const char *option) {
    char line[1024];
    unsigned long ticks;
    reported(option, "ticks:", line, sizeof line);
    assert_int_equal(sscanf(line, "ticks: %lu", &ticks), 1);
    assert_int_equal(ticks, truth.ticks);
}

static void ticks_are_exact(void **state) { expect_ticks("policy=ticks"); }

/* The same totals when every instruction is a block of its own. */
static void block_cuts_do_not_matter(void **state) { expect_ticks("policy=ticks --debug single-from=0"); }

static void positions_are_unique(void **state) { assert_int_equal(truth.repeated_positions, 0); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(ticks_are_exact),
        cmocka_unit_test(block_cuts_do_not_matter),
        cmocka_unit_test(positions_are_unique),
    };
    return cmocka_run_group_tests(tests, find_truth, NULL);
}
