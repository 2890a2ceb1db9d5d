/* Freestanding string functions. `rep movsb/stosb` are fast on every CPU of the last decade. */
#include "inproc/str.h"

#undef memcpy
#undef memset
#undef memcmp
#undef strlen

typedef uint64_t word __attribute__((may_alias, aligned(1)));

void *memcpy(void *to, const void *from, size_t n) {
    void *ret = to;
    if (n >= 8 && n <= 64) { /* starting a `rep` costs more than these */
        const char *s = from;
        char *d = to;
        word last = *(const word *)(s + n - 8);
        for (size_t i = 0; i + 8 < n; i += 8) *(word *)(d + i) = *(const word *)(s + i);
        *(word *)(d + n - 8) = last;
        return ret;
    }
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return ret;
}

void *memmove(void *to, const void *from, size_t n) {
    if ((uintptr_t)to - (uintptr_t)from >= n) return memcpy(to, from, n);
    unsigned char *d = to;
    const unsigned char *s = from;
    while (n >= 8) {
        n -= 8;
        *(word *)(d + n) = *(const word *)(s + n);
    }
    while (n--) d[n] = s[n];
    return to;
}

void *memset(void *to, int byte, size_t n) {
    void *ret = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
    return ret;
}

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *p = a, *q = b;
    size_t i = 0;
    while (i + 8 <= n && *(const word *)(p + i) == *(const word *)(q + i)) i += 8;
    for (; i < n; i++)
        if (p[i] != q[i]) return p[i] - q[i];
    return 0;
}

size_t strlen(const char *s) {
    const char *p = s;
    while (*p) p++;
    return (size_t)(p - s);
}

int strcmp(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}

int strncmp(const char *a, const char *b, size_t n) {
    for (; n; n--, a++, b++) {
        if (*a != *b) return (unsigned char)*a - (unsigned char)*b;
        if (!*a) return 0;
    }
    return 0;
}

char *strchr(const char *s, int c) {
    for (;; s++) {
        if (*s == (char)c) return (char *)s;
        if (!*s) return NULL;
    }
}

char *strrchr(const char *s, int c) {
    const char *last = NULL;
    for (;; s++) {
        if (*s == (char)c) last = s;
        if (!*s) return (char *)last;
    }
}

bool str_starts(const char *s, const char *prefix) { return strncmp(s, prefix, strlen(prefix)) == 0; }

uint64_t read_hex(const char **s) {
    uint64_t v = 0;
    for (;; (*s)++) {
        char c = **s;
        if (c >= '0' && c <= '9')
            v = v * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (uint64_t)(c - 'a') + 10;
        else
            return v;
    }
}
