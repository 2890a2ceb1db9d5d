/* Signals as gdb counts them. */
#include "rsp/gdb_signal.h"

#include <signal.h>

static const unsigned char numbers[32] = {
    [SIGHUP] = 1,   [SIGINT] = 2,    [SIGQUIT] = 3,  [SIGILL] = 4,   [SIGTRAP] = 5,  [SIGABRT] = 6,
    [SIGBUS] = 10,  [SIGFPE] = 8,    [SIGKILL] = 9,  [SIGUSR1] = 30, [SIGSEGV] = 11, [SIGUSR2] = 31,
    [SIGPIPE] = 13, [SIGALRM] = 14,  [SIGTERM] = 15, [SIGCHLD] = 20, [SIGCONT] = 19, [SIGSTOP] = 17,
    [SIGTSTP] = 18, [SIGTTIN] = 21,  [SIGTTOU] = 22, [SIGURG] = 16,  [SIGXCPU] = 24, [SIGXFSZ] = 25,
    [SIGPROF] = 27, [SIGWINCH] = 28, [SIGIO] = 23,   [SIGPWR] = 32,  [SIGSYS] = 12,  [SIGVTALRM] = 26,
};

int gdb_signal(int signo) {
    if (signo == 0) return GDB_SIGNAL_NONE;
    if (signo > 0 && signo < 32 && numbers[signo]) return numbers[signo];
    if (signo >= 33 && signo <= 63) return 45 + (signo - 33);
    if (signo == 32) return 77;
    if (signo == 64) return 78;
    return GDB_SIGNAL_UNKNOWN;
}
