#include "sphere/cpu_level.h"

#include "inproc/types.h"

int cpu_level;

#define BIT(n) (1u << (n))

/* Leaf 1. What both levels hide in ecx: features beyond v3 and the timer that is an interrupt. */
#define L1_ECX_V2 \
    (BIT(0) | BIT(1) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(22) | BIT(23) | BIT(25) | BIT(30) | BIT(31))
#define L1_ECX_V3                                                                                      \
    (L1_ECX_V2 | BIT(12) /* FMA */ | BIT(26) /* XSAVE */ | BIT(27) /* OSXSAVE */ | BIT(28) /* AVX */ | \
     BIT(29) /* F16C */)
/* Leaf 7, ebx: BMI1, AVX2, BMI2 belong to v3; FSGSBASE, ERMS, SMEP and the like name nothing that user code computes with. */
#define L7_EBX_ANY (BIT(0) | BIT(7) | BIT(9) | BIT(10) | BIT(20))
#define L7_EBX_V3 (L7_EBX_ANY | BIT(3) | BIT(5) | BIT(8))
/* Leaf 80000001, ecx: LZCNT (5) belongs to v3; LAHF (0) to v2. */
#define E1_ECX_V2 (BIT(0))
#define E1_ECX_V3 (E1_ECX_V2 | BIT(5))
#define E1_EDX_ANY (~(BIT(22) | BIT(30) | BIT(31))) /* MMX extensions and 3DNow! of one vendor */

#define XCR0_V3 7u /* x87, SSE, AVX */
#define XSAVE_V3_SIZE 832u

static void mask_xsave(uint32_t subleaf, struct ev_insn *r) {
    bool known = cpu_level >= 3 && (subleaf <= 2);
    if (!known) {
        r->rax = r->rbx = r->rcx = r->rdx = 0;
        return;
    }
    if (subleaf == 0) {
        r->rax &= XCR0_V3;
        r->rbx = r->rcx = XSAVE_V3_SIZE;
        r->rdx = 0;
    } else if (subleaf == 1) {
        r->rax &= 1; /* XSAVEOPT */
        r->rbx = r->rcx = r->rdx = 0;
    }
}

static void mask_cpuid(uint32_t leaf, uint32_t subleaf, struct ev_insn *r) {
    switch (leaf) {
    case 0: r->rax = MIN(r->rax, 0xdul); break;
    case 1: r->rcx &= cpu_level >= 3 ? L1_ECX_V3 : L1_ECX_V2; break;
    case 7:
        r->rax = 0;
        r->rbx &= subleaf == 0 ? (cpu_level >= 3 ? L7_EBX_V3 : L7_EBX_ANY) : 0;
        r->rcx = r->rdx = 0;
        break;
    case 0xd: mask_xsave(subleaf, r); break;
    case 0x80000001:
        r->rcx &= cpu_level >= 3 ? E1_ECX_V3 : E1_ECX_V2;
        r->rdx &= E1_EDX_ANY;
        break;
    case 0x80000008: r->rbx = 0; break;
    }
}

uint64_t cpu_level_xcr0(uint64_t xcr0) { return !cpu_level ? xcr0 : cpu_level >= 3 ? xcr0 & XCR0_V3 : 0; }

uint32_t cpu_level_xsave_size(uint32_t size) { return !cpu_level ? size : MIN(size, XSAVE_V3_SIZE); }

void cpu_level_mask(uint16_t which, uint32_t leaf, uint32_t subleaf, struct ev_insn *result) {
    if (!cpu_level) return;
    if (which == RECORDED_CPUID) mask_cpuid(leaf, subleaf, result);
    if (which == RECORDED_XGETBV) result->rax &= XCR0_V3;
}
