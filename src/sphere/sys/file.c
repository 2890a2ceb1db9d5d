/* Calls that open or change files from which code may have been translated. */
#include "inproc/sys.h"
#include "sphere/code_files.h"
#include "sphere/sys/special.h"

static long wrote(long ret, uint64_t fd, int64_t pos) {
    if (unlikely(code_files_mem_open) && ret > 0) code_files_written((int)fd, pos, (size_t)ret);
    return ret;
}

static bool is_foreign(const uint64_t a[6], int64_t pos, long *ret) {
    return unlikely(code_files_mem_open) && foreign_memory_write((int)a[0], a[1], a[2], pos, ret);
}

static bool is_foreign_vector(const uint64_t a[6], int64_t pos, long *ret) {
    return unlikely(code_files_mem_open) && foreign_memory_writev((int)a[0], a[1], a[2], pos, ret);
}

long sys_write(struct tblock *t, uint64_t a[6]) {
    long ret;
    if (is_foreign(a, -1, &ret)) return ret;
    return wrote(gate_syscall(__NR_write, a), a[0], -1);
}
long sys_writev(struct tblock *t, uint64_t a[6]) {
    long ret;
    if (is_foreign_vector(a, -1, &ret)) return ret;
    return wrote(gate_syscall(__NR_writev, a), a[0], -1);
}
long sys_pwrite64(struct tblock *t, uint64_t a[6]) {
    long ret;
    if (is_foreign(a, (int64_t)a[3], &ret)) return ret;
    return wrote(gate_syscall(__NR_pwrite64, a), a[0], (int64_t)a[3]);
}
long sys_pwritev(struct tblock *t, uint64_t a[6]) {
    long ret;
    if (is_foreign_vector(a, (int64_t)a[3], &ret)) return ret;
    return wrote(gate_syscall(__NR_pwritev, a), a[0], (int64_t)a[3]);
}
long sys_pwritev2(struct tblock *t, uint64_t a[6]) {
    long ret;
    if (!a[5] && is_foreign_vector(a, (int64_t)a[3], &ret)) return ret;
    return wrote(gate_syscall(__NR_pwritev2, a), a[0], (int64_t)a[3]);
}
