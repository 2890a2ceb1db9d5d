/* prctl(PR_GET_TID_ADDRESS) and get_robust_list(): the words that the kernel clears and marks when a thread ends are those that the
 * thread, or who made it, named; fork() leaves the child none that it did not ask for. */
#include "guest.h"

#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/prctl.h>

static int word, other;

static int *tid_address(void) {
    int *at = (int *)1;
    return prctl(PR_GET_TID_ADDRESS, &at, 0, 0, 0) ? NULL : at;
}

static const char *name(const void *at) {
    return !at ? "none" : at == &word ? "word" : at == &other ? "other" : "its own";
}

static void *thread(void *arg) {
    printf("thread: %s, then", name(tid_address()));
    int *own = tid_address();
    CHECK(*own == (int)syscall(SYS_gettid));
    syscall(SYS_set_tid_address, &other);
    printf(" %s\n", name(tid_address()));
    syscall(SYS_set_tid_address, own);
    return NULL;
}

static void fork_with(const char *what, long flags, int *at) {
    pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, at, 0);
    if (pid == 0) {
        void *head = (void *)1;
        size_t len;
        syscall(SYS_get_robust_list, 0, &head, &len);
        printf("%s: %s, robust list: %s\n", what, name(tid_address()), name(head));
        _exit(0);
    }
    CHECK(pid > 0);
    wait_text(pid);
}

/* The first thread of a process that fork() made ends before the others: its word is cleared then. */
static void *outlives(void *arg) {
    for (int i = 0; i < 1000 && __atomic_load_n(&word, __ATOMIC_ACQUIRE); i++) sleep_ms(5);
    printf("first thread gone: %d\n", word);
    _exit(0);
}

static void first_ends(void) {
    word = 1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, &word, 0);
    if (pid == 0) {
        pthread_t t;
        pthread_create(&t, NULL, outlives, NULL);
        syscall(SYS_exit, 0);
    }
    wait_text(pid);
    printf("of the parent: %d\n", word);
}

int main(void) {
    int *own = tid_address();
    printf("at start: %s\n", name(own));
    CHECK(syscall(SYS_set_tid_address, &word) == syscall(SYS_gettid));
    printf("set: %s\n", name(tid_address()));
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    fork_with("plain fork", 0, &other);
    fork_with("cleared", CLONE_CHILD_CLEARTID, &other);
    fork_with("set", CLONE_CHILD_SETTID, &other);
    first_ends();
    CHECK(prctl(PR_GET_TID_ADDRESS, (void *)8, 0, 0, 0) == -1 && errno == EFAULT);
    syscall(SYS_set_tid_address, own);
    return finish();
}
