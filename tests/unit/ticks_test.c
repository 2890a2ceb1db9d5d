/* The budget of ticks: parts of 32 bits and a reserve are one number, and no tick is lost or made when it is dealt out anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef PAGE_SIZE
#undef PAGE_MASK
#include "engine/engine.h"

static const uint64_t budgets[] = {
    0, 1, 3, 7, 8, 1000, TICKS_DEALT_MOST - 1, TICKS_DEALT_MOST, TICKS_DEALT_MOST + 1ull, 1ull << 32, 1ull << 61};

static void sum_is_the_budget(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
        struct tblock t = {0};
        ticks_set_budget(&t, 12345);
        for (int i = 0; i < 345; i++) assert_true(ticks_take(&t));
        uint64_t so_far = ticks_total(&t);
        ticks_set_budget(&t, budgets[k]);
        assert_int_equal(ticks_total(&t), so_far);
        assert_int_equal(ticks_left(&t), budgets[k]);
        for (int i = 0; i < TICK_COUNTERS; i++) {
            ticks_deal(&t, ticks_left(&t), i);
            assert_int_equal(ticks_left(&t), budgets[k]);
            for (int c = 0; c < TICK_COUNTERS; c++) assert_true(*ticks_counter(&t, c) >= 0);
        }
    }
}

static void every_tick_is_taken_once(void **state) {
    (void)state;
    struct tblock t = {0};
    ticks_set_budget(&t, TICKS_DEALT_MOST + 5ull);
    for (int c = 0; c < TICK_COUNTERS; c++) *ticks_counter(&t, c) = 0; /* all of them counted */
    assert_int_equal(ticks_total(&t), TICKS_DEALT_MOST);
    for (int i = 0; i < 5; i++) assert_true(ticks_take(&t));
    assert_false(ticks_take(&t));
    assert_int_equal(ticks_total(&t), TICKS_DEALT_MOST + 5ull);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sum_is_the_budget), cmocka_unit_test(every_tick_is_taken_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
