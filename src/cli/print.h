/* What the verbs that print a recording share. */
#ifndef REPRISE_CLI_PRINT_H
#define REPRISE_CLI_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "log/print_text.h"
#include "log/recording.h"

/* The command of a header, as words; nothing if there is none. */
void print_command(FILE *, const struct recording *);

char *size_text(uint64_t bytes, char text[16]);  /* "12.3 MB" */
char *date_text(uint64_t ns, char text[24]);     /* "2031-01-02 03:04:05", local time */
char *duration_text(uint64_t ns, char text[24]); /* "12.34 s" */

/* Opens what an argument means (NULL: the latest). NULL: the user was told why. */
struct recording *open_recording(const char *arg);
/* Says on stderr if the recording is damaged or cut off. */
void say_if_cut(const struct recording *);
/* 0, or EXIT_OURS if stdout could not be written, which the user is told. */
int printed(void);

/* A number of an option. False: none, or too large. */
bool parse_u64(const char *text, uint64_t *value);
/* The same with K, M, G or T behind it. */
bool parse_size(const char *text, uint64_t *value);

#endif
