/* mincore fails at a hole, having said what it knows of the pages before it. */
#define _GNU_SOURCE
#include "guest.h"

#include <sys/mman.h>

int main(void) {
    unsigned char there[4] = {7, 7, 7, 7};
    char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    p[0] = 1;
    CHECK(munmap(p + 2 * 4096, 4096) == 0);
    CHECK(mincore(p, 4 * 4096, there) == -1 && errno == ENOMEM);
    printf("%d %d %d %d\n", there[0], there[1], there[2], there[3]);
    return finish();
}
