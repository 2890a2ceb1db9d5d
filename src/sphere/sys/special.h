/* Calls that the runtime performs itself or changes on their way, by family. Signature and result: gate_fn. */
#ifndef REPRISE_SPECIAL_H
#define REPRISE_SPECIAL_H

#include "sphere/gate.h"
#include "sphere/signals.h"

/* mm.c */
gate_fn sys_mmap, sys_munmap, sys_mprotect, sys_pkey_mprotect, sys_mremap, sys_brk, sys_shmat, sys_shmdt;
gate_fn sys_madvise, sys_process_madvise, sys_remap_file_pages;
/* sig.c */
gate_fn sys_rt_sigsuspend, sys_ppoll, sys_pselect6, sys_epoll_pwait;
/* proc.c */
gate_fn sys_clone, sys_clone3, sys_fork, sys_vfork, sys_execve, sys_execveat, sys_exit, sys_exit_group, sys_arch_prctl, sys_enosys;
/* fd.c */
gate_fn sys_close, sys_close_range, sys_dup2, sys_readlink, sys_readlinkat, sys_open, sys_openat;
/* file.c */
gate_fn sys_creat, sys_openat2, sys_write, sys_writev, sys_pwrite64, sys_pwritev, sys_pwritev2;

#endif
