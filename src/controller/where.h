/* Making the directories of recordings; log/place.h says where they are and finds them. */
#ifndef REPRISE_WHERE_H
#define REPRISE_WHERE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the directory of a new recording, `wanted` or BASE/NAME-N for the command's name; gives back its absolute path.
 * False: the user was told why. */
bool where_make(const char *wanted, const char *command, char *path, size_t cap);

/* Makes a directory and those above it, 0700. False: errno says why. */
bool where_make_dirs(const char *path);

/* Lets BASE/latest lead to `recording`, and BASE know of it. Failure is no matter. */
void where_set_latest(const char *recording);

#endif
