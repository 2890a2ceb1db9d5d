/* Huge pages without an address: given or not, as many as there are, but not refused for where they would be. */
#include "guest.h"

#define SIZE_2M (21u << 26) /* MAP_HUGE_2MB */
#define HUGE (2ul << 20)

static char *map(void *hint, size_t n, unsigned more) {
    return mmap(hint, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)more, -1, 0);
}

/* Most machines have none. */
static void try(const char *what, void *hint, size_t n, unsigned more) {
    char *p = map(hint, n, more);
    if (p == MAP_FAILED) {
        printf("%s: %s\n", what, errno == ENOMEM ? "fine" : strerror(errno));
        return;
    }
    CHECK((uintptr_t)p % HUGE == 0);
    p[0] = 1;
    p[HUGE - 1] = 2; /* as much as a page has, also when less was asked for */
    char *next = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    next[0] = next[HUGE - 1] = 7;
    CHECK(p[0] == 1 && p[HUGE - 1] == 2);
    CHECK(munmap(p, HUGE) == 0 && munmap(next, HUGE) == 0);
    printf("%s: fine\n", what);
}

static void refused(const char *what, char *p) {
    printf("%s: %s\n", what, p == MAP_FAILED ? strerror(errno) : "granted");
}

int main(void) {
    try("usual size", NULL, HUGE, 0);
    try("2 MB", NULL, HUGE, SIZE_2M);
    try("less than a page", NULL, 100, SIZE_2M);
    try("low", NULL, HUGE, SIZE_2M | MAP_32BIT);
    try("near an address", (void *)0x5000001000, HUGE, SIZE_2M);
    refused("no such size", map(NULL, HUGE, 13u << 26));
    refused("at an odd address", map((void *)0x5000001000, HUGE, SIZE_2M | MAP_FIXED));
    return finish();
}
