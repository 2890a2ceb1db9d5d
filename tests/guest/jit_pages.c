/* A page of code that is written very often at first, and then executed for long without a change; and again. */
#include "guest.h"

static uint8_t *page;
static volatile int *data;

static int run(int v) { return ((int (*)(int))page)(v); }

static long write_and_run(int times) {
    long sum = 0;
    for (int i = 0; i < times; i++) {
        *data = i; /* beside the code */
        if (i % 16 == 0) page[4] = (uint8_t)(i / 16 % 100);
        sum += run(i & 0xff);
    }
    return sum;
}

static long only_run(int times) {
    long sum = 0;
    for (int i = 0; i < times; i++) sum += run(i & 0xff);
    return sum;
}

int main(void) {
    static const uint8_t code[] = {0x8d, 0x47, 0x07, /* lea 7(%rdi), %eax */
                                   0x04, 0x00,       /* add $0, %al */
                                   0xc3};
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data = (int *)(page + 2048);
    memcpy(page, code, sizeof code);
    for (int i = 0; i < 3; i++) {
        long written = write_and_run(100000);
        page[3] ^= 0x30; /* add, xor */
        printf("%ld %ld\n", written, only_run(300000));
    }
    return finish();
}
