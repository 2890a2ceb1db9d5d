/* The system-call model: what is known of every call, one row each in model.def. */
#ifndef REPRISE_MODEL_H
#define REPRISE_MODEL_H

#include "sphere/gate.h"

#define MODEL_CALLS 512
#define MODEL_OUTS 4

enum does { DOES_UNKNOWN, DOES_EMULATE, DOES_REEXEC, DOES_PASS, DOES_REFUSE };

#define CALL_BLOCKS 1
#define CALL_EVEN_FAILED 2

enum out_kind {
    OUT_END,
    OUT_OBJECT,
    OUT_COUNTED,
    OUT_AT_MOST,
    OUT_BITSET,
    OUT_VALUE_RESULT,
    OUT_IOVEC,
    OUT_MSG,
    OUT_MSGS,
    OUT_IRREGULAR,
    OUT_UNKNOWN
};

struct out { /* one output of a call; the kinds are explained in model.def */
    uint8_t kind;
    uint8_t ptr, count; /* argument numbers */
    uint32_t size;      /* bytes of one object; OUT_IRREGULAR: which function */
};

struct call_row {
    char name[24]; /* "": no such row */
    uint8_t does, flags;
    struct out out[MODEL_OUTS];
};

extern const struct call_row model_rows[MODEL_CALLS];
extern gate_fn *const model_special[MODEL_CALLS]; /* NULL: forward */

/* As the kernel lays them out. */
#define IOV_MOST 1024 /* UIO_MAXIOV */
struct iovec_raw {
    uint64_t base, len;
};

struct msghdr_raw {
    uint64_t name;
    uint32_t name_len, pad;
    uint64_t iov, iov_len;
    uint64_t control, control_len;
    uint32_t flags, pad2;
};

struct mmsghdr_raw {
    struct msghdr_raw hdr;
    uint32_t len, pad;
};

/* What the row says, or for these arguments in particular: some requests of a call change the runtime's own state. */
enum does model_does(uint64_t nr, const uint64_t a[6]);

/* Visits what a call writes. */
struct writes {
    void (*range)(struct writes *w, gaddr start, size_t len);
    void (*anywhere)(struct writes *w); /* cannot be told */
    bool is_done; /* the call is over: exactly what `ret` says; otherwise the most that it may write */
    long ret;
    bool is_peek; /* another thread's call, with cache_lock held: memory that other processes share is not acquired */
};
/* Pointers of the program may be wild: what cannot be read is left out, the kernel will not get through it either. A range
 * may reach beyond what is mapped, above all after EFAULT, which says that the kernel got half way. */
void model_writes(uint64_t nr, const uint64_t a[6], struct writes *w);

/* Lifts write protections of ours from memory that the call may write. */
void model_before_kernel_write(uint64_t nr, const uint64_t a[6]);

/* Whether the call, once it goes on, may write into [start, end). */
bool model_may_write(uint64_t nr, const uint64_t a[6], gaddr start, gaddr end);

/* For the irregular rows. */
typedef void irregular_fn(const uint64_t a[6], struct writes *w);
irregular_fn writes_ioctl;
void writes_range(struct writes *w, gaddr start, uint64_t len);
/* Reads what a call's arguments point to. False: it cannot be read; a peek then has said `anywhere`. */
bool writes_read(struct writes *w, void *to, gaddr from, size_t n);

#endif
