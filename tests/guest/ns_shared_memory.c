/* A process with memory that it shares with its parent leaves for a PID namespace, where its children will be: no thread can be
 * made by it from then on, of ours neither. With and without a user namespace, in one call and in two, and by setns(). */
#include "guest.h"
#include <sched.h>
#include <sys/mman.h>

static volatile int *word;

static void child_writes(int value) {
    pid_t pid = fork();
    if (!pid) {
        *word = value;
        _exit(getpid() == 1 ? 0 : 1);
    }
    CHECK(!strcmp("exit 0", wait_text(pid)));
    CHECK(*word == value);
}

static void in_a_process(const char *what, int first, int then) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        if (unshare(first) || (then && unshare(then))) _exit(77);
        if (first == CLONE_NEWPID && unshare(CLONE_NEWUSER)) errno = 0; /* may be refused: our thread could not come back */
        child_writes(first | then);
        _exit(failures);
    }
    const char *text = wait_text(pid);
    printf("%s: %s\n", what, text);
    if (!strcmp(text, "exit 77")) exit(77);
    CHECK(*word == (first | then));
}

/* Into the namespace of a process that waits: the first one there is another. */
static void join(void) {
    int ready[2], number;
    char path[64];
    CHECK(pipe(ready) == 0);
    pid_t host = fork();
    if (!host) {
        if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)) _exit(77);
        pid_t first = fork();
        if (!first) {
            pause();
            _exit(0);
        }
        number = first;
        CHECK(write(ready[1], &number, sizeof number) == sizeof number);
        wait_text(first);
        _exit(0);
    }
    CHECK(read(ready[0], &number, sizeof number) == sizeof number);
    pid_t pid = fork();
    if (!pid) {
        snprintf(path, sizeof path, "/proc/%d/ns/pid", number);
        int fd = open(path, O_RDONLY);
        if (setns(fd, 0)) _exit(77);
        pid_t inner = fork();
        if (!inner) {
            *word = getpid();
            _exit(0);
        }
        CHECK(!strcmp("exit 0", wait_text(inner)) && *word == 2);
        _exit(failures);
    }
    const char *text = wait_text(pid);
    printf("join: %s\n", text);
    kill(number, SIGKILL);
    wait_text(host);
}

int main(void) {
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(word != MAP_FAILED);
    in_a_process("user and processes at once", CLONE_NEWUSER | CLONE_NEWPID, 0);
    in_a_process("user, then processes", CLONE_NEWUSER, CLONE_NEWPID);
    in_a_process("files and processes, too", CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWPID | CLONE_FILES);
    join();
    return finish();
}
