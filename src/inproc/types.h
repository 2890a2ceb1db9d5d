/* Types that every part of the runtime shares. */
#ifndef REPRISE_TYPES_H
#define REPRISE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address of the program. Never a pointer of ours: cast it only where guest memory is really touched. */
typedef uint64_t gaddr;

#define PAGE_SIZE 4096ull
#define HUGE_PAGE (2ull << 20)
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define PAGE_DOWN(x) ((x)&PAGE_MASK)
#define PAGE_UP(x) (((x) + PAGE_SIZE - 1) & PAGE_MASK)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
