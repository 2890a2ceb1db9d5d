// What a tracer reads in /proc/PID/maps of a process that it has stopped: what may be executed, and what may be written.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static char *pages;

static void child(void) {
    mprotect(pages + 4096, 4096, PROT_READ | PROT_EXEC);
    mprotect(pages + 8192, 4096, PROT_NONE);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    _exit(0);
}

static void say(const char *what, const char *file, pid_t pid, const void *addr) {
    char path[40], line[512], perms[8] = "none";
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    FILE *f = fopen(path, "r");
    unsigned long lo, hi;
    while (f && fgets(line, sizeof line, f)) {
        char p[8];
        if (sscanf(line, "%lx-%lx %4s", &lo, &hi, p) == 3 && lo <= (unsigned long)addr && (unsigned long)addr < hi)
            strcpy(perms, p);
    }
    printf("%s: %s of %s\n", file, perms, what);
    if (f) fclose(f);
}

int main(void) {
    pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) child();
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        const char *file = i ? "smaps" : "maps";
        say("the program's code", file, pid, (void *)main);
        say("a library's code", file, pid, (void *)fopen);
        say("data", file, pid, &pages);
        say("a page", file, pid, pages);
        say("executable page", file, pid, pages + 4096);
        say("closed page", file, pid, pages + 8192);
    }
    ptrace(PTRACE_CONT, pid, 0, 0);
    waitpid(pid, NULL, 0);
    return 0;
}
