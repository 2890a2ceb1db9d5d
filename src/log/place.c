/* Where recordings are, see place.h. */
#include "log/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* The user's home: $HOME, or, where nobody has set it (env -i, services), what /etc/passwd says. NULL: neither. */
static const char *home_dir(char *room, size_t cap) {
    const char *home = getenv("HOME");
    if (home && *home) return home;
    FILE *f = fopen("/etc/passwd", "re");
    home = NULL;
    for (struct passwd *p; f && !home && (p = fgetpwent(f));) /* not getpwuid: we are linked statically */
        if (p->pw_uid == geteuid() && p->pw_dir[0] == '/' && snprintf(room, cap, "%s", p->pw_dir) < (int)cap)
            home = room;
    if (f) fclose(f);
    return home;
}

bool place_base(char *path, size_t cap, char *why) {
    char cwd[PATH_MAX], room[PATH_MAX];
    const char *chosen = getenv("REPRISE_DIR"), *home = home_dir(room, sizeof room);
    int n;
    if (chosen && *chosen && *chosen != '/' && getcwd(cwd, sizeof cwd)) {
        n = snprintf(path, cap, "%s/%s", cwd, chosen);
    } else if (chosen && *chosen) {
        n = snprintf(path, cap, "%s", chosen);
    } else if (home) {
        n = snprintf(path, cap, "%s/.local/share/reprise", home);
    } else {
        snprintf(why, WHY_MAX, "where are recordings? REPRISE_DIR and HOME are not set, and /etc/passwd does not tell");
        return false;
    }
    if (n > 0 && (size_t)n < cap) return true;
    snprintf(why, WHY_MAX, "the name of the base directory is too long");
    return false;
}

