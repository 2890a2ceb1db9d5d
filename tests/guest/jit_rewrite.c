/* Code written, run, rewritten in place and run again, 100,000 times; whole functions and single bytes of them;
 * code that changes the very instruction that comes next. */
#include "guest.h"

static uint8_t *page;
static int run(void) { return ((int (*)(void))page)(); }
static void put_return(int v) { page[0] = 0xb8, memcpy(page + 1, &v, 4), page[5] = 0xc3; }

int main(void) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int i = 0; i < 100000; i++) put_return(i), sum += run();
    printf("whole: %ld\n", sum);
    sum = 0;
    for (int i = 0; i < 1000; i++) page[1] = i, sum += run() & 0xff;
    printf("one byte: %ld\n", sum);

    /* a long function whose tail changes */
    uint8_t *p = page;
    *p++ = 0x31, *p++ = 0xc0;                                          /* xor eax, eax */
    for (int i = 0; i < 2000; i++) *p++ = 0x83, *p++ = 0xc0, *p++ = 1; /* add eax, 1 */
    *p = 0xc3;
    printf("long: %d\n", run());
    for (int i = 0; i < 2000; i += 37) page[2 + 3 * i + 2] = 5;
    printf("patched: %d\n", run());

    /* the block writes into its own page: into the next instruction, behind it, and ahead of it */
    static const uint8_t self[] = {
        0xc6, 0x05, 0x01, 0x00, 0x00, 0x00, 0x07, /* movb $7, 1(%rip): the immediate of the next instruction */
        0xb8, 0x01, 0x00, 0x00, 0x00,             /* mov $1, %eax */
        0xc3,
    };
    memcpy(page, self, sizeof self);
    printf("next instruction: %d\n", run());
    page[8] = 1;
    printf("once more: %d\n", run());
    static const uint8_t loop[] = {
        0x31, 0xc0,                         /* xor %eax, %eax */
        0xb9, 0x64, 0x00, 0x00, 0x00,       /* mov $100, %ecx */
        0x83, 0xc0, 0x01,                   /* 1: add $1, %eax   (its immediate is changed below) */
        0xfe, 0x05, 0xf9, 0xff, 0xff, 0xff, /* incb -7(%rip): that immediate */
        0xff, 0xc9,                         /* dec %ecx */
        0x75, 0xf3,                         /* jne 1b */
        0xc3,
    };
    memcpy(page, loop, sizeof loop);
    printf("loop that rewrites itself: %d\n", run());

    /* data next to code in one page: written often, must not crawl */
    put_return(9);
    volatile int *data = (int *)(page + 2048);
    *data = 0;
    for (int i = 0; i < 20000; i++) *data += run();
    printf("data beside code: %d\n", *data);
    return finish();
}
