#include "sphere/sys/model.h"

#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/sys/special.h"

#define SPECIAL(name, fn) [__NR_##name] = fn

gate_fn *const model_special[MODEL_CALLS] = {
    SPECIAL(mmap, sys_mmap),
    SPECIAL(munmap, sys_munmap),
    SPECIAL(mprotect, sys_mprotect),
    SPECIAL(pkey_mprotect, sys_pkey_mprotect),
    SPECIAL(mremap, sys_mremap),
    SPECIAL(brk, sys_brk),
    SPECIAL(shmat, sys_shmat),
    SPECIAL(shmdt, sys_shmdt),
    SPECIAL(rt_sigaction, signals_sigaction),
    SPECIAL(rt_sigprocmask, signals_sigprocmask),
    SPECIAL(sigaltstack, signals_sigaltstack),
    SPECIAL(rt_sigreturn, signals_sigreturn),
    SPECIAL(rt_sigsuspend, sys_rt_sigsuspend),
    SPECIAL(ppoll, sys_ppoll),
    SPECIAL(pselect6, sys_pselect6),
    SPECIAL(epoll_pwait, sys_epoll_pwait),
    SPECIAL(epoll_pwait2, sys_epoll_pwait),
    SPECIAL(clone, sys_clone),
    SPECIAL(clone3, sys_clone3),
    SPECIAL(fork, sys_fork),
    SPECIAL(vfork, sys_vfork),
    SPECIAL(execve, sys_execve),
    SPECIAL(execveat, sys_execveat),
    SPECIAL(exit, sys_exit),
    SPECIAL(exit_group, sys_exit_group),
    SPECIAL(arch_prctl, sys_arch_prctl),
    SPECIAL(rseq, sys_enosys),
    SPECIAL(close, sys_close),
    SPECIAL(close_range, sys_close_range),
    SPECIAL(dup2, sys_dup2),
    SPECIAL(dup3, sys_dup2),
    SPECIAL(readlink, sys_readlink),
    SPECIAL(readlinkat, sys_readlinkat),
    SPECIAL(open, sys_open),
    SPECIAL(openat, sys_openat),
};

void model_before_kernel_write(uint64_t nr, const uint64_t a[6]) {
    switch (nr) {
    case __NR_futex:
    case __NR_write:
    case __NR_writev:
    case __NR_sched_yield:
    case __NR_madvise:
    case __NR_close:
    case __NR_mmap:
    case __NR_munmap:
    case __NR_mprotect:
    case __NR_rt_sigprocmask:
    case __NR_getpid:
    case __NR_gettid:
    case __NR_exit:
    case __NR_exit_group: return;
    case __NR_read:
    case __NR_pread64:
    case __NR_recvfrom: code_watch_before_kernel_write(a[1], a[2]); return;
    default: code_watch_before_any_kernel_write();
    }
}
