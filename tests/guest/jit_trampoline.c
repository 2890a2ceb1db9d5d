// cflags: -Wl,-z,execstack -Wno-trampolines
/* Trampolines on the stack: nested functions whose address is taken, with stack data written all around them. */
#include "guest.h"

typedef int fn(int);
__attribute__((noinline)) static int apply(fn *f, int x) {
    volatile char pad[64];
    pad[x & 63] = x;
    return f(x) + (pad[x & 63] & 0);
}
__attribute__((noinline)) static int level(int n) {
    int base = n * 10;
    int add(int x) { return x + base; }
    if (n == 0) return apply(add, 1);
    return apply(add, n) + level(n - 1);
}
static int compare_by(const int *keys, int *order, int n) {
    int cmp(const void *a, const void *b) { return keys[*(const int *)a] - keys[*(const int *)b]; }
    qsort(order, n, sizeof *order, cmp);
    int h = 0;
    for (int i = 0; i < n; i++) h = h * 31 + order[i];
    return h;
}
static void *thread(void *arg) {
    long s = 0;
    for (int i = 0; i < 200; i++) s += level(20);
    (void)arg;
    return (void *)s;
}

int main(void) {
    printf("nested: %d\n", level(50));
    long s = 0;
    for (int i = 0; i < 2000; i++) s += level(i % 30);
    printf("many: %ld\n", s);
    int keys[500], order[500];
    for (int i = 0; i < 500; i++) keys[i] = i * 7919 % 1009, order[i] = i;
    printf("qsort: %d\n", compare_by(keys, order, 500));
    /* a pipe read lands on the stack beside a live trampoline */
    int fds[2], total = 0;
    CHECK(pipe(fds) == 0);
    for (int i = 0; i < 200; i++) {
        char buf[256];
        int sum(int x) {
            int t = x;
            for (int k = 0; k < 256; k++) t += buf[k];
            return t;
        }
        memset(buf, 0, sizeof buf);
        total += apply(sum, 1);
        char msg[256];
        memset(msg, i & 3, sizeof msg);
        CHECK(write(fds[1], msg, sizeof msg) == sizeof msg && read(fds[0], buf, sizeof buf) == sizeof buf);
        total += apply(sum, 1);
    }
    printf("with system calls: %d\n", total);
    pthread_t t[3];
    void *r;
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, thread, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], &r), printf("%ld ", (long)r);
    puts("");
    return finish();
}
