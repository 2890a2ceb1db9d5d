/* Which file a command is: execvp's rules, except that a file the kernel would not execute is never given to sh. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* 0 or the errno that execve would fail with (as far as the file's mode tells). */
static int can_execute(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (!S_ISREG(st.st_mode)) return EACCES;
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0) return 0;
    if (errno != EPERM) return errno;
    return access(path, X_OK) < 0 ? errno : 0; /* a container's filter that does not know faccessat2 */
}

static int refuse(const char *name, int err) {
    switch (err) {
    case ENOENT:
    case ENOTDIR: complain("%s: not found", name); return EXIT_NOT_FOUND;
    case EISDIR: complain("%s: is a directory", name); return EXIT_NOT_EXECUTABLE;
    case EACCES: complain("%s: not executable: permission denied", name); return EXIT_NOT_EXECUTABLE;
    default: complain("%s: not executable: %s", name, strerror(err)); return EXIT_NOT_EXECUTABLE;
    }
}

/* dir[0..dir_len) + "/" + name; an empty dir is the current one. False: too long. */
static int join(char *path, size_t cap, const char *dir, size_t dir_len, const char *name) {
    size_t name_len = strlen(name);
    if (dir_len + 1 + name_len + 1 > cap) return 0;
    if (dir_len) {
        memcpy(path, dir, dir_len);
        path[dir_len++] = '/';
    }
    memcpy(path + dir_len, name, name_len + 1);
    return 1;
}

int find_command(const char *name, char *path, unsigned long cap) {
    if (strchr(name, '/')) {
        if (!join(path, cap, "", 0, name)) return refuse(name, ENAMETOOLONG);
        int err = can_execute(path);
        return err ? refuse(name, err) : 0;
    }
    const char *dir = getenv("PATH");
    if (!dir) dir = "/bin:/usr/bin"; /* as glibc */
    int denied = 0;                  /* what to say if nothing better comes: a file was there, but not for us */
    while (*name) {
        size_t len = strcspn(dir, ":");
        if (join(path, cap, dir, len, name)) {
            int err = can_execute(path);
            if (!err) return 0;
            if (err == EACCES || err == EISDIR) denied = EACCES;
        }
        if (!dir[len]) break;
        dir += len + 1;
    }
    return refuse(name, denied ? denied : ENOENT);
}
