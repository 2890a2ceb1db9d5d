/* The rings of io_uring, which the kernel maps nowhere but where it chooses itself. Recorded, there is no io_uring. */
#include "guest.h"

#include <linux/io_uring.h>
#include <sys/mman.h>

static uint32_t *at(void *ring, uint32_t offset) { return (uint32_t *)((char *)ring + offset); }

int main(void) {
    struct io_uring_params p = {0};
    int fd = syscall(SYS_io_uring_setup, 4, &p);
    if (fd < 0) return finish(); /* forbidden, or not there */
    size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t entries_size = p.sq_entries * sizeof(struct io_uring_sqe);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    void *sq = mmap(NULL, sq_size, prot, flags, fd, IORING_OFF_SQ_RING);
    void *cq = mmap(NULL, cq_size, prot, flags, fd, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, entries_size, prot, flags, fd, IORING_OFF_SQES);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && entries != MAP_FAILED);
    entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 42};
    *at(sq, p.sq_off.array) = 0;
    __atomic_store_n(at(sq, p.sq_off.tail), 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    CHECK(__atomic_load_n(at(cq, p.cq_off.tail), __ATOMIC_ACQUIRE) == 1);
    CHECK(((struct io_uring_cqe *)at(cq, p.cq_off.cqes))->user_data == 42);
    CHECK(munmap(sq, sq_size) == 0 && munmap(cq, cq_size) == 0 && munmap(entries, entries_size) == 0);
    return finish();
}
