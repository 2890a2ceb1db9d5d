/* Packed recordings: a log and the objects it needs in one file. Normative text: docs/formats.md.
 *
 *   PACK_HEADER  {"version", "name", "log_size", "objects", "objects_size", "files", "files_size"}
 *   PACK_LOG...  the log
 *   PACK_OBJECT, PACK_DATA...   for each object that the log names, once
 *   PACK_FILE, PACK_DATA...     for each other file of the recording: its checkpoints
 *   PACK_END     {}
 *
 * Packing and unpacking stop at the first thing that is wrong: a packed recording is whole or it is refused. */
#ifndef REPRISE_LOG_PACK_H
#define REPRISE_LOG_PACK_H

#include "log/recording.h"

/* Finds the file that keeps an object. False: not there; `path` may be shown to the user. */
typedef bool (*find_object_fn)(void *arg, struct object_name, char *path, size_t cap);

/* Files of the recording's directory that are packed with it. */
struct pack_files {
    char **names;
    size_t n;
};

/* Writes recording `r`, which may be cut (what counts is packed), to fd. files may be NULL. False: why says. */
bool pack_write(const struct recording *r, const char *name, const struct pack_files *files, find_object_fn find,
                void *arg, int fd, char *why);

#define PACK_NAME 128

/* What the header of a packed file announces; checked while unpacking. */
struct pack_facts {
    char name[PACK_NAME]; /* of the recording: harmless as a file name, or "" */
    uint64_t log_size, objects, objects_size, files, files_size;
};

/* Where the parts go. Objects appear under their names only after their bytes were checked. */
struct unpacker {
    int log; /* empty file */
    /* A file to write to for an object that is needed, -1: error (why says), -2: it is there already. */
    int (*begin_object)(void *arg, struct object_name, uint64_t size, char *why);
    /* All bytes of it are there and right (ok), or something was wrong: take it away. */
    bool (*finish_object)(void *arg, struct object_name, int fd, bool ok, char *why);
    /* A new file of this name in the recording's directory, to be written and closed; -1: why says. NULL: files are passed over. */
    int (*begin_file)(void *arg, const char *name, char *why);
    void *arg;
    uint64_t limit; /* bytes of log, objects and files together */
};

/* The header alone; fd is at the start of the file and is left behind the frame. */
bool pack_read_header(int fd, struct pack_facts *, char *why);
/* The rest. False: why says; the log may hold part of its bytes. */
bool pack_read(int fd, const struct pack_facts *, const struct unpacker *, char *why);

/* Whether a name can be a recording's below BASE: letters, digits, and ._+-, no dot in front, none of BASE's own. */
bool pack_name_is_fine(const char *name);

#endif
