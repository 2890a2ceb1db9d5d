/* What instructions do with values, as why/flow.c sees it. */
// link: src/why/flow.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "why/flow.h"

static const struct machine machine = {.pc = 0x1000,
                                       .rflags = 0x40, /* ZF */
                                       .gpr = {0xa0, 3, 0xd2, 0xb3, 0x7000, 0x8000, 0x5100, 0xd100, 0x88},
                                       .fs_base = 0xf0000};

static struct place memory(uint64_t addr, size_t len) { return (struct place){.addr = addr, .len = len}; }
static struct place reg(uint32_t number, uint32_t offset, size_t len) {
    return (struct place){.is_register = true, .reg = number, .offset = offset, .len = len};
}

static struct flow flow(const char *code, size_t n, struct place want) {
    struct flow f;
    assert_true(flow_of(&machine, (const uint8_t *)code, n, &want, &f));
    return f;
}
#define FLOW(code, want) flow(code, sizeof code - 1, want)

static void assert_place(struct place got, struct place want) {
    assert_int_equal(got.is_register, want.is_register);
    assert_int_equal(got.reg, want.reg);
    assert_int_equal(got.offset, want.offset);
    assert_int_equal(got.addr, want.addr);
    assert_int_equal(got.len, want.len);
}

static void assert_copy(struct flow f, struct place from) {
    assert_int_equal(f.kind, FLOW_COPY);
    assert_place(f.input[0], from);
}

static void test_moves(void **state) {
    assert_copy(FLOW("\x48\x89\x06", memory(0x5100, 8)), reg(0, 0, 8));                /* mov %rax,(%rsi) */
    assert_copy(FLOW("\x48\x89\x06", memory(0x5102, 2)), reg(0, 2, 2));                /* a part of it */
    assert_copy(FLOW("\x88\x26", memory(0x5100, 1)), reg(0, 1, 1));                    /* mov %ah,(%rsi) */
    assert_copy(FLOW("\x8b\x06", reg(0, 0, 8)), memory(0x5100, 4));                    /* mov (%rsi),%eax */
    assert_int_equal(FLOW("\x8b\x06", reg(0, 4, 4)).kind, FLOW_CONSTANT);              /* its upper half is zero */
    assert_copy(FLOW("\x0f\xb6\x06", reg(0, 0, 8)), memory(0x5100, 1));                /* movzbl (%rsi),%eax */
    assert_copy(FLOW("\x64\x89\x04\x25\x10\0\0\0", memory(0xf0010, 4)), reg(0, 0, 4)); /* mov %eax,%fs:0x10 */
    assert_copy(FLOW("\x89\x05\x10\0\0\0", memory(0x1016, 4)), reg(0, 0, 4));          /* mov %eax,0x10(%rip) */
    assert_int_equal(FLOW("\x48\xc7\x06\x05\0\0\0", memory(0x5100, 8)).value, 5);      /* movq $5,(%rsi) */
    assert_copy(FLOW("\x48\x87\x06", memory(0x5100, 8)), reg(0, 0, 8));                /* xchg %rax,(%rsi) */
    assert_copy(FLOW("\x48\x87\x06", reg(0, 0, 8)), memory(0x5100, 8));
    assert_copy(FLOW("\x0f\x44\xc1", reg(0, 0, 4)), reg(1, 0, 4)); /* cmove %ecx,%eax: it is */
    struct flow f;
    struct place rax = reg(0, 0, 4);
    assert_false(flow_of(&machine, (const uint8_t *)"\x0f\x45\xc1", 3, &rax, &f)); /* cmovne: it is not */
    assert_false(flow_of(&machine, (const uint8_t *)"\x48\x89\x0e", 3, &rax, &f)); /* another register */
}

static void test_stack(void **state) {
    assert_copy(FLOW("\x50", memory(0x6ff8, 8)), reg(0, 0, 8));          /* push %rax */
    assert_copy(FLOW("\x58", reg(0, 0, 8)), memory(0x7000, 8));          /* pop %rax */
    assert_copy(FLOW("\xff\x36", memory(0x6ff8, 8)), memory(0x5100, 8)); /* push (%rsi) */
    assert_int_equal(FLOW("\xe8\0\0\0\0", memory(0x6ff8, 8)).kind, FLOW_RETURN_ADDRESS);
}

static void test_strings(void **state) {
    assert_copy(FLOW("\xf3\x48\xa5", memory(0xd110, 8)), memory(0x5110, 8)); /* rep movsq */
    struct flow f;
    struct place behind = memory(0xd118, 8);
    assert_false(flow_of(&machine, (const uint8_t *)"\xf3\x48\xa5", 3, &behind, &f)); /* three of them */
    assert_copy(FLOW("\xf3\x66\xab", memory(0xd103, 1)), reg(0, 1, 1));               /* rep stosw */
}

static void test_vectors(void **state) {
    assert_copy(FLOW("\x0f\x11\x06", memory(0x5108, 8)), reg(16, 8, 8));          /* movups %xmm0,(%rsi) */
    assert_copy(FLOW("\xc5\xfe\x7f\x4f\x20", memory(0xd138, 8)), reg(17, 24, 8)); /* vmovdqu %ymm1,0x20(%rdi) */
    assert_copy(FLOW("\x0f\x17\x06", memory(0x5100, 8)), reg(16, 8, 8));          /* movhps %xmm0,(%rsi) */
    assert_copy(FLOW("\x66\x48\x0f\x6e\xc0", reg(16, 0, 8)), reg(0, 0, 8));       /* movq %rax,%xmm0 */
    assert_copy(FLOW("\x66\x0f\x6c\xc1", reg(16, 8, 8)), reg(17, 0, 8));          /* punpcklqdq %xmm1,%xmm0 */
    assert_copy(FLOW("\x66\x0f\x6c\xc1", reg(16, 0, 8)), reg(16, 0, 8));
    assert_int_equal(FLOW("\x66\x0f\xef\xc0", reg(16, 0, 16)).kind, FLOW_CONSTANT); /* pxor %xmm0,%xmm0 */
}

static void test_arithmetic(void **state) {
    struct flow f = FLOW("\x48\x01\x06", memory(0x5100, 8)); /* add %rax,(%rsi) */
    assert_int_equal(f.kind, FLOW_COMPUTED);
    assert_int_equal(f.n_inputs, 2);
    f = FLOW("\x48\x8d\x04\x4e", reg(0, 0, 8)); /* lea (%rsi,%rcx,2),%rax */
    assert_int_equal(f.n_inputs, 2);
    assert_place(f.input[0], reg(6, 0, 8));
    assert_place(f.input[1], reg(1, 0, 8));
    assert_int_equal(FLOW("\x31\xc0", reg(0, 0, 8)).kind, FLOW_CONSTANT);  /* xor %eax,%eax */
    assert_int_equal(FLOW("\x0f\x31", reg(2, 0, 8)).kind, FLOW_PROCESSOR); /* rdtsc */
    assert_int_equal(FLOW("\x0f\x05", reg(0, 0, 8)).kind, FLOW_CALL);
}

static void test_names(void **state) {
    struct place p;
    assert_true(flow_register_by_name("$rdi", &p));
    assert_place(p, reg(7, 0, 8));
    assert_true(flow_register_by_name("ah", &p));
    assert_place(p, reg(0, 1, 1));
    assert_true(flow_register_by_name("$ymm3", &p));
    assert_string_equal(flow_register_name(&p), "ymm3");
    assert_false(flow_register_by_name("$nothing", &p));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves),      cmocka_unit_test(test_stack),
                                       cmocka_unit_test(test_strings),    cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
