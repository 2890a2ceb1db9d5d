/* Signals: handlers, one inside another, faults that are repaired or jumped out of, and how the program dies if it is told to. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

volatile int handled, faults, alarms, last;
static sigjmp_buf out;
static char *page;

static void on_usr1(int sig) {
    handled++;
    last = sig;
    if (handled == 2) raise(SIGUSR2);
}

static void on_usr2(int sig) {
    handled += 10;
    last = sig;
}

static void on_segv(int sig) {
    faults++;
    last = sig;
    siglongjmp(out, faults);
}

static void on_bus(int sig, siginfo_t *info, void *context) {
    faults += 100;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void on_alarm(int sig) { alarms++; }

static void set(int sig, void (*handler)(int)) { sigaction(sig, &(struct sigaction){.sa_handler = handler}, NULL); }

static void fault(void) {
    volatile int *nowhere = (int *)16;
    if (sigsetjmp(out, 1) == 0) *nowhere = 1;
}

static void repair(void) {
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, NULL);
    page[5] = 'r';
    set(SIGSEGV, on_segv);
}

static void compute(void) {
    struct itimerval every = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (volatile long i = 0; alarms < 4; i++) {}
    setitimer(ITIMER_REAL, &never, NULL);
}

/* Nothing comes between the fault and the end. */
static void leave(int sig) {
    for (last = 0; last < 20; last++) {}
    _exit(3);
}

static void die(const char *how) {
    set(SIGSEGV, strcmp(how, "leave") == 0 ? leave : SIG_DFL);
    if (strcmp(how, "leave") == 0) *(volatile int *)32 = 5;
    if (strcmp(how, "crash") == 0) *(volatile int *)32 = 5;
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
}

int main(int argc, char **argv) {
    set(SIGUSR1, on_usr1);
    set(SIGUSR2, on_usr2);
    set(SIGSEGV, on_segv);
    set(SIGALRM, on_alarm);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    fault();
    fault();
    repair();
    compute();
    printf("%d %d %d %d\n", handled, faults, alarms, last);
    fflush(stdout);
    if (argc > 1) die(argv[1]);
    return 0;
}
