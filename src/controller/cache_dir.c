/* The directory that keeps translations between runs. It holds code that later runs execute, so it must be ours:
 * owned by the user, no symbolic link, not writable by anyone else. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/start_runtime.h"

static int is_ours(const char *path) {
    struct stat st;
    if (lstat(path, &st) < 0) return 0;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int cache_dir(char *path, unsigned long cap) {
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    if (!base || base[0] != '/') { /* the XDG specification: a relative path is to be ignored */
        base = getenv("HOME");
        below = "/.cache";
        if (!base || base[0] != '/') return 0;
    }
    int parent_len = snprintf(path, cap, "%s%s", base, below);
    int len = snprintf(path, cap, "%s%s/reprise", base, below);
    if (len < 0 || (unsigned long)len >= cap) return 0;
    if (is_ours(path)) return 1;

    if (mkdir(path, 0700) < 0 && errno == ENOENT) {
        path[parent_len] = '\0';
        mkdir(path, 0700);
        path[parent_len] = '/';
        mkdir(path, 0700);
    }
    return is_ours(path);
}

static int read_seed(const char *path, unsigned long *seed) {
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = read(fd, seed, sizeof *seed);
    close(fd);
    return n == sizeof *seed;
}

unsigned long layout_seed(const char *dir) {
    char path[PATH_MAX + 16], temp[PATH_MAX + 48];
    unsigned long seed = 0;
    snprintf(path, sizeof path, "%s/seed", dir ? dir : "");
    if (dir && read_seed(path, &seed)) return seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = (unsigned long)getpid();
    if (!dir) return seed;
    /* written whole or not at all, and the first of several writers wins */
    snprintf(temp, sizeof temp, "%s/.seed-%d", dir, (int)getpid());
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return seed;
    int whole = write(fd, &seed, sizeof seed) == sizeof seed;
    close(fd);
    if (whole && link(temp, path) < 0 && !read_seed(path, &seed)) rename(temp, path); /* what is there is no seed */
    unlink(temp);
    return seed;
}
