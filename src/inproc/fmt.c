#include "inproc/fmt.h"

#include "inproc/str.h"
#include "inproc/sys.h"

struct out {
    char *buf;
    size_t cap, len;
};

static void put(struct out *o, char c) {
    if (o->len + 1 < o->cap) o->buf[o->len] = c;
    o->len++;
}

static void put_number(struct out *o, uint64_t v, unsigned base, bool negative, int width, char pad) {
    char digits[24];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    if (negative && pad == '0') put(o, '-');
    for (int i = n + negative; i < width; i++) put(o, pad);
    if (negative && pad != '0') put(o, '-');
    while (n) put(o, digits[--n]);
}

static void put_text(struct out *o, const char *s, int width) {
    if (!s) s = "(null)";
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) put(o, s[i]);
    for (int i = (int)n; i < width; i++) put(o, ' ');
}

size_t fmt_into_v(char *buf, size_t cap, const char *f, va_list ap) {
    struct out o = {buf, cap, 0};
    for (; *f; f++) {
        if (*f != '%') {
            put(&o, *f);
            continue;
        }
        f++;
        char pad = ' ';
        int width = 0;
        if (*f == '-') f++; /* text is always padded on the right */
        if (*f == '0') pad = '0', f++;
        while (*f >= '0' && *f <= '9') width = width * 10 + (*f++ - '0');
        bool wide = false;
        while (*f == 'l' || *f == 'z') wide = true, f++;
        switch (*f) {
        case 'd': {
            int64_t v = wide ? va_arg(ap, int64_t) : va_arg(ap, int);
            put_number(&o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, v < 0, width, pad);
            break;
        }
        case 'u': put_number(&o, wide ? va_arg(ap, uint64_t) : va_arg(ap, unsigned), 10, false, width, pad); break;
        case 'x': put_number(&o, wide ? va_arg(ap, uint64_t) : va_arg(ap, unsigned), 16, false, width, pad); break;
        case 'p':
            put_text(&o, "0x", 0);
            put_number(&o, (uintptr_t)va_arg(ap, void *), 16, false, width, pad);
            break;
        case 's': put_text(&o, va_arg(ap, const char *), width); break;
        case 'c': put(&o, (char)va_arg(ap, int)); break;
        case '\0': f--; break;
        default: put(&o, *f);
        }
    }
    if (cap) buf[MIN(o.len, cap - 1)] = '\0';
    return o.len;
}

size_t fmt_into(char *buf, size_t cap, const char *f, ...) {
    va_list ap;
    va_start(ap, f);
    size_t n = fmt_into_v(buf, cap, f, ap);
    va_end(ap);
    return n;
}

static void say_v(const char *f, va_list ap) {
    char line[1024];
    size_t n = fmt_into(line, sizeof line, "reprise: ");
    n += fmt_into_v(line + n, sizeof line - n, f, ap);
    n = MIN(n, sizeof line - 1);
    line[n++] = '\n';
    SYS(write, 2, line, n);
}

void say(const char *f, ...) {
    va_list ap;
    va_start(ap, f);
    say_v(f, ap);
    va_end(ap);
}

void die(const char *f, ...) {
    va_list ap;
    va_start(ap, f);
    say_v(f, ap);
    va_end(ap);
    for (;;) SYS(exit_group, 125);
}

void check_failed(const char *file, int line, const char *cond) {
    die("internal error at %s:%d: %s", file, line, cond);
}
