# needs: gcc
# tags: fast
# a program built with AddressSanitizer: clean run, overflow, use after free, leak
cat >a.c <<'S'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
void *t(void *a) { char *p = malloc(100); memset(p, 1, 100); long s = 0; for (int i = 0; i < 100; i++) s += p[i]; free(p); return (void *)s; }
int main(int c, char **v) { char *p = malloc(10); int n = c > 1 ? atoi(v[1]) : 0; memset(p, 0, 10); if (n == 1) p[10] = 1; if (n == 2) { free(p); return p[3]; } if (n == 3) p = 0; if (n == 4) { char b[8]; memset(b, 0, 8 + c); return b[2]; } pthread_t x; void *r; pthread_create(&x, 0, t, 0); pthread_join(x, &r); printf("clean %ld\n", (long)r); free(p); return 0; }
S
gcc -g -fsanitize=address -pthread -o a a.c 2>/dev/null || skip "no AddressSanitizer"
for i in 0 1 2 3 4; do $RUN env ASAN_OPTIONS=exitcode=33 ./a $i 2>err; echo "$i: status $?"; grep -oE 'AddressSanitizer: [a-z-]*|LeakSanitizer: detected' err | head -1; grep -oE '#0 .* in main|a.c:[0-9]+' err | head -1 | grep -o 'a.c:[0-9]*'; done
