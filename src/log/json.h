/* JSON: reading the texts of a recording, which nobody vouches for, and writing ours.
 *
 * A text is checked once, whole, by json_parse(); then values are looked at in place, without memory of their own:
 *
 *     struct json top, command, word;
 *     if (json_parse(text, n, &top) && json_member(top, "command", &command))
 *         for (word = json_first(command); json_is(word); word = json_next(word)) ...
 */
#ifndef REPRISE_LOG_JSON_H
#define REPRISE_LOG_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    const char *at, *end; /* at == NULL: no value */
    const char *limit;    /* end of the whole text */
};

#define JSON_DEPTH 16

/* False: not one JSON value with nothing but white space around it, or nested deeper than JSON_DEPTH. */
bool json_parse(const char *text, size_t n, struct json *value);

static inline bool json_is(struct json v) { return v.at != NULL; }
/* The member of an object. False: no object, or no such member. */
bool json_member(struct json object, const char *key, struct json *value);
/* Elements of an array, or members' values of an object; no value behind the last one. */
struct json json_first(struct json array);
struct json json_next(struct json element);

/* False: of another type, or out of range; `out` is as it was then. */
bool json_u64(struct json, uint64_t *out);
bool json_i64(struct json, int64_t *out);
/* A string, decoded and terminated. Returns its length, also when that is `cap` or more and `out` was cut; -1: no string. */
long json_string(struct json, char *out, size_t cap);

/* Member of a certain type, for short. False: `out` is as it was. */
bool json_member_u64(struct json object, const char *key, uint64_t *out);
bool json_member_i64(struct json object, const char *key, int64_t *out);
bool json_member_string(struct json object, const char *key, char *out, size_t cap);

/* Writes a string with its quotes. Bytes that are no UTF-8 become lone surrogates U+DC80..U+DCFF, as in Python's
 * `surrogateescape`; json_string() turns them back. */
void json_write_string(FILE *to, const char *bytes, size_t n);

#endif
