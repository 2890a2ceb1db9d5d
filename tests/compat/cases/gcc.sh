# needs: gcc
# tags: fast
# gcc: preprocessing, compiling with -O2 and -O0, linking, the program that comes out; errors
cat >a.c <<'S'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node *l, *r; };
static struct node *put(struct node *n, int k) { if (!n) { n = calloc(1, sizeof *n); n->key = k; } else if (k < n->key) n->l = put(n->l, k); else n->r = put(n->r, k); return n; }
static int depth(struct node *n) { if (!n) return 0; int a = depth(n->l), b = depth(n->r); return 1 + (a > b ? a : b); }
int main(void) { struct node *t = 0; unsigned x = 1; for (int i = 0; i < 5000; i++) t = put(t, (x = x * 1664525 + 1013904223) >> 8); printf("%d %.9f\n", depth(t), sin(1)); return 7; }
S
for o in -O0 -O2 "-O3 -march=native -flto"; do $RUN gcc $o -o a a.c -lm; sha256sum <a | cut -c1-8 >/dev/null; $RUN ./a; echo "status $?"; done
$RUN gcc -O2 -S -o - a.c | sum
echo 'int main(void) { return x; }' | $RUN gcc -xc - 2>&1 | grep -c error; $RUN gcc -E -dM - </dev/null | wc -l
