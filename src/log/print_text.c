#include "log/print_text.h"

#include <string.h>
#include <sys/wait.h>

#include "log/json.h"

static void print_char(FILE *to, unsigned char c) {
    switch (c) {
    case '\n': fputs("\\n", to); break;
    case '\t': fputs("\\t", to); break;
    case '\r': fputs("\\r", to); break;
    case '\\': fputs("\\\\", to); break;
    default:
        if (c < 0x20 || c >= 0x7f)
            fprintf(to, "\\x%02x", c);
        else
            putc(c, to);
    }
}

/* UTF-8 of two to four bytes that is no control character; 0: none. */
static size_t harmless_sequence(const unsigned char *p, size_t n) {
    size_t k = p[0] >= 0xc3 && p[0] < 0xe0 ? 2 : p[0] > 0xe0 && p[0] < 0xf0 ? 3 : p[0] > 0xf0 && p[0] < 0xf4 ? 4 : 0;
    if (!k || k > n) return 0;
    for (size_t i = 1; i < k; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe2 && (p[1] == 0x80 || p[1] == 0x81)) return 0; /* marks that turn the direction of writing */
    if (p[0] == 0xed && p[1] >= 0xa0) return 0;
    return k;
}

void print_text(FILE *to, const char *bytes, size_t n) {
    const unsigned char *p = (const unsigned char *)bytes, *end = p + n;
    while (p < end) {
        size_t k = harmless_sequence(p, (size_t)(end - p));
        if (k) {
            fwrite(p, 1, k, to);
            p += k;
        } else {
            print_char(to, *p++);
        }
    }
}

void print_word(FILE *to, const char *bytes, size_t n) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
    size_t odd = 0;
    bool escapes = false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (!c || !strchr(plain, c)) odd++;
        if (c < 0x20 || c == 0x7f || c == '\'' || c == '\\') escapes = true;
    }
    if (n && !odd) {
        fwrite(bytes, 1, n, to);
    } else if (escapes) {
        fputs("$'", to);
        for (size_t i = 0; i < n; i++) {
            if (bytes[i] == '\'') putc('\\', to);
            print_text(to, bytes + i, 1);
        }
        putc('\'', to);
    } else {
        putc('\'', to);
        print_text(to, bytes, n);
        putc('\'', to);
    }
}

void print_words(FILE *to, const char *words, size_t n) {
    for (size_t at = 0; at < n;) {
        size_t len = strnlen(words + at, n - at);
        if (at) putc(' ', to);
        print_word(to, words + at, len);
        at += len + 1;
    }
}

void print_words_json(FILE *to, const char *words, size_t n) {
    putc('[', to);
    for (size_t at = 0; at < n;) {
        size_t len = strnlen(words + at, n - at);
        if (at) fputs(", ", to);
        json_write_string(to, words + at, len);
        at += len + 1;
    }
    putc(']', to);
}

const char *status_text(int status, char text[48]) {
    if (WIFEXITED(status)) {
        snprintf(text, 48, "exit %d", WEXITSTATUS(status));
    } else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        if (name)
            snprintf(text, 48, "killed by SIG%s", name);
        else
            snprintf(text, 48, "killed by signal %d", WTERMSIG(status));
    } else {
        snprintf(text, 48, "status 0x%x", (unsigned)status);
    }
    return text;
}
