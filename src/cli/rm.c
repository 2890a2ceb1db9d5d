/* reprise rm: removes recordings, and what the store keeps for none of them any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"
#include "controller/where.h"
#include "log/page_log.h"

static const char rm_usage[] =
    "usage: reprise rm DIR|NAME...\n"
    "       reprise rm --all | --unused\n"
    "\n"
    "Removes recordings, and the kept files that no other recording needs. One that is under way stays. Of a\n"
    "directory only what belongs to the recording is removed.\n"
    "\n"
    "  --all      every recording in $REPRISE_DIR (else ~/.local/share/reprise); those elsewhere stay\n"
    "  --unused   no recording, only kept files that none needs\n"
    "  --json     says what was removed\n"
    "  --help     this text\n";

struct removed {
    uint64_t recordings, files, bytes;
};

/* ---- a recording ---- */

/* Empty, or starting as logs start: what else is called `log` is not ours to remove. */
static bool looks_like_log(int fd) {
    uint32_t magic;
    ssize_t n = pread(fd, &magic, sizeof magic, 0);
    return n == 0 || (n == (ssize_t)sizeof magic && magic == FRAME_MAGIC);
}

/* Readers hold the lock for a moment, to see whether the recording is under way. */
static bool lock_log(int fd) {
    for (int i = 0; i < 10; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) return false;
        usleep(10000);
    }
    return false;
}

static int open_log(const char *log, const char *dir) {
    struct stat st;
    int fd = open(log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        complain("%s is no recording: it has no file `log`; nothing was removed", dir);
    else if (fd < 0)
        complain("cannot open %s: %s", log, strerror(errno));
    else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !looks_like_log(fd))
        complain("%s is no recording; nothing was removed", dir);
    else if (!lock_log(fd))
        complain("%s is under way; end its program first", dir);
    else
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static bool remove_recording(const char *arg, struct removed *sum) {
    char found[PATH_MAX], dir[PATH_MAX], log[PATH_MAX + 16], why[WHY_MAX];
    struct stat st;
    if (!place_find(arg, found, sizeof found, why)) {
        complain("%s", why);
        return false;
    }
    if (!realpath(found, dir) || stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        complain("%s is no recording: %s", arg, errno && errno != EINVAL ? strerror(errno) : "no directory");
        return false;
    }
    snprintf(log, sizeof log, "%s/log", dir);
    int fd = open_log(log, dir);
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0) sum->bytes += (uint64_t)st.st_size;
    bool fine = unlink(log) == 0;
    if (!fine) complain("cannot remove %s: %s", log, strerror(errno));
    close(fd);
    if (!fine) return false;
    sum->recordings++;
    snprintf(log, sizeof log, "%s/" COUNT_FILE, dir);
    unlink(log); /* if there is one */
    snprintf(log, sizeof log, "%s/" PAGE_LOG_FILE, dir);
    if (stat(log, &st) == 0 && unlink(log) == 0) sum->bytes += (uint64_t)st.st_size;
    sum->bytes += ckpt_remove_files(dir);
    if (rmdir(dir) < 0 && errno != EACCES)
        complain("%s stays: %s", dir, errno == ENOTEMPTY ? "other files are in it" : strerror(errno));
    return true;
}

/* ---- the store ---- */

struct names {
    struct object_name *list;
    size_t n, room;
};

static int by_name(const void *a, const void *b) { return memcmp(a, b, sizeof(struct object_name)); }

static bool add_name(struct names *s, struct object_name name) {
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct object_name *bigger = realloc(s->list, room * sizeof *bigger);
        if (!bigger) return false;
        s->list = bigger;
        s->room = room;
    }
    s->list[s->n++] = name;
    return true;
}

/* A recording that cannot be opened needs nothing if it can never be: unless another version of Reprise can, or somebody who
 * may read it. */
static bool is_hopeless(const char *dir) {
    char log[PATH_MAX + 16];
    uint8_t bytes[sizeof(struct frame_head)];
    struct frame_head head;
    snprintf(log, sizeof log, "%s/log", dir);
    int fd = open(log, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    return n >= 0 && frame_check_head(bytes, (size_t)n, &head) != FRAME_BAD_VERSION;
}

/* What the recordings that BASE knows need. False: not known for sure, the store is to stay as it is. */
static bool find_needed(const char *base, struct names *needed, char *why) {
    struct place_entry *entries;
    size_t n;
    if (!place_list(base, &entries, &n, why)) return false;
    bool fine = true;
    for (size_t i = 0; fine && i < n; i++) {
        struct recording *r = recording_open(entries[i].path, why);
        if (!r) fine = is_hopeless(entries[i].path);
        for (size_t k = 0; r && fine && k < r->n_objects; k++) fine = add_name(needed, r->objects[k].object.name);
        recording_close(r);
    }
    place_list_free(entries, n);
    if (needed->n) qsort(needed->list, needed->n, sizeof *needed->list, by_name);
    return fine;
}

static bool is_needed(const struct names *needed, const char *folder, const char *file) {
    char hex[OBJECT_HEX + 256];
    struct object_name name;
    snprintf(hex, sizeof hex, "%s%s", folder, file);
    if (!object_from_hex(hex, &name)) return true; /* not ours */
    return needed->n && bsearch(&name, needed->list, needed->n, sizeof name, by_name);
}

static void remove_file(int dir, const char *file, struct removed *sum) {
    struct stat st;
    if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || unlinkat(dir, file, 0) < 0) return;
    sum->files++;
    sum->bytes += (uint64_t)st.st_blocks * 512;
}

