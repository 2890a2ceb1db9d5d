// cflags: -static
/* prctl(PR_SET_TSC, PR_TSC_SIGSEGV): rdtsc and rdtscp fault, in threads and processes made later and behind execve, too. */
#include "guest.h"

#include <sys/prctl.h>

static int skip; /* bytes of the instruction that faults */

static void on_segv(int sig, siginfo_t *si, void *uc) {
    ucontext_t *c = uc;
    printf("signal %d, code %d, address %p, trap %lld, err %lld, at rdtsc: %d\n", sig, si->si_code, si->si_addr,
           c->uc_mcontext.gregs[REG_TRAPNO], c->uc_mcontext.gregs[REG_ERR],
           !memcmp((void *)c->uc_mcontext.gregs[REG_RIP], "\x0f\x01\xf9", 3) ||
               !memcmp((void *)c->uc_mcontext.gregs[REG_RIP], "\x0f\x31", 2));
    c->uc_mcontext.gregs[REG_RIP] += skip;
}

static int mode(void) {
    int m = -1;
    CHECK(prctl(PR_GET_TSC, &m, 0, 0, 0) == 0);
    return m;
}

static void set(int m) { CHECK(prctl(PR_SET_TSC, m, 0, 0, 0) == 0); }

static void tick(const char *who) {
    uint64_t a = 0x77, d = 0x77, c = 0x77;
    printf("%s, mode %d\n", who, mode());
    skip = 2;
    __asm__ volatile("rdtsc" : "+a"(a), "+d"(d));
    printf("rdtsc %s\n", a == 0x77 && d == 0x77 ? "left alone" : "done");
    skip = 3;
    __asm__ volatile("rdtscp" : "+a"(a), "+d"(d), "+c"(c));
    printf("rdtscp %s\n", a == 0x77 && d == 0x77 && c == 0x77 ? "left alone" : "done");
}

static void *thread(void *own) {
    tick("thread");
    set(PR_TSC_ENABLE);
    tick("thread, allowed");
    return NULL;
}

/* No dynamic linker there, which would read the counter itself. */
static void after_exec(void) {
    handle(SIGSEGV, on_segv, 0);
    tick("behind execve");
    set(PR_TSC_ENABLE);
    tick("behind execve, allowed");
    exit(0);
}

int main(int argc, char **argv) {
    if (argc > 1) after_exec();
    handle(SIGSEGV, on_segv, 0);
    tick("at start");
    set(PR_TSC_SIGSEGV);
    tick("forbidden");
    CHECK(prctl(PR_SET_TSC, 7, 0, 0, 0) == -1 && errno == EINVAL);
    CHECK(prctl(PR_GET_TSC, (void *)8, 0, 0, 0) == -1 && errno == EFAULT);
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    tick("after the thread");
    pid_t pid = fork();
    if (pid == 0) {
        tick("child");
        execl("/proc/self/exe", argv[0], "again", NULL);
        _exit(1);
    }
    printf("child: %s\n", wait_text(pid));
    pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        __asm__ volatile("rdtsc" : : : "rax", "rdx");
        _exit(0);
    }
    printf("unhandled: %s\n", wait_text(pid));
    set(PR_TSC_ENABLE);
    tick("allowed");
    return finish();
}
