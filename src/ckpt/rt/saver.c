#include "ckpt/rt/saver.h"

#include <linux/futex.h>
#include <linux/sched.h>

#include "inproc/fds.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/sys/special.h"
#include "sphere/thread.h"

static struct thread *saver;
static void (*todo)(void *);
static void *todo_arg;
static bool ends;
static uint32_t asked, done; /* futexes */

static void wait_while(uint32_t *word, uint32_t seen) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen) SYS(futex, word, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
}

static void count_up(uint32_t *word) {
    __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    SYS(futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
}

static void saver_main(struct thread *t) {
    fds_close_all();
    for (uint32_t n = 0;; n++) {
        wait_while(&asked, n);
        if (ends) thread_exit(t, 0);
        todo(todo_arg);
        count_up(&done);
    }
}

bool saver_start(void) {
    if (saver) return true;
    struct thread *self = thread_self(), *child = thread_new(self->process, self->files);
    if (!child) return false;
    child->service = saver_main;
    uint64_t flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    uint64_t args[6] = {flags, child->tb->rt_sp}, all = ~0ull, mask;
    asked = done = 0;
    ends = false;
    SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &mask, 8);
    long ret = clone_thread(__NR_clone, args, child);
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
    if (ret < 0) {
        child->in_use = false;
        return false;
    }
    saver = child;
    return true;
}

void saver_wait(void) {
    for (uint32_t seen; saver && (seen = __atomic_load_n(&done, __ATOMIC_ACQUIRE)) != asked;) wait_while(&done, seen);
}

bool saver_is_busy(void) { return saver && __atomic_load_n(&done, __ATOMIC_ACQUIRE) != asked; }

void saver_begin(void (*fn)(void *), void *arg) {
    saver_wait();
    todo = fn;
    todo_arg = arg;
    if (saver)
        count_up(&asked);
    else
        fn(arg);
}

void saver_do(void (*fn)(void *), void *arg) {
    saver_begin(fn, arg);
    saver_wait();
}

bool saver_end(void) {
    if (!saver) return false;
    saver_wait();
    int pid = thread_self()->process->pid, tid = saver->tid;
    ends = true;
    count_up(&asked);
    while (SYS(tgkill, pid, tid, 0) == 0) SYS(sched_yield);
    saver = NULL;
    return true;
}

void saver_after_fork(void) { saver = NULL; }
