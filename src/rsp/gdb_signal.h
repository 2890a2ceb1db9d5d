/* Signals as gdb counts them, which is not as Linux does. */
#ifndef REPRISE_RSP_GDB_SIGNAL_H
#define REPRISE_RSP_GDB_SIGNAL_H

enum { GDB_SIGNAL_NONE = 0, GDB_SIGNAL_INT = 2, GDB_SIGNAL_TRAP = 5, GDB_SIGNAL_UNKNOWN = 143, GDB_SIGNALS = 160 };

int gdb_signal(int linux_signo);

#endif
