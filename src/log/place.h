/* Where recordings are. Normative text: docs/formats.md.
 *
 *   BASE                $REPRISE_DIR, else ~/.local/share/reprise
 *   BASE/NAME-N/log     a recording
 *   BASE/latest         symbolic link to the one made last
 *   BASE/store/ab/cd..  contents of files that recordings need, wherever those are; named by the 32 hexadecimal digits of
 *                       object_name, high half first
 *   BASE/elsewhere/..   symbolic links to the recordings that are not in BASE, so that what they need is not removed
 *   BASE/lock           flock: shared while something counts on store entries that no log names yet, exclusive to remove some
 */
#ifndef REPRISE_LOG_PLACE_H
#define REPRISE_LOG_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "log/events.h"

#define OBJECT_HEX 33  /* room for an object's name with its terminator */
#define OBJECT_FILE 34 /* the same for its path below the store */

/* Every function that fails puts one line for the user into why[WHY_MAX]. */
#define WHY_MAX 4608

/* The base directory; does not make it. False: neither REPRISE_DIR nor HOME say. */
bool place_base(char *path, size_t cap, char *why);

/* The directory (or packed file) that an argument DIR|NAME means; NULL: the latest. A name without a slash is one below the
 * current directory if there is such a recording, else one below BASE. */
bool place_find(const char *arg, char *path, size_t cap, char *why);

void object_hex(struct object_name, char hex[OBJECT_HEX]);
bool object_from_hex(const char *hex, struct object_name *); /* false: not 32 lower-case hexadecimal digits */

void object_file(struct object_name, char path[OBJECT_FILE]);

/* The file in BASE's store that keeps an object. False: it is not there; path is where it should be. */
bool place_object(const char *base, struct object_name, char *path, size_t cap);

/* Notes a recording outside BASE in BASE/elsewhere; one inside needs no note. Failure is no matter for the recording itself:
 * false, and why says. */
bool place_note(const char *base, const char *dir, char *why);

/* Every recording that BASE knows, in BASE or elsewhere: absolute paths, `name` as the user may call it (below BASE) or the
 * path. In the order of their names. False: BASE cannot be read; a BASE that is not there has none. */
struct place_entry {
    char *path;
    const char *name; /* in path */
    char *note;       /* the link in BASE/elsewhere, or NULL */
};
bool place_list(const char *base, struct place_entry **entries, size_t *n, char *why);
void place_list_free(struct place_entry *entries, size_t n);

/* Takes BASE/lock, which closing the descriptor gives back. -1: cannot be had now (wait false), or at all (why says). */
int place_lock(const char *base, bool exclusive, bool wait, char *why);

#endif
