/* Runs every case in several starting states and prints one line per case: a hash of everything the instruction left
 * behind, or the exact fault. Natively and translated, the output must be the same.
 *
 *   forms [-j] [-f FIRST] [-s STRIDE]   all cases from FIRST on, one in STRIDE; -j: from memory written at run time;
 *                                       -d: what a sequence leaves below rsp does not count
 *   forms [-j] [-f FIRST] -v CASE       one case, with all registers and changed memory spelled out; those from FIRST
 *                                       on run before it */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"
#include "state.h"

extern const uint8_t form_code[], cases_bin[], cases_bin_end[];
extern uint8_t rip_area[LOCAL_SIZE];
extern const char __executable_start[], end[];
__thread _Alignas(64) uint8_t tls_area[LOCAL_SIZE];

/* The starting states. */
enum { RANDOM, FLOATS, UNMASKED, EDGES, NSTATES };
/* RANDOM    random bits everywhere; memory operands aligned; exceptions masked
 * FLOATS    registers and memory look like ordinary floats and doubles; division and cmpxchg succeed
 * UNMASKED  special floating-point values, exceptions unmasked, memory operands misaligned
 * EDGES     direction flag set, x87 exception pending, memory operands and stack reach into unmapped pages */

struct area {
    const char *name;
    uint8_t *at;
    uint32_t size;
    uint8_t *fresh[NSTATES]; /* its content at the start */
};
static struct area areas[] = {
    {"arena", (uint8_t *)(uintptr_t)ARENA, ARENA_SIZE, {0}},
    {"stack", (uint8_t *)(uintptr_t)STACK, STACK_SIZE, {0}},
    {"rip", rip_area, LOCAL_SIZE, {0}},
    {"tls", NULL, LOCAL_SIZE, {0}},
};
#define NAREAS (sizeof areas / sizeof *areas)

static struct state fresh_state[NSTATES];

struct fault {
    int signo, code;
    uint64_t addr, rip, err, trapno;
    uint64_t gpr[16], rflags;
    uint8_t fx[416]; /* without the reserved end */
};
static struct fault fault;
static uint64_t code_start; /* of the running case */
static bool jit, verbose, pie, ignore_dead;

/* --- starting states --- */

static uint64_t rng;

