/* The processor: instruction sets that a program may use after asking cpuid. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controller/cpu.h"

/* What x86-64-v2 and v3 consist of, then what no level includes. Flags that do not matter to programs are left out. */
static const char level_v2[] = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
static const char level_v3[] = "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
static const char beyond[] =
    "aes pclmulqdq sha_ni rdrand rdseed rdpid adx fsgsbase erms fsrm fzrm fsrs fsrc clflushopt clwb cldemote prefetchw "
    "3dnowprefetch sse4a xop fma4 tbm lwp xsaveopt xsavec xgetbv1 xsaves pku ospke avx_vnni avx_ifma avx_ne_convert "
    "avx_vnni_int8 avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni "
    "avx512_bitalg "
    "avx512_vpopcntdq avx512_vp2intersect avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 vaes vpclmulqdq gfni "
    "sha512 "
    "sm3 sm4 movdiri movdir64b enqcmd serialize waitpkg tsxldtrk rtm hle cmpccxadd clzero wbnoinvd rdtscp";

static bool has_word(const char *words, const char *word, size_t n) {
    for (const char *p = words; (p = strstr(p, word)); p++) {
        if (strncmp(p, word, n) == 0 && (p == words || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return true;
    }
    return false;
}

/* Adds those words of `wanted` that are in `have` (or, with `absent`, that are not). */
static void pick(char *to, size_t cap, const char *have, const char *wanted, bool absent) {
    for (const char *p = wanted; *p;) {
        size_t n = strcspn(p, " ");
        char word[64];
        if (n && n < sizeof word) {
            memcpy(word, p, n);
            word[n] = '\0';
            size_t len = strlen(to);
            if (has_word(have, word, n) != absent && len + n + 2 < cap)
                snprintf(to + len, cap - len, "%s%s", len ? " " : "", word);
        }
        p += n;
        p += strspn(p, " ");
    }
}

bool cpu_has_all(const char *have, const char *wanted, char *missing, size_t cap) {
    missing[0] = '\0';
    pick(missing, cap, have, wanted, true);
    return !missing[0];
}

/* The value of "KEY : VALUE" in the first processor's part. */
static void value_of(const char *info, const char *key, char *to, size_t cap) {
    size_t n = strlen(key);
    to[0] = '\0';
    for (const char *line = info; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, n) != 0) continue;
        const char *p = line + n + strspn(line + n, " \t");
        if (*p++ != ':') continue;
        p += *p == ' ';
        snprintf(to, cap, "%.*s", (int)strcspn(p, "\n"), p);
        return;
    }
}

void cpu_read(struct cpu *c, enum cpu_level level) {
    static char info[16384]; /* the first processor's part is about 1.5 KB */
    char flags[4096];
    size_t len = 0;
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n;
        while (len < sizeof info - 1 && (n = read(fd, info + len, sizeof info - 1 - len)) > 0) {
            len += (size_t)n;
            info[len] = '\0';
            if (strstr(info, "\n\n")) break;
        }
        close(fd);
    }
    info[len] = '\0';
    value_of(info, "vendor_id", c->vendor, sizeof c->vendor);
    value_of(info, "model name", c->model, sizeof c->model);
    value_of(info, "flags", flags, sizeof flags);
    c->flags[0] = '\0';
    pick(c->flags, sizeof c->flags, flags, level_v2, false);
    if (level != CPU_V2) pick(c->flags, sizeof c->flags, flags, level_v3, false);
    if (level == CPU_ALL) pick(c->flags, sizeof c->flags, flags, beyond, false);
}
