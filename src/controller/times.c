#include "controller/times.h"

#define INTERVAL_LEAST 10 /* ms */

void times_begin(struct times *t, uint64_t now_ms) {
    t->began = now_ms;
    t->interval = INTERVAL_LEAST;
    t->n = 0;
}

/* Every other one goes. */
static void thin(struct times *t) {
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i += 2) t->list[kept++] = t->list[i];
    t->n = kept;
    t->interval *= 2;
}

void times_note(struct times *t, uint64_t stream, uint64_t position, uint64_t now_ms, uint64_t *last) {
    if (*last && now_ms - *last < t->interval) return;
    if (t->n == TIMES_MAX) thin(t);
    t->list[t->n++] = (struct time_sample){stream, position, now_ms - t->began};
    *last = now_ms;
}

void times_write(const struct times *t, FILE *f) {
    fputc('[', f);
    for (size_t i = 0; i < t->n; i++)
        fprintf(f, "%s%lu,%lu,%lu", i ? "," : "", t->list[i].stream, t->list[i].position, t->list[i].ms);
    fputc(']', f);
}
