/* Recording stops (cli/record_stopped.sh gives the log a limit) while processes count in one page; others that are forked behind
 * that, and are not recorded, count along: no step of anybody is lost. */
#include "shared.h"
#include <signal.h>
#include <sys/random.h>
#include <time.h>

#define COUNTERS 4
static struct {
    _Atomic unsigned steps, halt;
    _Atomic unsigned done[COUNTERS];
} * page;

/* However long that takes: under load that is up to the others. */
static void await_steps(unsigned n) {
    while (page->steps < n) nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static pid_t count(int who) {
    pid_t child = fork();
    if (child) return child;
    unsigned n = 0;
    for (char noise[64]; !page->halt; n++) {
        page->steps++;
        if (n % 64 == 0 && getrandom(noise, sizeof noise, 0) < 0) abort(); /* the log grows as the steps do */
    }
    page->done[who] = n;
    _exit(0);
}

int main(int argc, char **argv) {
    unsigned steps = argc > 1 ? (unsigned)atoi(argv[1]) : 10000;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    count(0), count(1);
    await_steps(steps);
    count(2), count(3);
    await_steps(2 * steps);
    page->halt = 1;
    while (wait(NULL) > 0) {}
    unsigned sum = page->done[0] + page->done[1] + page->done[2] + page->done[3];
    printf("%s\n", page->steps == sum ? "all steps are there" : "steps are lost");
    if (page->steps != sum) fprintf(stderr, "%u of %u\n", page->steps, sum);
    return page->steps != sum;
}
