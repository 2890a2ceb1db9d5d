/* Emitting x86-64 machine code. The only place that knows opcode bytes.
 * An emitter never writes past `end`: it stops and sets `full`, and the caller throws the attempt away. */
#ifndef REPRISE_EMIT_X64_H
#define REPRISE_EMIT_X64_H

#include "engine/decode.h"
#include "engine/tblock.h"
#include "inproc/types.h"

struct emitter {
    uint8_t *p;
    uint8_t *end;
    bool full;
    uint8_t *ret_fail; /* the last jump to the region's tramp_ret_fail, for emit_expect_pc; NULL: none */
};

void emit_bytes(struct emitter *e, const void *bytes, size_t n);
void emit_nops(struct emitter *e, size_t n);

/* Thread block fields, addressed through gs. */
void emit_load_tb(struct emitter *e, int reg, int off);
void emit_store_tb(struct emitter *e, int reg, int off);
void emit_store_tb_imm32(struct emitter *e, int off, uint32_t imm); /* 4 bytes */
void emit_store_tb_simm64(struct emitter *e, int off, int32_t imm); /* 8 bytes, sign-extended */
void emit_store_tb_u64(struct emitter *e, int off, uint64_t value); /* 8 bytes, one or two stores */
void emit_jmp_tb(struct emitter *e, int off);                       /* jmp *%gs:off */

/* Counting ticks at a field with TB_TICKS' address. Of each pair the second traps when there was nothing left: a jump to the byte 0xcc in
 * the address right in front of it. */
void emit_dec_ticks(struct emitter *e, int off); /* decl %gs:off: changes flags */
void emit_trap_if_negative(struct emitter *e);
void emit_load_ticks(struct emitter *e, int off); /* mov %gs:off,%ecx */
void emit_trap_if_no_rcx(struct emitter *e);
void emit_store_ticks(struct emitter *e, int off); /* mov %ecx,%gs:off */

void emit_mov_reg_reg(struct emitter *e, int to, int from);
void emit_mov_reg_imm(struct emitter *e, int reg, uint64_t value);  /* shortest form */
void emit_lea(struct emitter *e, int reg, int base, int32_t disp);  /* reg = base + disp, no flags */
void emit_lea_sum(struct emitter *e, int reg, int base, int index); /* reg = base + index */
void emit_push_reg(struct emitter *e, int reg);
void emit_pop_reg(struct emitter *e, int reg);
void emit_push_imm32(struct emitter *e, int32_t imm);
uint8_t *emit_push_rip(struct emitter *e);                     /* push rel32(%rip): returns the rel32 */
void emit_load_reg_reg(struct emitter *e, int reg, int base);  /* mov (base),reg; base is no rsp, rbp, r12, r13 */
void emit_rorx32(struct emitter *e, int to, int from, int by); /* no flags */
void emit_movzx16_reg(struct emitter *e, int to, int from);    /* movzwl */
void emit_load_byte_table(struct emitter *e, int reg, uint32_t table); /* movzbl table(reg),reg; no r8.. */
uint8_t *emit_lea_rip(struct emitter *e, int reg);                     /* lea rel32(%rip),reg: returns the rel32 */
void emit_movzx16_stack(struct emitter *e, int to);                    /* movzwl (%rsp),to */
void emit_load_stack(struct emitter *e, int reg, int8_t disp);         /* mov disp(%rsp),reg */
void emit_store_stack(struct emitter *e, int reg, int8_t disp);        /* mov reg,disp(%rsp) */
bool emit_is_store_stack(const uint8_t *code);                         /* what emit_store_stack has written */
void emit_zero_stack(struct emitter *e, int8_t disp);                  /* movq $0,disp(%rsp) */
void emit_push_table(struct emitter *e, uint32_t table, int index);    /* push table(,index,8) */
void emit_jmp_table(struct emitter *e, uint32_t table, int index);
void emit_call_table(struct emitter *e, uint32_t table, int index);
void emit_ret(struct emitter *e);
void emit_ud2(struct emitter *e);
void emit_dec_mem(struct emitter *e, int base); /* 32 bits at a low register other than rsp and rbp */
void emit_cmp_rsp_rsp(struct emitter *e);       /* always the same arithmetic flags */
void emit_save_flags_rax(struct emitter *e);    /* lahf; seto %al */
void emit_restore_flags_rax(struct emitter *e); /* add $127,%al; sahf */

