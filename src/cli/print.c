/* Printing what comes out of a recording, see print.h. */
#include "cli/print.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/cli.h"

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

void print_command(FILE *to, const struct recording *r) {
    struct json command, w;
    if (!json_member(r->header, "command", &command)) return;
    const char *between = "";
    for (w = json_first(command); json_is(w); w = json_next(w)) {
        long n = json_string(w, NULL, 0);
        char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
        if (!text) continue;
        json_string(w, text, (size_t)n + 1);
        fputs(between, to);
        print_word(to, text, (size_t)n);
        between = " ";
        free(text);
    }
}

char *size_text(uint64_t bytes, char text[16]) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double x = (double)bytes;
    int unit = 0;
    while (x >= 999.5 && unit < 6) x /= 1000, unit++;
    snprintf(text, 16, unit && x < 99.95 ? "%.1f %s" : "%.0f %s", x, units[unit]);
    return text;
}

char *date_text(uint64_t ns, char text[24]) {
    time_t t = (time_t)(ns / 1000000000ull);
    struct tm tm;
    if (!ns || !localtime_r(&t, &tm) || !strftime(text, 24, "%Y-%m-%d %H:%M:%S", &tm)) strcpy(text, "unknown");
    return text;
}

char *duration_text(uint64_t ns, char text[24]) {
    double s = (double)ns / 1e9;
    if (s < 120)
        snprintf(text, 24, s < 10 ? "%.3f s" : "%.1f s", s);
    else
        snprintf(text, 24, "%.0f min %.0f s", s / 60 - 0.5 < 0 ? 0 : (double)(uint64_t)(s / 60),
                 s - 60 * (double)(uint64_t)(s / 60));
    return text;
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

struct recording *open_recording(const char *arg) {
    char path[PATH_MAX], why[WHY_MAX];
    struct recording *r = NULL;
    if (place_find(arg, path, sizeof path, why)) r = recording_open(path, why);
    if (!r) complain("%s", why);
    return r;
}

void say_if_cut(const struct recording *r) {
    char text[256];
    recording_cut_text(r, text, sizeof text);
    if (text[0]) complain("%s: %s", r->dir ? r->dir : "recording", text);
}

int printed(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    if (errno != EPIPE) complain("cannot write the output: %s", strerror(errno));
    return EXIT_OURS;
}

bool parse_u64(const char *text, uint64_t *value) {
    char *stop;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long x = strtoull(text, &stop, 0);
    if (errno || *stop) return false;
    *value = x;
    return true;
}

bool parse_size(const char *text, uint64_t *value) {
    static const char units[] = "KMGT";
    char number[32];
    size_t n = strlen(text);
    int shift = 0;
    const char *unit = n > 1 ? strchr(units, text[n - 1] & ~0x20) : NULL;
    if (unit && *unit) {
        shift = 10 * (int)(unit - units + 1);
        n--;
    }
    if (n >= sizeof number) return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!parse_u64(number, value) || *value > UINT64_MAX >> shift) return false;
    *value <<= shift;
    return true;
}
