/* Deep recursion on a large stack (a raised limit, then exec), alloca, and a thread with a big stack. */
#include "guest.h"
#include <alloca.h>
#include <sys/resource.h>

__attribute__((noinline, noipa)) static long deep(long n) {
    volatile char pad[200];
    pad[n % 200] = 1;
    return n ? deep(n - 1) + pad[n % 200] : 0;
}
static void *thread(void *arg) {
    (void)arg;
    return (void *)deep(400000);
}

int main(int argc, char **argv) {
    if (argc == 1) {
        struct rlimit r;
        getrlimit(RLIMIT_STACK, &r);
        r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > 512 << 20 ? 512 << 20 : r.rlim_max;
        setrlimit(RLIMIT_STACK, &r);
        char self[4096] = "";
        (void)!readlink("/proc/self/exe", self, sizeof self - 1);
        execl(self, argv[0], "again", NULL);
        return 1;
    }
    printf("deep %ld\n", deep(1000000)); /* about 240 MB */
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        volatile char *p = alloca(100000);
        p[0] = i;
        sum += p[0];
    }
    printf("alloca %ld\n", sum);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 200 << 20);
    pthread_t t;
    void *r;
    CHECK(pthread_create(&t, &a, thread, NULL) == 0);
    pthread_join(t, &r);
    printf("thread %ld\n", (long)r);
    return finish();
}
