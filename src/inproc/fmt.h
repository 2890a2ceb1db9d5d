/* Formatting and messages without libc.
 * Conversions: %d %u %x (with l for 64 bit), %p, %s, %c, %%; a width with or without leading 0 is honoured. */
#ifndef REPRISE_FMT_H
#define REPRISE_FMT_H

#include <stdarg.h>

#include "inproc/types.h"

/* Both return the length that the whole text has, as snprintf does; the buffer always ends in NUL. */
size_t fmt_into(char *buf, size_t cap, const char *f, ...) __attribute__((format(printf, 3, 4)));
size_t fmt_into_v(char *buf, size_t cap, const char *f, va_list ap);

/* One line on stderr, "reprise: " in front and a newline behind, in one write. */
void say(const char *f, ...) __attribute__((format(printf, 1, 2)));

/* say() and leave with Reprise's own failure status (125). */
void die(const char *f, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Always on, in release too. */
#define CHECK(cond)                                                     \
    do {                                                                \
        if (unlikely(!(cond))) check_failed(__FILE__, __LINE__, #cond); \
    } while (0)
void check_failed(const char *file, int line, const char *cond) __attribute__((noreturn));

#endif
