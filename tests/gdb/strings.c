/* String instructions over several pages, between calls of `mark`: what is watched is in the middle of what they touch. */
#include <stdio.h>

static char area[20000], other[20000];
static int marks;

static void mark(void) { marks++; }

static void fill(int byte) {
    char *to = area;
    long n = sizeof area;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
    mark();
}

static void fill_down(int byte) {
    char *to = area + sizeof area - 1;
    long n = sizeof area;
    __asm__ volatile("std; rep stosb; cld" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
    mark();
}

static void copy(void) {
    char *to = other, *from = area;
    long n = sizeof area;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    mark();
}

static void look_for(int byte) {
    char *at = area;
    long n = sizeof area;
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(n) : "a"(byte) : "memory");
    mark();
}

/* The instruction is where a loop begins: no step is between it and a tick. */
static void fill_again(void) {
    char *to;
    long n, rounds = 3, byte = 30;
    __asm__ volatile("mov %4, %0; mov %5, %1; 1: rep stosb; mov %4, %0; mov %5, %1; inc %3; dec %2; jnz 1b"
                     : "=&D"(to), "=&c"(n), "+r"(rounds), "+a"(byte)
                     : "r"(area), "r"(sizeof area)
                     : "memory");
    mark();
}

int main(void) {
    fill(1);
    fill(1);
    copy();
    fill_down(2);
    look_for(9);
    look_for(2);
    fill_again();
    printf("%d %d\n", area[9000], other[9000]);
    return 0;
}
