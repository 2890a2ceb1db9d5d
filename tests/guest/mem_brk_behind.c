/* cflags: -fno-pie -no-pie
 * A program at a fixed place, executed again without random addresses, has its heap right behind its data. Pages of the heap that
 * have become code stay code when it grows. */
#include "guest.h"
#include <sys/personality.h>

extern char end[];

static void check_heap(void) {
    char *heap = sbrk(0);
    CHECK((uintptr_t)heap == (((uintptr_t)end + 4095) & ~4095ul));
    CHECK(sbrk(100 << 20) == heap);
    for (size_t i = 0; i < 100 << 20; i += 4096) CHECK(heap[i]++ == 0);
    CHECK(brk(heap + (1 << 20)) == 0 && sbrk(0) == heap + (1 << 20));

    memcpy(heap + 8192, "\xb8\x2a\0\0\0\xc3", 6); /* mov $42,%eax; ret */
    CHECK(mprotect(heap + 8192, 4096, PROT_READ | PROT_EXEC) == 0);
    CHECK(sbrk(1 << 20) == heap + (1 << 20));
    CHECK(((int (*)(void))(heap + 8192))() == 42);
    CHECK(heap[(1 << 20) - 4096] == 1 && heap[1 << 20] == 0);
}

int main(int argc, char **argv) {
    int now = personality(0xffffffff);
    if (argc == 1) {
        if (now < 0 || personality((unsigned)now | ADDR_NO_RANDOMIZE) < 0) return 77;
        execl("/proc/self/exe", argv[0], "again", NULL);
        return 1;
    }
    check_heap();
    return finish();
}
