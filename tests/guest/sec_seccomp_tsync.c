/* Filters that come from another thread (SECCOMP_FILTER_FLAG_TSYNC) bring that one's no_new_privs along. */
#include "guest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

static volatile int stage;
static int before, after;

static int privs(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }

static void *other(void *arg) {
    before = privs();
    stage = 1;
    while (stage != 2) sched_yield();
    after = privs();
    return arg;
}

static void *made_by_other(void *arg) {
    printf("child of a thread that has not asked: %d\n", privs());
    return arg;
}

static void *sleeper(void *arg) {
    while (stage != 2) sched_yield();
    pthread_t t;
    CHECK(pthread_create(&t, NULL, made_by_other, NULL) == 0);
    pthread_join(t, NULL);
    return arg;
}

int main(void) {
    struct sock_filter f[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {.len = 1, .filter = f};
    pthread_t t[2];
    CHECK(pthread_create(&t[0], NULL, other, NULL) == 0);
    CHECK(pthread_create(&t[1], NULL, sleeper, NULL) == 0);
    while (!stage) sched_yield();
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p) == 0);
    stage = 2;
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    printf("no_new_privs: self %d, other %d, then %d\n", privs(), before, after);
    return finish();
}