static bool has_log(const char *dir) {
    char path[PATH_MAX + 512];
    struct stat st;
    snprintf(path, sizeof path, "%s/log", dir);
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool find_latest(char *path, size_t cap, char *why) {
    char base[PATH_MAX], link[PATH_MAX + 8], target[PATH_MAX];
    if (!place_base(base, sizeof base, why)) return false;
    snprintf(link, sizeof link, "%s/latest", base);
    if (!realpath(link, target)) {
        if (errno == ENOENT)
            snprintf(why, WHY_MAX, "no recording in %s yet: make one with `reprise record CMD`, or name one", base);
        else
            snprintf(why, WHY_MAX, "cannot follow %s: %s", link, strerror(errno));
        return false;
    }
    snprintf(path, cap, "%s", target);
    return true;
}

bool place_find(const char *arg, char *path, size_t cap, char *why) {
    if (!arg) return find_latest(path, cap, why);
    if (!*arg || strlen(arg) >= cap || strlen(arg) >= PATH_MAX) {
        snprintf(why, WHY_MAX, "no recording has such a name");
        return false;
    }
    char base[PATH_MAX];
    bool has_base = place_base(base, sizeof base, why);
    if (has_base && !strchr(arg, '/') && !has_log(arg)) {
        int n = snprintf(path, cap, "%s/%s", base, arg);
        if (n > 0 && (size_t)n < cap && has_log(path)) return true;
    }
    snprintf(path, cap, "%s", arg);
    if (strchr(arg, '/') || has_log(arg)) return true;
    if (is_file(arg)) return true; /* packed, or the opener says what it is not */
    if (!has_base) return false;
    snprintf(why, WHY_MAX, "no recording '%s', neither here nor in %s; `reprise ls` lists them", arg, base);
    return false;
}

void object_hex(struct object_name name, char hex[OBJECT_HEX]) {
    snprintf(hex, OBJECT_HEX, "%016lx%016lx", name.hi, name.lo);
}

bool object_from_hex(const char *hex, struct object_name *name) {
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        char c = hex[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (hex[32]) return false;
    *name = (struct object_name){.lo = half[1], .hi = half[0]};
    return true;
}

void object_file(struct object_name name, char path[OBJECT_FILE]) {
    char hex[OBJECT_HEX];
    object_hex(name, hex);
    snprintf(path, OBJECT_FILE, "%.2s/%s", hex, hex + 2);
}

bool place_object(const char *base, struct object_name name, char *path, size_t cap) {
    char below[OBJECT_FILE];
    struct stat st;
    object_file(name, below);
    int n = snprintf(path, cap, "%s/store/%s", base, below);
    return n > 0 && (size_t)n < cap && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool place_note(const char *base, const char *dir, char *why) {
    char real[PATH_MAX], real_base[PATH_MAX], link[PATH_MAX + 64];
    if (!realpath(dir, real) || !realpath(base, real_base)) {
        snprintf(why, WHY_MAX, "%s: %s", dir, strerror(errno));
        return false;
    }
    size_t n = strlen(real_base);
    if (strncmp(real, real_base, n) == 0 && real[n] == '/' && !strchr(real + n + 1, '/')) return true;
    snprintf(link, sizeof link, "%s/elsewhere", real_base);
    if (mkdir(link, 0700) < 0 && errno != EEXIST) {
        snprintf(why, WHY_MAX, "cannot make %s: %s", link, strerror(errno));
        return false;
    }
    snprintf(link, sizeof link, "%s/elsewhere/%016lx", real_base, (unsigned long)XXH3_64bits(real, strlen(real)));
    if (symlink(real, link) == 0 || errno == EEXIST) return true;
    snprintf(why, WHY_MAX, "cannot note the recording in %s: %s", link, strerror(errno));
    return false;
}

/* ---- all recordings ---- */

static int by_path(const void *a, const void *b) {
    const struct place_entry *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static bool add_entry(struct place_entry **list, size_t *n, const char *dir, const char *name, bool noted) {
    char path[PATH_MAX + 256], target[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (noted && !realpath(path, target)) return true; /* gone */
    if (!has_log(noted ? target : path)) return true;
    struct place_entry *bigger = realloc(*list, (*n + 1) * sizeof *bigger);
    if (!bigger) return false;
    *list = bigger;
    struct place_entry e = {.path = strdup(noted ? target : path), .note = noted ? strdup(path) : NULL};
    if (!e.path) return false;
    e.name = noted ? e.path : e.path + strlen(dir) + 1;
    bigger[(*n)++] = e;
    return true;
}

static bool list_dir(const char *dir, bool noted, struct place_entry **list, size_t *n) {
    DIR *d = opendir(dir);
    if (!d) return errno == ENOENT;
    const struct dirent *e;
    bool fine = true;
    while (fine && (e = readdir(d))) {
        if (e->d_name[0] == '.' || (!noted && strcmp(e->d_name, "latest") == 0)) continue;
        fine = add_entry(list, n, dir, e->d_name, noted);
    }
    closedir(d);
    return fine;
}

bool place_list(const char *base, struct place_entry **entries, size_t *n, char *why) {
    char noted[PATH_MAX + 16];
    *entries = NULL;
    *n = 0;
    snprintf(noted, sizeof noted, "%s/elsewhere", base);
    if (!list_dir(base, false, entries, n) || !list_dir(noted, true, entries, n)) {
        snprintf(why, WHY_MAX, "cannot read %s: %s", base, strerror(errno));
        place_list_free(*entries, *n);
        *entries = NULL;
        return false;
    }
    if (*n) qsort(*entries, *n, sizeof **entries, by_path);
    return true;
}

void place_list_free(struct place_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(entries[i].path);
        free(entries[i].note);
    }
    free(entries);
}

int place_lock(const char *base, bool exclusive, bool wait, char *why) {
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/lock", base);
    why[0] = '\0';
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        snprintf(why, WHY_MAX, "cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB)) == 0) return fd;
    snprintf(why, WHY_MAX, "%s is held: %s", path, errno == EWOULDBLOCK ? "a recording is under way" : strerror(errno));
    close(fd);
    return -1;
}
