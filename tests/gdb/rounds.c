/* Tight loops, of which a translation holds several rounds: breakpoints anywhere in them are hit in each. */
#include <stdio.h>

static char from[64] = "what is copied byte by byte", to[64];

int main(void) {
    long n = 0, sum = 0;
    __asm__ volatile("one_head: add $1, %0\n"
                     "cmp $20, %0\n"
                     "one_last: jne one_head\n"
                     : "+r"(n)
                     :
                     : "cc");
    const char *s = from;
    char *d = to;
    __asm__ volatile("nop\n" /* its head is in the middle of a block at first */
                     "two_head: mov (%0), %%al\n"
                     "two_middle: mov %%al, (%1)\n"
                     "add $1, %0\n"
                     "add $1, %1\n"
                     "test %%al, %%al\n"
                     "jnz two_head\n"
                     : "+r"(s), "+r"(d)
                     :
                     : "rax", "cc", "memory");
    for (long i = 0; i < 6; i++)
        __asm__ volatile("mov %1, %%rcx\n"
                         "three_head: add %%rcx, %0\n"
                         "sub $1, %%rcx\n"
                         "jns three_head\n"
                         : "+r"(sum)
                         : "r"(i)
                         : "rcx", "cc");
    printf("%ld %s %ld\n", n, to, sum);
}
