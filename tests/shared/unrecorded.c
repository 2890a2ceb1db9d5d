/* Recording stops (cli/record_stopped.sh gives the log a limit) while processes count in one page; others that are forked behind
 * that, and are not recorded, count along: no step of anybody is lost. */
#include "shared.h"
#include <signal.h>
#include <time.h>

#define COUNTERS 4
static struct {
    _Atomic unsigned steps, halt;
    _Atomic unsigned done[COUNTERS];
} * page;

static void nap(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static pid_t count(int who) {
    pid_t child = fork();
    if (child) return child;
    unsigned n = 0;
    for (; !page->halt; n++) page->steps++;
    page->done[who] = n;
    _exit(0);
}

int main(int argc, char **argv) {
    int ms = argc > 1 ? atoi(argv[1]) : 300;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    count(0), count(1);
    nap(ms);
    count(2), count(3);
    nap(ms);
    page->halt = 1;
    while (wait(NULL) > 0) {}
    unsigned sum = page->done[0] + page->done[1] + page->done[2] + page->done[3];
    printf("%s\n", page->steps == sum ? "all steps are there" : "steps are lost");
    if (page->steps != sum) fprintf(stderr, "%u of %u\n", page->steps, sum);
    return page->steps != sum;
}
