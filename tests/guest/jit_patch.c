/* Code that is patched by small stores, as compilers do that link their calls late: of all widths, at the edges of what is
 * translated together, across two pages, beside data that is written all the time, by one thread and by two. Each patch is seen
 * at once, by the thread that made it, and by another one that was told of it; what was not patched goes on as it was. */
#include "guest.h"
#include <emmintrin.h>

enum { SLOT = 64, FUNCTIONS = 20, ROUNDS = 30 };

static int call(const uint8_t *f) { return ((int (*)(void))f)(); }

/* A function that returns v. */
static void put_return(uint8_t *f, int v) { f[0] = 0xb8, memcpy(f + 1, &v, 4), f[5] = 0xc3, f[6] = f[7] = 0x90; }

/* mov $v, %eax; inc %eax; call other; ret */
static void put_caller(uint8_t *f, const uint8_t *other) {
    put_return(f, 7);
    f[5] = 0xff, f[6] = 0xc0;
    int32_t to = other - (f + 12);
    f[7] = 0xe8, memcpy(f + 8, &to, 4), f[12] = 0xc3;
}

/* Two pages with functions that call each other: fresh ones, because those that are patched often are treated in another way. */
static uint8_t *make_pages(void) {
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i <= FUNCTIONS; i++) {
        put_return(pages + i * SLOT, i);
        put_return(pages + 4096 + i * SLOT, i);
    }
    for (int i = 2; i <= FUNCTIONS; i += 3) put_caller(pages + i * SLOT, pages + (i - 1) * SLOT);
    return pages;
}

static int sum_of_others(const uint8_t *page) {
    int sum = 0;
    for (int i = 1; i <= FUNCTIONS; i++) sum += call(page + i * SLOT);
    return sum;
}

static void patch(uint8_t *at, uint64_t v, int width) {
    switch (width) {
    case 1: *(volatile uint8_t *)at = v; break;
    case 2: __asm__ volatile("movw %1, %0" : "=m"(*(uint16_t *)at) : "r"((uint16_t)v)); break;
    case 4: __asm__ volatile("movl %1, %0" : "=m"(*(uint32_t *)at) : "r"((uint32_t)v)); break;
    case 8: __asm__ volatile("movq %1, %0" : "=m"(*(uint64_t *)at) : "r"(v)); break;
    case 16: { /* what is behind the eight bytes stays */
        __m128i all = _mm_loadu_si128((void *)at);
        memcpy(&all, &v, 8);
        _mm_storeu_si128((void *)at, all);
        break;
    }
    case 104: __asm__ volatile("xchgl %1, %0" : "+m"(*(uint32_t *)at) : "r"((uint32_t)v)); break;
    case 108: {
        uint64_t was = *(uint64_t *)at;
        __asm__ volatile("lock cmpxchgq %2, %0" : "+m"(*(uint64_t *)at), "+a"(was) : "r"(v) : "cc");
        break;
    }
    case 208: __asm__ volatile("rep movsb" : "+D"(at) : "S"(&v), "c"(8L) : "memory"); break;
    }
}

/* The function at f, patched to return v with a store of a width: of its immediate or of all of it. */
static void patch_return(uint8_t *f, int v, int width) {
    uint64_t all = 0x9090c300000000b8ull | (uint64_t)(uint32_t)v << 8;
    if (width % 100 >= 8)
        patch(f, all, width);
    else
        patch(f + 1, (uint32_t)v, width);
}

/* A function at an offset, and others that are on the page at another offset. */
static void widths(int at, int beside, const char *what) {
    static const int width[] = {1, 2, 4, 8, 16, 104, 108, 208};
    int wrong = 0;
    for (size_t w = 0; w < sizeof width / sizeof *width; w++) {
        uint8_t *pages = make_pages(), *f = pages + at, *page = pages + beside;
        int others = sum_of_others(page);
        put_return(f, 0);
        for (int i = 0; i < ROUNDS; i++) {
            int v = width[w] == 1 ? i : 100 * i + 1;
            patch_return(f, v, width[w]);
            wrong += call(f) != v;
            if (i % 4 == 0) wrong += sum_of_others(page) != others;
        }
        munmap(pages, 8192);
    }
    printf("%s: %d wrong\n", what, wrong);
}

