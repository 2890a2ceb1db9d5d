# needs: gcc
# tags: fast
# a program built with UndefinedBehaviorSanitizer
cat >a.c <<'S'
#include <limits.h>
#include <stdio.h>
int main(int c, char **v) { (void)v; int x = INT_MAX - 1 + c, a[4] = {0}; printf("%d\n", x < 0); x = 1 << (c + 31); a[c & 3] = c; printf("%d %d\n", a[1], *(c > 5 ? (int *)0 : &x) != 7); double d = 1e20 * c; printf("%d\n", (int)d == 0); return 5; }
S
gcc -g -fsanitize=undefined -o a a.c 2>/dev/null || skip "no UndefinedBehaviorSanitizer"; $RUN ./a 2>&1; echo "status $?"
