/* A signal at each instruction of the runtime, on its way from one signal to the next call that waits: none is lost, or late.
 * Chance does not find places where one would be: this steps through them, with the kernel's ptrace.
 *
 *   signal_steps CALLS COMMAND...    COMMAND is run with an argument more, `guest`, which makes it this program again; begins so many
 *                                    calls of the kernel in front of the one that waits; 0: at the signal before
 * Prints where a signal was lost, and at last how many places there were. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEARD 200   /* descriptor: the guest writes its pid, and a byte for each signal */
#define PATIENCE 20 /* seconds */
#define TRAP_FLAG 0x100ull
#define SYSCALL_INSN 0x050f
#define INT3 0xcc
#define PUSHF 0x9c
#define REP 0xf3
#define REX_W 0x48

/* ---- the guest ---- */

static void on_signal(int signo) {
    if (write(HEARD, "s", 1) != 1) _exit(signo);
}

static int guest(void) {
    struct sigaction sa = {.sa_handler = on_signal};
    pid_t pid = getpid();
    sigaction(SIGUSR1, &sa, NULL);
    if (write(HEARD, &pid, sizeof pid) != sizeof pid) return 1;
    for (;;) pause();
}

/* ---- the tracer ---- */

static pid_t tracee;
static int heard;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static struct user_regs_struct regs(void) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, tracee, 0, &r)) fail("PTRACE_GETREGS");
    return r;
}

static int stop_signal(int status) {
    if (!WIFSTOPPED(status)) {
        printf("it has ended: %x\n", status);
        exit(1);
    }
    return WSTOPSIG(status);
}

static int await_stop(void) {
    int status;
    if (waitpid(tracee, &status, __WALL) != tracee) fail("waitpid");
    return stop_signal(status);
}

/* Our trap flag is not to be seen by what saves flags, nor to stay. */
static void clear_trap_flag(struct user_regs_struct *r) {
    if (!(r->eflags & TRAP_FLAG)) return;
    r->eflags &= ~TRAP_FLAG;
    ptrace(PTRACE_SETREGS, tracee, 0, r);
}

/* The length of a string instruction that is repeated; 0: it is none. */
static unsigned repeated(unsigned code) {
    unsigned len = (code >> 8 & 0xff) == REX_W ? 3 : 2, op = code >> 8 * (len - 1) & 0xff;
    return (code & 0xff) == REP && (op == 0xa4 || op == 0xa5 || op == 0xaa || op == 0xab) ? len : 0;
}

/* A string instruction as a whole: its repetitions would be a step each. */
static void step_over(uint64_t pc) {
    ptrace(PTRACE_POKEUSER, tracee, offsetof(struct user, u_debugreg[0]), pc);
    ptrace(PTRACE_POKEUSER, tracee, offsetof(struct user, u_debugreg[7]), 1);
    ptrace(PTRACE_CONT, tracee, 0, 0);
    await_stop();
    ptrace(PTRACE_POKEUSER, tracee, offsetof(struct user, u_debugreg[7]), 0);
}

/* One instruction. *pass: a signal to be delivered, before and after; the runtime has some of its own, like the trap of a tick. False:
 * the next one is a system call. */
static bool step(struct user_regs_struct *r, int *pass) {
    unsigned code = *pass ? 0 : (unsigned)ptrace(PTRACE_PEEKTEXT, tracee, r->rip, 0);
    unsigned long long sp = r->rsp;
    if ((code & 0xffff) == SYSCALL_INSN) return false;
    unsigned len = repeated(code);
    if (len) {
        step_over(r->rip + len);
        *r = regs();
        return true;
    }
    ptrace(PTRACE_SINGLESTEP, tracee, 0, *pass);
    int signo = await_stop();
    *pass = signo != SIGTRAP || (code & 0xff) == INT3 ? signo : 0;
    if ((code & 0xff) == PUSHF) {
        long word = ptrace(PTRACE_PEEKDATA, tracee, sp - 8, 0);
        ptrace(PTRACE_POKEDATA, tracee, sp - 8, word & ~(long)TRAP_FLAG);
    }
    *r = regs();
    clear_trap_flag(r);
    return true;
}

/* Behind the next system call. False: it is one that waits. */
static bool to_next_call(int *pass) {
    int signo;
    for (bool inside = false;;) {
        ptrace(PTRACE_SYSCALL, tracee, 0, *pass);
        signo = await_stop();
        *pass = signo == (SIGTRAP | 0x80) ? 0 : signo;
        if (signo != (SIGTRAP | 0x80)) continue;
        if (inside) return true;
        if (regs().orig_rax == SYS_pause) return false;
        inside = true;
    }
}

