/* What goes wrong on our side, said to the user. */
#ifndef REPRISE_COMPLAIN_H
#define REPRISE_COMPLAIN_H

#include <stdarg.h>

/* Exit statuses of our own, as of env(1) and timeout(1); every other status is the program's. */
enum { EXIT_OURS = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* One line on stderr, "reprise: " in front. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void complain_v(const char *format, va_list);

#endif
