#include "sphere/sigframe.h"

#include <asm/prctl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/snapshot.h"
#include "sphere/code_watch.h"
#include "sphere/cpu_level.h"
#include "sphere/cpuid_answers.h"
#include "sphere/fpu_image.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/segment.h"
#include "sphere/signals.h"

#define RED_ZONE 128
#define FP_MAGIC1 0x46505853u
#define FP_MAGIC2 0x46505845u
#define FX_SIZE 512
#define FX_SW_OFFSET 464 /* struct _fpx_sw_bytes in the legacy area */
#define FX_MXCSR_OFFSET 24
#define FX_MXCSR_MASK_OFFSET 28
#define FX_IP_OFFSET 8
#define XSTATE_PKRU (1ull << 9)
#define TILES_FEATURE 18
#define XSTATE_TILES \
    (1ull            \
     << TILES_FEATURE) /* AMX: 8 KB that processes have in their frames only when they have asked for leave to use it */
#define XSTATE_HEADER 512
#define EXTENDED_MOST (8192 + 64 + 4096) /* with the tiles */
#define USER_FLAGS 0x40cd5ull            /* what sigreturn may change: as FIX_EFLAGS of the kernel, without TF and RF */

static uint32_t xsave_size; /* 0: no xsave on this CPU, or on the one that the program is shown */
static uint64_t xsave_mask;
static uint32_t frame_size; /* of the extended state in the program's frames */
static uint64_t frame_mask;
static uint32_t mxcsr_mask; /* the bits that there are */

static uint32_t end_of_component(uint64_t last) {
    if (last < 2) return XSTATE_HEADER + 64;
    uint32_t r[4] = {0xd, 0, (uint32_t)last, 0};
    cpuid_answer(r);
    return r[1] + r[0];
}

void sigframe_ask_permission(void) {
    frame_mask = xsave_mask;
    frame_size = xsave_size;
    if (!(xsave_mask & XSTATE_TILES)) return;
    uint64_t permitted;
    if (SYS(arch_prctl, ARCH_GET_XCOMP_PERM, &permitted) == 0 && (permitted & XSTATE_TILES)) return;
    frame_mask &= ~XSTATE_TILES;
    frame_size = end_of_component(63 - (uint64_t)__builtin_clzll(frame_mask));
}

void sigframe_request_tiles(void) {
    SYS(arch_prctl, ARCH_REQ_XCOMP_PERM, TILES_FEATURE);
    sigframe_ask_permission();
}

bool sigframe_has_tiles(void) { return frame_mask & XSTATE_TILES; }

void sigframe_start(void) {
    uint32_t r[4] = {1, 0, 0, 0}, sizes[4] = {0xd, 0, 0, 0};
    static uint8_t now[FX_SIZE] __attribute__((aligned(16)));
    fpu_image_start();
    __asm__ volatile("fxsave64 (%0)" : : "r"(now) : "memory");
    mxcsr_mask = *(uint32_t *)(now + FX_MXCSR_MASK_OFFSET);
    if (!mxcsr_mask) mxcsr_mask = 0xffbf; /* so the manual */
    cpuid_answer(r);
    if (!(r[2] & 1u << 27)) return; /* OSXSAVE */
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    xsave_mask = cpu_level_xcr0((uint64_t)hi << 32 | lo);
    if (!xsave_mask) return;
    cpuid_answer(sizes);
    xsave_size = cpu_level_xsave_size(sizes[1]);
    sigframe_ask_permission();
}