static uint64_t rnd(void)
{
    uint64_t z = rng += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* 8 bytes of the kind the state wants: as double or as two floats. */
static uint64_t chunk(int state)
{
    static const uint64_t special[] = {
        0, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 1,
        0x000fffffffffffff, 0x7fefffffffffffff, 0x3ff0000000000000, 0xffffffffffffffff, 0x7f8000007f800001,
        0x0000000180000000, 0x7f7fffff00800000, 0x7fc00000ff800000, 0x4330000000000000};
    switch (state) {
    case FLOATS:
        return 0x3f80000040000000 ^ (rnd() & 0x807fffff80ffffff);
    case UNMASKED:
        return special[rnd() % (sizeof special / sizeof *special)];
    default:
        return rnd();
    }
}

static void fill(uint8_t *to, size_t size, int state)
{
    for (size_t i = 0; i < size; i += 8)
        memcpy(to + i, &(uint64_t){chunk(state)}, 8);
}

static void put16(uint8_t *to, uint16_t v)
{
    memcpy(to, &v, 2);
}

static void make_x87(struct state *st, int state)
{
    static const uint16_t fcw[NSTATES] = {0x37f, 0xa7f, 0x340, 0x37e}, fsw[NSTATES] = {0, 4 << 11 | 0x4500, 0x200, 0xb881};
    static const uint8_t tags[NSTATES] = {0xff, 0x0f << 4, 0x3f, 0xfe};
    static const uint32_t mxcsr[NSTATES] = {0x1f80, 0x5fa0, 0x0000, 0x9fc0};

    memset(st->fx, 0, sizeof st->fx);
    put16(st->fx, fcw[state]);
    put16(st->fx + 2, fsw[state]);
    st->fx[4] = tags[state];
    memcpy(st->fx + 24, &mxcsr[state], 4);
    for (int i = 0; i < 8; i++) {
        uint64_t mantissa = rnd() | 1ull << 63;
        uint16_t exponent = (uint16_t)(0x3fff - 8 + rnd() % 16) | (rnd() & 1 ? 0x8000 : 0);
        if (state == UNMASKED && i % 2)
            exponent = (uint16_t)(0x7fff * (rnd() & 1)), mantissa = i % 4 == 1 ? 1ull << 63 : rnd();
        if (state == RANDOM && i % 2)
            exponent = (uint16_t)rnd();
        memcpy(st->fx + 32 + 16 * i, &mantissa, 8);
        put16(st->fx + 40 + 16 * i, exponent);
    }
}

static void make_state(int state)
{
    static const uint64_t rflags[NSTATES] = {0x202, 0x202 | 0x8d5, 0x202 | 0x091, 0x202 | 0x400 | 0x044};
    struct state *st = &fresh_state[state];

    rng = 0x1234567 + (uint64_t)state;
    for (int i = 0; i < 16; i++)
        st->gpr[i] = state == FLOATS && i % 2 ? rnd() % 200 : rnd();
    st->gpr[4] = state == EDGES ? STACK + 5 : STACK + STACK_SIZE / 2 + (state == UNMASKED ? 4 : 0);
    st->gpr[5] = STACK + STACK_SIZE / 2 + 0x100;
    st->rflags = rflags[state];
    make_x87(st, state);
    int nvec = have_avx512 ? 32 : 16, width = have_avx512 ? 64 : have_avx ? 32 : 16;
    for (int i = 0; i < nvec; i++)
        fill(st->vec[i], (size_t)width, state);
    if (have_avx512)
        for (int i = 0; i < 8; i++)
            st->k[i] = rnd();
    for (size_t a = 0; a < NAREAS; a++) {
        areas[a].fresh[state] = malloc(areas[a].size);
        fill(areas[a].fresh[state], areas[a].size, state);
    }
    /* What popf finds: no trap flag, no alignment checks. As a selector it is refused. */
    uint64_t flags_on_stack = 0x246 ^ (rnd() & 0x8d5);
    memcpy(areas[1].fresh[state] + (st->gpr[4] - STACK), &flags_on_stack, 8);
}

/* --- one run --- */

static void on_fault(int signo, siginfo_t *info, void *context)
{
    /* ucontext's order of registers, as numbers of the hardware's order */
    static const uint8_t order[16] = {8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4};
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;

    fault.signo = signo;
    fault.code = info->si_code;
    fault.addr = (uint64_t)info->si_addr;
    fault.rip = (uint64_t)g[REG_RIP];
    fault.trapno = (uint64_t)g[REG_TRAPNO];
    fault.err = (uint64_t)g[REG_ERR];
    for (int i = 0; i < 16; i++)
        fault.gpr[order[i]] = (uint64_t)g[i];
    fault.rflags = (uint64_t)g[REG_EFL] & ~0x10000ul; /* RF: compared by the hand-written tests */
    memcpy(fault.fx, uc->uc_mcontext.fpregs, sizeof fault.fx);
    if (fault.rip - code_start > 256) {
        static const char text[] = "forms: fault outside of the case\n";
        ssize_t ignored = write(2, text, sizeof text - 1);
        (void)ignored;
        _exit(3);
    }
    g[REG_RIP] = (greg_t)(uintptr_t)form_done;
}

/* Where the case's k-th memory operand shall be in this state. */
static uint64_t target_of(const struct asm_case *c, int state, int k)
{
    uint64_t at = ARENA + 0x800 + 0x600 * (unsigned)k;
    if (c->flags & CASE_STRING)
        return state == UNMASKED ? ARENA + ARENA_SIZE - 24 - 0x300 * (unsigned)k : at;
    return state == UNMASKED ? at + 1 : state == EDGES ? ARENA + ARENA_SIZE - 1 : at;
}

/* Sets registers so that the memory operands are where they should be; returns where the first one is. */
static uint64_t place_memory(const struct asm_case *c, int state)
{
    uint64_t *gpr = in_state.gpr, first = 0;
    for (int k = 0; k < c->nmem; k++) {
        const struct case_mem *m = &c->mem[k];
        uint64_t target = target_of(c, state, k), index = 0;
        uint64_t garbage = m->flags & MEM_A32 ? rnd() << 32 : 0;

        if (m->flags & MEM_FIXED) {
            gpr[m->base] = 0x20;
            return (uint64_t)areas[3].at + c->area_off + 0x20;
        }
        if (m->base == NO_REG) {
            uint64_t rest = target - (uint64_t)(int64_t)m->disp;
            gpr[m->index] = rest / m->scale | garbage;
            target = gpr[m->index] * m->scale + (uint64_t)(int64_t)m->disp;
        } else {
            if (m->index != NO_REG) {
                index = (uint64_t)(int64_t)(c->flags & CASE_SEQUENCE ? 16 : state == FLOATS ? -5 : 11 + state);
                gpr[m->index] = (m->flags & MEM_A32 ? index & 0xffffffff : index) | garbage;
            }
            uint64_t base = target - index * m->scale - (uint64_t)(int64_t)m->disp;
            if (m->base == 4 && m->disp >= -0x800 && m->disp < 0x800)
                target += gpr[4] - base; /* rsp stays on the stack */
            else
                gpr[m->base] = m->flags & MEM_A32 ? (base & 0xffffffff) | garbage : base;
        }
        if (k == 0)
            first = target;
    }
    if (c->area == AREA_RIP || c->area == AREA_EIP)
        first = (uint64_t)areas[2].at + c->area_off;
    else if (c->area == AREA_FS)
        first = (uint64_t)areas[3].at + c->area_off;
    else if (c->area == AREA_ABS)
        first = ARENA + c->area_off;
    return first;
}

static struct area *area_of(uint64_t address, uint64_t size)
{
    for (size_t a = 0; a < NAREAS; a++)
        if (address >= (uint64_t)areas[a].at && address + size <= (uint64_t)areas[a].at + areas[a].size)
            return &areas[a];
    return NULL;
}

/* The register takes part in the address of a memory operand. */
static bool is_address(const struct asm_case *c, int reg)
{
    for (int i = 0; i < c->nmem; i++)
        if (c->mem[i].base == reg || c->mem[i].index == reg)
            return true;
    return false;
}

/* Sets in_state for one run; returns the address of the (first) memory operand, or 0. */
static uint64_t prepare(const struct asm_case *c, int state)
{
    in_state = fresh_state[state];
    for (size_t a = 0; a < NAREAS; a++)
        memcpy(areas[a].at, areas[a].fresh[state], areas[a].size);
    rng = (uint64_t)state;
    uint64_t *gpr = in_state.gpr;
    if (c->flags & CASE_BITOFF)
        gpr[c->bitreg] = (uint64_t)(int64_t)(state == FLOATS ? -517 : 731 + state);
    if (c->flags & CASE_REP) {
        static const uint64_t count[NSTATES] = {5, 0, 100, 3};
        gpr[1] = count[state];
    }
    if (c->flags & CASE_DIV && state == FLOATS)
        gpr[2] = 0, gpr[0] = 100;
    for (int bits = 0; c->vsib_bits && bits < 512; bits += c->vsib_bits)
        memcpy(in_state.vec[c->vsib_reg] + bits / 8, &(int64_t){(int64_t)(rnd() % 64) - 32}, c->vsib_bits / 8);
    if (c->vsib_bits && !have_avx512)
        for (int i = 0; i < 16; i++)
            memset(in_state.vec[i] + 32, 0, 32);
    uint64_t at = place_memory(c, state);
    if (c->flags & CASE_CMPXCHG && state == FLOATS && area_of(at, 16) && !is_address(c, 0) && !is_address(c, 2)) {
        memcpy(&gpr[0], (void *)at, 8);
        memcpy(&gpr[2], (uint8_t *)at + 8, 8);
    }
    return at;
}

static void *code_of(const struct asm_case *c)
{
    if (!jit)
        return (void *)(form_code + c->code_off);
    /* Write the instruction to one of a few places of an executable page and a jump behind it. */
    static unsigned turn;
    uint8_t *at = (uint8_t *)(uintptr_t)JIT + turn++ % 8 * 64;
    memcpy(at, c->bytes, c->len);
    int64_t disp = c->area == AREA_FS ? (int64_t)areas[3].at - (int64_t)__builtin_thread_pointer()
                   : c->area == AREA_RIP || c->area == AREA_EIP ? (int64_t)areas[2].at - (int64_t)(at + c->len)
                                                                 : 0;
    if (disp) {
        disp += c->area_off;
        memcpy(at + c->disp_off, &disp, 4);
    }
    at[c->len] = 0xe9;
    int32_t rel = (int32_t)((int64_t)form_done - (int64_t)(at + c->len + 5));
    memcpy(at + c->len + 1, &rel, 4);
    return at;
}

/* x87 instruction, operand and opcode pointers depend on where code is: not part of the comparison. */
static void forget_pointers(uint8_t *fx)
{
    memset(fx + 6, 0, 18);
}

static void forget_stored_pointers(const struct asm_case *c, uint64_t at)
{
    struct area *a = area_of(at, 28);
    if (!a)
        return;
    uint8_t *p = (uint8_t *)at;
    if (c->flags & CASE_ENV32)
        memset(p + 12, 0, 16);
    if (c->flags & CASE_ENV16)
        memset(p + 6, 0, 8);
    if (c->flags & CASE_ENVFX)
        memset(p + 6, 0, 18);
}

/* Addresses within the program become offsets: position-independent programs are not loaded at the same place twice. */
static uint64_t without_base(uint64_t v)
{
    uint64_t start = (uint64_t)__executable_start;
    return pie && v >= start && v < (uint64_t)end ? v - start + 0xe1f0000000000000 : v;
}

/* Calls within a sequence leave return addresses on the stack. */
static void hide_return_addresses(void)
{
    for (int64_t off = -128; off < 128; off += 8) {
        uint64_t at = in_state.gpr[4] + (uint64_t)off, v;
        if (at < STACK || at + 8 > STACK + STACK_SIZE)
            continue;
        memcpy(&v, (void *)at, 8);
        v = without_base(v);
        memcpy((void *)at, &v, 8);
    }
}

static void run(const struct asm_case *c, int state)
{
    uint64_t at = prepare(c, state);
    memset(&out_state, 0, sizeof out_state);
    memset(&fault, 0, sizeof fault);
    form_target = code_of(c);
    code_start = (uint64_t)form_target;
    run_form();

    forget_pointers(out_state.fx);
    memset(out_state.fx + 416, 0, 96);
    memset(out_state.fx + 160, 0, 256); /* xmm: in vec */
    for (int i = 0; c->flags & CASE_ADDRESS && i < 16; i++)
        out_state.gpr[i] = without_base(out_state.gpr[i]);
    forget_stored_pointers(c, at);
    if (c->flags & CASE_SEQUENCE)
        hide_return_addresses();
    if (c->flags & CASE_SEQUENCE && ignore_dead && out_state.gpr[4] - STACK < STACK_SIZE)
        memset(areas[1].at, 0, out_state.gpr[4] - STACK);
    if (fault.signo) {
        forget_pointers(fault.fx);
        if (fault.addr - code_start < 256)
            fault.addr = 0xadd0; /* within the instruction */
        else if (c->area == AREA_RIP)
            fault.addr = without_base(fault.addr);
        if (area_of(fault.addr, 1) == &areas[3])
            fault.addr -= (uint64_t)areas[3].at;
        fault.rip -= code_start;
    }
}

/* --- output --- */

static uint64_t hash_bytes(uint64_t h, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t v;
        memcpy(&v, p + i, 8);
        h = (h ^ v) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    return h;
}

static uint64_t hash_run(void)
{
    uint64_t h = hash_bytes(1, &out_state, sizeof out_state);
    if (fault.signo)
        h = hash_bytes(h, &fault, sizeof fault);
    for (size_t a = 0; a < NAREAS; a++)
        h = hash_bytes(h, areas[a].at, areas[a].size);
    return h;
}

static const char *const gpr_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static void print_bytes(const char *name, int n, const uint8_t *p, size_t size)
{
    printf("  %s%d ", name, n);
    for (size_t i = size; i-- > 0;)
        printf("%02x%s", p[i], i && i % 8 == 0 ? "_" : "");
    printf("\n");
}

static void print_run(int state)
{
    static const char *const names[NSTATES] = {"random", "floats", "unmasked", "edges"};
    printf("state %s\n", names[state]);
    if (fault.signo) {
        printf("  fault signal %d code %d addr %#lx pc +%ld trap %ld error %#lx rflags %#lx\n", fault.signo, fault.code,
               fault.addr, fault.rip, fault.trapno, fault.err, fault.rflags);
        for (int i = 0; i < 16; i++)
            if (fault.gpr[i] != out_state.gpr[i])
                printf("  context %s %016lx\n", gpr_names[i], fault.gpr[i]);
        print_bytes("context fx", 0, fault.fx, 32);
    }
    for (int i = 0; i < 16; i++)
        printf("  %s %016lx%s", gpr_names[i], out_state.gpr[i], out_state.gpr[i] == in_state.gpr[i] ? "\n" : " *\n");
    printf("  rflags %lx (before %lx)\n", out_state.rflags, in_state.rflags);
    print_bytes("fx", 0, out_state.fx, 32);
    for (int i = 0; i < 8; i++)
        print_bytes("st", i, out_state.fx + 32 + 16 * i, 16);
    for (int i = 0; i < (have_avx512 ? 32 : 16); i++)
        print_bytes("vec", i, out_state.vec[i], have_avx512 ? 64 : 32);
    for (int i = 0; have_avx512 && i < 8; i++)
        printf("  k%d %016lx\n", i, out_state.k[i]);
    for (size_t a = 0; a < NAREAS; a++)
        for (uint32_t i = 0; i < areas[a].size; i++)
            if (areas[a].at[i] != areas[a].fresh[state][i])
                printf("  %s+%#x %02x -> %02x\n", areas[a].name, i, areas[a].fresh[state][i], areas[a].at[i]);
}

/* Number, then per state hash or fault:hash. An instruction this CPU does not know is tried in one state only. */
static void run_case(const struct asm_case *c, long number)
{
    char line[400];
    int n = snprintf(line, sizeof line, "%ld", number);
    for (int state = 0; state < NSTATES; state++) {
        run(c, state);
        if (verbose)
            print_run(state);
        if (fault.signo)
            n += snprintf(line + n, sizeof line - (size_t)n, " %d/%d+%ld@%lx:%016lx", fault.signo, fault.code, fault.rip,
                          fault.addr, hash_run());
        else
            n += snprintf(line + n, sizeof line - (size_t)n, " %016lx", hash_run());
        if (fault.signo == SIGILL)
            break;
    }
    n += snprintf(line + n, sizeof line - (size_t)n, "\n");
    fflush(stdout);
    if (write(1, line, (size_t)n) != n)
        _exit(4);
}

/* --- set-up --- */

static void map_fixed(uintptr_t at, size_t size, int prot)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap((void *)(at - 0x10000), size + 0x20000, PROT_NONE, flags, -1, 0) == MAP_FAILED ||
        munmap((void *)(at + size), 0x1000) || mprotect((void *)at, size, prot))
        perror("forms: fixed memory"), exit(2);
}

