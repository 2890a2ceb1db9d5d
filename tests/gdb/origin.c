/* A number that is an argument, in a register and in memory. */
#include <stdlib.h>

static volatile int threshold = 100;
static int *volatile kept;

__attribute__((noinline)) static int scaled(const char *text) {
    int value = atoi(text) * 3;
    asm volatile("" : "+r"(value));
    if (value > threshold) *kept = value;
    return value;
}

int main(int argc, char **argv) { return scaled(argv[argc - 1]); }
