/* Positions as people write them. */
#include "rsp/position.h"

#include <stdio.h>
#include <string.h>

static bool number(const char **text, uint64_t *value) {
    const char *p = *text;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) return false;
    if (p == *text) return false;
    *text = p;
    *value = v;
    return true;
}

enum goal position_parse(const char *text, struct position *at) {
    if (strcmp(text, "begin") == 0 || strcmp(text, "start") == 0) return GOAL_BEGIN;
    if (strcmp(text, "end") == 0) return GOAL_END;
    *at = (struct position){0};
    uint64_t program = 0;
    if (!number(&text, &at->event)) return GOAL_NONE;
    if (*text == '.') {
        program = at->event;
        if (text++, !number(&text, &at->event)) return GOAL_NONE;
    }
    if (at->event >> POSITION_PROGRAM || program >> (64 - POSITION_PROGRAM)) return GOAL_NONE;
    at->event |= program << POSITION_PROGRAM;
    if (*text == ':' && (text++, !number(&text, &at->ticks))) return GOAL_NONE;
    if (*text == ':' && (text++, !number(&text, &at->steps))) return GOAL_NONE;
    return *text ? GOAL_NONE : GOAL_POSITION;
}

char *position_text(struct position p, char text[POSITION_TEXT]) {
    uint64_t program = p.event >> POSITION_PROGRAM, event = p.event & ((1ull << POSITION_PROGRAM) - 1);
    char number[24] = "";
    if (program) snprintf(number, sizeof number, "%lu.", program);
    snprintf(text, POSITION_TEXT, "%s%lu:%lu:%lu", number, event, p.ticks, p.steps);
    return text;
}

struct stop goal_reach(struct target *t, enum goal goal, struct position to) {
    switch (goal) {
    case GOAL_BEGIN: return t->ops->seek_begin(t);
    case GOAL_END: return t->ops->seek_end(t);
    case GOAL_POSITION: return t->ops->seek(t, to);
    case GOAL_CALL:
    case GOAL_NONE: break;
    }
    return (struct stop){.reason = STOP_STEP, .thread = t->ops->current_thread(t)};
}
