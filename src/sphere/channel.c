#include "sphere/channel.h"

#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/time_types.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"

struct channel *the_channel;
struct stream the_stream;

static struct ring *ring;
static uint8_t *bytes;    /* of the ring, mapped twice in a row: no event is ever cut */
static uint64_t next;     /* position behind what was reserved (writer) or taken (reader) */
static uint64_t known;    /* the other side's position, as last seen */
static uint64_t bell;     /* position at which the controller was last called */
static bool is_void;      /* recording has stopped: events lead nowhere */
static bool is_abandoned; /* not recorded, nor are those that it makes: no log would say where they come from */
static uint8_t *nowhere;  /* room for one event */
static uint64_t taken;    /* events, by the reader */
static uint64_t written;  /* and by the writer */
static uint64_t written_committed;

static void wake(uint32_t *word) { SYS(futex, word, FUTEX_WAKE, INT32_MAX, 0, 0, 0); }

static void wait(uint32_t *word, uint32_t seen, long milliseconds) {
    struct __kernel_timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    SYS(futex, word, FUTEX_WAIT, seen, &timeout, 0, 0);
}

static void ring_doorbell(void) {
    __atomic_fetch_add(&the_channel->doorbell, 1, __ATOMIC_RELEASE);
    wake(&the_channel->doorbell);
}

struct channel *channel_attach(int fd) {
    long got = SYS(mmap, LAYOUT_CHANNEL, sizeof(struct channel), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (got != (long)LAYOUT_CHANNEL) die("cannot map the memory shared with the controller (error %ld)", -got);
    the_channel = (struct channel *)LAYOUT_CHANNEL;
    if (the_channel->magic != CHANNEL_MAGIC) die("this runtime and its controller are of different versions");
    return the_channel;
}

bool channel_is_stopped(void) { return __atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE); }

/* ---- who we are for others ---- */

static bool elsewhere; /* than the controller: in another PID namespace */

/* In the calling thread's descriptor table; it moves out of the program's way. */
static int channel_fd(void) { return fd_own() + 1; }

uint32_t channel_number_in(int proc_fd) {
    char text[16] = "";
    uint32_t n = 0;
    if (SYS(readlinkat, proc_fd, "self", text, sizeof text - 1) < 0) return (uint32_t)SYS(getpid);
    for (char *at = text; *at >= '0' && *at <= '9'; at++) n = n * 10 + (uint32_t)(*at - '0');
    return n;
}

uint32_t channel_pid(void) { return elsewhere ? channel_number_in(channel_fd() + 2) : (uint32_t)SYS(getpid); }

bool channel_is_gone(uint32_t pid) {
    if (!elsewhere) return task_is_gone((int)pid);
    char name[16];
    fmt_into(name, sizeof name, "%u", pid);
    return SYS(faccessat, channel_fd() + 2, name, 0) == -ENOENT;
}

/* ---- rings ---- */

static void map_ring(int fd, uint32_t i) {
    const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
    uint64_t at = LAYOUT_RING, off = channel_ring_offset(i);
    long a = SYS(mmap, at, RING_BYTES, prot, flags, fd, off),
         b = SYS(mmap, at + RING_BYTES, RING_BYTES, prot, flags, fd, off);
    if (sys_failed(a) || sys_failed(b)) die("cannot map the ring of a stream (error %ld)", sys_failed(a) ? -a : -b);
    ring = &the_channel->rings[i];
    bytes = (uint8_t *)at;
    taken = 0;
}

void channel_awaits_output(bool yes) { __atomic_store_n(&ring->awaits_output, yes, __ATOMIC_RELEASE); }

