/* The initial stack, byte for byte in the order in which the kernel lays it out. From its top down:
 *
 *   8 zero bytes | path | envp strings | argv strings | (to 16) | "x86_64" | 16 random bytes | (to 16)
 *   | auxv | envp pointers, 0 | argv pointers, 0 | argc <- rsp
 *
 * The kernel's random gap between argv strings and "x86_64" is left out: rsp depends on the strings alone. */
#include <linux/auxvec.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/loader.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define STACK_MIN (128ull << 10)
#define STACK_MAX (1ull << 30)   /* also for "unlimited" */
#define STACK_GUARD (1ull << 20) /* below the stack, as large as the kernel's stack_guard_gap */
#define RANDOM_BYTES 16

static const char platform[] = "x86_64";

/* argv[i] of the new program: the strings of `#!` lines come first. */
static const char *argument(const struct stack_plan *plan, size_t i) {
    return i < plan->before_count ? plan->before[i] : plan->argv[i - plan->before_count];
}

static size_t count(char **list) {
    size_t n = 0;
    while (list[n]) n++;
    return n;
}

static uint64_t stack_size(void) {
    struct rlimit64 limit;
    if (sys_failed(SYS(prlimit64, 0, RLIMIT_STACK, NULL, &limit))) return STACK_MIN;
    return PAGE_UP(MIN(MAX(limit.rlim_cur, STACK_MIN), STACK_MAX));
}

/* Returns the top of a fresh stack with room for `strings` bytes beyond its usual size, 0 = no memory. */
static gaddr stack_map(uint64_t strings, bool executable) {
    uint64_t size = STACK_GUARD + stack_size() + PAGE_UP(strings);
    int prot = PROT_READ | PROT_WRITE | (executable ? PROT_EXEC : 0);
    long base = aspace_mmap(0, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (sys_failed(base)) return 0;
    aspace_mprotect((gaddr)base, STACK_GUARD, PROT_NONE);
    aspace_name((gaddr)base + size - 1, "[stack]");
    return (gaddr)base + size;
}

static bool auxv_find(const uint64_t *auxv, uint64_t type, uint64_t *value) {
    for (; auxv[0] != AT_NULL; auxv += 2)
        if (auxv[0] == type) {
            *value = auxv[1];
            return true;
        }
    return false;
}

struct auxv {
    uint64_t word[2 * 24];
    size_t n;
};

static void add(struct auxv *a, uint64_t type, uint64_t value) {
    a->word[a->n++] = type;
    a->word[a->n++] = value;
}

/* Passes the kernel's own entry on; what this kernel does not have, the program does not get. */
static void pass(struct auxv *a, const struct stack_plan *plan, uint64_t type) {
    uint64_t value;
    if (auxv_find(plan->kernel_auxv, type, &value)) add(a, type, value);
}

/* The kernel's set in the kernel's order. AT_RSEQ_* stay out: the runtime refuses rseq. */
static void fill_auxv(struct auxv *a, const struct stack_plan *plan, gaddr random, gaddr execfn, gaddr platform_at) {
    if (plan->sysinfo_ehdr) add(a, AT_SYSINFO_EHDR, plan->sysinfo_ehdr);
    pass(a, plan, AT_MINSIGSTKSZ);
    pass(a, plan, AT_HWCAP);
    add(a, AT_PAGESZ, PAGE_SIZE);
    pass(a, plan, AT_CLKTCK);
    add(a, AT_PHDR, plan->phdr);
    add(a, AT_PHENT, 56);
    add(a, AT_PHNUM, plan->phnum);
    add(a, AT_BASE, plan->base);
    add(a, AT_FLAGS, 0);
    add(a, AT_ENTRY, plan->entry);
    pass(a, plan, AT_UID);
    pass(a, plan, AT_EUID);
    pass(a, plan, AT_GID);
    pass(a, plan, AT_EGID);
    pass(a, plan, AT_SECURE);
    add(a, AT_RANDOM, random);
    pass(a, plan, AT_HWCAP2);
    add(a, AT_EXECFN, execfn);
    add(a, AT_PLATFORM, platform_at);
    add(a, AT_NULL, 0);
}

static void put_random(gaddr at, const uint64_t *kernel_auxv) {
    uint64_t from;
    if (auxv_find(kernel_auxv, AT_RANDOM, &from) && from)
        memcpy((void *)at, (const void *)from, RANDOM_BYTES);
    else
        SYS(getrandom, at, RANDOM_BYTES, 0);
}

static gaddr put_string(gaddr at, const char *s) {
    size_t n = strlen(s) + 1;
    memcpy((void *)at, s, n);
    return at + n;
}

long stack_build(const struct stack_plan *plan, struct load_result *out) {
    size_t argc = plan->before_count + count(plan->argv), envc = count(plan->envp);
    uint64_t strings = strlen(plan->path) + 1;
    for (size_t i = 0; i < argc; i++) strings += strlen(argument(plan, i)) + 1;
    for (size_t i = 0; i < envc; i++) strings += strlen(plan->envp[i]) + 1;

    uint64_t pointers = (argc + envc + 3) * sizeof(uint64_t);
    gaddr top = stack_map(strings + pointers, plan->executable);
    if (!top) return -ENOMEM;

    out->arg_start = top - sizeof(uint64_t) - strings;
    gaddr platform_at = (out->arg_start & ~15ull) - sizeof platform;
    gaddr random = platform_at - RANDOM_BYTES;

    /* The strings end where the path starts; its length is known, so auxv can be made before they are written. */
    gaddr execfn = top - sizeof(uint64_t) - strlen(plan->path) - 1;
    struct auxv auxv = {.n = 0};
    fill_auxv(&auxv, plan, random, execfn, platform_at);
    out->sp = (random - auxv.n * sizeof(uint64_t) - pointers) & ~15ull;

    uint64_t *slot = (uint64_t *)out->sp;
    gaddr at = out->arg_start;
    *slot++ = argc;
    for (size_t i = 0; i < argc; i++) {
        *slot++ = at;
        at = put_string(at, argument(plan, i));
    }
    *slot++ = 0;
    out->arg_end = out->env_start = at;
    for (size_t i = 0; i < envc; i++) {
        *slot++ = at;
        at = put_string(at, plan->envp[i]);
    }
    *slot++ = 0;
    out->env_end = at;
    put_string(at, plan->path);

    memcpy(slot, auxv.word, auxv.n * sizeof(uint64_t));
    out->auxv_start = (gaddr)slot;
    out->auxv_end = out->auxv_start + auxv.n * sizeof(uint64_t);
    put_random(random, plan->kernel_auxv);
    memcpy((void *)platform_at, platform, sizeof platform);
    out->stack_start = out->sp;
    return 0;
}
