/* exec in all its forms, each ending in this program again, which reports how it was called. */
#include "guest.h"
extern char **environ;

static int report(int argc, char **argv) {
    printf("%s:", argv[0]);
    for (int i = 2; i < argc; i++) printf(" [%s]", argv[i]);
    printf(" MARK=%s", getenv("MARK") ? getenv("MARK") : "(none)");
    int n = 0;
    for (char **e = environ; *e; e++) n++;
    printf(" env %s\n", n == 1 ? "one" : n == 0 ? "empty" : "many");
    return 40 + argc;
}

static void child(const char *name, void (*f)(void)) {
    pid_t pid = fork();
    if (!pid) f(), printf("%s failed: %s\n", name, strerror(errno)), _exit(1);
    printf("%s: %s\n", name, wait_text(pid));
}

static char me[4096];
static char *args[] = {"prog", "report", "a b", "", "c", NULL}, *env[] = {"MARK=yes", NULL}, *noenv[] = {NULL};
static void do_execve(void) { execve(me, args, env); }
static void do_noenv(void) { execve(me, args, noenv); }
static void do_execv(void) {
    setenv("MARK", "inherited", 1);
    execv(me, args);
}
static void do_execl(void) { execl(me, "listed", "report", "x", NULL); }
static void do_execle(void) { execle(me, "listed", "report", "x", NULL, env); }
static void do_execvp(void) { execvp("env", (char *[]){"env", "-i", "MARK=viaenv", me, "report", "p", NULL}); }
static void do_fexecve(void) {
    int fd = open(me, O_RDONLY | O_CLOEXEC);
    fexecve(fd, args, env);
}
static void do_execveat_dir(void) {
    char dir[4096];
    strcpy(dir, me);
    *strrchr(dir, '/') = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    syscall(SYS_execveat, fd, strrchr(me, '/') + 1, args, env, 0);
}
static void do_execveat_path_fd(void) {
    int fd = open(me, O_PATH);
    syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH);
}
static void do_proc_exe(void) { execve("/proc/self/exe", args, env); }
static void do_relative(void) {
    char *slash = strrchr(me, '/');
    *slash = 0;
    if (chdir(me)) return;
    char rel[300];
    snprintf(rel, sizeof rel, "./%s", slash + 1);
    execve(rel, args, env);
}
static void do_symlink(void) {
    unlink("exec_link");
    if (symlink(me, "exec_link")) return;
    execve("./exec_link", args, env);
}
static void do_memfd(void) {
    int in = open(me, O_RDONLY), out = memfd_create("copy", MFD_CLOEXEC);
    struct stat st;
    fstat(in, &st);
    char *b = malloc(st.st_size);
    if (read(in, b, st.st_size) != st.st_size || write(out, b, st.st_size) != st.st_size) return;
    fexecve(out, args, env);
}
static void do_again(void) {
    char *a[] = {"again", "again", "3", NULL};
    execve(me, a, environ);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "report")) return report(argc, argv);
    if (readlink("/proc/self/exe", me, sizeof me - 1) < 0) return 2;
    if (argc > 2 && !strcmp(argv[1], "again")) { /* the same process executes itself some times */
        int n = atoi(argv[2]);
        printf("again %d\n", n);
        char next[16], *a[] = {"again", "again", next, NULL};
        snprintf(next, sizeof next, "%d", n - 1);
        if (n) execve(me, a, environ);
        return 50;
    }
    child("execve", do_execve), child("no env", do_noenv), child("execv", do_execv), child("execl", do_execl);
    child("execle", do_execle), child("execvp env", do_execvp), child("fexecve", do_fexecve);
    child("execveat dir", do_execveat_dir), child("execveat fd", do_execveat_path_fd),
        child("/proc/self/exe", do_proc_exe);
    child("relative", do_relative), child("symlink", do_symlink), child("memfd", do_memfd), child("again", do_again);
    unlink("exec_link");
    return finish();
}
