/* A program that places its memory itself, like valgrind: code far from everything else, and more and more memory right behind it. */
#include "guest.h"

#define BASE 0x1002000000ul
#define PIECE 0x400000ul

static const uint8_t add_one[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea 1(%rdi), %eax; ret */

int main(void) {
    int n = 0;
    for (unsigned long at = BASE; at < BASE + 64 * PIECE; at += PIECE) {
        void *got = mmap((void *)at, PIECE, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if (got != (void *)at) {
            printf("piece %lu: %s\n", (at - BASE) / PIECE, strerror(errno));
            return 1;
        }
        memcpy(got, add_one, sizeof add_one);
        n = ((int (*)(int))got)(n);
    }
    printf("%d pieces\n", n);
    return finish();
}
