#include "replay/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/channel_host.h"
#include "controller/complain.h"
#include "controller/start_runtime.h"
#include "replay/gather.h"

#define LOOK_LEAST 50 /* us between looks at the rings */
#define LOOK_MOST 2000
#define SPIN 200
#define STUCK_MS 10000 /* who was interrupted so long ago and runs on will not stop by itself */
#define SENT 2 /* answers of a worker that was sent: it is there, and it has arrived */

/* ---- workers ---- */

struct worker_slot *session_slot(struct session *s, const struct worker *w) {
    return (struct worker_slot *)(s->control + 1) + w->slot;
}

static void reap(struct session *s) {
    int n = 0;
    for (int i = 0; i < s->n_dying; i++)
        if (waitpid(s->dying[i], NULL, WNOHANG) == 0) s->dying[n++] = s->dying[i];
    s->n_dying = n;
}

static bool is_gone(struct worker *w) {
    int status;
    if (w->is_gone || waitpid(w->pid, &status, WNOHANG) == 0) return w->is_gone;
    w->is_gone = true;
    w->stop.reason = WORKER_FAILED;
    snprintf(w->stop.text, sizeof w->stop.text, "the replaying process has ended (status %x)", (unsigned)status);
    return true;
}

/* A worker has come to memory that its process shared with others. */
static void get_pages(struct session *s) {
    char why[256] = "";
    uint32_t *state = &s->control->pages;
    if (s->pages_fd < 0) s->pages_fd = gather(s->recording, &s->control->interrupt, why, sizeof why);
    bool interrupted = s->pages_fd < 0 && __atomic_load_n(&s->control->interrupt, __ATOMIC_ACQUIRE);
    if (s->pages_fd < 0 && !interrupted) complain("%s", why);
    s->control->pages_fd = (uint32_t)s->pages_fd;
    __atomic_store_n(state,
                     interrupted       ? PAGES_INTERRUPTED
                     : s->pages_fd < 0 ? PAGES_NONE
                                       : PAGES_READY,
                     __ATOMIC_RELEASE);
    futex_wake_all(state);
}

/* Ctrl-C, or the end of the debugger, has to end everything: also a worker that has gone astray. */
static void end_if_stuck(const struct session *s, const struct worker *w, uint64_t *since) {
    if (!__atomic_load_n(&s->control->interrupt, __ATOMIC_ACQUIRE))
        *since = 0;
    else if (!*since)
        *since = now_ms();
    else if (now_ms() - *since > STUCK_MS)
        kill(w->pid, SIGKILL);
}

/* Feeds rings until the worker has answered. */
static bool await_answer(struct session *s, struct worker *w, uint32_t number) {
    struct worker_slot *slot = session_slot(s, w);
    bool may_stop = slot->ask == ASK_RUN && !slot->run.steady;
    uint64_t interrupted = 0;
    unsigned pause = LOOK_LEAST;
    for (int i = 0; i < SPIN; i++) {
        if (__atomic_load_n(&slot->answered, __ATOMIC_ACQUIRE) == number) return true;
        __builtin_ia32_pause();
    }
    for (;;) {
        uint32_t seen = CHANNEL_GET(s->channel->doorbell);
        __atomic_add_fetch(&s->channel->heartbeat, 1, __ATOMIC_RELEASE);
        bool busy = feed_look(&s->feed);
        if (__atomic_load_n(&s->control->pages, __ATOMIC_ACQUIRE) == PAGES_WANTED) get_pages(s);
        if (__atomic_load_n(&slot->answered, __ATOMIC_ACQUIRE) == number) return true;
        if (may_stop) end_if_stuck(s, w, &interrupted);
        if (pause == LOOK_MOST && is_gone(w)) return false;
        if (s->n_dying && pause > LOOK_LEAST) reap(s);
        pause = busy ? LOOK_LEAST : pause * 2 < LOOK_MOST ? pause * 2 : LOOK_MOST;
        futex_wait_us(&s->channel->doorbell, seen, pause);
    }
}

