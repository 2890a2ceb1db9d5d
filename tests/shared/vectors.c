/* Vectors in a page for which processes contend: loads and stores of 16 and 32 bytes, aligned or not, cmpxchg16b, operands on two
 * pages, string instructions, and a semaphore that lies among them. What each process reads depends on the others. */
#include "shared.h"

#include <immintrin.h>

#define ROUNDS 400

struct pages {
    sem_t turns[2];
    _Alignas(64) unsigned char wide[256];
    _Alignas(16) unsigned __int128 counter;
    unsigned char rest[8192 - 640];
};

static struct pages *p;
static uint64_t hash;

static void saw(const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) hash = mix(hash, ((const unsigned char *)bytes)[i]);
}

__attribute__((target("cx16"))) static void add_wide(unsigned __int128 *to, uint64_t n) {
    unsigned __int128 seen = 0;
    for (;;) {
        uint64_t lo = (uint64_t)seen, hi = (uint64_t)(seen >> 64);
        unsigned __int128 next = seen + n;
        char done;
        __asm__ volatile("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*to), "+a"(lo), "+d"(hi)
                         : "b"((uint64_t)next), "c"((uint64_t)(next >> 64))
                         : "memory");
        if (done) return;
        seen = (unsigned __int128)hi << 64 | lo;
        saw(&seen, sizeof seen);
    }
}

static void sse(int i) {
    __m128i *at = (__m128i *)(p->wide + 16 * (i % 8)), v = _mm_load_si128(at);
    saw(&v, sizeof v);
    _mm_store_si128(at, _mm_add_epi32(v, _mm_set1_epi32(i)));
    v = _mm_loadu_si128((__m128i *)(p->wide + i % 200));
    saw(&v, sizeof v);
    _mm_storeu_si128((__m128i *)(p->wide + (i * 7) % 200), _mm_xor_si128(v, _mm_set1_epi8((char)i)));
    v = _mm_add_epi8(v, *at); /* with a memory operand */
    saw(&v, sizeof v);
}

__attribute__((target("avx2"))) static void avx(int i) {
    __m256i v = _mm256_loadu_si256((__m256i *)(p->wide + (i * 3) % 200));
    saw(&v, sizeof v);
    _mm256_storeu_si256((__m256i *)(p->wide + (i * 5) % 200), _mm256_add_epi16(v, _mm256_set1_epi16((short)i)));
    v = _mm256_cmpeq_epi8(v, _mm256_load_si256((__m256i *)p->wide));
    saw(&v, sizeof v);
    if (i % 50) return;
    unsigned char *across = (unsigned char *)p + 4096 - 13;
    v = _mm256_loadu_si256((__m256i *)across);
    saw(&v, sizeof v);
    _mm256_storeu_si256((__m256i *)across, _mm256_add_epi8(v, _mm256_set1_epi8(1)));
}

static void strings(int i) {
    unsigned char copy[96];
    void *to = copy, *from = p->wide;
    size_t n = sizeof copy;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
    saw(copy, sizeof copy);
    memset(p->wide + i % 100, i, 40);
}

static void work(int who) {
    for (int i = 0; i < ROUNDS; i++) {
        sse(i + who);
        if (__builtin_cpu_supports("avx2")) avx(i + who);
        add_wide(&p->counter, 1);
        if (i % 100 == 99) strings(i + who);
        if (who < 2) {
            sem_post(&p->turns[!who]);
            sem_wait(&p->turns[who]);
        }
    }
    printf("%d saw %016lx\n", who, hash);
}

int main(void) {
    p = share(sizeof *p);
    for (int i = 0; i < 2; i++) sem_init(&p->turns[i], 1, 0);
    in_children(3, work);
    printf("%d\n", p->counter == 3 * ROUNDS);
    return 0;
}
