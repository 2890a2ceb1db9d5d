/* Where recordings are. Normative text: docs/formats.md.
 *
 *   BASE                  $REPRISE_DIR, else ~/.local/share/reprise
 *   BASE/NAME-N/log       a recording
 *   BASE/latest           symbolic link to the newest one
 *   BASE/store/HEX        contents of files that recordings need, named by object_name (32 hexadecimal digits, hi first)
 *   BASE/lock             flock: shared while a recording under way may count on store entries, exclusive to remove some
 *   DIR/objects/HEX       the same as BASE/store/HEX, for this recording alone: one outside BASE, or unpacked. Looked at first */
#ifndef REPRISE_LOG_PLACE_H
#define REPRISE_LOG_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "log/events.h"

#define OBJECT_HEX 33 /* room for an object's name with its terminator */

/* Every function that fails puts one line for the user into why[WHY_MAX]. */
#define WHY_MAX 4608

/* The base directory; does not make it. False: neither REPRISE_DIR nor HOME say. */
bool place_base(char *path, size_t cap, char *why);

/* The directory (or packed file) that an argument DIR|NAME means; NULL: the latest. A name without a slash is one below the
 * current directory if there is such a recording, else one below BASE. */
bool place_find(const char *arg, char *path, size_t cap, char *why);

void object_hex(struct object_name, char hex[OBJECT_HEX]);
bool object_from_hex(const char *hex, struct object_name *); /* false: not 32 lower-case hexadecimal digits */

/* The file that keeps an object of the recording in `dir`: DIR/objects, then the store beside DIR, then BASE's store. False:
 * it is in none of them; path is where it should be. */
bool place_object(const char *dir, struct object_name, char *path, size_t cap);

/* Takes BASE/lock, which closing the descriptor gives back. -1: cannot be had now (wait false), or at all (why says). */
int place_lock(const char *base, bool exclusive, bool wait, char *why);

#endif
