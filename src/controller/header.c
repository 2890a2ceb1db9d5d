/* Texts of a recording. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "controller/header.h"

#include "controller/times.h"
#include "log/frame.h"
#include "log/json.h"

static void member(FILE *f, const char *key, const char *value) {
    fprintf(f, ",\n \"%s\": ", key);
    json_write_string(f, value, strlen(value));
}

static void words(FILE *f, const char *key, const char *text) {
    fprintf(f, ", \"%s\": [", key);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        if (p != text) fputs(", ", f);
        json_write_string(f, p, n);
        p += n;
        p += *p == ' ';
    }
    fputc(']', f);
}

static void write_time(FILE *f, const char *key) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(f, ",\n \"%s\": %lld", key, (long long)now.tv_sec * 1000000000ll + now.tv_nsec);
}

static void write_machine(FILE *f, const struct header_facts *h) {
    static const char *const levels[] = {"all", "v2", "v3"};
    struct utsname u;
    struct cpu cpu;
    if (uname(&u) < 0) memset(&u, 0, sizeof u);
    cpu_read(&cpu, h->cpu);
    member(f, "host", u.nodename);
    char kernel[sizeof u];
    snprintf(kernel, sizeof kernel, "%s %s %s %s", u.sysname, u.release, u.version, u.machine);
    member(f, "kernel", kernel);
    fprintf(f, ",\n \"page_size\": %ld,\n \"cpu\": {\"vendor\": ", sysconf(_SC_PAGESIZE));
    json_write_string(f, cpu.vendor, strlen(cpu.vendor));
    fputs(", \"model\": ", f);
    json_write_string(f, cpu.model, strlen(cpu.model));
    fprintf(f, ", \"level\": \"%s\"", levels[h->cpu]);
    words(f, "flags", cpu.flags);
    fputc('}', f);
}

char *header_text(const struct header_facts *h, size_t *len) {
    char *text = NULL, cwd[PATH_MAX];
    FILE *f = open_memstream(&text, len);
    if (!f) return NULL;
    fprintf(f, "{\"version\": %d,\n \"reprise\": \"" REPRISE_VERSION "\",\n \"command\": [", LOG_VERSION);
    for (int i = 0; i < h->argc; i++) {
        if (i) fputs(", ", f);
        json_write_string(f, h->argv[i], strlen(h->argv[i]));
    }
    fputc(']', f);
    member(f, "path", h->path);
    member(f, "directory", getcwd(cwd, sizeof cwd) ? cwd : "");
    member(f, "store", h->store);
    member(f, "recorder", "order");
    write_time(f, "began_ns");
    write_machine(f, h);
    fprintf(f, ",\n \"controller\": %d,\n \"seed\": \"%lx\",\n \"chaos\": %s, \"check\": %s}\n", (int)getpid(), h->seed,
            h->chaos ? "true" : "false", h->check ? "true" : "false");
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}

char *end_text(const struct end_facts *e, size_t *len) {
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f) return NULL;
    fprintf(f, "{\"status\": %d", e->status);
    member(f, "reason", e->reason);
    fprintf(f, ",\n \"streams\": %lu, \"raw\": %lu, \"stored\": %lu, \"left\": %u", e->streams, e->raw, e->stored,
            e->left);
    write_time(f, "ended_ns");
    fputs(",\n \"times\": ", f);
    times_write(e->times, f);
    fputs("}\n", f);
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}
