/* Calls that change the address space. */
#include <linux/mman.h>

#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/sys/special.h"

long sys_mmap(struct tblock *t, uint64_t a[6]) {
    if (a[5] & ~PAGE_MASK) return -EINVAL;
    return aspace_mmap(a[0], a[1], (int)a[2], (int)a[3], (int)a[4], a[5]);
}

long sys_munmap(struct tblock *t, uint64_t a[6]) { return aspace_munmap(a[0], a[1]); }

long sys_mprotect(struct tblock *t, uint64_t a[6]) { return aspace_mprotect(a[0], a[1], (int)a[2]); }

long sys_pkey_mprotect(struct tblock *t, uint64_t a[6]) {
    if ((int)a[3] == -1) return aspace_mprotect(a[0], a[1], (int)a[2]);
    return -EINVAL; /* no keys are given out */
}

long sys_mremap(struct tblock *t, uint64_t a[6]) { return aspace_mremap(a[0], a[1], a[2], (int)a[3], a[4]); }

long sys_brk(struct tblock *t, uint64_t a[6]) { return (long)aspace_brk(a[0]); }

long sys_shmat(struct tblock *t, uint64_t a[6]) { return aspace_shmat((int)a[0], a[1], (int)a[2]); }

long sys_shmdt(struct tblock *t, uint64_t a[6]) { return aspace_shmdt(a[0]); }
