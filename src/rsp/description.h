/* The registers of a target as gdb sees them: which there are, their numbers, and where in `struct registers` each one is.
 * Everything follows one table, so the XML, the g packet and single registers cannot differ. */
#ifndef REPRISE_RSP_DESCRIPTION_H
#define REPRISE_RSP_DESCRIPTION_H

#include "rsp/target.h"
#include "rsp/text.h"

#define REG_MAX 64     /* bytes of the largest register, rounded up */
#define XSAVE_PARTS 10 /* x87, SSE, AVX, 2 of MPX, 3 of AVX-512, PT, PKRU */
#define DESCRIBED_MAX 256

/* Numbers that the order of the table gives; asserted. */
enum { GDB_RBP = 6, GDB_RSP = 7, GDB_RIP = 16 };

struct described_reg {
    uint8_t home;  /* row of the table */
    uint8_t index; /* in the row */
};

struct description {
    unsigned n;
    struct described_reg regs[DESCRIBED_MAX];
    uint64_t xcr0;
    struct {
        uint32_t offset, size;
    } parts[XSAVE_PARTS]; /* standard format of XSAVE on this processor */
};

/* The registers of a target with these components. */
void describe(struct description *, uint64_t xcr0);
void description_xml(const struct description *, struct out *);

/* Bytes of register n; 0: there is none. */
size_t reg_size(const struct description *, unsigned n);
/* Its value. False: not there, `to` is zeros. */
bool reg_get(const struct description *, const struct registers *, unsigned n, uint8_t to[REG_MAX]);
bool reg_set(const struct description *, struct registers *, unsigned n, const uint8_t from[REG_MAX]);

/* The g packet, and back; what is missing is x. */
void regs_get(const struct description *, const struct registers *, struct out *);
bool regs_set(const struct description *, struct registers *, struct in *);

#endif
