// link: src/controller/hash_zeros.c
// libs: -lxxhash
/* Zeros that are skipped make the hash that reading them makes, wherever they begin and end, and whatever comes behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/hash_zeros.h"

#define MOST (300u << 10)

static uint8_t bytes[MOST];

/* `before` bytes that are none, n zeros, `behind` bytes again; `pieces`: how many calls for the zeros. */
static void compare(size_t before, size_t n, size_t behind, unsigned pieces) {
    assert_true(before + n + behind <= MOST);
    for (size_t i = 0; i < before + n + behind; i++) bytes[i] = (uint8_t)(i * 7 + 1);
    memset(bytes + before, 0, n);
    XXH3_state_t *s = XXH3_createState();
    XXH3_128bits_reset(s);
    XXH3_128bits_update(s, bytes, before);
    for (size_t left = n; pieces; left -= left / pieces, pieces--) hash_zeros(s, left / pieces);
    XXH3_128bits_update(s, bytes + before + n, behind);
    assert_true(XXH128_isEqual(XXH3_128bits_digest(s), XXH3_128bits(bytes, before + n + behind)));
    XXH3_freeState(s);
}

static void test_edges(void **state) {
    static const size_t before[] = {0, 1, 63, 64, 255, 256, 257, 960, 1023, 1024, 1025, 5000};
    static const size_t zeros[] = {0, 1, 64, 241, 1024, 4096, 8191, 8192, 8193, 9216, 9217, 65536, 100001, 262144};
    static const size_t behind[] = {0, 1, 64, 256, 257, 1024, 4097};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (size_t j = 0; j < sizeof zeros / sizeof *zeros; j++)
            for (size_t k = 0; k < sizeof behind / sizeof *behind; k++) compare(before[i], zeros[j], behind[k], 1);
}

static void test_random(void **state) {
    srand(1);
    for (int i = 0; i < 2000; i++)
        compare((size_t)rand() % 3000, (size_t)rand() % 60000, (size_t)rand() % 3000, 1 + (unsigned)rand() % 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
