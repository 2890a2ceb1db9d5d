/* A program that raises the limit of its stack may use more of it at once, without an exec in between; as compilers do. The
 * stack stays one mapping. */
#include "guest.h"

#include <sys/resource.h>

#define MB (1ul << 20)

__attribute__((noinline, noipa)) static long deep(long bytes) {
    volatile char page[4000];
    page[bytes % sizeof page] = 1;
    return bytes > 0 ? deep(bytes - 4096) + page[bytes % sizeof page] : 0;
}

static int stack_mappings(void) {
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, f)) n += strstr(line, "[stack]") != NULL;
    fclose(f);
    return n;
}

int main(void) {
    struct rlimit r;
    getrlimit(RLIMIT_STACK, &r);
    if (r.rlim_max < 100 * MB) return 0;
    char *before = malloc(1 * MB); /* mapped below the stack, out of its way */
    memset(before, 1, 1 * MB);
    r.rlim_cur = 40 * MB;
    printf("set %d\n", setrlimit(RLIMIT_STACK, &r));
    printf("%d pages\n", deep(30 * MB) > 7000);
    r.rlim_cur = 100 * MB; /* what was set is overwritten by what was there */
    printf("set %d\n", prlimit(getpid(), RLIMIT_STACK, &r, &r));
    printf("was %lu MB\n", (unsigned long)(r.rlim_cur / MB));
    printf("%d pages, %d stack\n", deep(90 * MB) > 20000, stack_mappings());
    pid_t child = fork();
    if (child == 0) _exit(deep(90 * MB) > 20000);
    int status;
    waitpid(child, &status, 0);
    r.rlim_cur = 8 * MB;
    printf("child %x, lower %d\n", status, setrlimit(RLIMIT_STACK, &r));
    printf("%d\n", before[MB - 1]);
    return 0;
}
