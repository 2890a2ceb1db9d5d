/* Requests of ptrace that the kernel's header has no names for, or names that clash. */
#ifndef REPRISE_PTRACE_H
#define REPRISE_PTRACE_H

#define PTRACE_GETREGS_ 12
#define PTRACE_SETREGS_ 13
#define PTRACE_GETFPREGS_ 14
#define PTRACE_SETFPREGS_ 15
#define PTRACE_ARCH_PRCTL_ 30
#define PTRACE_SYSEMU_ 31
#define PTRACE_SYSEMU_SINGLESTEP_ 32
#define NT_PRSTATUS_ 1
#define NT_FPREGSET_ 2
#define NT_X86_XSTATE_ 0x202
#define FPREGS_SIZE 512

#endif
