/* The special functions of the system-call table, declared weak: in a test that links the table without them they are simply
 * absent. */
#include "sphere/gate.h"
#define SYSCALL_NEW SYSCALL
#define SYSCALL(nr, name, does, flags, special, ...) extern gate_fn special __attribute__((weak));
#include "sphere/sys/model.def"
#undef SYSCALL
#undef SYSCALL_NEW