/* Transfers. The rel32 of a patchable one lies within an aligned 8 bytes, so that one store relinks it. Each returns the
 * address of the rel32. `to` may be NULL: to be filled in with emit_set_rel32. */
uint8_t *emit_jmp(struct emitter *e, const void *to);
uint8_t *emit_jcc(struct emitter *e, int cc, const void *to);
uint8_t *emit_call(struct emitter *e, const void *to);
void emit_jmp_anywhere(struct emitter *e, const void *to); /* not patchable */
#define CALL_REL32 0xe8                                    /* the opcode of a direct call */
#define JMP_FIXED_LEN 5
void emit_jmp_fixed(struct emitter *e, const void *to); /* not patchable, within 2 GB */
void emit_set_rel32(uint8_t *rel32, const void *to);
const uint8_t *emit_get_rel32(const uint8_t *rel32);

/* Short forward transfers inside one sequence: returns the rel8 to be filled in by emit_land_short. */
uint8_t *emit_jrcxz(struct emitter *e);
uint8_t *emit_jmp_short(struct emitter *e);
uint8_t *emit_jcc_short(struct emitter *e, int cc);
void emit_land_short(struct emitter *e, uint8_t *rel8);
/* Counts rcx down and goes back to `to` if it is not 0 then. `to` is at most LOOP_REACH bytes back. */
#define LOOP_REACH 126
void emit_loop(struct emitter *e, const uint8_t *to);

/* The instruction itself, its RIP-relative operand (if any) adjusted to the new place. False: out of reach. */
bool emit_copy(struct emitter *e, const struct insn *in, const uint8_t *bytes);
/* The same with its memory operand replaced by (scratch), and without a gs prefix; scratch is one of rax rcx rdx rbx rsi rdi. */
void emit_copy_via(struct emitter *e, const struct insn *in, const uint8_t *bytes, int scratch);
/* The same for an operand with a vector of indices: only its base register, which emit_vsib_base() tells (-1: it has none), is replaced. */
void emit_copy_vsib_via(struct emitter *e, const struct insn *in, const uint8_t *bytes, int scratch);
int emit_vsib_base(const struct insn *in, const uint8_t *bytes);
/* loop/jrcxz family with the displacement left open (short). */
uint8_t *emit_copy_loop(struct emitter *e, const struct insn *in, const uint8_t *bytes);
/* mov <operand of an indirect jmp or call>,reg. False: its RIP-relative operand is out of reach. */
bool emit_load_operand(struct emitter *e, const struct insn *in, const uint8_t *bytes, int reg);
/* lea <memory operand of the instruction>,reg; false: RIP-relative (nothing is emitted, the address is in->target). */
bool emit_lea_operand(struct emitter *e, const struct insn *in, const uint8_t *bytes, int reg);
/* cmp reg,address(%rip), `size` bytes of them; false: out of reach. */
bool emit_cmp_rip_reg(struct emitter *e, int reg, int size, uint64_t address);
/* cmp reg,(base), `size` bytes; base is no rsp, rbp, r12, r13. */
void emit_cmp_reg_mem(struct emitter *e, int reg, int size, int base);
/* What one of these two has written for `reg`; *base: -1 for the first. */
bool emit_is_cmp_memory(const uint8_t *code, int reg, int *base);
/* The instruction without its gs prefix byte. */
void emit_copy_without_gs(struct emitter *e, const struct insn *in, const uint8_t *bytes);

/* A string instruction or xlat: its operand is where rsi or rbx points, with a full-width address. */
bool emit_is_gs_indexed(const struct insn *in, const uint8_t *bytes);
/* INSN_FAR that may succeed (or, sysenter, must not be tried): to be done by hand. */
bool emit_is_far_transfer(const struct insn *in);
void emit_not_reg(struct emitter *e, int reg);     /* no flags */
void emit_test_cl(struct emitter *e, uint8_t imm); /* test $imm,%cl */
#define INT3 0xcc
void emit_int(struct emitter *e, uint8_t opcode, uint8_t imm); /* int3, int1 or int imm */

#endif
