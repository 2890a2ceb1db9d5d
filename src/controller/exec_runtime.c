/* Finding and entering reprise-rt: $REPRISE_RT, or beside this command, or where `make install` puts it. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "controller/complain.h"
#include "controller/start_runtime.h"

static int fail(const char *path, int err) {
    complain("cannot start the runtime %s: %s", path, strerror(err));
    return EXIT_OURS;
}

/* This command's own file; without /proc (a bare chroot) it is what execve was given. */
static bool own_path(char path[PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n > 0) path[n] = '\0';
    const char *given = (const char *)getauxval(AT_EXECFN);
    return n > 0 || (given && realpath(given, path));
}

int exec_runtime(char *const argv[]) {
    const char *chosen = getenv("REPRISE_RT");
    if (chosen && *chosen) {
        execve(chosen, argv, environ);
        return fail(chosen, errno);
    }

    static const char *const places[] = {"reprise-rt", "../lib/reprise/reprise-rt"};
    char path[PATH_MAX + 32];
    if (!own_path(path)) return fail("reprise-rt", errno);
    char *name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strcpy(name, places[i]);
        execve(path, argv, environ);
        if (errno != ENOENT) return fail(path, errno);
    }
    *name = '\0';
    complain("no runtime: reprise-rt is neither in %s nor in %s../lib/reprise", path, path);
    return EXIT_OURS;
}