static void catch_faults(void)
{
    static uint8_t altstack[1 << 17];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t ss = {.ss_sp = altstack, .ss_size = sizeof altstack};
    sigaltstack(&ss, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &sa, NULL);
}

int main(int argc, char **argv)
{
    long ncases = (cases_bin_end - cases_bin) / (long)sizeof(struct asm_case), first = -1, stride = 1, only = -1;
    const struct asm_case *cases = (const struct asm_case *)cases_bin;
    for (int opt; (opt = getopt(argc, argv, "djf:s:v:")) != -1;) {
        switch (opt) {
        case 'd': ignore_dead = true; break;
        case 'j': jit = true; break;
        case 'f': first = atol(optarg); break;
        case 's': stride = atol(optarg); break;
        case 'v': only = atol(optarg); break;
        default: return 2;
        }
    }
#ifdef __PIE__
    pie = true;
#endif
    have_avx = !!__builtin_cpu_supports("avx");
    have_avx512 = !!__builtin_cpu_supports("avx512bw");
    areas[3].at = tls_area;
    map_fixed(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE);
    map_fixed(STACK, STACK_SIZE, PROT_READ | PROT_WRITE);
    if (jit)
        map_fixed(JIT, JIT_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int s = 0; s < NSTATES; s++)
        make_state(s);
    catch_faults();

    if (first < 0)
        first = only >= 0 ? only : 0;
    for (long i = first; i < ncases && (only < 0 || i <= only); i += stride) {
        verbose = i == only;
        if (!(pie && cases[i].flags & CASE_NOPIE) && !(jit && cases[i].flags & CASE_SEQUENCE))
            run_case(&cases[i], i);
    }
    return 0;
}
