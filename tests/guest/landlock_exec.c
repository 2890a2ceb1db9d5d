/* A process that may execute some files only (landlock) executes them, and no others; so do its children. */
#include "guest.h"

#include <linux/landlock.h>
#include <sys/prctl.h>

static void allow(int rules, const char *path) {
    struct landlock_path_beneath_attr below = {.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE,
                                               .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (below.parent_fd < 0) return;
    CHECK(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0);
    close(below.parent_fd);
}

static void run(const char *what, const char *file, char *const argv[]) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execv(file, argv);
        printf("%s: %s\n", what, strerror(errno));
        _exit(1);
    }
    printf("%s: %s\n", what, wait_text(pid));
}

/* This program under another name, which no rule allows. */
static void copy_self(const char *to) {
    char buf[65536];
    int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    for (ssize_t n; (n = read(in, buf, sizeof buf)) > 0;) CHECK(write(out, buf, (size_t)n) == n);
    close(in);
    close(out);
}

int main(int argc, char **argv) {
    char *const child[] = {argv[0], "child", NULL}, *const shell[] = {"sh", "-c", "/bin/true; exit 5", NULL};
    if (argc > 1) {
        run("from a child", "/bin/sh", shell);
        return 3;
    }
    char other[] = "/tmp/landlock_exec.XXXXXX";
    close(mkstemp(other));
    copy_self(other);
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0) {
        unlink(other);
        puts("no landlock");
        return finish();
    }
    allow(rules, "/usr");
    allow(rules, "/bin");
    allow(rules, "/lib");
    allow(rules, "/lib64");
    allow(rules, "/proc/self/exe");
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_landlock_restrict_self, rules, 0) == 0);
    run("itself", "/proc/self/exe", child);
    run("another", other, child);
    run("a shell", "/bin/sh", shell);
    unlink(other);
    return finish();
}
