/* Argument and environment edge cases: no argv at all, empty strings, thousands, long ones, odd environment entries. */
#include "guest.h"
extern char **environ;

static char me[4096];
static unsigned hash(const char *s, unsigned h) {
    while (*s) h = h * 31 + (unsigned char)*s++;
    return h * 31 + 7;
}
static void child(char **argv, char **envp) {
    pid_t pid = fork();
    if (!pid) execve(me, argv, envp), printf("%s\n", strerror(errno)), _exit(1);
    puts(wait_text(pid));
}

int main(int argc, char **argv) {
    if (getenv("REPORT")) {
        unsigned ah = 0, eh = 0, n = 0;
        for (int i = 0; i < argc; i++) ah = hash(argv[i], ah);
        for (char **e = environ; *e; e++) eh = hash(*e, eh), n++;
        CHECK(argv[argc] == NULL);
        CHECK(((uintptr_t)environ - (uintptr_t)argv) == (argc + 1) * sizeof *argv);
        static char cmdline[4 << 20];
        ssize_t len = slurp("/proc/self/cmdline", cmdline, sizeof cmdline), want = 0;
        for (int i = 0; i < argc; i++) want += strlen(argv[i]) + 1;
        CHECK(len == want && (argc == 0 || !strcmp(cmdline, argv[0])));
        printf("argc %d hash %x, env %u hash %x\n", argc, ah, n, eh);
        return failures ? 99 : 0;
    }
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    char *env[] = {"REPORT=1", NULL};
    child((char *[]){NULL}, env);
    child((char *[]){"", NULL}, env);
    child((char *[]){"", "", "", NULL}, env);
    child((char *[]){"prog", "--", "-x", "a=b", "\xff\xfe\x01", "new\nline", NULL}, env);
    child((char *[]){"odd env", NULL},
          (char *[]){"REPORT=", "", "=", "=x", "noequals", "REPORT=again", "A=1", "A=2", NULL});
    enum { MANY = 20000 };
    char **many = calloc(MANY + 1, sizeof *many);
    for (int i = 0; i < MANY; i++) many[i] = i % 3 ? "argument" : "";
    child(many, env);
    char *long_one = memset(malloc(131072), 'z', 131071);
    long_one[131071] = 0;
    child((char *[]){"long", long_one, NULL}, env);
    return finish();
}
