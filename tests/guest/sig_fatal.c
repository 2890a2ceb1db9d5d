/* A child killed by each fatal signal, sent by itself, by its parent, or by its own fault, reports that signal. */
#include "guest.h"
#include <sys/resource.h>

int main(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    /* make's posix_spawn leaves the two signals of the C library ignored; sigaction() does not touch them */
    unsigned long dfl[4] = {0};
    for (int sig = 32; sig <= 33; sig++) syscall(SYS_rt_sigaction, sig, dfl, NULL, 8);
    for (int how = 0; how < 3; how++) {
        for (int sig = 1; sig < 65; sig++) {
            if (sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH || sig == SIGSTOP ||
                sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU || (sig > 34 && sig < 64))
                continue;
            int gate[2];
            CHECK(pipe(gate) == 0);
            pid_t pid = fork();
            if (!pid) {
                char c;
                close(gate[1]);
                if (how == 0)
                    kill(getpid(), sig);
                else if (how == 1)
                    (void)!read(gate[0], &c, 1);
                else {
                    (void)!write(gate[0], "", 0);
                    for (;;) {}
                }
                _exit(77);
            }
            close(gate[0]);
            if (how) {
                if (how == 1 && sig % 8 == 1) wait_asleep(pid, pid);
                kill(pid, sig);
            }
            int st;
            waitpid(pid, &st, 0);
            if (!WIFSIGNALED(st) || WTERMSIG(st) != sig) printf("FAIL %d %d: %s\n", how, sig, status_text(st));
            close(gate[1]);
        }
        printf("way %d done\n", how);
    }
    /* abort() and a signal with a handler that re-raises it with the default back in place */
    pid_t pid = fork();
    if (!pid) abort();
    printf("abort: %s\n", wait_text(pid));
    siginfo_t si;
    pid = fork();
    if (!pid) kill(getpid(), SIGTERM), pause();
    waitid(P_PID, pid, &si, WEXITED);
    printf("waitid: code killed %d, status %d\n", si.si_code == CLD_KILLED, si.si_status);
    return finish();
}
