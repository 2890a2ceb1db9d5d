/* Raw system calls. The runtime has no libc: results are the kernel's own, -errno in [-4095, -1]. */
#ifndef REPRISE_SYS_H
#define REPRISE_SYS_H

#include <asm/unistd.h>
#include <linux/errno.h>

#include "inproc/types.h"

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

#define SYS_PICK(_0, _1, _2, _3, _4, _5, _6, NAME, ...) NAME
#define SYS_0(nr) sys6(nr, 0, 0, 0, 0, 0, 0)
#define SYS_1(nr, a) sys6(nr, (long)(a), 0, 0, 0, 0, 0)
#define SYS_2(nr, a, b) sys6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS_3(nr, a, b, c) sys6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS_4(nr, a, b, c, d) sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS_5(nr, a, b, c, d, e) sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS_6(nr, a, b, c, d, e, f) sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* SYS(openat, dirfd, path, flags, mode): any call by name, up to six arguments. */
#define SYS(name, ...)                                                                    \
    SYS_PICK(__NR_##name, ##__VA_ARGS__, SYS_6, SYS_5, SYS_4, SYS_3, SYS_2, SYS_1, SYS_0) \
    (__NR_##name, ##__VA_ARGS__)

static inline bool sys_failed(long ret) { return (unsigned long)ret > -4096ul; }

#endif
