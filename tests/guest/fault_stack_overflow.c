// cflags: -Wno-infinite-recursion
/* Running out of stack: the handler runs on the alternate stack, in the main thread and in another. */
#include "guest.h"

static sigjmp_buf out;
static volatile int hits;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    hits++;
    siglongjmp(out, 1);
}
__attribute__((noinline)) static int eat(int n) {
    volatile char pad[1000];
    pad[0] = n;
    return eat(n + 1) + pad[0];
}
static void overflow_here(void) {
    stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&ss, NULL);
    for (volatile int i = 0; i < 5; i++)
        if (sigsetjmp(out, 1) == 0) eat(0);
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
    free(ss.ss_sp);
}
static void *thread(void *arg) {
    overflow_here();
    return arg;
}

int main(void) {
    handle(SIGSEGV, on, SA_ONSTACK);
    overflow_here();
    printf("main: %d\n", hits);
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    printf("with thread: %d\n", hits);

    pid_t pid = fork();
    if (!pid) eat(0); /* no alternate stack: no room for the frame, so it dies */
    printf("without an alternate stack: %s\n", wait_text(pid));
    return finish();
}
