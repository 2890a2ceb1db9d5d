/* Much code that is compiled far from everything, beside memory that comes after it: where translations lie depends on how they
 * were made and may be different at replay, but the program's memory is where it was. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define CODE (8ul << 20)
#define STEP (24ul << 20)
#define ROUNDS 40

/* add $i, %eax a few times, each in a block of its own; ret */
static size_t compile(uint8_t *at, uint32_t i) {
    uint8_t *p = at;
    *p++ = 0x89, *p++ = 0xf8; /* mov %edi, %eax */
    for (int k = 0; k < 16; k++) {
        *p++ = 0x05; /* add $i, %eax */
        memcpy(p, &i, 4), p += 4;
        *p++ = 0xeb, *p++ = 0x00; /* jmp behind */
    }
    *p++ = 0xc3;
    return (size_t)(p - at);
}

int main(void) {
    uint8_t *code = mmap(NULL, CODE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *next = code;
    uint32_t sum = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < 60; i++) {
            uint32_t (*f)(uint32_t);
            memcpy(&f, &next, sizeof f);
            next += (compile(next, i + round) + 15) & ~15ul;
            sum = f(sum);
        }
        uint8_t *more = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (more == MAP_FAILED) return perror("mmap"), 1;
        more[round] = (uint8_t)sum;
        sum += more[round] + (uint32_t)(more < code);
    }
    printf("%u\n", sum);
    return 0;
}
