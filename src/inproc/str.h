/* The few string functions a freestanding program needs (gcc calls the mem* ones by itself). */
#ifndef REPRISE_STR_H
#define REPRISE_STR_H

#include "inproc/types.h"

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
bool str_starts(const char *s, const char *prefix);
/* A hexadecimal number in small letters at *s, which is moved behind it. */
uint64_t read_hex(const char **s);

/* -ffreestanding turns builtins off: without these, copies of a few known bytes would be calls. */
#define memcpy(to, from, n) __builtin_memcpy(to, from, n)
#define memset(to, byte, n) __builtin_memset(to, byte, n)
#define memcmp(a, b, n) __builtin_memcmp(a, b, n)
#define strlen(s) __builtin_strlen(s)

#endif
