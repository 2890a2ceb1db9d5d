/* JSON, see json.h. */
#include "log/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at p, or 0: none that JSON may hold. */
static int utf8_length(const unsigned char *p, size_t n) {
    int k = p[0] < 0x80                   ? 1
            : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
            : (p[0] & 0xf0) == 0xe0       ? 3
            : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                          : 0;
    if (!k || (size_t)k > n) return 0;
    for (int i = 1; i < k; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;  /* overlong */
    if (p[0] == 0xed && p[1] >= 0xa0) return 0; /* surrogates */
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] >= 0x90) return 0; /* beyond U+10FFFF */
    return k;
}

/* ---- checking: each function returns where its value ends, or NULL ---- */

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static const char *check_string(const char *p, const char *end) {
    int k;
    for (p++; p < end; p += k) {
        if (*p == '"') return p + 1;
        k = utf8_length((const unsigned char *)p, (size_t)(end - p));
        if (k == 0 || (unsigned char)*p < 0x20) return NULL;
        if (*p != '\\') continue;
        if (++p >= end) return NULL;
        if (*p == 'u') {
            if (end - p < 5) return NULL;
            for (int i = 1; i <= 4; i++)
                if (hex_digit(p[i]) < 0) return NULL;
            p += 4;
        } else if (!strchr("\"\\/bfnrt", *p) || !*p) {
            return NULL;
        }
    }
    return NULL;
}

static const char *check_digits(const char *p, const char *end) {
    const char *from = p;
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p == from ? NULL : p;
}

static const char *check_number(const char *p, const char *end) {
    if (p < end && *p == '-') p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = check_digits(p, end)))
        return NULL;
    if (p < end && *p == '.' && !(p = check_digits(p + 1, end))) return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        p = check_digits(p, end);
    }
    return p;
}

