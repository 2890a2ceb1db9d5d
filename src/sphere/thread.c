#include "sphere/thread.h"

#include <linux/mman.h>
#include <linux/personality.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/gate.h"
#include "sphere/task_state.h"
#include "sphere/traced.h"

/* Offsets in a thread's slot; the gaps stay unmapped; scratch.c has one more part.
 * The head holds what translated code writes all the time. AMD's first-level cache tells the lines of a set apart by 8 bits, the
 * exclusive or of address bits 12-19 and 20-27 (in an odd order), and a store to one of two lines that it takes for the same makes
 * the next access to the other a miss. Round addresses all hash to nearly 0, among them those of the program's stack, whose top is
 * round, too: python3 took twice its time with some lengths of the environment. Hence a page number that is not round, and
 * a place on the page where few allocations start. */
#define SLOT_SIGSTACK 0x10000
#define SLOT_SIGSTACK_SIZE 0x18000
#define SLOT_HEAD 0x2a6c0
#define SLOT_STACK 0x40000
#define SLOT_STACK_SIZE 0x60000

#define ARCH_SET_GS 0x1001

struct slot_head {
    struct tblock tb;
    struct thread thread;
    struct process process;
    struct files files;
};
_Static_assert(PAGE_UP(SLOT_HEAD + sizeof(struct slot_head)) <= SLOT_STACK - PAGE_SIZE, "a gap behind the head");

static struct lock slots_lock;
static uint64_t n_slots;
static struct thread *threads; /* every slot that was ever made */

static bool map_part(uint64_t at, size_t len) {
    return SYS(mmap, at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE,
               -1, 0) == (long)at;
}

static struct thread *slot_make(void) {
    uint64_t base = LAYOUT_THREADS + n_slots * LAYOUT_THREAD_SLOT;
    if (base + LAYOUT_THREAD_SLOT > LAYOUT_THREADS_END) return NULL;
    if (!map_part(base + PAGE_DOWN(SLOT_HEAD), PAGE_UP(SLOT_HEAD + sizeof(struct slot_head)) - PAGE_DOWN(SLOT_HEAD)) ||
        !map_part(base + SLOT_SIGSTACK, SLOT_SIGSTACK_SIZE) || !map_part(base + SLOT_STACK, SLOT_STACK_SIZE)) {
        SYS(munmap, base, LAYOUT_THREAD_SLOT);
        return NULL;
    }
    n_slots++;
    struct slot_head *h = (struct slot_head *)(base + SLOT_HEAD);
    h->thread.tb = &h->tb;
    h->thread.next = threads;
    __atomic_store_n(&threads, &h->thread, __ATOMIC_RELEASE);
    return &h->thread;
}

void thread_set_personality(struct thread *t, uint64_t personality) {
    if ((uint32_t)personality != UINT32_MAX) t->reads_imply_exec = personality & READ_IMPLIES_EXEC;
}

int thread_prot(const struct thread *t, uint64_t prot) {
    return (int)prot | ((prot & PROT_READ) && t->reads_imply_exec ? PROT_EXEC : 0);
}

struct thread *thread_new(struct process *p, struct files *files) {
    lock_take(&slots_lock);
    struct thread *t = threads;
    while (t && __atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE)) t = t->next;
    if (!t) t = slot_make();
    if (t) {
        struct thread *next = t->next;
        struct tblock *tb = t->tb;
        uint64_t base = (uint64_t)tb - SLOT_HEAD;
        memset(tb, 0, sizeof *tb);
        memset(t, 0, sizeof *t);
        t->next = next;
        t->tb = tb;
        t->process = p;
        t->files = files;
        t->sigstack = (uint8_t *)base + SLOT_SIGSTACK;
        t->altstack.flags = 2; /* SS_DISABLE */
        tb->rt_sp = base + SLOT_STACK + SLOT_STACK_SIZE - 64;
        tb->thread = t;
        engine_init_tblock(tb);
        tb->epoch = UINT64_MAX; /* holds nothing of the cache until it runs */
        __atomic_store_n(&t->in_use, true, __ATOMIC_RELEASE);
    }
    lock_drop(&slots_lock);
    return t;
}

void thread_take_name(struct thread *t, gaddr from) {
    char name[sizeof t->debugged.name];
    size_t n = sizeof name;
    while (n && !guest_read(name, from, n)) n--;
    memset(name + n, 0, sizeof name - n);
    name[sizeof name - 1] = '\0';
    memcpy(t->debugged.name, name, sizeof name);
}

/* R-threads that no kernel thread has adopted (replay) are all in the one process. */
static uint32_t own_id(void) {
    uint32_t pid = tblock_self()->pid;
    return pid ? pid : 1;
}
static bool is_dead(uint32_t pid) { return task_is_over((int)pid); }

void thread_adopt(struct thread *t) {
    t->tgid = (int)SYS(getpid);
    t->tb->pid = (uint32_t)t->tgid;
    SYS(arch_prctl, ARCH_SET_GS, t->tb);
    struct altstack ss = {(uint64_t)t->sigstack, 0, 0, SLOT_SIGSTACK_SIZE};
    SYS(sigaltstack, &ss, 0);
    lock_own_id = own_id;
    lock_is_dead = is_dead;
    __atomic_store_n(&t->tid, (int)SYS(gettid), __ATOMIC_RELEASE);
}

void thread_exit(struct thread *t, int status) {
    uint64_t all = ~0ull;
    SYS(rt_sigprocmask, 0, &all, 0, 8);
    if (the_policy->thread_end) the_policy->thread_end(t->tb);
    if (t->vforked) SYS(exit, status);
    /* from the moment the slot is free, this stack may belong to somebody else: nothing but registers from here on */
    __asm__ volatile("movb $0, (%0)\n\t"
                     "syscall\n\t"
                     "ud2"
                     :
                     : "r"(&t->in_use), "a"(__NR_exit), "D"(status)
                     : "memory", "rcx", "r11");
    __builtin_unreachable();
}

struct process *thread_own_process(struct thread *t) {
    return &((struct slot_head *)t->tb)->process;
}

struct files *thread_own_files(struct thread *t) {
    return &((struct slot_head *)t->tb)->files;
}

void threads_hold(void) { lock_take(&slots_lock); }
void threads_release(void) { lock_drop(&slots_lock); }

void threads_after_fork(struct thread *self) {
    for (struct thread *t = threads; t; t = t->next)
        if (t != self) t->in_use = false;
    self->tgid = (int)SYS(getpid);
    self->tb->pid = (uint32_t)self->tgid;
    self->tid = (int)SYS(gettid);
    self->n_pending = 0; /* nothing could come since the fork: it was all sent to the parent */
    self->clear_tid = self->robust_head = 0;
    self->tracee = NULL;
    self->shares_memory = self->process->shares_memory = self->vforked = false;
    traced_step_over(self); /* the parent's */
    self->kicked = self->traced_by_outsider = self->stopped_inside = false;
    self->tb->kick = 0; /* that one, too */
    self->tb->pending = 0;
}

uint64_t threads_oldest_epoch(void) {
    uint64_t oldest = UINT64_MAX;
    for (struct thread *t = threads_first(); t; t = t->next)
        if (__atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE))
            oldest = MIN(oldest, __atomic_load_n(&t->tb->epoch, __ATOMIC_SEQ_CST));
    return oldest;
}

struct thread *threads_first(void) {
    return __atomic_load_n(&threads, __ATOMIC_ACQUIRE);
}
