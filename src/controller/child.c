/* The first process of the program. */
#include "controller/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/channel_host.h"
#include "controller/drain.h"

static sigset_t mask_before;
static struct sigaction child_before; /* SIGCHLD: if it is ignored, nobody can be waited for */

void child_fill_gaps(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0) return;
}

bool child_start(struct child *c, int (*become)(void *), void *arg) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_before);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &child_before);
    *c = (struct child){.pid = fork()};
    if (c->pid == 0) {
        sigaction(SIGCHLD, &child_before, NULL);
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
        _exit(become(arg));
    }
    return c->pid > 0;
}

struct proc_state {
    char state; /* 'X': there is none */
    pid_t parent;
};

static struct proc_state look_up(pid_t pid) {
    struct proc_state s = {'X', 0};
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return s;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    const char *after_name = strrchr(text, ')');
    if (after_name) sscanf(after_name + 1, " %c %d", &s.state, &s.parent);
    return s;
}

/* The program, or a process that it started. */
static bool is_of_program(pid_t program, pid_t pid) {
    for (int depth = 0; depth < 100 && pid > 1; depth++) {
        if (pid == program) return true;
        pid = look_up(pid).parent;
    }
    return false;
}

/* ---- signals ---- */

static uint32_t *the_bell;
static uint64_t to_hand_on;    /* bit signo */
static uint64_t from_terminal; /* the same: the program has got them already */
static pid_t sender[64];       /* of the last one, by signo */

static bool is_fault(int sig) {
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS;
}

/* A signal from the terminal goes to the whole group, the program has got it already; so it has, most likely, if it sent the
 * signal itself. One from somebody else is meant for the program but found us. */
static void on_signal(int sig, siginfo_t *info, void *context) {
    if (is_fault(sig) && info->si_code > 0) { /* ours: again, and for good */
        signal(sig, SIG_DFL);
        return;
    }
    if (sig != SIGCHLD && info->si_code <= 0) {
        sender[sig] = info->si_pid;
        __atomic_or_fetch(&to_hand_on, 1ull << sig, __ATOMIC_SEQ_CST);
    } else {
        __atomic_or_fetch(&from_terminal, 1ull << sig, __ATOMIC_SEQ_CST);
    }
    futex_ring(the_bell);
}

static const int left_alone[] = {SIGPIPE, SIGTTOU, SIGTTIN, SIGTSTP, SIGURG};

/* Whatever can be caught is: a program that sends a signal to its process group must not end its recording. */
static bool is_handed_on(int sig) {
    if (sig == SIGKILL || sig == SIGSTOP || sig == SIGCONT || sig == SIGCHLD) return false;
    for (unsigned i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
        if (sig == left_alone[i]) return false;
    return true;
}

static void set_handlers(void) {
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigfillset(&sa.sa_mask);
    sigaction(SIGCHLD, &sa, NULL);
    for (int sig = 1; sig < 64; sig++) /* the C library keeps two for itself and refuses them */
        if (is_handed_on(sig)) sigaction(sig, &sa, NULL);
    for (unsigned i = 0; i < sizeof left_alone / sizeof *left_alone; i++) signal(left_alone[i], SIG_IGN);
}

void child_let_go(const int *own, int n) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        if (null > 2) close(null);
    }
    for (int from = 3;;) { /* up to the lowest of ours that is not below `from` */
        int next = -1;
        for (int i = 0; i < n; i++)
            if (own[i] >= from && (next < 0 || own[i] < next)) next = own[i];
        if (next < 0) {
            close_range((unsigned)from, ~0u, 0);
            return;
        }
        if (next > from) close_range((unsigned)from, (unsigned)next - 1, 0);
        from = next + 1;
    }
}

void child_watch(struct child *c, uint32_t *bell) {
    sigset_t none;
    the_bell = bell;
    set_handlers();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- job control ---- */

static char state_of(pid_t pid) { return look_up(pid).state; }

static bool has_terminal(void) {
    int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (tty >= 0) close(tty);
    return tty >= 0;
}

/* Continues the controller when somebody continues the program alone. */
static pid_t start_waker(pid_t program) {
    pid_t controller = getpid(), waker = fork();
    if (waker) return waker;
    setpgid(0, 0);
    while (state_of(program) == 'T' && getppid() == controller) poll(NULL, 0, 20);
    kill(controller, SIGCONT);
    _exit(0);
}

/* The shell waits for us, so we stop when the program stops; whoever continues us means the program. */
static void stop_too(struct child *c) {
    if (!has_terminal()) return;
    pid_t waker = start_waker(c->pid);
    if (waker < 0) return;
    kill(getpid(), SIGSTOP);
    kill(waker, SIGKILL);
    waitpid(waker, NULL, 0);
    if (state_of(c->pid) == 'T') kill(c->pid, SIGCONT);
}

static bool ends(int sig) { return sig == SIGHUP || sig == SIGINT || sig == SIGQUIT || sig == SIGTERM; }

void child_look(struct child *c, const struct drain *d) {
    uint64_t sigs = __atomic_exchange_n(&to_hand_on, 0, __ATOMIC_SEQ_CST),
             typed = __atomic_exchange_n(&from_terminal, 0, __ATOMIC_SEQ_CST);
    for (int sig = 1; sig < 64; sig++) {
        bool meant = (sigs >> sig & 1) && !is_of_program(c->pid, sender[sig]) && !drain_knows(d, (uint32_t)sender[sig]);
        if (meant && !c->ended) kill(c->pid, sig);
        if (c->ended && ends(sig) && (meant || (typed >> sig & 1))) c->told_to_end = true;
    }
    if (c->ended) return;
    int status;
    while (waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid) {
        if (WIFSTOPPED(status)) {
            stop_too(c);
            continue;
        }
        c->ended = true;
        c->status = status;
        return;
    }
}

_Noreturn void exit_like(int status) {
    if (WIFSIGNALED(status)) {
        const int sig = WTERMSIG(status);
        sigset_t only;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(sig, SIG_DFL);
        sigemptyset(&only);
        sigaddset(&only, sig);
        sigprocmask(SIG_UNBLOCK, &only, NULL);
        raise(sig);
        _exit(128 + sig);
    }
    exit(WEXITSTATUS(status));
}
