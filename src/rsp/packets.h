/* What packets mean: one debugger that is connected to one target. */
#ifndef REPRISE_RSP_PACKETS_H
#define REPRISE_RSP_PACKETS_H

#include <signal.h>
#include <sys/types.h>

#include "rsp/breaks.h"
#include "rsp/description.h"
#include "rsp/files.h"
#include "rsp/gdb_signal.h"
#include "rsp/position.h"
#include "rsp/target.h"
#include "rsp/text.h"
#include "rsp/tls.h"
#include "rsp/wire.h"

#define CHECKPOINTS_MAX 1000

struct checkpoint {
    bool used;
    struct position at;
};

struct gdb {
    struct target *target;
    struct wire *wire; /* NULL: nobody reads what is said beside replies */
    /* Called before and after the target runs: somebody then looks for Ctrl-C. May be NULL. */
    void (*watch)(struct gdb *, bool runs);
    void *watch_arg;
    const char *about; /* the recording, in words; may be NULL */
    int printed;       /* a file that the target's processes print to; 0: none */
    off_t printed_to;  /* what was passed on so far */
    volatile sig_atomic_t interrupted;

    struct out reply;
    bool silent;   /* the packet has no reply */
    bool attached; /* false: after vKill or D; everything that needs a process fails */
    bool killed;
    bool ended; /* k: nothing comes any more */

    bool multiprocess, swbreak, hwbreak, exec_events, fork_events; /* gdb's features */
    bool exits_end;                      /* `monitor exits end`: W and X instead of the end of history */
    int general_thread, continue_thread; /* H packets; 0: any */
    int stop_thread;                     /* of the last stop reply; 0: none yet */
    int child; /* the process that the program has made last: gdb takes its breakpoints out of it, and leaves it */
    bool is_at_child; /* packets are meant for that one */
    struct catches catches;
    uint64_t wanted; /* signals that gdb is told of: bit N - 1 for signal N */

    struct description description;
    struct breaks breaks;
    struct files files;
    struct tls tls;
    struct stop last;
    uint64_t
        unset_at; /* gdb has taken the breakpoint here away while the program was at it, and not put it back; 0: nowhere */
    uint64_t unset_last; /* the last breakpoint that gdb has taken away, and not put back; 0: none */
    struct {
        bool any, backward;
        bool is_here; /* the target stands there, otherwise it is to go to `at` */
        struct stop stop;
        struct position at;
    } owed; /* a stop of another thread while gdb stepped over a breakpoint: told when it goes on */
    struct {
        int thread; /* 0: none */
        struct registers registers;
    } gone; /* a thread that has ended while gdb stepped it over a breakpoint, as gdb is to see it for once */
    unsigned end_told; /* steps that have led to the end in a row, which was said: see step_to_end */
    bool settles;      /* gdb was told first that libraries may have changed: it resumes, and is told the rest */
    enum goal goal;    /* where the next resumption leads */
    struct position goal_at;
    bool tells_exec;    /* the process that was followed into runs another program than the one before */
    uint64_t goal_slot; /* GOAL_CALL: where the return address is */
    bool stepped;       /* the last run was a step */
    bool
        is_shown; /* gdb has asked for threads since: it does that where it shows a stop, not where it goes on by itself */
    struct checkpoint checkpoints[CHECKPOINTS_MAX];
    char object_name[64]; /* qXfer: the object at hand */
    struct out object;
};

/* `at`: how the target came to where it stands. */
void gdb_open(struct gdb *, struct target *, struct wire *, struct stop at);
void gdb_close(struct gdb *);
/* One packet, terminated. The reply is in g->reply unless g->silent. */
void gdb_packet(struct gdb *, const char *packet, size_t n);

/* Tells the user something while the program runs or before a stop is reported. */
void gdb_say(struct gdb *, const char *text);
/* What was printed since the last time. */
void gdb_say_printed(struct gdb *);

/* ---- resume.c ---- */
void resume_vcont(struct gdb *, struct in *);
/* The breakpoint at addr is taken away, perhaps to step over it. */
void resume_without(struct gdb *, uint64_t addr);
void resume_simple(struct gdb *, bool backward, bool step);
enum report {
    REPORT_STOP,  /* the program ran and stopped */
    REPORT_PLACE, /* a place that was sought */
    REPORT_AGAIN, /* gdb asks where things stand */
};
void stop_reply(struct gdb *, struct stop, enum report);
void put_thread_id(struct gdb *, struct out *, int tid);
/* False: not a thread id. *tid 0: any, -1: all. */
bool parse_thread_id(struct gdb *, struct in *, int *tid);
int thread_or_current(struct gdb *, int tid);

/* ---- monitor.c ---- */
/* Text for the user into `out`. False: it did not work. */
bool monitor_command(struct gdb *, const char *text, struct out *out);

#endif
