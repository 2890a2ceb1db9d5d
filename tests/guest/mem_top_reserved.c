/* All that is free at the upper end of the address space is taken, as by programs that want it for themselves (Wine). */
#include "guest.h"

#include <sched.h>
#include <sys/mman.h>

#define FROM 0x7ff000000000ul
#define END 0x7ffffffff000ul

static void reserve(unsigned long from, unsigned long to) {
    if (from >= to) return;
    void *p = mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    CHECK(p == (void *)from);
}

static int child(void *arg) {
    *(volatile int *)arg = 7;
    return 0;
}

static char stack[65536] __attribute__((aligned(16)));

int main(void) {
    static struct { unsigned long from, to; } taken[64];
    int n = 0, set = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    while (n < 64 && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx", &taken[n].from, &taken[n].to) == 2 && taken[n].to > FROM && taken[n].from < END)
            n++;
    fclose(f);
    unsigned long at = FROM;
    for (int i = 0; i < n; i++) {
        int is_stack = (unsigned long)&n >= taken[i].from && (unsigned long)&n < taken[i].to;
        reserve(at, taken[i].from - (is_stack ? 16 << 20 : 0)); /* it grows */
        at = taken[i].to;
    }
    reserve(at, END);
    /* a thread, but with the thread pointer of this one */
    int tid = clone(child, stack + sizeof stack,
                    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, &set);
    CHECK(tid > 0);
    while (!*(volatile int *)&set) usleep(1000);
    pid_t pid = fork();
    if (pid == 0) _exit(3);
    printf("%d %s\n", set, wait_text(pid));
    return finish();
}