static DIR *open_dir_at(int at, const char *name) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    return d;
}

static void sweep_folder(int store, const char *folder, const struct names *needed, struct removed *sum) {
    DIR *d = open_dir_at(store, folder);
    if (!d) return;
    const struct dirent *e;
    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && !is_needed(needed, folder, e->d_name)) remove_file(dirfd(d), e->d_name, sum);
    closedir(d);
    unlinkat(store, folder, AT_REMOVEDIR); /* if it is empty */
}

static void sweep_store(const char *base, const struct names *needed, struct removed *sum) {
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/store", base);
    DIR *d = open_dir_at(AT_FDCWD, path);
    if (!d) return;
    const struct dirent *e;
    while ((e = readdir(d))) {
        if (strncmp(e->d_name, ".new-", 5) == 0)
            remove_file(dirfd(d), e->d_name, sum); /* left behind: nobody writes while we hold the lock */
        else if (strlen(e->d_name) == 2 && e->d_name[0] != '.')
            sweep_folder(dirfd(d), e->d_name, needed, sum);
    }
    closedir(d);
}

/* Notes about recordings that are gone. */
static void sweep_notes(const char *base) {
    char path[PATH_MAX + 16], log[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/elsewhere", base);
    DIR *d = open_dir_at(AT_FDCWD, path);
    if (!d) return;
    const struct dirent *e;
    while ((e = readdir(d))) {
        snprintf(log, sizeof log, "%s/log", e->d_name);
        if (e->d_name[0] != '.' && faccessat(dirfd(d), log, F_OK, 0) < 0 && errno == ENOENT)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

/* False: the user was told. */
static bool clean_store(const char *base, struct removed *sum) {
    struct names needed = {.list = NULL};
    char why[WHY_MAX];
    struct stat st;
    if (stat(base, &st) < 0) return true; /* nothing was ever kept */
    int lock = place_lock(base, true, false, why);
    if (lock < 0) {
        complain("kept files stay for now (%s); `reprise rm --unused` removes them later", why);
        return true;
    }
    bool known = find_needed(base, &needed, why);
    if (known) {
        sweep_store(base, &needed, sum);
        sweep_notes(base);
    } else {
        complain("kept files stay: it is not known what a recording needs (%s)", why);
    }
    free(needed.list);
    close(lock);
    return known;
}

/* ---- the whole ---- */

/* `latest` leads to the newest one that is left, or nowhere. */
static void mend_latest(const char *base) {
    char link[PATH_MAX + 16], log[PATH_MAX + 16], why[WHY_MAX];
    struct stat st;
    struct place_entry *entries;
    size_t n, newest = 0;
    uint64_t newest_began = 0;
    snprintf(log, sizeof log, "%s/latest/log", base);
    snprintf(link, sizeof link, "%s/latest", base);
    if (lstat(link, &st) < 0 || stat(log, &st) == 0 || !place_list(base, &entries, &n, why)) return;
    for (size_t i = 0; i < n; i++) {
        struct recording *r = recording_open(entries[i].path, why);
        uint64_t began = 0;
        if (r && json_member_u64(r->header, "began_ns", &began) && began > newest_began) {
            newest_began = began;
            newest = i;
        }
        recording_close(r);
    }
    if (newest_began)
        where_set_latest(entries[newest].path);
    else
        unlink(link);
    place_list_free(entries, n);
}

/* Something else that has a file `log`. */
static bool is_foreign(const char *dir) {
    char log[PATH_MAX + 16];
    snprintf(log, sizeof log, "%s/log", dir);
    int fd = open(log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool foreign = fd >= 0 && !looks_like_log(fd);
    if (fd >= 0) close(fd);
    return foreign;
}

/* Every recording in BASE. */
static bool remove_all(const char *base, struct removed *sum) {
    struct place_entry *entries;
    size_t n;
    char why[WHY_MAX];
    if (!place_list(base, &entries, &n, why)) {
        complain("%s", why);
        return false;
    }
    bool fine = true;
    for (size_t i = 0; i < n; i++)
        if (!entries[i].note && !is_foreign(entries[i].path)) fine = remove_recording(entries[i].path, sum) && fine;
    place_list_free(entries, n);
    return fine;
}

static int rm_main(int argc, char **argv) {
    static const struct option options[] = {
        {"all", 0, NULL, 'a'}, {"unused", 0, NULL, 'u'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    bool all = false, unused = false, json = false, fine = true;
    for (int c; (c = verb_option(&verb_rm, argc, argv, "h", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        all |= c == 'a';
        unused |= c == 'u';
        json |= c == 'j';
    }
    if (all + unused + (optind < argc) != 1) return usage_error(&verb_rm, "which ones? Names, or --all, or --unused");

    struct removed sum = {0};
    char base[PATH_MAX], why[WHY_MAX];
    if (!place_base(base, sizeof base, why)) {
        complain("%s", why);
        return EXIT_OURS;
    }
    if (all) fine = remove_all(base, &sum);
    for (int i = optind; i < argc; i++) fine = remove_recording(argv[i], &sum) && fine;
    if (unused || sum.recordings) fine = clean_store(base, &sum) && fine;
    mend_latest(base);
    if (json) printf("{\"recordings\": %lu, \"files\": %lu, \"bytes\": %lu}\n", sum.recordings, sum.files, sum.bytes);
    int status = printed();
    return fine ? status : EXIT_OURS;
}

const struct verb verb_rm = {"rm", "remove recordings", rm_usage, rm_main};
