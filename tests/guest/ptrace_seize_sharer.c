/* A process is seized that uses memory which its tracer has used last: neither waits for the other. */
#include "guest.h"
#include "lateness.h"
#include <sys/ptrace.h>

#define LARGE (32ul << 20)

static char *common, *own;

/* In one instruction. */
static void fill(char *to, char c, size_t n) { __asm__ volatile("rep stosb" : "+c"(n), "+D"(to) : "a"(c) : "memory"); }

/* Nothing can stop it between the two. */
static void fill_both(void) {
    char *to = own;
    size_t n = LARGE;
    __asm__ volatile("rep stosb; mov %3, %%rcx; mov %4, %%rdi; rep stosb"
                     : "+c"(n), "+D"(to)
                     : "a"('c'), "r"(4096ul), "r"(common)
                     : "memory");
}

int main(void) {
    int status, late = 0;
    common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    own = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        for (;;) fill_both();
    for (int i = 0; i < 8; i++) {
        usleep(3000);
        fill(common, 'p', 4096);
        struct span s = begin(child);
        CHECK(ptrace(PTRACE_SEIZE, child, 0, 0) == 0);
        late += is_late(&s);
        CHECK(ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        CHECK(ptrace(PTRACE_DETACH, child, 0, 0) == 0);
    }
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    printf("late %d\n", late);
    return finish();
}
