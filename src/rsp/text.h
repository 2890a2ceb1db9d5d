/* Reading packets and writing replies: bounded, nothing trusted. */
#ifndef REPRISE_RSP_TEXT_H
#define REPRISE_RSP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of a packet. Every in_...() that fails leaves it as it was. */
struct in {
    const char *at, *end;
};

bool in_char(struct in *, char c);
bool in_word(struct in *, const char *word); /* the packet goes on with it */
bool in_hex(struct in *, uint64_t *value);   /* 1 to 16 digits, behind which none follows */
bool in_is_empty(const struct in *);
/* Up to `stop` or the end; not beyond it. */
struct in in_until(struct in *, char stop);
/* Pairs of digits, all that is left. Bytes, or -1: something else, or more than `cap`. */
long in_bytes(struct in *, void *to, size_t cap);
/* The same, as a text without a terminator inside, which it gets. */
bool in_text(struct in *, char *to, size_t cap);

/* Bytes that are gathered; never more than `most`, `full` says that something was left out. */
struct out {
    char *bytes;
    size_t len, cap, most;
    bool full;
};

void out_free(struct out *);
void out_clear(struct out *);
void out_bytes(struct out *, const void *, size_t n);
void out_str(struct out *, const char *);
void out_format(struct out *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_hex(struct out *, const void *, size_t n); /* two digits a byte */
/* With the escapes of binary replies. How many bytes had room. */
size_t out_binary(struct out *, const void *, size_t n);
/* For XML; what no XML can hold becomes a question mark. */
void out_xml(struct out *, const char *text);

#endif