static bool question(struct session *s, struct worker *w, enum worker_ask what, uint64_t a, uint64_t b) {
    struct worker_slot *slot = session_slot(s, w);
    if (w->is_gone) return false;
    if (what == ASK_RUN || what == ASK_WRITE || what == ASK_SET_REGISTERS || what == ASK_DIVERT) w->state = ++s->states;
    slot->ask = what;
    slot->arg[0] = a;
    slot->arg[1] = b;
    uint32_t number = slot->asked + 1;
    __atomic_store_n(&slot->asked, number, __ATOMIC_RELEASE);
    futex_wake_all(&slot->asked);
    return await_answer(s, w, number);
}

uint64_t session_ask(struct session *s, struct worker *w, enum worker_ask what, uint64_t a, uint64_t b) {
    return question(s, w, what, a, b) ? session_slot(s, w)->answer : 0;
}

bool session_run(struct session *s, struct worker *w, const struct worker_run *run) {
    session_slot(s, w)->run = *run;
    if (!question(s, w, ASK_RUN, 0, 0)) return false;
    w->stop = session_slot(s, w)->stop;
    w->stop.text[sizeof w->stop.text - 1] = '\0';
    return true;
}

static struct worker *new_worker(struct session *s) {
    for (uint32_t i = 0; i < WORKER_SLOTS; i++)
        if (!s->workers[i].in_use) {
            s->workers[i] = (struct worker){.in_use = true, .slot = i, .state = ++s->states};
            struct worker_slot *slot = session_slot(s, &s->workers[i]);
            slot->asked = slot->answered = 0;
            return &s->workers[i];
        }
    return NULL;
}

struct worker *session_fork(struct session *s, struct worker *w) {
    struct worker *child = new_worker(s);
    if (!child) return NULL;
    session_slot(s, child)->asked = 1; /* its first answer says that it is there */
    int64_t pid = (int64_t)session_ask(s, w, ASK_FORK, child->slot, 0);
    child->pid = (pid_t)pid;
    child->stop = w->stop;
    child->breaks = w->breaks;
    child->state = w->state;
    if (pid <= 0 || !await_answer(s, child, 1)) {
        child->in_use = false;
        return NULL;
    }
    return child;
}

void session_kill(struct session *s, struct worker *w) {
    if (!w || !w->in_use) return;
    w->in_use = false;
    if (w->is_gone) return;
    kill(w->pid, SIGKILL);
    if (s->n_dying == (int)(sizeof s->dying / sizeof *s->dying))
        waitpid(w->pid, NULL, 0);
    else
        s->dying[s->n_dying++] = w->pid;
    reap(s);
}

/* ---- start and end ---- */

/* Which streams lead to the target by fork. False: the recording lacks one. */
static bool find_chain(struct session *s, uint64_t target) {
    uint64_t chain[WORKER_CHAIN];
    uint32_t n = 0;
    for (uint64_t at = target; n < WORKER_CHAIN;) {
        const struct stream_ref *stream = recording_stream(s->recording, at);
        struct event_reader r;
        const struct event *e;
        if (!stream || !event_reader_open(&r, s->recording, stream)) return false;
        bool got = event_reader_next(&r, &e) == READ_GOT;
        bool forked = got && e->kind == EV_FORKED;
        chain[n++] = at;
        uint64_t parent = forked ? EVENT_PAYLOAD(e, ev_forked)->parent : 0;
        event_reader_close(&r);
        if (!got) return false;
        if (!forked) {
            for (uint32_t i = 0; i < n; i++) s->control->chain[i] = chain[n - 1 - i];
            s->control->n_chain = n;
            s->control->target = target;
            return true;
        }
        at = parent;
    }
    return false;
}

static bool make_memory(struct session *s, char *why, size_t cap) {
    s->channel = channel_make(&s->channel_fd, 0);
    s->work_fd = memfd_create("reprise-workers", MFD_CLOEXEC);
    if (s->channel && s->work_fd >= 0 && ftruncate(s->work_fd, WORKER_BYTES) == 0) {
        void *p = mmap(NULL, WORKER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->work_fd, 0);
        if (p != MAP_FAILED) {
            s->control = p;
            s->control->magic = WORKER_MAGIC;
            return true;
        }
    }
    snprintf(why, cap, "cannot make shared memory: %s", strerror(errno));
    return false;
}

