/* Thread-local storage: initial values, alignment, independence, keys with destructors, and fs as arch_prctl shows it. */
#include "guest.h"
#include <asm/prctl.h>

static __thread int initialised = 17;
static __thread char zeroed[5000];
static __thread _Alignas(64) int aligned;
static pthread_key_t key;
static int destroyed;
static void destroy(void *v) { __atomic_add_fetch(&destroyed, (long)v, __ATOMIC_SEQ_CST); }

static void *work(void *arg) {
    long id = (long)arg;
    CHECK(initialised == 17 && zeroed[4999] == 0 && ((uintptr_t)&aligned & 63) == 0);
    uintptr_t fs, self;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    __asm__("mov %%fs:0, %0" : "=r"(self));
    CHECK(fs == self);
    pthread_setspecific(key, (void *)id);
    for (int i = 0; i < 20000; i++) initialised += id, zeroed[i % 5000]++, errno = id;
    CHECK(errno == id && pthread_getspecific(key) == (void *)id);
    return (void *)(long)(initialised + zeroed[3]);
}

int main(void) {
    pthread_key_create(&key, destroy);
    pthread_t t[10];
    void *r;
    for (long i = 0; i < 10; i++) pthread_create(&t[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 10; i++) pthread_join(t[i], &r), printf("%ld ", (long)r);
    printf("destroyed %d, main's %d\n", destroyed, initialised);
    /* gs is the program's too */
    static uintptr_t words[2] = {0x1122, 0x3344};
    uintptr_t got = 0, base = 1;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, words) == 0);
    __asm__ volatile("mov %%gs:8, %0" : "=r"(got));
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    printf("gs word %lx, base right %d\n", got, base == (uintptr_t)words);
    __asm__ volatile("movq $5, %%gs:0\n addq $6, %%gs:8" ::: "memory");
    printf("gs stores %lx %lx\n", words[0], words[1]);
    return finish();
}