/* Lets it run until it has heard of n signals. */
static int hear(int n, int pass) {
    struct pollfd p = {.fd = heard, .events = POLLIN};
    int status, got = 0;
    char c;
    ptrace(PTRACE_CONT, tracee, 0, pass);
    for (time_t end = time(NULL) + PATIENCE; got < n && time(NULL) < end;) {
        if (waitpid(tracee, &status, __WALL | WNOHANG) == tracee)
            ptrace(PTRACE_CONT, tracee, 0, stop_signal(status) & 0x7f);
        else if (poll(&p, 1, 1) == 1 && read(heard, &c, 1) == 1)
            got++;
    }
    return got;
}

/* Until it waits again. */
static void settle(void) {
    char path[40], text[8];
    int status;
    snprintf(path, sizeof path, "/proc/%d/syscall", tracee);
    for (time_t end = time(NULL) + PATIENCE; time(NULL) < end;) {
        while (waitpid(tracee, &status, __WALL | WNOHANG) == tracee)
            ptrace(PTRACE_CONT, tracee, 0, stop_signal(status) & 0x7f);
        FILE *f = fopen(path, "r");
        bool waits = f && fgets(text, sizeof text, f) && atoi(text) == SYS_pause;
        if (f) fclose(f);
        if (waits) return;
        usleep(100);
    }
}

enum place { THERE, NEXT_CALL, OVER };

/* Places behind one call that were tried: pc and stack pointer, so that loops count once. */
#define TRIED 65536
static uint64_t tried[TRIED];

static bool is_new(const struct user_regs_struct *r) {
    uint64_t key = (r->rip << 20) ^ r->rsp;
    for (uint64_t i = key * 0x9e3779b97f4a7c15ull >> 48;; i = (i + 1) % TRIED) {
        if (tried[i] == key) return false;
        if (tried[i]) continue;
        tried[i] = key;
        return true;
    }
}

/* To the next place to try, behind the `calls`-th call behind a signal. */
static enum place go_on(int calls, struct user_regs_struct *r, int *pass) {
    settle();
    kill(tracee, SIGUSR1);
    *pass = await_stop();
    for (int i = 0; i < calls; i++)
        if (!to_next_call(pass)) return OVER;
    *r = regs();
    while (step(r, pass))
        if (is_new(r)) return THERE;
    return NEXT_CALL;
}

/* How many calls there are between a signal and the call that waits. */
static int count_calls(void) {
    int n = 0, pass;
    settle();
    kill(tracee, SIGUSR1);
    pass = await_stop();
    while (to_next_call(&pass)) n++;
    hear(1, pass);
    return n;
}

static int try_all(int calls) {
    struct user_regs_struct r = {0};
    int lost = 0, places = 0, pass;
    for (enum place is = THERE; is != OVER;) {
        is = go_on(calls, &r, &pass);
        int sent = is == THERE ? 2 : 1;
        if (is == THERE) syscall(SYS_tgkill, tracee, tracee, SIGUSR1);
        if (hear(sent, pass) < sent) {
            printf("lost at %llx, behind call %d\n", r.rip, calls);
            lost++;
            kill(tracee, SIGUSR1);
            if (!hear(1, 0)) break;
        }
        places += is == THERE;
        if (is != NEXT_CALL) continue;
        calls++;
        memset(tried, 0, sizeof tried);
    }
    printf("%d places, %d lost\n", places, lost);
    return lost || places < 30;
}

/* Tracer and tracee take turns: that is quicker on one processor. */
static void stay_here(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv) {
    int ends[2];
    if (argc == 2 && strcmp(argv[1], "guest") == 0) return guest();
    if (argc < 3 || pipe(ends)) return 2;
    stay_here();
    pid_t child = fork();
    if (child == 0) {
        char *words[argc];
        memcpy(words, argv + 2, sizeof *words * (size_t)(argc - 2));
        words[argc - 2] = "guest";
        words[argc - 1] = NULL;
        dup2(ends[1], HEARD);
        execv(words[0], words);
        _exit(127);
    }
    close(ends[1]);
    heard = ends[0];
    if (read(heard, &tracee, sizeof tracee) != sizeof tracee) return 1;
    if (ptrace(PTRACE_SEIZE, tracee, 0, PTRACE_O_TRACESYSGOOD)) fail("PTRACE_SEIZE");
    count_calls(); /* the first time it makes some more */
    int n = count_calls(), last = atoi(argv[1]);
    int bad = try_all(last && last < n ? n - last + 1 : 0);
    fflush(stdout);
    kill(tracee, SIGKILL);
    while (wait(NULL) > 0) continue;
    return bad;
}
