/* reprise walk: walks on a timeline, for its tests. Commands come from standard input, one a line; answers go to standard output. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/replay_setup.h"
#include "replay/timeline.h"

static const char walk_usage[] =
    "usage: reprise walk [-p PID] [--loud] [--from-start] [DIR|NAME] < COMMANDS\n"
    "\n"
    "For tests: forward and reverse execution of a recording.\n"
    "  step [N] | back [N] | cont | rcont | seek E T S | begin | end | where | regs | hash | threads | regions\n"
    "  state    hashes of memory and of the registers of each thread     stored    checkpoints of the recording\n"
    "  break ADDR | watch ADDR LEN | catch CALL | delete KIND ADDR LEN | monitor TEXT | read ADDR LEN | write ADDR "
    "BYTE | set-pc "
    "ADDR\n"
    "  there-and-back N    N steps forward, then back: the same places, registers and memory\n"
    "  random N SEED       a random walk, every place compared with its first visit\n";

struct walk {
    struct target *t;
    struct registers regs;
};

static const char *reason_name(enum stop_reason r) {
    static const char *const names[] = {"step",   "break",  "watch", "signal", "interrupted", "begin", "end",
                                        "exited", "killed", "exec",  "call",   "return",      "fork",  "failed"};
    return names[r];
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static struct position where(struct walk *w) { return w->t->ops->where(w->t); }

static uint64_t pc_of(struct walk *w) { return w->t->ops->read_registers(w->t, 0, &w->regs) ? w->regs.rip : 0; }

/* Of all registers of a thread (0: the present one); `vector`: vector registers, too. */
static uint64_t registers_hash_of(struct walk *w, int tid, bool vector) {
    uint64_t h = 0;
    if (!w->t->ops->read_registers(w->t, tid, &w->regs)) return 0;
    const struct registers *r = &w->regs;
    for (int i = 0; i < 16; i++) h = mix(h, r->gpr[i]);
    h = mix(mix(mix(h, r->rip), r->eflags), r->fs_base);
    for (uint32_t i = 0; vector && i < 512 && i < r->xsave_size; i++)
        if (i < 8 || i >= 24) h = mix(h, i >= 464 ? 0 : r->xsave[i]);
    return h;
}

static uint64_t registers_hash(struct walk *w) { return registers_hash_of(w, 0, true); }

static void say_stop(struct walk *w, const struct stop *s) {
    struct position p = where(w);
    printf("%s thread %d at %" PRIu64 ":%" PRIu64 ":%" PRIu64 " pc %" PRIx64, reason_name(s->reason), s->thread,
           p.event, p.ticks, p.steps, pc_of(w));
    if (s->reason == STOP_WATCHPOINT) printf(" addr %" PRIx64, s->addr);
    if (s->reason == STOP_SIGNAL || s->reason == STOP_KILLED) printf(" signal %d", s->signo);
    if (s->reason == STOP_EXITED) printf(" status %d", s->status);
    if (s->reason == STOP_FAILED) printf(" (%s)", s->text);
    printf("\n");
}

static bool is_end(enum stop_reason r) {
    return r == STOP_END || r == STOP_EXITED || r == STOP_KILLED || r == STOP_EXEC || r == STOP_FAILED;
}

/* ---- visits ---- */

struct visit {
    struct position at;
    uint64_t registers, memory;
    uint64_t gpr[16], eflags;
    bool is_signal; /* a place of its own, where one stops for a signal */
};

static struct visit *visits;
static size_t n_visits, room;

static size_t find(struct position p) {
    size_t i = (size_t)(mix(mix(mix(0, p.event), p.ticks), p.steps) & (room - 1));
    while (visits[i].at.event && position_compare(visits[i].at, p) != 0) i = (i + 1) & (room - 1);
    return i;
}

static struct visit look(struct walk *w, bool memory) {
    struct visit v = {where(w), registers_hash(w), memory ? timeline_memory_hash(w->t) : 0, {0}, w->regs.eflags};
    memcpy(v.gpr, w->regs.gpr, sizeof v.gpr);
    return v;
}