static void save_extended(uint8_t *area) {
    uint64_t *x87_ip = (uint64_t *)(area + FX_IP_OFFSET);
    if (!frame_size) {
        __asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
        fpu_image_to_guest(x87_ip, 8);
        return;
    }
    memset(area + XSTATE_HEADER, 0, 64);
    __asm__ volatile("xsave64 (%0)"
                     :
                     : "r"(area), "a"((uint32_t)frame_mask), "d"((uint32_t)(frame_mask >> 32))
                     : "memory");
    fpu_image_to_guest(x87_ip, 8);
    *(uint64_t *)(area + XSTATE_HEADER) |=
        3; /* as the kernel: x87 and SSE always count, so a handler may change them */
    if (the_mode->same_fpu) *(uint64_t *)(area + XSTATE_HEADER) |= frame_mask & FPU_IMAGE_ALWAYS;
    uint32_t *sw = (uint32_t *)(area + FX_SW_OFFSET);
    memset(sw, 0, 48);
    sw[0] = FP_MAGIC1;
    sw[1] = frame_size + 4;
    memcpy(&sw[2], &frame_mask, 8);
    sw[4] = frame_size;
    *(uint32_t *)(area + frame_size) = FP_MAGIC2;
}

/* The part of the components `mask` is the state that processes begin with. */
static void reset_components(uint64_t mask) {
    static const struct {
        uint16_t control;
        uint8_t zero[22];
        uint32_t mxcsr;
        uint8_t more[XSTATE_HEADER + 64 - 28];
    } __attribute__((aligned(64))) fresh = {.control = 0x37f, .mxcsr = 0x1f80};
    if (frame_size)
        __asm__ volatile("xrstor64 (%0)" : : "r"(&fresh), "a"((uint32_t)mask), "d"((uint32_t)(mask >> 32)));
    else
        __asm__ volatile("fxrstor64 (%0)" : : "r"(&fresh));
}

/* Handlers start with fresh floating point and vector state. Protection keys are no such state. */
static void reset_extended(void) { reset_components(frame_mask & ~XSTATE_PKRU); }

/* Whether the area says that it goes on behind the legacy part, and does; so the kernel looks. */
static bool is_whole(const uint8_t *area, gaddr from) {
    const uint32_t *sw = (const uint32_t *)(area + FX_SW_OFFSET);
    uint32_t size = sw[4], magic;
    return frame_size && sw[0] == FP_MAGIC1 && size >= XSTATE_HEADER + 64 && size <= frame_size && size <= sw[1] &&
           guest_read(&magic, from + size, sizeof magic) && magic == FP_MAGIC2;
}

bool sigframe_is_loadable(const uint8_t *area, bool has_header) {
    const uint64_t *header = (const uint64_t *)(area + XSTATE_HEADER);
    if (*(const uint32_t *)(area + FX_MXCSR_OFFSET) & ~mxcsr_mask) return false;
    return !has_header || (!(header[0] & ~xsave_mask) && !header[1] && !header[2]);
}

/* Loads what a handler has left of the state in its frame. False: the processor would refuse it. */
static bool pop_extended(gaddr from) {
    uint8_t area[EXTENDED_MOST] __attribute__((aligned(64)));
    if (!from) {
        reset_extended();
        return true;
    }
    if (from % 16 || frame_size > sizeof area || !guest_read(area, from, FX_SIZE)) return false;
    if (!frame_size) {
        if (!sigframe_is_loadable(area, false)) return false;
        __asm__ volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
        return true;
    }
    const uint32_t *sw = (const uint32_t *)(area + FX_SW_OFFSET);
    uint64_t *header = (uint64_t *)(area + XSTATE_HEADER), there = 3;
    bool whole = is_whole(area, from);
    if (whole && (from % 64 || !guest_read(area, from, frame_size))) return false;
    if (!sigframe_is_loadable(area, whole)) return false;
    if (whole) {
        memcpy(&there, &sw[2], sizeof there);
        there &= frame_mask;
    } else {
        memset(header, 0, 64);
        header[0] = there;
    }
    reset_components(frame_mask & ~there);
    __asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"((uint32_t)there), "d"((uint32_t)(there >> 32)) : "memory");
    return true;
}

size_t sigframe_extended_size(void) { return xsave_size ? xsave_size : FX_SIZE; }

uint64_t sigframe_extended_mask(void) { return xsave_mask; }

