/* Calls that the runtime performs itself or changes on their way, by family. Signature and result: gate_fn. */
#ifndef REPRISE_SPECIAL_H
#define REPRISE_SPECIAL_H

#include "sphere/gate.h"
#include "sphere/runtime.h"
#include "sphere/signals.h"

/* mm.c */
gate_fn sys_personality;
gate_fn sys_mlockall, sys_truncate;
gate_fn sys_mmap, sys_munmap, sys_mprotect, sys_pkey_mprotect, sys_mremap, sys_brk, sys_shmat, sys_shmdt, sys_shmctl;
gate_fn sys_rt_sigpending, sys_rt_sigtimedwait, sys_signalfd;
gate_fn sys_madvise, sys_process_madvise, sys_remap_file_pages;
/* Advice that headers of many systems do not know. */
enum { ADVICE_DONTNEED_LOCKED = 24, ADVICE_GUARD_INSTALL = 102, ADVICE_GUARD_REMOVE = 103 };
/* sig.c */
gate_fn sys_rt_sigsuspend, sys_ppoll, sys_pselect6, sys_epoll_pwait;
/* sleep.c */
gate_fn sys_nanosleep, sys_clock_nanosleep;
/* proc.c */
gate_fn sys_clone, sys_clone3, sys_fork, sys_vfork, sys_exit, sys_exit_group, sys_enosys;
/* An R-thread of the caller's address space with the caller's registers; nothing runs it yet. NULL: no memory. */
/* gate.S: the child starts in thread_child(). */
long clone_thread(long nr, const uint64_t args[6], struct thread *child);
struct thread *thread_make_child(struct tblock *t, uint64_t flags, gaddr stack);
/* Waits until the child of the fork that t has just made has left its memory, if that was asked for (CLONE_VFORK). */
void proc_await_left(struct thread *t);
/* exec.c */
gate_fn sys_execve, sys_execveat;
/* ptrace.c, wait.c */
gate_fn sys_ptrace, sys_wait4, sys_waitid, sys_kill, sys_tkill, sys_tgkill;
/* Whether the call sends SIGSTOP to a tracee: then it is on its way. */
bool ptrace_stops(uint64_t nr, const uint64_t a[6]);
/* foreign_memory.c */
gate_fn sys_process_vm_writev;
/* Writing to a descriptor that is the memory of another process of the sphere; at: -1, its own position. False: it is none. */
int foreign_memory_owner(int fd); /* whose it is; 0: it is none */
bool foreign_memory_write(int fd, gaddr from, uint64_t len, int64_t at, long *ret);
bool foreign_memory_writev(int fd, gaddr v, uint64_t n, int64_t at, long *ret);
/* prctl.c */
gate_fn sys_prctl, sys_seccomp, sys_arch_prctl, sys_modify_ldt;
/* fd.c: calls that could reach our own descriptor. sys_fdN: argument N names one and nothing else is special. */
gate_fn sys_close, sys_close_range, sys_dup2, sys_fd0, sys_fd1, sys_fd02, sys_fd3, sys_getdents, sys_sendmsg,
    sys_sendmmsg, sys_select, sys_poll;
/* path.c: calls with a path that may lead to what /proc says about the program */
gate_fn sys_open, sys_openat, sys_openat2, sys_stat, sys_lstat, sys_fstat, sys_access, sys_readlink, sys_readlinkat,
    sys_fstatat, sys_faccessat, sys_path0, sys_inotify_add_watch, sys_fd0_path1, sys_linkat;
/* listener.c */
gate_fn sys_ioctl;
/* namespaces.c */
gate_fn sys_unshare, sys_setns;
/* landlock.c */
gate_fn sys_landlock_restrict_self;
/* limits.c */
gate_fn sys_getrlimit, sys_setrlimit, sys_prlimit64;
/* file.c */
gate_fn sys_creat, sys_write, sys_writev, sys_pwrite64, sys_pwritev, sys_pwritev2;

/* Executes what fd is. TOMOYO (in Debian's kernels) looks for it as /dev/fd/N, which a chroot may not have; /proc it may. */
long exec_fd(int fd, gaddr argv, gaddr envp);

/* The runtime's own descriptor, as the calling thread has it. */
static inline int fd_own(void) { return thread_self()->files->rt_fd; }
/* The kernel has given the thread a table of its own. */
void fd_leave_table(struct thread *t);
/* Duplicates our n descriptors to consecutive free numbers from `least` on; the first of them, or -errno. */
long fd_move_own(int first, uint32_t n, int least);
bool fd_polls_own(const uint64_t a[6]);
long fd_poll_own(const uint64_t a[6]);
/* Whether f says yes to one of the descriptors in a message (struct msghdr). */
bool fd_any_in_message(gaddr at, bool (*f)(int32_t fd, void *arg), void *arg);
bool fd_selects_own(const uint64_t a[6]); /* the sets of select and pselect6 */
static inline bool fd_is_own(uint64_t fd) { return (uint32_t)((int)fd - fd_own()) < the_runtime.own_fds; }

/* PR_SET_MDWE: whether a mapping that was (not) executable may not become prot. */
bool mdwe_refuses(int prot, bool was_executable);

#endif
