/* Text that comes out of a recording: nothing in it may reach a terminal as it is. And the end of a process, as text. */
#ifndef REPRISE_PRINT_TEXT_H
#define REPRISE_PRINT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Bytes, control characters and broken UTF-8 as \n, \x1b... */
void print_text(FILE *, const char *bytes, size_t n);
/* A word as a shell would read it. */
void print_word(FILE *, const char *bytes, size_t n);
/* Words with a terminator each, as in /proc/PID/cmdline. */
void print_words(FILE *, const char *words, size_t n);
/* Same, as a JSON array of strings. */
void print_words_json(FILE *, const char *words, size_t n);

const char *status_text(int status, char text[48]); /* of wait(): "exit 1", "killed by SIGSEGV" */

#endif