static void say_difference(const struct visit *a, const struct visit *b) {
    static const char *const names[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    for (int i = 0; i < 16; i++)
        if (a->gpr[i] != b->gpr[i]) printf("  %s %" PRIx64 ", now %" PRIx64 "\n", names[i], a->gpr[i], b->gpr[i]);
    if (a->eflags != b->eflags) printf("  eflags %" PRIx64 ", now %" PRIx64 "\n", a->eflags, b->eflags);
}

/* Where memory differs from what another way leads to. */
static void say_where_memory_differs(struct walk *w, struct position at) {
    static struct memory_region regions[1024];
    size_t n = w->t->ops->regions(w->t, regions, 1024);
    uint8_t **was = calloc(n + 1, sizeof *was), *now = NULL;
    size_t *got = calloc(n + 1, sizeof *got);
    for (size_t i = 0; i < n; i++) {
        size_t len = regions[i].end - regions[i].start;
        if (!(regions[i].prot & 2) || !(was[i] = malloc(len))) continue;
        got[i] = w->t->ops->read_memory(w->t, regions[i].start, was[i], len);
    }
    w->t->ops->seek_begin(w->t);
    w->t->ops->seek(w->t, at);
    for (size_t i = 0, said = 0; i < n; i++) {
        now = realloc(now, got[i] + 1);
        size_t len = w->t->ops->read_memory(w->t, regions[i].start, now, got[i]);
        for (size_t k = 0; k + 8 <= len && said < 20; k += 8) {
            uint64_t a, b;
            memcpy(&a, was[i] + k, 8);
            memcpy(&b, now + k, 8);
            if (a != b)
                printf("  %" PRIx64 ": %" PRIx64 ", from the begin %" PRIx64 "\n", regions[i].start + k, a, b), said++;
        }
        free(was[i]);
    }
    free(now);
    free(was);
    free(got);
}

/* Compares the present place with its first visit. False: it differs. */
static bool check(struct walk *w, const char *how, bool memory) {
    struct visit now = look(w, memory);
    if (!room) {
        room = 1 << 20;
        visits = calloc(room, sizeof *visits);
    }
    struct visit *v = &visits[find(now.at)];
    if (!v->at.event) {
        if (n_visits++ < room / 2) *v = now;
        return true;
    }
    if (memory && !v->memory) v->memory = now.memory;
    bool same = v->registers == now.registers && (!memory || v->memory == now.memory);
    if (!same)
        printf("DIFFERENT at %" PRIu64 ":%" PRIu64 ":%" PRIu64 " pc %" PRIx64 " by %s: %s\n", now.at.event,
               now.at.ticks, now.at.steps, w->regs.rip, how, v->registers != now.registers ? "registers" : "memory");
    if (!same) say_difference(v, &now);
    if (!same && v->registers == now.registers) say_where_memory_differs(w, now.at);
    return same;
}

/* ---- walks ---- */

static bool there_and_back(struct walk *w, unsigned long n) {
    struct visit *path = calloc(n + 1, sizeof *path);
    unsigned long k = 0;
    path[k++] = look(w, true);
    double begin = now_s();
    while (k <= n) {
        struct stop s = w->t->ops->run(w->t, false, true);
        struct visit v = look(w, k % 8 == 0);
        bool moved = position_compare(v.at, path[k - 1].at) != 0; /* or a signal: the place is the same */
        v.is_signal = s.reason == STOP_SIGNAL;
        if (moved) path[k++] = v;
        if (is_end(s.reason)) break;
    }
    double middle = now_s();
    bool good = true;
    unsigned long there = k - 1;
    while (good && --k > 0) {
        struct stop s = w->t->ops->run(w->t, true, true);
        struct visit v = look(w, path[k - 1].memory != 0), *want = &path[k - 1];
        good = (s.reason == STOP_STEP || (want->is_signal && s.reason == STOP_SIGNAL)) &&
               position_compare(v.at, want->at) == 0 && v.registers == want->registers && v.memory == want->memory;
        if (!good)
            printf("DIFFERENT on the way back: %s at %" PRIu64 ":%" PRIu64 ":%" PRIu64 ", was %" PRIu64 ":%" PRIu64
                   ":%" PRIu64 " pc %" PRIx64 ", %s\n",
                   reason_name(s.reason), v.at.event, v.at.ticks, v.at.steps, want->at.event, want->at.ticks,
                   want->at.steps, w->regs.rip, v.registers != want->registers ? "registers" : "memory");
        if (!good) say_difference(want, &v);
    }
    if (good)
        printf("there and back: %lu steps, %.0f us forward, %.0f us back\n", there,
               (middle - begin) * 1e6 / (double)(there + 1), (now_s() - middle) * 1e6 / (double)(there + 1));
    free(path);
    return good;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool random_walk(struct walk *w, unsigned long n, unsigned seed) {
    static const char *const names[] = {"step", "back", "seek", "cont", "rcont"};
    static struct position seen[4096];
    size_t n_seen = 0, n_back = 0;
    double *back = calloc(n + 1, sizeof *back);
    bool good = true;
    struct position begin_at = where(w);
    w->t->ops->seek_end(w->t);
    uint64_t events = where(w).event - begin_at.event + 1;
    int what = 2, left = 0; /* moves of the same kind */
    srandom(seed);
    for (unsigned long i = 0; good && i < n; i++) {
        if (left-- <= 0) {
            long dice = random() % 100;
            what = dice < 35 ? 0 : dice < 70 ? 1 : dice < 94 ? 2 : dice < 97 ? 3 : 4;
            left = what < 2 ? (int)(random() % 24) : 0;
        }
        double begin = now_s();
        struct stop s;
        switch (what) {
        case 0: s = w->t->ops->run(w->t, false, true); break;
        case 1: s = w->t->ops->run(w->t, true, true); break;
        case 2:
            if (n_seen && random() % 2)
                s = w->t->ops->seek(w->t, seen[(size_t)random() % n_seen]);
            else
                s = w->t->ops->seek(w->t, (struct position){begin_at.event + (uint64_t)random() % events, 0, 0});
            break;
        case 3: s = w->t->ops->run(w->t, false, false); break;
        default: s = w->t->ops->run(w->t, true, false);
        }
        if (what == 1) back[n_back++] = now_s() - begin;
        if (s.reason == STOP_FAILED) {
            printf("FAILED by %s: %s\n", names[what], s.text);
            good = false;
        } else if (!is_end(s.reason) && s.reason != STOP_SIGNAL) { /* flags as the handler's frame will have them */
            good = check(w, names[what], random() % 8 == 0);
            seen[n_seen < 4096 ? n_seen++ : (size_t)random() % 4096] = where(w);
        }
    }
    qsort(back, n_back, sizeof *back, compare_doubles);
    if (good)
        printf("random walk: %lu moves, %zu places; back: median %.2f ms, worst %.1f ms\n", n, n_visits,
               n_back ? back[n_back / 2] * 1e3 : 0, n_back ? back[n_back - 1] * 1e3 : 0);
    free(back);
    return good;
}

/* ---- commands ---- */

static void say_regs(struct walk *w) {
    static const char *const names[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"};
    if (!w->t->ops->read_registers(w->t, 0, &w->regs)) return;
    for (int i = 0; i < 16; i++)
        if (i < 8)
            printf("%s %" PRIx64 " ", names[i], w->regs.gpr[i]);
        else
            printf("r%d %" PRIx64 " ", i, w->regs.gpr[i]);
    printf("rip %" PRIx64 " eflags %" PRIx64 " fs_base %" PRIx64 "\n", w->regs.rip, w->regs.eflags, w->regs.fs_base);
}

static void say_lists(struct walk *w, bool threads) {
    static struct thread_facts facts[256];
    static struct memory_region regions[1024];
    if (threads)
        for (size_t i = 0, n = w->t->ops->threads(w->t, facts, 256); i < n; i++)
            printf("%d %s: %s\n", facts[i].tid, facts[i].name, facts[i].state);
    else
        for (size_t i = 0, n = w->t->ops->regions(w->t, regions, 1024); i < n; i++)
            printf("%" PRIx64 "-%" PRIx64 " %x %s\n", regions[i].start, regions[i].end, regions[i].prot,
                   regions[i].name);
}

static int by_tid(const void *a, const void *b) {
    return ((const struct thread_facts *)a)->tid - ((const struct thread_facts *)b)->tid;
}

static void say_state(struct walk *w) {
    static struct thread_facts facts[256];
    size_t n = w->t->ops->threads(w->t, facts, 256);
    qsort(facts, n, sizeof *facts, by_tid);
    printf("memory %" PRIx64, timeline_memory_hash(w->t));
    for (size_t i = 0; i < n; i++) { /* those of one that is in a call are not known where a checkpoint was restored */
        bool vector = strncmp(facts[i].state, "in ", 3) != 0;
        printf(" %d: %" PRIx64 " (%s)", facts[i].tid, registers_hash_of(w, facts[i].tid, vector), facts[i].state);
    }
    printf("\n");
}

static void say_memory(struct walk *w, uint64_t addr, uint64_t n) {
    uint8_t bytes[256];
    size_t got = w->t->ops->read_memory(w->t, addr, bytes, n < sizeof bytes ? n : sizeof bytes);
    for (size_t i = 0; i < got; i++) printf("%02x", bytes[i]);
    printf("\n");
}

static bool obey(struct walk *w, const char *line) {
    const struct target_ops *ops = w->t->ops;
    char word[64] = "";
    uint64_t a = 0, b = 0, c = 0;
    int n = sscanf(line, "%63s %" SCNi64 " %" SCNi64 " %" SCNi64, word, (int64_t *)&a, (int64_t *)&b, (int64_t *)&c);
    if (n < 1 || word[0] == '#') return true;
    struct stop s = {.reason = STOP_STEP, .thread = ops->current_thread(w->t)};
    bool timed = strncmp(word, "time-", 5) == 0;
    double begin = now_s();
    if (timed) memmove(word, word + 5, strlen(word) - 4);
    if (strcmp(word, "step") == 0 || strcmp(word, "back") == 0) {
        for (uint64_t i = 0; i < (n > 1 ? a : 1) && !is_end(s.reason) && s.reason != STOP_BEGIN; i++)
            s = ops->run(w->t, word[0] == 'b', true);
    } else if (strcmp(word, "cont") == 0 || strcmp(word, "rcont") == 0) {
        s = ops->run(w->t, word[0] == 'r', false);
    } else if (strcmp(word, "seek") == 0) {
        s = ops->seek(w->t, (struct position){a, b, c});
    } else if (strcmp(word, "begin") == 0) {
        s = ops->seek_begin(w->t);
    } else if (strcmp(word, "end") == 0) {
        s = ops->seek_end(w->t);
    } else if (strcmp(word, "where") == 0) {
    } else if (strcmp(word, "break") == 0) {
        return ops->set_break(w->t, BREAK_EXEC, a, 1);
    } else if (strcmp(word, "watch") == 0 || strcmp(word, "rwatch") == 0 || strcmp(word, "awatch") == 0) {
        return ops->set_break(w->t, word[0] == 'w' ? BREAK_WRITE : word[0] == 'r' ? BREAK_READ : BREAK_ACCESS, a, b);
    } else if (strcmp(word, "catch") == 0) {
        struct catches c = {.forks = false};
        c.calls[a / 64 % (CALLS_MAX / 64)] = 1ull << a % 64;
        ops->want_catches(w->t, &c);
        return true;
    } else if (strcmp(word, "delete") == 0) {
        return ops->clear_break(w->t, (enum break_kind)a, b, c);
    } else if (strcmp(word, "there-and-back") == 0) {
        return there_and_back(w, a);
    } else if (strcmp(word, "random") == 0) {
        return random_walk(w, a, (unsigned)b);
    } else {
        if (strcmp(word, "regs") == 0) say_regs(w);
        if (strcmp(word, "hash") == 0) printf("%" PRIx64 "\n", timeline_memory_hash(w->t));
        if (strcmp(word, "state") == 0) say_state(w);
        if (strcmp(word, "monitor") == 0 || strcmp(word, "stored") == 0) {
            char text[8192] = "";
            const char *rest = line + strspn(line, " ");
            rest += strcspn(rest, " \n");
            rest += strspn(rest, " ");
            char command[256];
            snprintf(command, sizeof command, "%.*s", (int)strcspn(rest, "\n"), rest);
            const char *default_command = word[0] == 's' ? "stored" : "checkpoints";
            ops->command(w->t, command[0] ? command : default_command, text, sizeof text);
            fputs(text, stdout);
        }
        if (strcmp(word, "threads") == 0) say_lists(w, true);
        if (strcmp(word, "regions") == 0) say_lists(w, false);
        if (strcmp(word, "read") == 0) say_memory(w, a, b);
        if (strcmp(word, "write") == 0) return ops->write_memory(w->t, a, (uint8_t[]){(uint8_t)b}, 1);
        if (strcmp(word, "set-pc") == 0 && ops->read_registers(w->t, 0, &w->regs)) {
            w->regs.rip = a;
            return ops->write_registers(w->t, 0, &w->regs);
        }
        return true;
    }
    if (timed) printf("%.3f ms: ", (now_s() - begin) * 1e3);
    say_stop(w, &s);
    return s.reason != STOP_FAILED;
}

static int walk_main(int argc, char **argv) {
    static struct walk w;
    static struct replay_setup setup;
    struct timeline_options o = {.quiet = true};
    const char *name = NULL;
    char line[256], why[4608] = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-p") == 0 && i + 1 < argc)
            o.pid = atoi(argv[++i]);
        else if (strcmp(argv[i], "--from-start") == 0)
            o.from_start = true;
        else if (strcmp(argv[i], "--loud") == 0)
            o.quiet = false;
        else if (argv[i][0] == '-' || name)
            return usage_error(&verb_walk, "what is '%s'?", argv[i]);
        else
            name = argv[i];
    }
    if (!replay_set_up(&setup, name, true, false, NULL)) return EXIT_OURS;
    o.recording = setup.recording;
    o.options = &setup.options;
    o.store = setup.store;
    w.t = timeline_open(&o, why, sizeof why);
    if (!w.t) {
        complain("%s", why);
        return EXIT_OURS;
    }
    bool good = true;
    while (good && fgets(line, sizeof line, stdin)) {
        good = obey(&w, line);
        if (!good) printf("FAILED: %s", line);
        fflush(stdout);
    }
    w.t->ops->close(w.t);
    return good ? 0 : 1;
}

const struct verb verb_walk = {"walk", NULL, walk_usage, walk_main};
