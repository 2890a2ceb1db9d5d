/* A process that may execute and read some files only (landlock): it executes those, and no others. */
#include "guest.h"
#include <linux/landlock.h>
#include <sys/prctl.h>

static int make_ruleset(uint64_t access) {
    struct landlock_ruleset_attr attr = {.handled_access_fs = access};
    return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
}

static void allow(int ruleset, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    CHECK(syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0);
    close(rule.parent_fd);
}

static void try_to_execute(const char *path) {
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, path, "said by a program that may be executed", NULL);
        printf("%s: %s\n", path, strerror(errno));
        _exit(1);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("%s: status %x\n", path, status);
}

static void restricted(uint64_t handled, uint64_t allowed) {
    pid_t pid = fork();
    if (pid == 0) {
        int ruleset = make_ruleset(handled);
        allow(ruleset, "/usr/lib", allowed);
        allow(ruleset, "/usr/lib64", allowed);
        allow(ruleset, "/usr/bin/echo", allowed);
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(syscall(SYS_landlock_restrict_self, ruleset, 0) == 0);
        close(ruleset);
        try_to_execute("/usr/bin/echo");
        try_to_execute("/usr/bin/touch");
        printf("other files: %s\n", open("/etc/passwd", O_RDONLY) >= 0 ? "can be read" : strerror(errno));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void) {
    int ruleset = make_ruleset(LANDLOCK_ACCESS_FS_EXECUTE);
    if (ruleset < 0) return 77;
    close(ruleset);
    restricted(LANDLOCK_ACCESS_FS_EXECUTE, LANDLOCK_ACCESS_FS_EXECUTE);
    restricted(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE,
               LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE);
    restricted(LANDLOCK_ACCESS_FS_READ_FILE, LANDLOCK_ACCESS_FS_READ_FILE);
    return 0;
}