static bool claim(struct ring *r, enum ring_state state, uint64_t stream, uint64_t from) {
    uint32_t expected = RING_FREE;
    if (__atomic_load_n(&r->state, __ATOMIC_RELAXED) != RING_FREE) return false;
    /* CLAIMED in between, so that the controller never sees half of it */
    if (!__atomic_compare_exchange_n(&r->state, &expected, RING_CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    r->stream = stream;
    r->pid = channel_pid();
    r->head = r->tail = from;
    r->writer_waits = r->reader_waits = 0;
    r->ended = RING_NOT_ENDED;
    r->elsewhere = elsewhere;
    memset(r->maps, 0, sizeof r->maps);
    __atomic_store_n(&r->state, state, __ATOMIC_RELEASE);
    return true;
}

#define PATIENCE 3000       /* ms for a ring to become free, while the processes of all of them live; */
#define PATIENCE_MORE 30000 /* while the controller is behind with freeing some */
#define NAP 5

/* A free ring, taken for `state`; CHANNEL_RINGS: none. While all are in use we wait: the controller frees those of processes that
 * have ended. */
static uint32_t claim_ring(enum ring_state state, uint64_t stream, uint64_t from) {
    uint32_t n = MIN(the_channel->n_rings, (uint32_t)CHANNEL_RINGS), patience = 0;
    for (uint32_t waited = 0; waited <= patience && !channel_is_stopped(); waited += NAP) {
        uint32_t seen = __atomic_load_n(&the_channel->freed, __ATOMIC_ACQUIRE);
        uint32_t start = __atomic_fetch_add(&the_channel->next_ring, 1, __ATOMIC_RELAXED);
        if (waited) __atomic_store_n(&the_channel->ring_wanted, 1, __ATOMIC_SEQ_CST);
        patience = PATIENCE;
        for (uint32_t k = 0; k < n; k++) {
            struct ring *r = &the_channel->rings[(start + k) % n];
            if (claim(r, state, stream, from)) return (start + k) % n;
            if (__atomic_load_n(&r->state, __ATOMIC_RELAXED) == RING_CLOSED) patience = PATIENCE_MORE;
        }
        ring_doorbell();
        if (waited) wait(&the_channel->freed, seen, NAP);
    }
    return CHANNEL_RINGS;
}

bool stream_new(struct stream *s) {
    if (is_abandoned || channel_is_stopped()) return false;
    uint64_t number = __atomic_fetch_add(&the_channel->next_stream, 1, __ATOMIC_RELAXED);
    uint32_t i = claim_ring(RING_OPEN, number, 0);
    if (i == CHANNEL_RINGS) {
        if (!channel_is_stopped())
            say("more than %u processes at once: this one goes on unrecorded", the_channel->n_rings);
        return false;
    }
    *s = (struct stream){number, i};
    return true;
}

void stream_give_up(void) { is_void = true; }

/* The ring that it has from its parent stays its parent's. */
void stream_abandon(void) {
    static struct ring own;
    ring = &own;
    the_stream = (struct stream){UINT64_MAX, CHANNEL_RINGS};
    is_void = is_abandoned = true;
}

void stream_close_other(uint32_t i) { stream_discard(&(struct stream){0, i}); }

void stream_discard(const struct stream *s) {
    if (s->ring < CHANNEL_RINGS) __atomic_store_n(&the_channel->rings[s->ring].state, RING_CLOSED, __ATOMIC_RELEASE);
}

void stream_give(const struct stream *s, uint32_t pid) {
    if (s->ring >= CHANNEL_RINGS) return;
    if (elsewhere) return;
    uint32_t self = (uint32_t)SYS(getpid); /* unless it has said so itself */
    __atomic_compare_exchange_n(&the_channel->rings[s->ring].pid, &self, pid, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void stream_attach_writer(int fd, const struct stream *s) {
    map_ring(fd, s->ring);
    the_stream = *s;
    ring->pid = channel_number_in(fd + 2);
    ring->elsewhere = elsewhere = ring->pid != SYS(getpid);
    next = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    known = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    bell = next;
    written = written_committed = 0;
    is_void = channel_is_stopped();
}

/* ---- writing ---- */

/* It may be a zombie, or stopped: only its end of the socket tells. */
bool channel_controller_lives(void) {
    struct pollfd p = {.fd = channel_fd() + 1, .events = POLLIN};
    return SYS(poll, &p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR));
}

static void go_on_unrecorded(void) {
    is_void = true;
    __atomic_store_n(&the_channel->stopped, 1, __ATOMIC_RELEASE);
    say("the controller is gone: the program goes on unrecorded");
}

/* The process whose ring it was has been killed, and the controller has given the ring away: we share its memory and live on. */
static bool is_taken_away(void) {
    return __atomic_load_n(&ring->stream, __ATOMIC_RELAXED) != the_stream.number ||
           __atomic_load_n(&ring->state, __ATOMIC_RELAXED) != RING_OPEN;
}

static void wait_for_space(size_t size) {
    for (;;) {
        uint32_t seen = __atomic_load_n(&ring->space, __ATOMIC_ACQUIRE);
        __atomic_store_n(&ring->writer_waits, 1, __ATOMIC_SEQ_CST);
        known = __atomic_load_n(&ring->tail, __ATOMIC_SEQ_CST);
        if (known <= next && next + size - known <= RING_BYTES) break;
        if (channel_is_stopped() || is_taken_away()) {
            is_void = true;
            break;
        }
        ring_doorbell();
        wait(&ring->space, seen, 200);
        if (known == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) && !channel_controller_lives()) {
            go_on_unrecorded();
            break;
        }
    }
    __atomic_store_n(&ring->writer_waits, 0, __ATOMIC_RELAXED);
}

uint64_t stream_stop_at;

/* --debug stop-at: the controller stops in front of this event. */
static void count_debugged(void) {
    if (__atomic_add_fetch(&the_channel->debug_events, 1, __ATOMIC_SEQ_CST) != stream_stop_at) return;
    __atomic_store_n(&the_channel->stop_wanted, 1, __ATOMIC_SEQ_CST);
    while (!channel_is_stopped() && channel_controller_lives()) {
        uint32_t seen = __atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE);
        ring_doorbell();
        wait(&the_channel->stopped, seen, 1);
    }
}

void *stream_reserve(size_t size) {
    size = (size + 7) & ~7ul;
    CHECK(size <= EVENT_MAX);
    if (unlikely(stream_stop_at)) count_debugged();
    if (unlikely(next + size - known > RING_BYTES) && !is_void) {
        stream_commit(); /* what is there must be takeable, or we wait forever */
        wait_for_space(size);
    }
    if (unlikely(is_void)) {
        if (!nowhere) nowhere = arena_pages(EVENT_MAX);
        return nowhere;
    }
    void *p = bytes + (next & (RING_BYTES - 1));
    next += size;
    written++;
    return p;
}

void stream_cancel(const struct event *e) {
    if (unlikely(is_void)) return;
    next -= e->size;
    written--;
}

void stream_roll_back(void) {
    if (unlikely(is_taken_away())) is_void = true;
    if (unlikely(is_void)) return;
    next = ring->head;
    written = written_committed;
}

uint64_t stream_written(void) { return written; }
uint64_t stream_position(void) { return next; }

void stream_commit(void) {
    if (unlikely(is_taken_away())) is_void = true;
    if (unlikely(is_void)) return;
    written_committed = written;
    __atomic_store_n(&ring->head, next, __ATOMIC_RELEASE);
    if (unlikely(next - bell > RING_BYTES / 4)) {
        bell = next;
        ring_doorbell();
    }
}

void stream_close(void) {
    stream_commit();
    if (!is_taken_away()) __atomic_store_n(&ring->state, RING_CLOSED, __ATOMIC_RELEASE);
    is_void = true; /* processes that share our memory may live on: the ring is somebody else's then */
}

/* ---- reading ---- */

static void end_without_controller(void) {
    if (SYS(kill, the_channel->controller, 0) == -ESRCH) SYS(exit_group, 125); /* nobody to replay for */
}

/* A ring that is filled from byte `from` of the stream on. */
static bool attach_at(int fd, uint64_t number, uint64_t from) {
    uint32_t i = claim_ring(RING_WANTED, number, from);
    if (i == CHANNEL_RINGS) die("no room for another stream: more than %u processes at once", the_channel->n_rings);
    map_ring(fd, i);
    the_stream = (struct stream){number, i};
    next = known = from;
    ring_doorbell();
    for (uint32_t state; (state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE)) == RING_WANTED;) {
        wait(&ring->state, state, 1000);
        end_without_controller();
    }
    return ring->state != RING_REFUSED;
}

