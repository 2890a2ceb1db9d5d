/* Guards in a private mapping of a file (MADV_GUARD_INSTALL, 102): touching one is a SIGSEGV, in a child of fork(), too, where pages
 * of the mapping are borrowed; what lies behind the end of the file is a SIGBUS still. Guards that are removed show the file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define INSTALL 102
#define REMOVE 103

static sigjmp_buf back;
static volatile int signo, code;

static void on_signal(int s, siginfo_t *info, void *context) {
    signo = s;
    code = info->si_code;
    siglongjmp(back, 1);
}

static void touch(const char *who, const char *map, int page, int writes) {
    volatile char *p = (volatile char *)map + page * PAGE;
    signo = code = 0;
    if (sigsetjmp(back, 1) == 0) {
        if (writes)
            *p = 'w';
        else
            (void)*p;
    }
    printf("%s %d: %s, code %d\n", who, page,
           signo == SIGSEGV  ? "SIGSEGV"
           : signo == SIGBUS ? "SIGBUS"
                             : "there",
           code);
    fflush(stdout);
}

static void child(char *map) {
    for (int page = 0; page < 8; page++) touch("child", map, page, page & 1);
    printf("write() of a guard: %ld\n", (long)write(1, map + 2 * PAGE, 1));
    madvise(map + 2 * PAGE, PAGE, REMOVE);
    for (int page = 1; page < 4; page++) touch("removed", map, page, 0);
    printf("%c\n", map[2 * PAGE]);
    madvise(map + 4 * PAGE, PAGE, INSTALL);
    touch("again", map, 4, 0);
    madvise(map + 4 * PAGE, PAGE, MADV_DONTNEED);
    touch("dropped", map, 4, 0);
    if (fork() == 0) {
        touch("grandchild", map, 4, 1);
        touch("grandchild", map, 2, 1);
        exit(0);
    }
    wait(NULL);
    madvise(map + 4 * PAGE, PAGE, REMOVE);
    touch("removed", map, 4, 1);
    printf("%c%c\n", map[4 * PAGE], map[4 * PAGE + 1]);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    char name[] = "guard-XXXXXX", bytes[6 * PAGE];
    int fd = mkstemp(name);
    unlink(name);
    memset(bytes, 'x', sizeof bytes);
    if (write(fd, bytes, sizeof bytes) != sizeof bytes) return 1;
    char *map = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map[3 * PAGE] = 'y';
    if (madvise(map + PAGE, 3 * PAGE, INSTALL)) return 77; /* before Linux 6.15 not for files */
    for (int page = 0; page < 8; page++) touch("parent", map, page, 0);
    fflush(stdout);
    if (fork() == 0) {
        child(map);
        exit(0);
    }
    wait(NULL);
    shared[2 * PAGE] = 'z';
    touch("parent", map, 2, 0);
    madvise(map, 6 * PAGE, REMOVE);
    touch("removed", map, 2, 0);
    printf("%c %c\n", map[2 * PAGE], map[3 * PAGE]);
    return 0;
}
