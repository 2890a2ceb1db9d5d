/* Decoding: one guest instruction as the translator needs to see it.
 *
 * decode_insn() tries a table for common opcodes first (generated from Zydis at build time, tools/gen_decode.c) and asks
 * Zydis for the rest. Both paths give the same struct insn: tests/unit/decode_test.c compares them over all opcodes. */
#ifndef REPRISE_DECODE_H
#define REPRISE_DECODE_H

#include "inproc/types.h"

#define INSN_MAX_LEN 15

enum insn_class {
    INSN_INVALID,  /* does not decode, or is cut off by the end of readable memory */
    INSN_PLAIN,    /* may be copied; only a RIP-relative operand has to be adjusted */
    INSN_JMP,      /* direct; target */
    INSN_JCC,      /* direct; target, cc */
    INSN_LOOP,     /* loop, loope, loopne, jrcxz, jecxz: short only; target */
    INSN_CALL,     /* direct; target */
    INSN_JMP_IND,  /* near, register or memory operand */
    INSN_CALL_IND, /* near, register or memory operand */
    INSN_RET,      /* near; imm = bytes popped beyond the return address */
    INSN_SYSCALL,
    INSN_INT,   /* int imm8, int1, into...; int3 is INSN_INT with imm 3 */
    INSN_FAR,   /* far jmp/call/ret, iret, sysenter, sysexit, sysret */
    INSN_CPUID, /* from here on: nondeterministic or revealing; copied unless a policy objects */
    INSN_RDTSC,
    INSN_RDTSCP,
    INSN_RDRAND, /* and rdseed */
    INSN_XGETBV,
    INSN_RDPID,
    INSN_RDPRU, /* cycles, as rdtsc */
    INSN_LSL,       /* one of the segments tells the processor's number */
    INSN_XSAVE,     /* xsave, xsavec, xsaveopt, xsaves */
    INSN_FPU_STORE, /* fnstenv, fnsave, fxsave: they store the address of the last x87 instruction, as xsave does */
    INSN_XBEGIN,    /* target = abort handler */
    INSN_PUSHF,
    INSN_POPF,
    INSN_GSBASE, /* rdgsbase, wrgsbase: gs belongs to the runtime */
    INSN_GS_MEM, /* a memory operand with a gs prefix */
    INSN_SEGREG, /* mov/pop/lgs/push... into or from gs or ss */
    INSN_PAUSE,  /* two bytes */
};

enum insn_encoding { ENC_LEGACY, ENC_VEX2, ENC_VEX3, ENC_EVEX, ENC_XOP, ENC_3DNOW };

/* Arithmetic flags, as bits of a set (not their positions in rflags). */
enum {
    FLAG_CF = 1,
    FLAG_PF = 2,
    FLAG_AF = 4,
    FLAG_ZF = 8,
    FLAG_SF = 16,
    FLAG_OF = 32,
    FLAGS_ARITH = 63,
    FLAG_DF = 64,
};

/* Register numbers are the hardware's: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8..r15. */
#define REG_BIT(r) ((uint16_t)(1u << (r)))

struct insn {
    gaddr pc;
    uint64_t target; /* direct transfers: destination; rip_rel: the address the operand names */
    int64_t imm;     /* first immediate, sign-extended; 0 if none. ret, int, far transfers and enter: zero-extended */
    uint8_t cls;     /* enum insn_class */
    uint8_t len;
    uint8_t encoding; /* enum insn_encoding */
    uint8_t opcode;   /* last opcode byte */
    uint8_t cc;       /* INSN_JCC: condition, the low 4 bits of the opcode */

    /* Where things are in the bytes; 0 = absent (nothing but a prefix or opcode is ever at 0, see opcode_off). */
    uint8_t opcode_off; /* first opcode byte (after 0F/0F38/0F3A escapes; after the VEX/EVEX payload) */
    uint8_t modrm_off;
    uint8_t sib_off;
    uint8_t disp_off, disp_size;
    uint8_t disp_shift; /* EVEX: a displacement of one byte counts in units of 1 << disp_shift bytes; else 0 */
    uint8_t imm_off, imm_size;
    uint8_t rex_off;    /* legacy encodings only; has_rex says whether it is there (it can be at 0) */
    uint8_t prefix_len; /* bytes in front of rex/vex/escape/opcode */
    uint8_t modrm;

    bool has_rex : 1;
    bool rip_rel : 1; /* memory operand relative to RIP (modrm mod=00 rm=101), not EIP */
    bool eip_rel : 1; /* the same with a 67 prefix */
    bool has_mem : 1; /* modrm names memory */
    bool rep : 1;     /* a string instruction with a rep/repe/repne prefix that counts */
    bool lock : 1;    /* locked, also implicitly (xchg with memory) */
    bool vsib : 1;    /* the index of the memory operand is a vector register: gather, scatter */

    uint8_t seg; /* segment override prefix in force for memory: 0 none, 0x64 fs, 0x65 gs */

    /* General purpose registers, implicit ones and address registers included. A 32-bit write kills the whole register;
     * 8- and 16-bit writes and conditional ones (cmovcc, rep) write without killing. */
    uint16_t gpr_read;
    uint16_t gpr_write;
    uint16_t gpr_kill;

    /* FLAG_*: read; possibly changed or undefined; certainly overwritten or left undefined whatever the operands (a shift by
     * a register or by an immediate that masks to zero kills nothing). */
    uint8_t flags_read, flags_write, flags_kill;

    /* Bytes of memory touched by one execution (one iteration for rep); 0 = none. String moves use both. For instructions
     * whose size cannot be told (xsave family) the size is MEM_SIZE_UNKNOWN. nop/prefetch/lea touch nothing. */
    uint16_t load_size, store_size; /* modrm or string/xlat/moffs operand */
    uint16_t push_size, pop_size;   /* stack accesses: push, pop, call, ret, enter, leave, pusha */
};

/* Also where the place is not what modrm, moffs or a string's pointer names: gather and scatter, bt/bts/btr/btc of memory by
 * a register, maskmovq and maskmovdqu, movdir64b's store, enter with frames; and where a mask leaves bytes out (vmaskmov, AVX-512
 * with a mask register): those need not be mapped. */
#define MEM_SIZE_UNKNOWN 0xffff

/* Decodes the instruction at `pc`, whose bytes are at `bytes` (`avail` of them can be read). Never reads past avail.
 * Returns false, with cls = INSN_INVALID, if there is no valid instruction. */
bool decode_insn(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc);
/* One that is known to be there, as a whole: the page behind it need not be. */
bool decode_executed(struct insn *in, gaddr pc);

/* The table alone (decode_table.c), for tests and measurements: false, with *in undefined, if it has no answer. */
bool decode_insn_table(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc);

/* The Zydis path alone, for tests and for whatever the table leaves out. */
bool decode_insn_zydis(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc);

/* Why bytes that decode_insn() refused are no instruction. */
enum decode_failure {
    DECODE_UNDEFINED,
    DECODE_CUT_OFF /* by avail */,
    DECODE_TOO_LONG /* more than INSN_MAX_LEN bytes */
};
enum decode_failure decode_failure(const uint8_t *bytes, size_t avail);

#endif
