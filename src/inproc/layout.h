/* Address map of every process that runs under Reprise.
 *
 * All ordinary code (programs, libraries) is placed in the low 2 GB together with the code cache. So a guest pc is a
 * sign-extended 32-bit immediate (`push $pc`, `lea -pc(%rcx),%rcx`), every RIP-relative operand stays encodable, and the
 * lookup tables are reachable with an absolute displacement. Code that the program maps elsewhere by itself gets a cache
 * window near it and longer sequences. Reasons and alternatives: docs/architecture.md.
 *
 *   00400000-0fffffff  non-PIE programs at their own addresses
 *   10000000-1fffffff  libraries, PIE programs, vDSO: a slot derived from the file's identity
 *   20000000-3fffffff  kept translations (engine/kept_place.h)
 *   40000000-4017ffff  lookup tables for returns, indirect jumps, indirect calls
 *   40200000-4020ffff  which stores are watched
 *   40400000-43ffffff  kept translations of non-PIE programs
 *   44000000-4bffffff  code cache for everything else
 *   4c000000-7effffff  MAP_32BIT; programs too large for the library area; some want fixed places here (SBCL 50000000,
 *                      Valgrind 58000000)
 *   1_00000000-        brk; of non-PIE programs without random addresses it is right behind them, up to 0fffffff
 *   7e80_00000000-7ed0_00000000  the program's mmap area, from the top down
 *   7ef0_00000000-7eff_00000000  the runtime */
#ifndef REPRISE_LAYOUT_H
#define REPRISE_LAYOUT_H

#ifdef __ASSEMBLER__
#define UL(x) x
#else
#define UL(x) x##ul
#endif

#define LAYOUT_LIB_BASE UL(0x10000000)
#define LAYOUT_LIB_END UL(0x20000000)
#define LAYOUT_KEPT_BASE UL(0x20000000)
#define LAYOUT_KEPT_END UL(0x40000000)
#define LAYOUT_KEPT_LOW_SCALE 4
#define LAYOUT_TABLES UL(0x40000000)
#define LAYOUT_KEPT_LOW UL(0x40400000)
#define LAYOUT_KEPT_LOW_END UL(0x44000000)
#define LAYOUT_CACHE UL(0x44000000)
#define LAYOUT_CACHE_END UL(0x4c000000)
#define LAYOUT_LOW_MMAP UL(0x4c000000)
#define LAYOUT_LOW_MMAP_END UL(0x7f000000)
#define LAYOUT_FILES_END LAYOUT_LOW_MMAP_END /* of what the runtime places by a file's identity, from LAYOUT_LIB_BASE on */
#define LAYOUT_BRK UL(0x100000000)
#define LAYOUT_MMAP_BASE UL(0x7e8000000000)
#define LAYOUT_MMAP_TOP UL(0x7ed000000000)
#define LAYOUT_BIG_BASE UL(0x200000000000) /* mappings of 16 GB and more, when free */
#define LAYOUT_BIG_TOP UL(0x500000000000)
#define LAYOUT_RT UL(0x7ef000000000)       /* image of the runtime */
#define LAYOUT_RT_ARENA UL(0x7ef100000000) /* its own memory, bump allocated */
#define LAYOUT_RT_ARENA_END UL(0x7ef700000000)
#define LAYOUT_CKPT UL(0x7ef0a0000000)        /* where checkpoints are given to the controller, ckpt/area.h */
#define LAYOUT_WORKERS UL(0x7ef0b0000000)     /* what a timeline says to its workers */
#define LAYOUT_VDSO UL(0x7ef0c0000000)        /* the kernel's vDSO, when the program does not see it */
#define LAYOUT_CHANNEL UL(0x7ef0d0000000)     /* memory shared with the controller */
#define LAYOUT_RING UL(0x7ef0e0000000)        /* the ring of this address space's stream; its data twice in a row */
#define LAYOUT_STUBS UL(0x7ef0f0000000)       /* miss stubs: what empty table entries point to */
#define LAYOUT_TABLES_COPY UL(0x7ef0f0200000) /* lookup tables that are about to take their place */
#define LAYOUT_SHARED UL(0x7ef700000000)      /* tables of memory shared between processes, log/shared.h */
#define LAYOUT_TRACES UL(0x7ef7f0000000)      /* who traces whom inside the sphere, sphere/trace_table.h */
#define LAYOUT_THREADS UL(0x7ef800000000)     /* thread blocks, one slot each */
#define LAYOUT_THREADS_END UL(0x7eff00000000)
#define LAYOUT_THREAD_SLOT UL(0x100000)
#define LAYOUT_GUEST_END UL(0x7ffffffff000)

/* Lookup tables: 65,536 host addresses each, indexed by 16 bits of a guest pc (engine/tables.h). */
#define TABLE_ENTRIES UL(65536)
#define TABLES_RET UL(4)
#define TABLE_RET(k) (LAYOUT_TABLES + 8 * TABLE_ENTRIES * (k))
#define TABLE_JMP TABLE_RET(TABLES_RET)
#define TABLE_CALL TABLE_RET(TABLES_RET + 1)
#define TABLES_SIZE (8 * TABLE_ENTRIES * (TABLES_RET + 2))
#define TABLE_PAGES (TABLES_SIZE / 4096)

/* Tables with one byte for the low 16 bits of each address: whether stores there are watched (engine/store_filter.h). */
#define TABLE_STORES (LAYOUT_TABLES + UL(0x300000))
#define TABLE_STORES_SIZE UL(65536)
#define TABLES_STORES 7 /* for stores of 1, 2, 4 ... 64 bytes */

#define STUB_RET(k) (LAYOUT_STUBS + 16 * (k))
#define STUB_JMP (LAYOUT_STUBS + 64)
#define STUB_CALL (LAYOUT_STUBS + 128)

#endif
