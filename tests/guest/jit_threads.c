/* One thread patches a jump (aligned, atomically) while others run it: they see the old or the new target, nothing else.
 * And threads that write, run and free their own code side by side. */
#include "guest.h"

static uint8_t *page;
static volatile int stop;
static long odd;
static int saw_both;

static void *runner(void *arg) {
    long seen[2] = {0, 0};
    bool told = false;
    while (!stop) {
        int v = ((int (*)(void))page)();
        if (v == 1 || v == 2)
            seen[v - 1]++;
        else
            __atomic_add_fetch(&odd, 1, __ATOMIC_RELAXED);
        if (!told && seen[0] && seen[1]) told = true, __atomic_add_fetch(&saw_both, 1, __ATOMIC_RELAXED);
    }
    return arg;
}
static void *own(void *arg) {
    long sum = 0, id = (long)arg;
    for (int i = 0; i < 300; i++) {
        uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int k = 0; k < 5; k++) {
            int v = id * 1000 + i + k;
            p[0] = 0xb8, memcpy(p + 1, &v, 4), p[5] = 0xc3;
            sum += ((int (*)(void))p)() == v;
        }
        munmap(p, 4096);
    }
    return (void *)sum;
}
static void serialize(void) { __asm__ volatile("cpuid" ::"a"(0) : "rbx", "rcx", "rdx", "memory"); }

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* 0: jmp rel32, padded to 8; at 64: return 1; at 128: return 2 */
    static const uint8_t r1[] = {0xb8, 1, 0, 0, 0, 0xc3}, r2[] = {0xb8, 2, 0, 0, 0, 0xc3};
    memcpy(page + 64, r1, 6), memcpy(page + 128, r2, 6);
    uint64_t to1 = 0x9090900000000000 | 0xe9 | (uint64_t)(64 - 5) << 8,
             to2 = 0x9090900000000000 | 0xe9 | (uint64_t)(128 - 5) << 8;
    __atomic_store_n((uint64_t *)page, to1, __ATOMIC_SEQ_CST);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, runner, NULL);
    for (int i = 0; i < 400 || (i < 4000 && __atomic_load_n(&saw_both, __ATOMIC_RELAXED) < 3); i++) {
        __atomic_store_n((uint64_t *)page, i & 1 ? to1 : to2, __ATOMIC_SEQ_CST);
        serialize();
        CHECK(((int (*)(void))page)() == (i & 1 ? 1 : 2));
        if (i % 40 == 0) sleep_ms(10);
        if (i > 400) sleep_ms(1);
    }
    __atomic_store_n((uint64_t *)page, to2, __ATOMIC_SEQ_CST);
    sleep_ms(20);
    stop = 1;
    void *r;
    for (int i = 0; i < 3; i++) pthread_join(t[i], &r);
    printf("odd results %ld, runners that saw both %d\n", odd, saw_both);
    for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, own, (void *)(i + 1));
    for (int i = 0; i < 3; i++) pthread_join(t[i], &r), printf("%ld ", (long)r);
    puts("right");
    return finish();
}
