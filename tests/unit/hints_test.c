/* link: src/engine/hints.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/hints.h"

#define MB (1ul << 20)

/* What was added is never denied; what is far from everything that was added is. */
static void blocks(void **state) {
    gaddr base = 0x10000000;
    for (gaddr pc = base; pc < base + 4096; pc += 7) hints_add_block(pc);
    for (gaddr pc = base; pc < base + 4096; pc++) assert_int_equal(hints_may_be_block(pc), (pc - base) % 7 == 0);
    assert_false(hints_may_be_block(base + MB));
    hints_add_block(0x7e8012345678);
    assert_true(hints_may_be_block(0x7e8012345678));
}

static void ranges(void **state) {
    gaddr base = 0x7e9000000000;
    assert_false(hints_may_be_code(base, base + 1024 * MB));
    hints_add_code(base + 10 * MB - 1, base + 10 * MB + 1); /* on both sides of a border */
    assert_true(hints_may_be_code(base + 10 * MB - 1, base + 10 * MB));
    assert_true(hints_may_be_code(base + 10 * MB, base + 10 * MB + 1));
    assert_true(hints_may_be_code(base, base + 1024 * MB));
    assert_false(hints_may_be_code(base, base + 8 * MB));
    assert_false(hints_may_be_code(base + 12 * MB, base + 1024 * MB));
    assert_false(hints_may_be_code(base + 10 * MB, base + 10 * MB));
    assert_true(hints_may_be_code(0, 0x7ffffffff000));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks), cmocka_unit_test(ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