void sigframe_save_extended(uint8_t *area) {
    if (xsave_size) {
        memset(area + XSTATE_HEADER, 0, 64);
        __asm__ volatile("xsave64 (%0)"
                         :
                         : "r"(area), "a"((uint32_t)xsave_mask), "d"((uint32_t)(xsave_mask >> 32))
                         : "memory");
    } else {
        __asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
    }
}

void sigframe_set_extended(const uint8_t *area) {
    uint8_t copy[EXTENDED_MOST] __attribute__((aligned(64)));
    size_t n = sigframe_extended_size();
    if (n > sizeof copy) return;
    memcpy(copy, area, n);
    uint32_t *mxcsr = (uint32_t *)(copy + FX_MXCSR_OFFSET);
    *mxcsr &= mxcsr_mask;
    if (xsave_size) {
        uint64_t *header = (uint64_t *)(copy + XSTATE_HEADER);
        header[0] &= frame_mask;
        memset(header + 1, 0, 56);
    }
    sigframe_load_extended(copy);
}

void sigframe_load_extended(const uint8_t *area) {
    if (xsave_size)
        __asm__ volatile("xrstor64 (%0)"
                         :
                         : "r"(area), "a"((uint32_t)xsave_mask), "d"((uint32_t)(xsave_mask >> 32))
                         : "memory");
    else
        __asm__ volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
}

static bool on_altstack(const struct thread *t, uint64_t sp) {
    return !(t->altstack.flags & 2) && sp > t->altstack.sp && sp - t->altstack.sp <= t->altstack.size;
}

static void fill_mcontext(struct mcontext *mc, const struct tblock *tb) {
    const uint64_t *g = tb->gpr;
    *mc = (struct mcontext){.r8 = g[8],
                            .r9 = g[9],
                            .r10 = g[10],
                            .r11 = g[11],
                            .r12 = g[12],
                            .r13 = g[13],
                            .r14 = g[14],
                            .r15 = g[15],
                            .rdi = g[RDI],
                            .rsi = g[RSI],
                            .rbp = g[RBP],
                            .rbx = g[RBX],
                            .rdx = g[RDX],
                            .rax = g[RAX],
                            .rcx = g[RCX],
                            .rsp = g[RSP],
                            .rip = tb->pc,
                            .eflags = tb->rflags | (tb->trap_flag && !tb->thread->trace_step ? RFLAGS_TF : 0),
                            .cs = GUEST_CS,
                            .ss = segment_ss(tb)};
}

bool sigframe_push(struct thread *t, const struct siginfo_raw *info, const struct ksigaction *sa) {
    struct tblock *tb = t->tb;
    uint64_t sp = tb->gpr[RSP] - RED_ZONE;
    bool on_alt = on_altstack(t, tb->gpr[RSP]);
    bool enters_alt = (sa->flags & 0x08000000 /* SA_ONSTACK */) && !(t->altstack.flags & 2) && !on_alt;
    if (enters_alt) sp = t->altstack.sp + t->altstack.size;
    uint64_t fp_size = frame_size ? frame_size + 4 : FX_SIZE;
    uint64_t fp = (sp - fp_size) & ~63ull;
    uint64_t at = ((fp - sizeof(struct sigframe)) & ~15ull) - 8;
    if (at > sp) return false; /* below address 0 */
    if ((on_alt || enters_alt) && !on_altstack(t, at)) return false;
    code_watch_before_kernel_write(at, sp - at);
    /* every page must be writable before anything is changed */
    for (uint64_t p = PAGE_DOWN(at); p < sp; p += PAGE_SIZE) {
        uint8_t byte;
        uint64_t probe = MAX(p, at);
        if (!guest_read(&byte, probe, 1) || !guest_write(probe, &byte, 1)) return false;
    }
    struct sigframe *f = (struct sigframe *)at;
    memset(f, 0, sizeof *f);
    memset((void *)fp, 0, fp_size);
    f->pretcode = sa->restorer;
    f->uc.flags = (frame_size ? UC_FP_XSTATE : 0) | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    f->uc.stack = t->altstack;
    if (on_alt) f->uc.stack.flags |= 1; /* SS_ONSTACK */
    fill_mcontext(&f->uc.mc, tb);
    f->uc.mc.err = t->shown_err;
    f->uc.mc.trapno = t->shown_trapno;
    f->uc.mc.cr2 = t->shown_cr2;
    f->uc.mc.oldmask = t->sigmask;
    f->uc.mc.fpstate = fp;
    f->uc.sigmask = t->restore_mask ? t->saved_mask : t->sigmask;
    f->info = *info;
    save_extended((uint8_t *)fp);
    reset_extended();
    if (t->altstack.flags & (1 << 31)) t->altstack = (struct altstack){0, 2, 0, 0}; /* SS_AUTODISARM */

    tb->gpr[RSP] = at;
    tb->gpr[RDI] = (uint64_t)info->signo;
    tb->gpr[RSI] = (uint64_t)&f->info;
    tb->gpr[RDX] = (uint64_t)&f->uc;
    tb->gpr[RAX] = 0;
    tb->rflags &= ~(0x400ull | 0x10000ull); /* DF, RF */
    tb->trap_flag = tb->stepped = false;
    tb->own_ss = 0;
    tb->pc = sa->handler;
    return true;
}