static const char *check_word(const char *p, const char *end, const char *word) {
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *check_value(const char *p, const char *end, int depth);

static const char *check_container(const char *p, const char *end, int depth) {
    char close = *p == '{' ? '}' : ']';
    p = skip_space(p + 1, end);
    if (p < end && *p == close) return p + 1;
    while (p < end) {
        if (close == '}') {
            if (*p != '"' || !(p = check_string(p, end))) return NULL;
            p = skip_space(p, end);
            if (p >= end || *p != ':') return NULL;
            p = skip_space(p + 1, end);
        }
        if (!(p = check_value(p, end, depth + 1))) return NULL;
        p = skip_space(p, end);
        if (p >= end) return NULL;
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
        p = skip_space(p + 1, end);
    }
    return NULL;
}

static const char *check_value(const char *p, const char *end, int depth) {
    if (p >= end || depth > JSON_DEPTH) return NULL;
    switch (*p) {
    case '{':
    case '[': return check_container(p, end, depth);
    case '"': return check_string(p, end);
    case 't': return check_word(p, end, "true");
    case 'f': return check_word(p, end, "false");
    case 'n': return check_word(p, end, "null");
    default: return check_number(p, end);
    }
}

bool json_parse(const char *text, size_t n, struct json *value) {
    const char *end = text + n, *from = skip_space(text, end);
    const char *to = check_value(from, end, 0);
    if (!to || skip_space(to, end) != end) return false;
    *value = (struct json){from, to, end};
    return true;
}

/* ---- looking: the text is known to be right, so the checks only find ends ---- */

static const struct json nothing;

static struct json value_at(const char *p, const char *limit) {
    const char *to = check_value(p, limit, 0);
    return to ? (struct json){p, to, limit} : nothing;
}

/* Skips `"key" :` of a member. */
static const char *behind_key(const char *p, const char *end) {
    if (p >= end || *p != '"' || !(p = check_string(p, end))) return NULL;
    p = skip_space(p, end);
    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

static bool is_object(struct json v) { return v.at && *v.at == '{'; }

bool json_member(struct json object, const char *key, struct json *value) {
    if (!is_object(object)) return false;
    size_t n = strlen(key);
    const char *p = skip_space(object.at + 1, object.end);
    while (p < object.end && *p == '"') {
        const char *name = p + 1;
        if (!(p = behind_key(p, object.end))) return false;
        struct json v = value_at(p, object.limit);
        if (!json_is(v)) return false;
        if ((size_t)(object.end - name) > n && memcmp(name, key, n) == 0 && name[n] == '"') {
            *value = v;
            return true;
        }
        p = skip_space(v.end, object.end);
        if (p < object.end && *p == ',') p = skip_space(p + 1, object.end);
    }
    return false;
}

struct json json_first(struct json array) {
    if (!json_is(array) || (*array.at != '[' && *array.at != '{')) return nothing;
    const char *p = skip_space(array.at + 1, array.end);
    if (*p == ']' || *p == '}') return nothing;
    if (is_object(array) && !(p = behind_key(p, array.end))) return nothing;
    return value_at(p, array.limit);
}

struct json json_next(struct json element) {
    if (!json_is(element)) return nothing;
    const char *p = skip_space(element.end, element.limit);
    if (p >= element.limit || *p != ',') return nothing;
    p = skip_space(p + 1, element.limit);
    const char *value = behind_key(p, element.limit); /* none in an array */
    return value_at(value ? value : p, element.limit);
}

/* ---- values ---- */

bool json_u64(struct json v, uint64_t *out) {
    char text[24];
    size_t n = json_is(v) ? (size_t)(v.end - v.at) : 0;
    if (n == 0 || n >= sizeof text || *v.at < '0' || *v.at > '9') return false;
    memcpy(text, v.at, n);
    text[n] = '\0';
    char *stop;
    errno = 0;
    unsigned long long x = strtoull(text, &stop, 10);
    if (errno || *stop) return false;
    *out = x;
    return true;
}

bool json_i64(struct json v, int64_t *out) {
    char text[24];
    size_t n = json_is(v) ? (size_t)(v.end - v.at) : 0;
    if (n == 0 || n >= sizeof text || (*v.at != '-' && (*v.at < '0' || *v.at > '9'))) return false;
    memcpy(text, v.at, n);
    text[n] = '\0';
    char *stop;
    errno = 0;
    long long x = strtoll(text, &stop, 10);
    if (errno || *stop) return false;
    *out = x;
    return true;
}

static unsigned read_u(const char *p) {
    unsigned x = 0;
    for (int i = 0; i < 4; i++) x = x << 4 | (unsigned)hex_digit(p[i]);
    return x;
}

/* UTF-8 of a code point; a lone surrogate that stands for a byte becomes that byte. */
static int put_utf8(unsigned c, char *b) {
    if (c >= 0xdc80 && c <= 0xdcff) {
        b[0] = (char)(c - 0xdc00);
        return 1;
    }
    if (c < 0x80) {
        b[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        b[0] = (char)(0xc0 | c >> 6);
        b[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        b[0] = (char)(0xe0 | c >> 12);
        b[1] = (char)(0x80 | (c >> 6 & 63));
        b[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    b[0] = (char)(0xf0 | c >> 18);
    b[1] = (char)(0x80 | (c >> 12 & 63));
    b[2] = (char)(0x80 | (c >> 6 & 63));
    b[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* One character of a string, escapes resolved, into b; moves *p behind it. */
static int next_char(const char **p, const char *end, char *b) {
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (**p != '\\') {
        b[0] = *(*p)++;
        return 1;
    }
    char c = (*p)[1];
    if (c != 'u') {
        b[0] = meant[strchr(escapes, c) - escapes];
        *p += 2;
        return 1;
    }
    unsigned x = read_u(*p + 2);
    *p += 6;
    bool high = x >= 0xd800 && x < 0xdc00;
    if (high && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        unsigned low = read_u(*p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            x = 0x10000 + ((x - 0xd800) << 10) + (low - 0xdc00);
            *p += 6;
        }
    }
    return put_utf8(x, b);
}

long json_string(struct json v, char *out, size_t cap) {
    if (!json_is(v) || *v.at != '"') return -1;
    const char *p = v.at + 1, *end = v.end - 1;
    size_t n = 0;
    while (p < end) {
        char b[4];
        int k = next_char(&p, end, b);
        for (int i = 0; i < k; i++, n++)
            if (n + 1 < cap) out[n] = b[i];
    }
    if (cap) out[n < cap ? n : cap - 1] = '\0';
    return (long)n;
}

bool json_member_u64(struct json object, const char *key, uint64_t *out) {
    struct json v;
    return json_member(object, key, &v) && json_u64(v, out);
}

bool json_member_i64(struct json object, const char *key, int64_t *out) {
    struct json v;
    return json_member(object, key, &v) && json_i64(v, out);
}

bool json_member_string(struct json object, const char *key, char *out, size_t cap) {
    struct json v;
    return json_member(object, key, &v) && json_string(v, out, cap) >= 0;
}

/* ---- writing ---- */

void json_write_string(FILE *to, const char *bytes, size_t n) {
    const unsigned char *p = (const unsigned char *)bytes, *end = p + n;
    putc('"', to);
    while (p < end) {
        int k = utf8_length(p, (size_t)(end - p));
        if (k == 0)
            fprintf(to, "\\u%04x", 0xdc00 + *p);
        else if (k == 1 && (*p == '"' || *p == '\\'))
            fprintf(to, "\\%c", *p);
        else if (k == 1 && (*p < 0x20 || *p == 0x7f))
            fprintf(to, "\\u%04x", *p);
        else
            fwrite(p, 1, (size_t)k, to);
        p += k ? k : 1;
    }
    putc('"', to);
}
