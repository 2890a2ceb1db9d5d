/* What was found, as text and as JSON. */
#include <string.h>

#include "log/json.h"
#include "rsp/position.h"
#include "why/why.h"

static void print_value(FILE *to, const uint8_t *bytes, size_t n, size_t len) {
    uint64_t v = 0;
    if (n && n == len && len <= 8) {
        memcpy(&v, bytes, n);
        fprintf(to, "%#lx", v);
        return;
    }
    if (!n) fputs("not there", to);
    for (size_t i = 0; i < n; i++) fprintf(to, "%s%02x", i ? " " : "", bytes[i]);
    if (n && n < len) fputs(" ...", to);
}

static void print_place(FILE *to, const struct place *p) {
    if (!p->is_register)
        fprintf(to, "%#lx, %zu byte%s", p->addr, p->len, p->len == 1 ? "" : "s");
    else if (p->reg < REGISTER_VECTOR && p->offset == 0)
        fprintf(to, "$%s", flow_register_name(p));
    else
        fprintf(to, "$%s, %zu byte%s from %u on", flow_register_name(p), p->len, p->len == 1 ? "" : "s", p->offset);
}

static void print_source(FILE *to, const struct why_step *s) {
    const struct source *src = &s->source;
    if (src->function[0])
        fprintf(to, "%s ()", src->function);
    else
        fprintf(to, "%#lx", s->pc);
    if (src->file[0])
        fprintf(to, " at %s:%d", src->file, src->line);
    else if (src->object[0])
        fprintf(to, " in %s", src->object);
}

static void print_inputs(FILE *to, const struct why_step *s) {
    for (size_t i = 0; i < s->n_inputs; i++) {
        fputs(i ? " and " : ", from ", to);
        print_place(to, &s->input[i].place);
        if (s->input[i].has_value) fprintf(to, " = %#lx", s->input[i].value);
    }
}

static void print_change(FILE *to, const struct why_step *s) {
    fputs("    ", to);
    print_place(to, &s->what);
    fputs(": ", to);
    print_value(to, s->before, s->n_before, s->what.len);
    fputs(" -> ", to);
    print_value(to, s->after, s->n_after, s->what.len);
    fputc('\n', to);
}

static void print_step(FILE *to, const struct why_step *s, unsigned number) {
    char at[POSITION_TEXT];
    position_text(s->at, at);
    switch (s->kind) {
    case WHY_WRITE:
    case WHY_INPUT:
        if (s->what.is_register) break;
        fprintf(to, "#%u  %s  thread %d  ", number, at, s->thread);
        print_source(to, s);
        fputc('\n', to);
        print_change(to, s);
        if (s->kind == WHY_WRITE) {
            fprintf(to, "    by %s", s->insn);
            print_inputs(to, s);
            fputc('\n', to);
        }
        if (s->text[0]) fprintf(to, "    %s\n", s->text);
        return;
    case WHY_REGISTER: break;
    case WHY_MOVED:
    case WHY_BEGIN:
    case WHY_LOST:
        fputs("    ", to);
        print_place(to, &s->what);
        fprintf(to, ": %s\n", s->text);
        return;
    }
    fputs("      ", to);
    print_place(to, &s->what);
    fprintf(to, " by %s", s->insn);
    print_inputs(to, s);
    fprintf(to, "  (%s, ", at);
    print_source(to, s);
    fputs(")\n", to);
    if (s->text[0]) fprintf(to, "    %s\n", s->text);
}

#define ROUND_MOST 4 /* steps */

static bool is_round(const struct why_step *a, const struct why_step *b) {
    return a->kind == WHY_REGISTER && b->kind == WHY_REGISTER && a->pc == b->pc && !a->text[0];
}

/* A value that was counted up in a loop is made by the same instructions again and again. How many steps from i on can be left out:
 * whole rounds, with one like them before and one behind. *n_rounds: how many that are. */
static size_t repeated(const struct why *w, size_t i, size_t *n_rounds) {
    for (size_t n = 1; n <= ROUND_MOST && n <= i; n++) {
        size_t k = i;
        while (k < w->n && is_round(&w->steps[k - n], &w->steps[k])) k++;
        *n_rounds = (k - i) / n;
        if (*n_rounds > 2) return --*n_rounds * n;
    }
    return 0;
}

void why_print(const struct why *w, FILE *to) {
    unsigned number = 0;
    print_place(to, &w->asked);
    fputs(" = ", to);
    print_value(to, w->value, w->n_value, w->asked.len);
    fputs(w->is_elsewhere ? ", as this process left it: other processes may have changed it since\n" : "\n", to);
    for (size_t i = 0; i < w->n; i++) {
        size_t n_rounds, n = repeated(w, i, &n_rounds);
        if (n) fprintf(to, "      ... and so %zu times more, until\n", n_rounds);
        const struct why_step *s = &w->steps[i += n];
        number += !s->what.is_register && (s->kind == WHY_WRITE || s->kind == WHY_INPUT);
        print_step(to, s, number);
    }
}

/* ---- JSON ---- */

static void json_place(FILE *to, const struct place *p) {
    if (p->is_register)
        fprintf(to, "{\"register\": \"%s\", \"offset\": %u, \"len\": %zu", flow_register_name(p), p->offset, p->len);
    else
        fprintf(to, "{\"addr\": %lu, \"len\": %zu", p->addr, p->len);
}

static void json_bytes(FILE *to, const char *name, const uint8_t *bytes, size_t n) {
    fprintf(to, ", \"%s\": \"", name);
    for (size_t i = 0; i < n; i++) fprintf(to, "%02x", bytes[i]);
    fputc('"', to);
}

static void json_text(FILE *to, const char *name, const char *text) {
    if (!text[0]) return;
    fprintf(to, ", \"%s\": ", name);
    json_write_string(to, text, strlen(text));
}

static void json_step(FILE *to, const struct why_step *s) {
    static const char *const kinds[] = {"write", "register", "input", "moved", "begin", "lost"};
    char at[POSITION_TEXT];
    fprintf(to, "{\"kind\": \"%s\", \"position\": \"%s\", \"thread\": %d, \"pc\": %lu, \"what\": ", kinds[s->kind],
            position_text(s->at, at), s->thread, s->pc);
    json_place(to, &s->what);
    fputc('}', to);
    if (s->n_before) json_bytes(to, "before", s->before, s->n_before);
    if (s->n_after) json_bytes(to, "after", s->after, s->n_after);
    json_text(to, "instruction", s->insn);
    json_text(to, "function", s->source.function);
    json_text(to, "file", s->source.file);
    if (s->source.file[0]) fprintf(to, ", \"line\": %d", s->source.line);
    json_text(to, "object", s->source.object);
    json_text(to, "text", s->text);
    fputs(", \"inputs\": [", to);
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (i) fputs(", ", to);
        json_place(to, &s->input[i].place);
        if (s->input[i].has_value) fprintf(to, ", \"value\": %lu", s->input[i].value);
        fputc('}', to);
    }
    fputs("]}\n", to);
}

void why_print_json(const struct why *w, FILE *to) {
    for (size_t i = 0; i < w->n; i++) json_step(to, &w->steps[i]);
}
