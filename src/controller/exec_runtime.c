/* Finding and entering reprise-rt: $REPRISE_RT, or beside this command, or where `make install` puts it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/complain.h"
#include "controller/start_runtime.h"

static int fail(const char *path, int err) {
    complain("cannot start the runtime %s: %s", path, strerror(err));
    return EXIT_OURS;
}

int exec_runtime(char *const argv[]) {
    const char *chosen = getenv("REPRISE_RT");
    if (chosen && *chosen) {
        execve(chosen, argv, environ);
        return fail(chosen, errno);
    }

    static const char *const places[] = {"reprise-rt", "../lib/reprise/reprise-rt"};
    char path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX) return fail("reprise-rt", n < 0 ? errno : ENAMETOOLONG);
    path[n] = '\0';
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
