/* Positions as people write them: EVENT, EVENT:TICKS or EVENT:TICKS:STEPS, `begin` and `end`. In a program that the process has
 * executed, N. in front of EVENT: it is its Nth exec. */
#ifndef REPRISE_RSP_POSITION_H
#define REPRISE_RSP_POSITION_H

#include "rsp/target.h"

enum goal { GOAL_NONE, GOAL_POSITION, GOAL_BEGIN, GOAL_END, GOAL_CALL };

/* GOAL_NONE: not a position. GOAL_POSITION: *at is it. */
enum goal position_parse(const char *text, struct position *at);
#define POSITION_TEXT 96
char *position_text(struct position, char text[POSITION_TEXT]);
struct stop goal_reach(struct target *, enum goal, struct position);

#endif
