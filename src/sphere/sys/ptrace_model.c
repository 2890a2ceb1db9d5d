/* What ptrace writes. */
#include <linux/ptrace.h>

#include "sphere/gate.h"
#include "sphere/sys/model.h"
#include "sphere/sys/ptrace.h"
#include "sphere/trace_table.h"

static void write_regset(gaddr vector, struct writes *w) {
    struct iovec_raw v;
    if (!writes_read(w, &v, vector, sizeof v)) return;
    writes_range(w, v.base, MIN(v.len, (uint64_t)TRACE_EXTENDED));
    writes_range(w, vector, sizeof v);
}

void writes_ptrace(const uint64_t a[6], struct writes *w) {
    if (w->is_done && w->ret < 0) return;
    switch (a[0]) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
    case PTRACE_PEEKUSR:
    case PTRACE_GETEVENTMSG:
    case PTRACE_GETSIGMASK: writes_range(w, a[3], 8); break;
    case PTRACE_POKETEXT:
    case PTRACE_POKEDATA: writes_range(w, a[2], 8); break; /* in case that the memory is our own */
    case PTRACE_GETREGS_: writes_range(w, a[3], sizeof(struct user_regs)); break;
    case PTRACE_GETFPREGS_: writes_range(w, a[3], FPREGS_SIZE); break;
    case PTRACE_GETSIGINFO: writes_range(w, a[3], sizeof(struct siginfo_raw)); break;
    case PTRACE_ARCH_PRCTL_:
        if (a[3] >= 0x1003) writes_range(w, a[2], 8);
        break;
    case PTRACE_GETREGSET:
    case PTRACE_SETREGSET: write_regset(a[3], w); break;
    case PTRACE_GET_SYSCALL_INFO: writes_range(w, a[3], MIN(a[2], w->is_done ? (uint64_t)w->ret : 80ul)); break;
    }
}
