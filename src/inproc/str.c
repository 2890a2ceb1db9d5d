/* Freestanding string functions. `rep movsb/stosb` are fast on every CPU of the last decade. */
#include "inproc/str.h"

void *memcpy(void *to, const void *from, size_t n) {
    void *ret = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return ret;
}

void *memmove(void *to, const void *from, size_t n) {
    if ((uintptr_t)to - (uintptr_t)from >= n) return memcpy(to, from, n);
    unsigned char *d = to;
    const unsigned char *s = from;
    while (n >= 8) {
        n -= 8;
        uint64_t w;
        __builtin_memcpy(&w, s + n, 8);
        __builtin_memcpy(d + n, &w, 8);
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
    for (size_t i = 0; i < n; i++)
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
