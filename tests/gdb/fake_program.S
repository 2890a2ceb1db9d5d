/* What gdb thinks the fake target runs: symbols at its addresses. */
        .globl  _start, words
        .text
_start: .fill 1024, 1, 0x90
        .size _start, . - _start
        .type _start, @function
        .data
words:  .fill 16, 8, 0
        .size words, . - words
        .type words, @object
