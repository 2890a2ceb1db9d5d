/* Where recordings are, see place.h. */
#include "log/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool place_base(char *path, size_t cap, char *why) {
    const char *chosen = getenv("REPRISE_DIR"), *home = getenv("HOME");
    int n;
    if (chosen && *chosen) {
        n = snprintf(path, cap, "%s", chosen);
    } else if (home && *home) {
        n = snprintf(path, cap, "%s/.local/share/reprise", home);
    } else {
        snprintf(why, WHY_MAX, "where are recordings? Neither REPRISE_DIR nor HOME is set");
        return false;
    }
    if (n > 0 && (size_t)n < cap) return true;
    snprintf(why, WHY_MAX, "the name of the base directory is too long");
    return false;
}

static bool has_log(const char *dir) {
    char path[PATH_MAX + 8];
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
    snprintf(path, cap, "%s", arg);
    if (strchr(arg, '/') || has_log(arg)) return true;
    if (is_file(arg)) return true; /* packed, or the opener says what it is not */
    char base[PATH_MAX];
    if (!place_base(base, sizeof base, why)) return false;
    int n = snprintf(path, cap, "%s/%s", base, arg);
    if (n > 0 && (size_t)n < cap && has_log(path)) return true;
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

static bool object_at(char *path, size_t cap, const char *dir, const char *below, const char *hex) {
    struct stat st;
    int n = snprintf(path, cap, "%s/%s/%s", dir, below, hex);
    return n > 0 && (size_t)n < cap && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool place_object(const char *dir, struct object_name name, char *path, size_t cap) {
    char hex[OBJECT_HEX], base[PATH_MAX], why[WHY_MAX];
    object_hex(name, hex);
    if (object_at(path, cap, dir, "objects", hex) || object_at(path, cap, dir, "../store", hex)) return true;
    return place_base(base, sizeof base, why) && object_at(path, cap, base, "store", hex);
}

int place_lock(const char *base, bool exclusive, bool wait, char *why) {
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/lock", base);
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
