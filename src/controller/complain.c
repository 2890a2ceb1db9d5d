#include "controller/complain.h"

#include <stdio.h>

void complain_v(const char *format, va_list ap) {
    char line[4608]; /* a path and some words */
    vsnprintf(line, sizeof line, format, ap);
    fprintf(stderr, "reprise: %s\n", line);
}

void complain(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    complain_v(format, ap);
    va_end(ap);
}
