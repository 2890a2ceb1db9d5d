/* sigaltstack: where handlers run, what sigaltstack and uc_stack report, EPERM while on it, SS_AUTODISARM. */
#include "guest.h"

static char *area;
static size_t size = 64 << 10;
static volatile int on_it, reported, eperm, runs;

static void handler(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    char here;
    ucontext_t *uc = ctx;
    stack_t now, other = {.ss_sp = area, .ss_size = size};
    runs++;
    on_it = &here >= area && &here < area + size;
    sigaltstack(NULL, &now);
    reported = now.ss_flags;
    eperm = sigaltstack(&other, NULL) == -1 && errno == EPERM;
    CHECK((uc->uc_stack.ss_flags & SS_DISABLE) || (uc->uc_stack.ss_sp == area && uc->uc_stack.ss_size == size));
}

static void nested(int sig, siginfo_t *si, void *ctx) {
    (void)si, (void)ctx;
    char here;
    if (sig == SIGUSR1) raise(SIGUSR2);
    CHECK(&here >= area && &here < area + size);
    runs++;
}

int main(void) {
    area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t ss = {.ss_sp = area, .ss_size = size}, old;
    CHECK(sigaltstack(&ss, &old) == 0 && (old.ss_flags & SS_DISABLE));
    handle(SIGUSR1, handler, SA_ONSTACK);
    raise(SIGUSR1);
    printf("on it %d, flags %d, EPERM %d\n", on_it, reported, eperm);
    handle(SIGUSR1, handler, 0);
    raise(SIGUSR1);
    printf("without SA_ONSTACK: on it %d, flags %d, EPERM %d\n", on_it, reported, eperm);

    handle(SIGUSR1, nested, SA_ONSTACK), handle(SIGUSR2, nested, SA_ONSTACK);
    raise(SIGUSR1);

    ss.ss_flags = (int)(1u << 31) /* SS_AUTODISARM */;
    sigaltstack(&ss, NULL);
    handle(SIGUSR1, handler, SA_ONSTACK);
    raise(SIGUSR1);
    printf("autodisarm: on it %d, flags %d, EPERM %d\n", on_it, reported, eperm);
    sigaltstack(NULL, &old);
    CHECK(old.ss_sp == area && old.ss_size == size);

    ss.ss_size = 100;
    CHECK(sigaltstack(&ss, NULL) == -1 && errno == ENOMEM);
    ss.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&ss, NULL) == 0);
    raise(SIGUSR1);
    CHECK(!on_it);
    printf("runs %d\n", runs);
    return finish();
}
