/* Thread block: what gs points to while a thread runs under Reprise.
 * The part named in TBLOCK_OFFSETS is known to assembly and to translated code. */
#ifndef REPRISE_TBLOCK_H
#define REPRISE_TBLOCK_H

/* Offsets, written once. gpr is in hardware order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15. */
#define TB_SELF 0
#define TB_GPR 8
#define TB_PC 136
#define TB_RFLAGS 144
#define TB_RT_SP 152
#define TB_HOST_PC 160
#define TB_EXIT_INDEX 168
#define TB_EXIT_REGION 176
#define TB_BREAK_BLOCK 184
/* One cache line for what translated code writes all the time. */
#define TB_S0 192
#define TB_S1 208
#define TB_S2 216
#define TB_S3 224
/* Counters of ticks. In their addresses stands 0xcc, which is int3: where a counter is used up, the code that counts jumps back to that
 * byte of itself (emit_x64.h), and no way out has to be near. */
#define TB_TICKS(i) (0xcc + 0x100 * (i))
#define TB_FN_EXIT 256
#define TB_FN_RET_MISS 264
#define TB_FN_JMP_MISS 272
#define TB_FN_CALL_MISS 280
#define TB_FN_SYSCALL 288
#define TB_FN_SPECIAL 296
#define TB_COUNT_INSNS 304
#define TB_COUNT_LOADS 312
#define TB_COUNT_STORES 320
#define TB_FN_CALL_FAIL 328
#define TB_JUMP_PC 336
#define TB_GUEST_GS 344
#define TB_PENDING 352

#define TICK_COUNTERS 4
#define TICK_INDIRECT 0 /* the one that indirect transfers take from */

#define TBLOCK_OFFSETS(X)            \
    X(self, TB_SELF)                 \
    X(gpr, TB_GPR)                   \
    X(pc, TB_PC)                     \
    X(rflags, TB_RFLAGS)             \
    X(rt_sp, TB_RT_SP)               \
    X(host_pc, TB_HOST_PC)           \
    X(exit_index, TB_EXIT_INDEX)     \
    X(exit_region, TB_EXIT_REGION)   \
    X(break_block, TB_BREAK_BLOCK)   \
    X(s0, TB_S0)                     \
    X(s1, TB_S1)                     \
    X(s2, TB_S2)                     \
    X(s3, TB_S3)                     \
    X(ticks_left_0, TB_TICKS(0))     \
    X(ticks_left_1, TB_TICKS(1))     \
    X(ticks_left_2, TB_TICKS(2))     \
    X(ticks_left_3, TB_TICKS(3))     \
    X(fn_exit, TB_FN_EXIT)           \
    X(fn_ret_miss, TB_FN_RET_MISS)   \
    X(fn_jmp_miss, TB_FN_JMP_MISS)   \
    X(fn_call_miss, TB_FN_CALL_MISS) \
    X(fn_syscall, TB_FN_SYSCALL)     \
    X(fn_special, TB_FN_SPECIAL)     \
    X(count_insns, TB_COUNT_INSNS)   \
    X(count_loads, TB_COUNT_LOADS)   \
    X(count_stores, TB_COUNT_STORES) \
    X(fn_call_fail, TB_FN_CALL_FAIL) \
    X(jump_pc, TB_JUMP_PC)           \
    X(guest_gs, TB_GUEST_GS)         \
    X(pending, TB_PENDING)

#ifndef __ASSEMBLER__

#include "inproc/types.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct block;
struct region;
struct thread; /* the sphere's view of this thread */

struct recent_entry { /* where a thread has entered the cache lately */
    gaddr pc;
    uint8_t *host;             /* NULL: none */
    uint64_t invalidated : 56; /* how many blocks had been dropped when this was good */
    uint64_t break_len : 8;    /* see struct block */
};
#define RECENT_ENTRIES 512

struct tblock {
    struct tblock *self;
    uint64_t gpr[16]; /* guest registers while the thread is out of the cache */
    gaddr pc;         /* guest pc, likewise */
    uint64_t rflags;
    uint64_t rt_sp;   /* top of this thread's runtime stack */
    uint64_t host_pc; /* where to enter the cache */
    uint64_t exit_index;
    struct region *exit_region;
    const struct block *break_block;          /* SPECIAL_BREAK: the block that begins with it */
    uint64_t s0 __attribute__((aligned(64))); /* guest rcx inside return and indirect branch sequences */
    uint32_t gap_0;
    /* The budget of ticks, in several parts: each tick is taken from the part that belongs to its place, so that one after the other
     * need not wait for the same word of memory. No part is below zero, except where a tick has just found its own used up. What
     * does not fit into them waits in ticks_reserve. */
    int32_t ticks_left_0;
    uint64_t s1; /* target of an indirect jump or call; table entry that a return found, when it was a wrong one */
    uint64_t s2, s3;
    uint64_t gap_0b[3];
    uint64_t fn_exit, fn_ret_miss, fn_jmp_miss, fn_call_miss, fn_syscall, fn_special;
    uint64_t count_insns, count_loads, count_stores;
    uint64_t fn_call_fail;
    gaddr jump_pc;     /* the last indirect transfer, whose tick is counted where it arrives */
    uint64_t guest_gs; /* gs base as the program set it */
    uint64_t pending;  /* a signal or request waits for the next safepoint */
    /* from here on: C only */
    struct thread *thread;
    int64_t tick_limit; /* ticks so far = tick_limit - ticks_left */
    int64_t ticks_reserve;
    uint64_t epoch; /* last cache epoch this thread has seen at a safepoint */
    uint32_t pid;   /* the kernel's, of the process that the thread is in */
    uint32_t
        kick; /* a signal of ours is on its way to the thread, from this process: it must not enter a call before */
    uint16_t guest_gs_selector;
    uint16_t own_ss;       /* what the program has loaded into ss since its last system call; 0: nothing */
    bool trap_flag;        /* TF as the program has it; never in rflags, where it would hit the runtime */
    bool stepped;          /* an instruction was run with the flag set, and its trap is due */
    bool debug;            /* engine_host.debug wants to see the thread whenever it enters the cache */
    bool debug_step;       /* one instruction, for the debugger: the program does not know */
    bool is_due;           /* engine_host.tick_budget has something else to do at t->pc, before its instruction */
    bool skip_break;       /* go on behind the exit that is in front of the next instruction (SPECIAL_BREAK) */
    uint64_t step_host_pc; /* where rt_step is to go on */
    uint32_t gap_1[9];
    int32_t ticks_left_1;
    uint32_t gap_2[63];
    int32_t ticks_left_2;
    uint32_t gap_3[63];
    int32_t ticks_left_3;
    struct recent_entry recent[RECENT_ENTRIES];
};

#define TBLOCK_CHECK(field, off) _Static_assert(offsetof(struct tblock, field) == (off), #field);
TBLOCK_OFFSETS(TBLOCK_CHECK)

static inline struct tblock *tblock_self(void) {
    struct tblock *t;
    __asm__("mov %%gs:0, %0" : "=r"(t));
    return t;
}

#endif
#endif
