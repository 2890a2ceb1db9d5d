/* Positions as people write them: EVENT, EVENT:TICKS or EVENT:TICKS:STEPS, `begin` and `end`. */
#ifndef REPRISE_RSP_POSITION_H
#define REPRISE_RSP_POSITION_H

#include "rsp/target.h"

enum goal { GOAL_NONE, GOAL_POSITION, GOAL_BEGIN, GOAL_END };

/* GOAL_NONE: not a position. GOAL_POSITION: *at is it. */
enum goal position_parse(const char *text, struct position *at);
char *position_text(struct position, char text[64]);
struct stop goal_reach(struct target *, enum goal, struct position);

#endif
