/* Memory at a fixed place that comes, goes, and is replaced. */
#include <sys/mman.h>

#define PLACE ((char *)0x200000000)

static volatile char *const p = PLACE;

static void map(void) { mmap(PLACE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); }

int main(void) {
    map();
    *p = 'a';
    map();
    *p = 'b';
    madvise(PLACE, 4096, MADV_DONTNEED);
    *p = 'c';
    mprotect(PLACE, 4096, PROT_NONE);
    munmap(PLACE, 4096);
    map();
    for (int i = 0; i < 40; i++) *p = (char)('d' + i);
    munmap(PLACE, 4096);
    map();
    return *p;
}
