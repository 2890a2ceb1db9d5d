/* seccomp: the program's filters are interpreted by the gate, never given to the kernel: it would apply them to the runtime.
 * Filters are never changed once they are there; threads and children share them. */
#ifndef REPRISE_SECCOMP_H
#define REPRISE_SECCOMP_H

#include "inproc/types.h"

struct tblock;

enum { SECCOMP_OFF, SECCOMP_STRICT, SECCOMP_FILTERS }; /* what prctl(PR_GET_SECCOMP) says */

struct seccomp_filter;

struct seccomp { /* of one thread */
    int mode;
    int count;
    bool owes_privs;                   /* by SECCOMP_FILTER_FLAG_TSYNC: no_new_privs are still to be set */
    const struct seccomp_filter *last; /* the newest; each names the one before */
};

/* No result of a call is one of these. */
#define SECCOMP_ALLOWED (INT64_MIN + 1)   /* go on with the call */
#define SECCOMP_DELIVERED (INT64_MIN + 2) /* the program's registers are as they shall be */
#define SECCOMP_ABORTED (INT64_MIN + 3)   /* as GATE_ABORTED */
#define SECCOMP_ASKED (INT64_MIN + 4)     /* replay: a listener was asked, its answer is in the log */

/* What becomes of the call: one of these, or its result. Does not return if the filters kill. A tracer that they ask may
 * change number and arguments, which must be those in the registers. */
long seccomp_apply(struct tblock *t, uint64_t *nr, uint64_t a[6]);

/* prctl(PR_SET_SECCOMP) and seccomp(2). */
long seccomp_set_strict(struct tblock *t);
long seccomp_add(struct tblock *t, uint64_t flags, gaddr program);
/* Whether a call of seccomp(2) that succeeded gives a listener. */
bool seccomp_makes_listener(const uint64_t a[6]);
long seccomp_action_avail(uint64_t flags, gaddr action);

/* Filters survive execve: as text in the runtime's arguments, oldest first. */
size_t seccomp_text_size(const struct seccomp_filter *f);
void seccomp_to_text(const struct seccomp_filter *f, char *out);
const struct seccomp_filter *seccomp_nth(const struct seccomp *s, int i);
bool seccomp_from_text(struct seccomp *s, const char *text);

/* Around fork: nobody is in the middle of adding a filter. */
void seccomp_hold(void);
void seccomp_release(void);

#endif
