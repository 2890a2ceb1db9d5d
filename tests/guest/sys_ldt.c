/* modify_ldt(): entries are written and read; fs, gs and es are loaded with them, in several threads and in children. */
#include "guest.h"

#include <asm/ldt.h>
#include <asm/prctl.h>

static unsigned *words; /* below 4 GB: a segment's base has 32 bits */

static int ldt(int function, void *p, size_t n) { return (int)syscall(SYS_modify_ldt, function, p, n); }

static int set(unsigned entry, unsigned *base) {
    struct user_desc d = {.entry_number = entry,
                          .base_addr = (unsigned)(uintptr_t)base,
                          .limit = 0xfffff,
                          .seg_32bit = 1,
                          .limit_in_pages = 1,
                          .useable = 1};
    return ldt(0x11, &d, sizeof d);
}

static unsigned selector(unsigned entry) { return entry << 3 | 7; }

static void show_table(const char *when) {
    uint64_t table[8];
    memset(table, 0xee, sizeof table);
    int n = ldt(0, table, sizeof table);
    printf("%s: %d bytes", when, n);
    for (int i = 0; i < n / 8; i++) { /* without the base, which differs */
        unsigned base = (unsigned)((table[i] >> 16 & 0xffffff) | table[i] >> 56 << 24);
        printf(" %lx%s", table[i] & 0x00ffff000000ffffull, base ? "+base" : "");
        if (base) CHECK(base >= (unsigned)(uintptr_t)words && base < (unsigned)(uintptr_t)(words + 1024));
    }
    printf("\n");
}

static void by_gs(const char *when, unsigned entry) {
    unsigned value;
    uint16_t now;
    __asm__ volatile("mov %2, %%gs; mov %%gs:0, %0; mov %%gs, %1" : "=r"(value), "=m"(now) : "r"(selector(entry)));
    printf("%s: gs is %x, leads to %x\n", when, now, value);
}

/* fs is libc's: nothing of it may run until it is back. Others run meanwhile. */
static unsigned by_fs(unsigned entry, uint16_t *now) {
    unsigned long base;
    unsigned value = 0;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
    __asm__ volatile("mov %[selector], %%fs\n mov $300, %%ebx\n"
                     "1: mov $24, %%eax\n syscall\n" /* sched_yield */
                     "add %%fs:0, %[value]\n dec %%ebx\n jnz 1b\n"
                     "mov %%fs, %[now]\n"
                     "mov $158, %%eax\n mov $0x1002, %%edi\n mov %[base], %%rsi\n syscall\n" /* ARCH_SET_FS */
                     : [value] "+r"(value), [now] "=m"(*now)
                     : [selector] "r"(selector(entry)), [base] "r"(base)
                     : "rax", "rbx", "rcx", "rdi", "rsi", "r11", "memory", "cc");
    return value;
}

static struct seen {
    unsigned value;
    uint16_t fs;
} seen[3];

static void *thread(void *arg) {
    unsigned n = (unsigned)(uintptr_t)arg;
    seen[n].value = by_fs(n, &seen[n].fs);
    return NULL;
}

static void threads(void) {
    pthread_t t[3];
    for (uintptr_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        printf("thread %d: fs is %x, leads to %x in sum\n", i, seen[i].fs, seen[i].value);
    }
}

int main(void) {
    words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    for (unsigned i = 0; i < 16; i++) words[i] = 0x1000 + i;
    show_table("nothing yet");
    for (unsigned i = 0; i < 3; i++) CHECK(set(i, words + i) == 0);
    show_table("three entries");
    by_gs("first", 0);
    by_gs("third", 2);
    CHECK(set(2, words + 7) == 0);
    by_gs("changed", 2);
    unsigned limit = 0, rights = 0;
    uint16_t es;
    __asm__ volatile("lsl %1, %0" : "=r"(limit) : "r"(selector(1)));
    __asm__ volatile("lar %1, %0" : "=r"(rights) : "r"(selector(1)));
    __asm__ volatile("mov %1, %%es; mov %%es, %0" : "=m"(es) : "r"(selector(1)));
    printf("limit %x, rights %x, es %x\n", limit, rights, es);
    threads();
    __asm__ volatile("mov %%es, %0" : "=m"(es));
    printf("es still is %x\n", es);
    pid_t pid = fork();
    if (pid == 0) {
        by_gs("child", 1);
        CHECK(set(1, words + 9) == 0);
        by_gs("child", 1);
        _exit(0);
    }
    printf("child: %s\n", wait_text(pid));
    by_gs("its own", 1);
    struct user_desc none = {.entry_number = 1, .read_exec_only = 1, .seg_not_present = 1};
    CHECK(ldt(1, &none, sizeof none) == 0);
    show_table("one less");
    CHECK(syscall(SYS_modify_ldt, 0x11, &none, 3) == (unsigned)-EINVAL);
    CHECK(syscall(SYS_modify_ldt, 0x11, (void *)8, sizeof none) == (unsigned)-EFAULT);
    char table[64];
    int n = ldt(2, table, sizeof table);
    printf("default: %d\n", n);
    printf("unknown: %d\n", ldt(5, table, sizeof table) == -ENOSYS);
    return finish();
}