static bool is_paused;

void stream_pause(void) { is_paused = true; }

void stream_resume(void) {
    if (!is_paused) return;
    is_paused = false;
    uint64_t n = taken;
    if (!attach_at(channel_fd(), the_stream.number, next)) die("stream %lu cannot be read again", the_stream.number);
    taken = n;
    stream_peek_second(); /* who had looked at events finds them where they were */
}

bool stream_attach_reader(int fd, uint64_t number) {
    if (attach_at(fd, number, 0)) return true;
    stream_done(RING_ENDED_CUT, 0, 0);
    return false;
}

bool stream_attach_reader_at(int fd, uint64_t number, uint64_t position, uint64_t events) {
    if (!attach_at(fd, number, position)) return false;
    taken = events;
    return true;
}

/* Waits until `want` bytes are there; false: there will never be so many. */
static bool wait_for_bytes(uint64_t want) {
    while (unlikely(known - next < want)) {
        uint32_t seen = __atomic_load_n(&ring->filled, __ATOMIC_ACQUIRE);
        uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
        __atomic_store_n(&ring->reader_waits, 1, __ATOMIC_SEQ_CST);
        known = __atomic_load_n(&ring->head, __ATOMIC_SEQ_CST);
        if (known - next >= want) break;
        if (state == RING_CLOSED) return false;
        ring_doorbell();
        wait(&ring->filled, seen, 1000);
        end_without_controller();
    }
    __atomic_store_n(&ring->reader_waits, 0, __ATOMIC_RELAXED);
    return true;
}

