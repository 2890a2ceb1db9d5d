/* Making the directories of recordings. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/complain.h"
#include "controller/where.h"
#include "log/place.h"

#define NUMBERS_MAX 1000000

bool where_make_dirs(const char *path) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, len + 1);
    if (mkdir(part, 0700) == 0 || errno == EEXIST) return true;
    if (errno != ENOENT) return false;
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
        *slash = '/';
    }
    return mkdir(part, 0700) == 0 || errno == EEXIST;
}

/* Exists and is an empty directory. */
static bool is_empty(const char *path) {
    DIR *d = opendir(path);
    if (!d) return false;
    const struct dirent *e;
    errno = ENOTEMPTY;
    bool empty = true;
    while (empty && (e = readdir(d))) empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(d);
    if (!empty) errno = ENOTEMPTY;
    return empty;
}

static bool make_wanted(const char *wanted, char *path, size_t cap) {
    bool made = mkdir(wanted, 0700) == 0;
    if (!made && errno == ENOENT) made = where_make_dirs(wanted);
    char real[PATH_MAX];
    if ((made || (errno == EEXIST && is_empty(wanted) && chmod(wanted, 0700) == 0)) && realpath(wanted, real) &&
        (size_t)snprintf(path, cap, "%s", real) < cap)
        return true;
    complain("%s: cannot record there: %s", wanted, strerror(errno));
    return false;
}

bool where_make(const char *wanted, const char *command, char *path, size_t cap) {
    if (wanted) return make_wanted(wanted, path, cap);
    char base[PATH_MAX], why[WHY_MAX];
    if (!place_base(base, sizeof base, why)) {
        complain("%s, nor -o DIR", why);
        return false;
    }
    const char *name = strrchr(command, '/');
    name = name ? name + 1 : command;
    for (int n = 0, made_base = 0; n < NUMBERS_MAX; n++) {
        if ((size_t)snprintf(path, cap, "%s/%.100s-%d", base, name, n) >= cap) {
            errno = ENAMETOOLONG;
            break;
        }
        if (mkdir(path, 0700) == 0) return true;
        if (errno == EEXIST) continue;
        if (errno != ENOENT || made_base++ || !where_make_dirs(base)) break;
        n--;
    }
    complain("%s: cannot record there: %s", base, strerror(errno));
    return false;
}

void where_set_latest(const char *recording) {
    char base[PATH_MAX], link[PATH_MAX + 16], temp[PATH_MAX + 32], why[WHY_MAX];
    if (!place_base(base, sizeof base, why)) return;
    place_note(base, recording, why);
    size_t n = strlen(base);
    const char *to = strncmp(recording, base, n) == 0 && recording[n] == '/' ? recording + n + 1 : recording;
    snprintf(link, sizeof link, "%s/latest", base);
    snprintf(temp, sizeof temp, "%s/.latest-%d", base, (int)getpid());
    if (symlink(to, temp) < 0 || rename(temp, link) < 0) unlink(temp);
}
