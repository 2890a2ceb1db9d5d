/* A program too large for the library area, as chromium is: here it is all memory that is zero at first. Its functions are many, so that one
 * can see whether their translations were kept (tests/cli/cache_huge.sh). */
#include <stdio.h>
#include <string.h>

static char room[300 << 20];

#define FUNCTION(n) \
    static __attribute__((noinline)) int f##n(int x) { return x % 3 == n % 3 ? x * n + 1 : x ^ n; }
#define TEN(n)                                                                                               \
    FUNCTION(n##0)                                                                                           \
    FUNCTION(n##1) FUNCTION(n##2) FUNCTION(n##3) FUNCTION(n##4) FUNCTION(n##5) FUNCTION(n##6) FUNCTION(n##7) \
        FUNCTION(n##8) FUNCTION(n##9)
#define NAMES(n) f##n##0, f##n##1, f##n##2, f##n##3, f##n##4, f##n##5, f##n##6, f##n##7, f##n##8, f##n##9
TEN(1)
TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14)
    TEN(15) static int (*const functions[])(int) = {NAMES(1),  NAMES(2),  NAMES(3),  NAMES(4),  NAMES(5),
                                                    NAMES(6),  NAMES(7),  NAMES(8),  NAMES(9),  NAMES(10),
                                                    NAMES(11), NAMES(12), NAMES(13), NAMES(14), NAMES(15)};

int main(void) {
    int x = 1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) x = functions[i](x);
    memset(room + sizeof room - 4096, x, 4096);
    printf("%d %d\n", x, room[sizeof room - 1]);
    return 0;
}
