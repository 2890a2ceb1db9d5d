/* Printing what comes out of a recording, see print.h. */
#include "cli/print.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

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
