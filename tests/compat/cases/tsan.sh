# needs: gcc
# tags: fast
# a program built with ThreadSanitizer: clean run, data race
cat >a.c <<'S'
#include <pthread.h>
#include <stdio.h>
long x; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; int racy;
void *t(void *a) { for (int i = 0; i < 1000; i++) { if (!racy) pthread_mutex_lock(&m); x++; if (!racy) pthread_mutex_unlock(&m); } return a; }
int main(int c, char **v) { (void)v; racy = c > 1; pthread_t a, b; pthread_create(&a, 0, t, 0); pthread_create(&b, 0, t, 0); pthread_join(a, 0); pthread_join(b, 0); if (!racy) printf("%ld\n", x); return 0; }
S
gcc -g -fsanitize=thread -o a a.c 2>/dev/null || skip "no ThreadSanitizer"; setarch -R true 2>/dev/null || skip "cannot turn off address randomisation"
$RUN setarch -R ./a; echo "status $?"; $RUN setarch -R ./a race >/dev/null 2>err; echo "status $?"; grep -o 'WARNING: ThreadSanitizer: data race' err | head -1