/* The first byte of a block, its last one, the bytes around it, the target of its call. */
static void edges(uint8_t *page) {
    uint8_t *f = page + 30 * SLOT, *two = page + 31 * SLOT, *three = page + 32 * SLOT;
    int wrong = 0;
    put_return(two, 2), put_return(three, 3);
    put_caller(f, two);
    for (int i = 0; i < ROUNDS; i++) {
        f[-1] = i; /* in front of it */
        wrong += call(f) != 2;
        f[13] = i; /* behind it */
        wrong += call(f) != 2;
        patch(f + 8, (uint32_t)(three - (f + 12)), 4);
        wrong += call(f) != 3;
        patch(f + 7, 0x90, 1); /* nop, and four bytes that are one: no call */
        patch(f + 8, 0x00401f0f, 4);
        wrong += call(f) != 8;
        f[0] = 0xb9; /* to ecx, for eax */
        call(f);
        f[0] = 0xb8;
        f[12] = 0xcc, f[12] = 0xc3;
        wrong += call(f) != 8;
        put_caller(f, two);
    }
    printf("edges: %d wrong\n", wrong);
}

/* Flags go through a call: what is called first ignores them, then does not. The caller stays the same, byte for byte. */
static void flags(uint8_t *page) {
    static const uint8_t caller[] = {
        0x39, 0xf7,             /* cmp %esi, %edi */
        0xe8, 1,    0,    0, 0, /* call 1f */
        0xc3,                   /* ret */
        0x85, 0xff,             /* 1: test %edi, %edi */
        0x0f, 0x94, 0xc0,       /* sete %al */
        0x0f, 0xb6, 0xc0,       /* movzbl %al, %eax */
        0xc3,
    };
    uint8_t *f = page + 40 * SLOT;
    int (*equal)(int, int) = (int (*)(int, int))f;
    int wrong = 0;
    memcpy(f, caller, sizeof caller);
    for (int i = 0; i < ROUNDS; i++) {
        patch(f + 8, 0xff85, 2);
        for (int k = 0; k < 3; k++) wrong += equal(5, 5) != 0, wrong += equal(0, 1) != 1;
        patch(f + 8, 0x9066, 2); /* nop */
        for (int k = 0; k < 3; k++) wrong += equal(5, 5) != 1, wrong += equal(0, 1) != 0;
    }
    printf("flags: %d wrong\n", wrong);
}

/* ---- two threads in one page ---- */

static volatile uint32_t told, seen, stop;

static void serialize(void) { __asm__ volatile("cpuid" ::"a"(0) : "rbx", "rcx", "rdx", "memory"); }

static void *listen(void *page) {
    uint8_t *f = (uint8_t *)page + 50 * SLOT, *own = (uint8_t *)page + 52 * SLOT;
    uint64_t *data = (uint64_t *)((uint8_t *)page + 60 * SLOT);
    long wrong = 0;
    for (int i = 0; !stop; i++) {
        uint32_t now = told;
        serialize();
        int v = call(f); /* this or, if it was patched meanwhile, a later one */
        wrong += (uint32_t)v < now || (uint32_t)v > told + 1;
        seen = now;
        patch_return(own, i, i % 2 ? 4 : 8);
        wrong += call(own) != i;
        __atomic_add_fetch(data, 1, __ATOMIC_SEQ_CST);
        if (i % 16 == 0) sched_yield();
    }
    return (void *)wrong;
}

static void two_threads(uint8_t *page) {
    uint8_t *f = page + 50 * SLOT;
    uint64_t *data = (uint64_t *)(page + 60 * SLOT), before = *data;
    long wrong = 0;
    void *theirs;
    pthread_t t;
    told = seen = stop = 0;
    put_return(f, 0), put_return(page + 52 * SLOT, 0);
    int others = sum_of_others(page);
    pthread_create(&t, NULL, listen, page);
    for (uint32_t i = 1; i <= 20 * ROUNDS; i++) {
        uint64_t all = 0x9090c300000000b8ull | (uint64_t)i << 8;
        __atomic_store_n((uint64_t *)f, all, __ATOMIC_SEQ_CST);
        wrong += (uint32_t)call(f) != i;
        told = i;
        if (i % 8 == 0) wrong += sum_of_others(page) != others;
        if (i % 64 == 0)
            while (seen != i) sched_yield();
    }
    stop = 1;
    pthread_join(t, &theirs);
    printf("two threads: %ld and %ld wrong, data %s\n", wrong, (long)theirs, *data > before ? "changed" : "stayed");
}

int main(void) {
    widths(25 * SLOT, 0, "within a page");
    widths(4096 - 3, 0, "across two pages");
    widths(4096 - 3, 4096, "across two pages, beside the second");
    widths(4096, 0, "at the second page");
    edges(make_pages());
    flags(make_pages());
    for (int i = 0; i < 5; i++) two_threads(make_pages());
    return finish();
}