bool sigframe_pop(struct thread *t) {
    struct tblock *tb = t->tb;
    struct ucontext_raw uc;
    if (!guest_read(&uc, tb->gpr[RSP], sizeof uc)) return false;
    uint64_t *g = tb->gpr;
    const struct mcontext *mc = &uc.mc;
    g[8] = mc->r8, g[9] = mc->r9, g[10] = mc->r10, g[11] = mc->r11, g[12] = mc->r12, g[13] = mc->r13, g[14] = mc->r14;
    g[15] = mc->r15, g[RDI] = mc->rdi, g[RSI] = mc->rsi, g[RBP] = mc->rbp, g[RBX] = mc->rbx, g[RDX] = mc->rdx;
    g[RAX] = mc->rax, g[RCX] = mc->rcx, g[RSP] = mc->rsp;
    tb->pc = mc->rip;
    tb->rflags = (tb->rflags & ~USER_FLAGS) | (mc->eflags & USER_FLAGS);
    tb->trap_flag = mc->eflags & RFLAGS_TF;
    if (mc->ss != GUEST_SS && segment_is_stack(mc->ss) == SEGMENT_GOOD) tb->own_ss = mc->ss;
    t->sigmask = uc.sigmask & ~(SIG_BIT_KILL | SIG_BIT_STOP);
    if (!(uc.stack.flags & 1) || (uc.stack.flags & (1 << 31))) {
        t->altstack = uc.stack;
        t->altstack.flags &= ~1;
    }
    return pop_extended(mc->fpstate);
}

/* By way of the kernel's own return from a signal: it loads all registers and unblocks the signal in one step. */
void sigframe_leave(struct thread *t, uint64_t mask) {
    struct {
        struct sigframe frame;
        uint8_t extended[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));
    } f;
    memset(&f.frame, 0, sizeof f.frame);
    memset(f.extended, 0, sizeof f.extended);
    f.frame.uc.flags = (frame_size ? UC_FP_XSTATE : 0) | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    f.frame.uc.stack.flags = 2; /* SS_DISABLE */
    f.frame.uc.sigmask = mask;
    fill_mcontext(&f.frame.uc.mc, t->tb);
    f.frame.uc.mc.fpstate = (uint64_t)f.extended;
    if (frame_size + 4 <= sizeof f.extended) save_extended(f.extended);
    SYS(arch_prctl, ARCH_SET_GS, t->tb->guest_gs);
    __asm__ volatile("mov %0, %%rsp; syscall" : : "r"(&f.frame.uc), "a"(__NR_rt_sigreturn) : "memory");
    __builtin_unreachable();
}
