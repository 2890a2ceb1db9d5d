/* Loops at the very end of the memory that holds them, as LuaJIT's first ones are: closed by a conditional jump, by an indirect one, and by
 * a call. Threads take turns at any of their rounds, so the instruction that closes the loop is looked at. */
#include "guest.h"

enum { ROUNDS = 2000000, THREADS = 3 };

static uint8_t *end; /* nothing is mapped here */
static long (*loops[3])(long rounds);

static void *put(const uint8_t *code, size_t n) { return memcpy(end -= n, code, n); }

static uint8_t *page(void) {
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    return p + 4096;
}

static void make(void) {
    static const uint8_t direct[] = {
        0x31, 0xc0, /* xor %eax, %eax */
        0xff, 0xc0, /* 1: inc %eax */
        0x39, 0xf8, /* cmp %edi, %eax */
        0x7c, 0xfa, /* jl 1b */
        0xc3,       /* ret */
    };
    static const uint8_t indirect[] = {
        0x31, 0xc0,                      /* xor %eax, %eax */
        0x48, 0x8d, 0x15, 0x06, 0, 0, 0, /* lea 1f(%rip), %rdx */
        0x48, 0x85, 0xd2,                /* test %rdx, %rdx */
        0x75, 0x01,                      /* jne 1f */
        0xc3,                            /* 2: ret */
        0xff, 0xc0,                      /* 1: inc %eax */
        0x39, 0xf8,                      /* cmp %edi, %eax */
        0x7d, 0xf9,                      /* jge 2b */
        0xff, 0xe2,                      /* jmp *%rdx */
    };
    static const uint8_t called[] = {
        0x31, 0xc0,          /* xor %eax, %eax */
        0xe8, 1,    0, 0, 0, /* 1: call 2f */
        0xc3,                /* ret */
        0xff, 0xc0,          /* 2: inc %eax */
        0x39, 0xf8,          /* cmp %edi, %eax */
        0x74, 0x03,          /* je 3f */
        0x59,                /* pop %rcx */
        0xeb, 0xf1,          /* jmp 1b */
        0xc3,                /* 3: ret */
    };
    end = page(), loops[0] = put(direct, sizeof direct);
    end = page(), loops[1] = put(indirect, sizeof indirect);
    end = page(), loops[2] = put(called, sizeof called);
}

static void *run(void *arg) {
    long sum = 0;
    for (int i = 0; i < 3; i++) sum += loops[i](ROUNDS);
    return (void *)sum;
}

int main(void) {
    make();
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, run, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(t[i], &sum);
        CHECK((long)sum == 3 * ROUNDS);
    }
    return finish();
}
