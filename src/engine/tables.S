/* Lookup tables as they are at the start: every entry leads to its miss stub. They are part of the runtime's file, so that a
 * process maps them and pays only for the pages it changes. */
#include "inproc/layout.h"

    .section .rodata.tables, "a", @progbits
    .balign 4096
    .globl tables_initial
    .hidden tables_initial
tables_initial:
    .set k, 0
    .rept TABLES_RET
    .rept TABLE_ENTRIES
    .quad STUB_RET(k)
    .endr
    .set k, k + 1
    .endr
    .rept TABLE_ENTRIES
    .quad STUB_JMP
    .endr
    .rept TABLE_ENTRIES
    .quad STUB_CALL
    .endr

    .section .note.GNU-stack, "", @progbits
