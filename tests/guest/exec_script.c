/* Scripts: #! with an argument, spaces, a relative interpreter, a script as interpreter, a loop, CRLF, no newline, empty. */
#include "guest.h"

static void script(const char *name, const char *text) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    fchmod(fd, 0755);
    close(fd);
}
static void run(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "./%s", name);
    pid_t pid = fork();
    if (!pid) {
        execl(path, "argv zero", "one", "two words", NULL);
        printf("%s\n", strerror(errno));
        _exit(1);
    }
    printf("%s: %s\n", name, wait_text(pid));
    unlink(path);
}

int main(void) {
    script("plain", "#!/bin/sh\necho \"$0|$1|$2|$#\"\nexit 3\n"), run("plain");
    script("arg", "#!/bin/sh -e\necho \"$-\" | tr -cd e; echo; false; echo not here\n"), run("arg");
    script("spaces", "#!  \t /bin/echo   one two  three  \n"), run("spaces");
    script("onearg", "#!/usr/bin/env -S printf %s,\n"), run("onearg");
    script("nonl", "#!/bin/echo"), run("nonl");
    script("missing", "#!/nonexistent/interpreter\n"), run("missing");
    script("crlf", "#!/bin/sh\r\necho hi\r\n"), run("crlf");
    script("empty", "#!\n"), run("empty");
    script("inner", "#!/bin/sh\necho \"inner $1 $2 $3\"\n");
    script("outer", "#!./inner -x\n"), run("outer");
    script("loop", "#!./loop\n"), run("loop");
    script("dir", "#!/bin\n"), run("dir");
    script("noexec", "just text\n"), run("noexec");
    script("zero", ""), run("zero");
    unlink("inner");
    char *const argv[] = {"x", NULL};
    script("sh_only", "echo run by execvp as shell\n");
    pid_t pid = fork();
    if (!pid) {
        execvp("./sh_only", argv);
        _exit(1);
    } /* libc runs it with /bin/sh after ENOEXEC */
    puts(wait_text(pid));
    unlink("sh_only");
    script("closed", "#!/bin/sh\necho through fd; exit 2\n");
    pid = fork();
    if (!pid) {
        int fd = open("closed", O_RDONLY);
        fexecve(fd, argv, argv + 1);
        _exit(1);
    }
    puts(wait_text(pid));
    pid = fork(); /* close-on-exec: the interpreter cannot open /dev/fd/N any more */
    if (!pid) {
        int fd = open("closed", O_RDONLY | O_CLOEXEC);
        fexecve(fd, argv, argv + 1);
        printf("%s\n", strerror(errno));
        _exit(1);
    }
    puts(wait_text(pid));
    unlink("closed");
    return finish();
}
