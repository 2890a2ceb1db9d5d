#include "sphere/thread_end.h"

#include <linux/futex.h>

#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/shared.h"

#define ROBUST_MOST 2048 /* the kernel's ROBUST_LIST_LIMIT */

struct robust_head {
    uint64_t next;
    int64_t offset;
    uint64_t pending;
};

long thread_set_tid_address(struct thread *t, gaddr word) {
    t->clear_tid = word;
    return t->tid;
}

long thread_set_robust_list(struct thread *t, gaddr head, uint64_t len) {
    if (len != sizeof(struct robust_head)) return -EINVAL;
    t->robust_head = head;
    if (the_mode->kernel_signals) SYS(set_robust_list, head, len); /* for a process that is killed */
    return 0;
}

long thread_get_robust_list(struct thread *t, const uint64_t a[6]) {
    uint64_t len = sizeof(struct robust_head);
    if (a[0] && (int)a[0] != t->tid) return -EPERM;
    code_watch_before_kernel_write(a[1], 8);
    code_watch_before_kernel_write(a[2], 8);
    return guest_write(a[2], &len, 8) && guest_write(a[1], &t->robust_head, 8) ? 0 : -EFAULT;
}

/* A word that the thread may own: marked, and one waiter woken. */
static void owner_died(struct thread *t, gaddr word) {
    uint32_t value;
    if (word % 4 || !guest_read(&value, word, 4) || (value & FUTEX_TID_MASK) != (uint32_t)t->tid) return;
    uint32_t marked = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
    code_watch_before_kernel_write(word, 4);
    guest_write(word, &marked, 4);
    if (value & FUTEX_WAITERS) SYS(futex, word, FUTEX_WAKE, 1, 0, 0, 0);
}

static void robust_list(struct thread *t) {
    struct robust_head head;
    if (!t->robust_head || !guest_read(&head, t->robust_head, sizeof head)) return;
    uint64_t at = head.next, next;
    for (int i = 0; i < ROBUST_MOST && (at & ~1ull) != t->robust_head; i++) {
        bool more = guest_read(&next, at & ~1ull, 8);
        if ((at & ~1ull) != (head.pending & ~1ull)) owner_died(t, (at & ~1ull) + (uint64_t)head.offset);
        if (!more) break;
        at = next;
    }
    if (head.pending & ~1ull) owner_died(t, (head.pending & ~1ull) + (uint64_t)head.offset);
}

void thread_leave_mutexes(struct thread *t) {
    if (the_mode->kernel_signals) SYS(set_robust_list, 0, sizeof(struct robust_head));
    robust_list(t);
}

void process_clear_words(struct process *p) {
    if (!shared_active) return; /* nobody is left who could see it */
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->process == p) robust_list(t);
}

static void clear_tid(struct thread *t) {
    if (!t->clear_tid) return;
    uint32_t zero = 0;
    code_watch_before_kernel_write(t->clear_tid, 4);
    if (guest_write(t->clear_tid, &zero, 4)) SYS(futex, t->clear_tid, FUTEX_WAKE, 1, 0, 0, 0);
}

void thread_clear_words(struct thread *t) {
    thread_leave_mutexes(t);
    clear_tid(t);
}

void thread_clear_words_of_killed(struct thread *t) {
    robust_list(t);
    clear_tid(t);
}
