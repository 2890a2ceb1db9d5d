/* Reading packets and writing replies. */
#include "rsp/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- packets ---- */

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool in_char(struct in *in, char c) {
    if (in->at == in->end || *in->at != c) return false;
    in->at++;
    return true;
}

bool in_word(struct in *in, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(in->end - in->at) < n || memcmp(in->at, word, n) != 0) return false;
    in->at += n;
    return true;
}

bool in_hex(struct in *in, uint64_t *value) {
    uint64_t v = 0;
    const char *p = in->at;
    for (; p < in->end && digit(*p) >= 0; p++) {
        if (v >> 60) return false;
        v = v << 4 | (uint64_t)digit(*p);
    }
    if (p == in->at) return false;
    in->at = p;
    *value = v;
    return true;
}

bool in_is_empty(const struct in *in) { return in->at == in->end; }

struct in in_until(struct in *in, char stop) {
    const char *p = memchr(in->at, stop, (size_t)(in->end - in->at));
    struct in part = {in->at, p ? p : in->end};
    in->at = part.end;
    return part;
}

long in_bytes(struct in *in, void *to, size_t cap) {
    size_t n = (size_t)(in->end - in->at);
    uint8_t *byte = to;
    if (n % 2 || n / 2 > cap) return -1;
    for (const char *p = in->at; p < in->end; p += 2) {
        int high = digit(p[0]), low = digit(p[1]);
        if (high < 0 || low < 0) return -1;
        *byte++ = (uint8_t)(high << 4 | low);
    }
    in->at = in->end;
    return (long)(n / 2);
}

bool in_text(struct in *in, char *to, size_t cap) {
    struct in before = *in;
    long n = in_bytes(in, to, cap - 1);
    if (n < 0 || memchr(to, '\0', (size_t)n)) {
        *in = before;
        return false;
    }
    to[n] = '\0';
    return true;
}

/* ---- replies ---- */

void out_free(struct out *o) {
    free(o->bytes);
    *o = (struct out){.most = o->most};
}

void out_clear(struct out *o) {
    o->len = 0;
    o->full = false;
}

static bool has_room(struct out *o, size_t n) {
    if (n <= o->cap - o->len) return true;
    size_t want = o->len + n, cap = o->cap ? o->cap : 1024;
    if (want < n || want > o->most) return false;
    while (cap < want) cap *= 2;
    if (cap > o->most) cap = o->most;
    char *bytes = realloc(o->bytes, cap);
    if (!bytes) return false;
    o->bytes = bytes;
    o->cap = cap;
    return true;
}

void out_bytes(struct out *o, const void *bytes, size_t n) {
    if (!n) return;
    if (!has_room(o, n)) {
        o->full = true;
        return;
    }
    memcpy(o->bytes + o->len, bytes, n);
    o->len += n;
}

void out_str(struct out *o, const char *s) { out_bytes(o, s, strlen(s)); }

void out_format(struct out *o, const char *format, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n >= sizeof text) {
        o->full = true;
        n = sizeof text - 1;
    }
    out_bytes(o, text, (size_t)n);
}

void out_hex(struct out *o, const void *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t *byte = bytes;
    if (!n) return;
    if (n > o->most || !has_room(o, 2 * n)) {
        o->full = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        o->bytes[o->len++] = digits[byte[i] >> 4];
        o->bytes[o->len++] = digits[byte[i] & 15];
    }
}

size_t out_binary(struct out *o, const void *bytes, size_t n) {
    const char *byte = bytes;
    for (size_t i = 0; i < n; i++) {
        char c = byte[i];
        bool escape = c == '}' || c == '#' || c == '$' || c == '*';
        if (!has_room(o, escape ? 2 : 1)) return i;
        if (escape) o->bytes[o->len++] = '}';
        o->bytes[o->len++] = (char)(escape ? c ^ 0x20 : c);
    }
    return n;
}

void out_xml(struct out *o, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            out_str(o, "&lt;");
        else if (c == '>')
            out_str(o, "&gt;");
        else if (c == '&')
            out_str(o, "&amp;");
        else if (c == '"')
            out_str(o, "&quot;");
        else if (c < ' ' || c > '~')
            out_str(o, "?");
        else
            out_bytes(o, text, 1);
    }
}