static size_t least_size(uint8_t kind) {
    switch ((enum event_kind)kind) {
    case EV_START: return sizeof(struct ev_start);
    case EV_FORKED: return sizeof(struct ev_forked);
    case EV_MAP: return sizeof(struct ev_map);
    case EV_MEMORY:
    case EV_POKE:
    case EV_OUT: return sizeof(struct ev_memory);
    case EV_SYSCALL: return sizeof(struct ev_syscall);
    case EV_FORK:
    case EV_CLONE:
    case EV_EXEC: return sizeof(struct ev_child);
    case EV_EXIT:
    case EV_END: return sizeof(struct ev_exit);
    case EV_SIGNAL:
    case EV_FAULT: return sizeof(struct ev_signal);
    case EV_PREEMPT:
    case EV_STOP:
    case EV_TURN: return 0;
    case EV_REGS: return sizeof(struct ev_regs);
    case EV_INSN: return sizeof(struct ev_insn);
    case EV_HASH: return sizeof(struct ev_hash);
    case EV_ACQUIRE:
    case EV_RELEASE: return sizeof(struct ev_page);
    case EV_MAPPED: return sizeof(struct ev_mapped);
    case EV_CHANGE: return sizeof(struct ev_change);
    case EV_CHECKPOINT: return sizeof(struct ev_checkpoint);
    case EV_EXTENDED: return sizeof(struct ev_extended);
    }
    return EVENT_MAX;
}

static bool is_sound(const struct event *e) {
    size_t least = sizeof *e + least_size(e->kind);
    if (e->size < least || e->size > EVENT_MAX || e->size % 8) return false;
    if (e->kind == EV_CHANGE) return ((const struct ev_change *)(e + 1))->len <= e->size - least;
    if (event_may_have_contents(e)) return e->size == least || event_contents(e);
    if (e->kind == EV_REGS) return ((const struct ev_regs *)(e + 1))->extended <= e->size - least;
    if (e->kind == EV_EXTENDED) return ((const struct ev_extended *)(e + 1))->len <= e->size - least;
    if (e->kind != EV_MEMORY && e->kind != EV_OUT && e->kind != EV_POKE) return true;
    return ((const struct ev_memory *)(e + 1))->len <= e->size - least;
}

static const struct event *peek_at(uint64_t off) {
    if (!wait_for_bytes(off + sizeof(struct event))) return NULL;
    const struct event *e = (const struct event *)(bytes + ((next + off) & (RING_BYTES - 1)));
    if (!is_sound(e)) die("stream %lu is damaged at event %lu", the_stream.number, taken);
    return wait_for_bytes(off + e->size) ? e : NULL;
}

const struct event *stream_peek(void) { return peek_at(0); }

const struct event *stream_peek_second(void) {
    const struct event *e = peek_at(0);
    return e ? peek_at(e->size) : NULL;
}

void stream_take(void) {
    const struct event *e = (const struct event *)(bytes + (next & (RING_BYTES - 1)));
    next += e->size;
    taken++;
    __atomic_store_n(&ring->tail, next, __ATOMIC_SEQ_CST);
    if (unlikely(__atomic_load_n(&ring->writer_waits, __ATOMIC_SEQ_CST))) {
        __atomic_fetch_add(&ring->space, 1, __ATOMIC_RELEASE);
        wake(&ring->space);
    }
}

uint64_t stream_taken(void) { return taken; }

void stream_done(enum ring_ended how, int status, uint64_t instructions) {
    ring->instructions = instructions;
    ring->ended = how;
    ring->status = status;
    __atomic_store_n(&ring->state, RING_DONE, __ATOMIC_RELEASE);
    ring_doorbell();
}
