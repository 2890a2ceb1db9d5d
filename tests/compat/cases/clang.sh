# needs: clang
# clang: compiling, vector code, the program that comes out
cat >a.c <<'S'
#include <stdio.h>
float a[4096], b[4096];
int main(void) { for (int i = 0; i < 4096; i++) a[i] = i * 0.5f, b[i] = 4096 - i; float s = 0; for (int k = 0; k < 100; k++) for (int i = 0; i < 4096; i++) a[i] = a[i] * 0.99f + b[i]; for (int i = 0; i < 4096; i++) s += a[i] > 100 ? 1 : a[i]; printf("%.3f\n", s); }
S
$RUN clang -O3 -mavx2 -o a a.c && $RUN ./a; $RUN clang -O1 -S -emit-llvm -o - a.c | grep -c .; echo 'int main( {' | $RUN clang -xc - 2>/dev/null; echo "status $?"