/* In the child. */
static void become_runtime(struct session *s, const struct options *options, uint32_t slot, uint64_t stream,
                           int image) {
    struct options o = *options;
    char *argv[] = {"replay", NULL};
    int channel = inherit_high(s->channel_fd), work = inherit_high(s->work_fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    if (null > 0) dup2(null, 0), close(null);
    if (channel < 0 || work < 0) _exit(125);
    add_optionf(&o, "mode=replay,chanfd=%d,workfd=%d,slot=%u,stream=%lu", channel, work, slot, stream);
    if (image >= 0) add_optionf(&o, "imagefd=%d", inherit_high(image));
    _exit(start_runtime("replay", &o, 1, argv));
}

static struct worker *start_worker(struct session *s, uint64_t stream, int image, char *why, size_t cap) {
    struct worker *w = new_worker(s);
    if (!w) {
        snprintf(why, cap, "too many processes");
        return NULL;
    }
    session_slot(s, w)->asked = 1;
    w->pid = fork();
    if (w->pid == 0) become_runtime(s, s->options, w->slot, stream, image);
    if (w->pid < 0 || !await_answer(s, w, 1)) {
        snprintf(why, cap, "%s", w->pid < 0 ? "cannot start a process" : w->stop.text);
        w->in_use = false;
        return NULL;
    }
    w->stop = session_slot(s, w)->stop;
    return w;
}

/* Without it, it takes longer. */
static struct worker *start_from_ancestor(struct session *s) {
    char why[256];
    uint64_t stream;
    int image = ancestor_image(s->recording, s->control->chain, s->control->n_chain, &stream);
    if (image < 0) return NULL;
    struct worker *w = start_worker(s, stream, image, why, sizeof why);
    close(image);
    if (w && w->stop.reason != WORKER_FAILED) return w;
    session_kill(s, w);
    return NULL;
}

struct worker *session_open(struct session *s, const struct recording *r, const struct options *options,
                            struct session_target target, char *why, size_t cap) {
    *s = (struct session){.recording = r, .channel_fd = -1, .work_fd = -1, .pages_fd = -1};
    limits_raise();
    if (!make_memory(s, why, cap)) return NULL;
    if (!find_chain(s, target.stream)) {
        snprintf(why, cap, "the recording lacks what comes before this process");
        return NULL;
    }
    s->control->quiet = target.quiet;
    feed_open(&s->feed, s->channel, r);
    s->options = options;
    struct worker *w = target.from_start ? NULL : start_from_ancestor(s);
    return w ? w : start_worker(s, s->control->chain[0], -1, why, cap);
}

struct worker *session_send(struct session *s, int (*make_image)(void *), void *arg, const struct worker_run *run) {
    struct worker *w = new_worker(s);
    if (!w) return NULL;
    struct worker_slot *slot = session_slot(s, w);
    slot->ask = ASK_RUN; /* found when it has said that it is there */
    slot->run = *run;
    slot->asked = SENT;
    w->pid = fork();
    if (w->pid == 0) {
        int image = make_image(arg);
        if (image < 0) _exit(125);
        become_runtime(s, s->options, w->slot, s->control->target, image);
    }
    if (w->pid > 0) return w;
    w->in_use = false;
    return NULL;
}

bool session_has_arrived(struct session *s, const struct worker *w) {
    return __atomic_load_n(&session_slot(s, w)->answered, __ATOMIC_ACQUIRE) == SENT;
}

bool session_await(struct session *s, struct worker *w) {
    bool there = await_answer(s, w, SENT);
    if (there) w->stop = session_slot(s, w)->stop;
    return there && w->stop.reason != WORKER_FAILED;
}

struct worker *session_restore(struct session *s, int image) {
    char why[256];
    return start_worker(s, s->control->target, image, why, sizeof why);
}

void session_close(struct session *s) {
    for (uint32_t i = 0; i < WORKER_SLOTS; i++)
        if (s->workers[i].in_use) session_kill(s, &s->workers[i]);
    for (int i = 0; i < s->n_dying; i++) waitpid(s->dying[i], NULL, 0);
    feed_close(&s->feed);
    if (s->control) munmap(s->control, WORKER_BYTES);
    if (s->work_fd >= 0) close(s->work_fd);
    if (s->pages_fd >= 0) close(s->pages_fd);
    if (s->channel_fd >= 0) close(s->channel_fd);
}
