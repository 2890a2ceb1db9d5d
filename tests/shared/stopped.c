/* Processes that are stopped while the others use the memory that they share: by another, by themselves from any thread, as a
 * group; and while they wait for a page. */
#include "shared.h"

#define PAGES 4
#define WORKERS 3

static volatile uint64_t (*page)[512];
static volatile uint64_t *quit;

static void work_at(int who) {
    for (uint64_t i = 0; !*quit; i++) {
        page[i % PAGES][who] = mix(page[i % PAGES][7], i);
        page[(i + 1) % PAGES][7] += page[i % PAGES][who] & 1;
    }
}

static uint64_t look(void) {
    uint64_t sum = 0;
    for (int i = 0; i < PAGES; i++)
        for (int k = 0; k < 8; k++) sum = mix(sum, page[i][k]);
    return sum;
}

static void stop_and_look(pid_t which, pid_t group) {
    int status;
    kill(which, SIGSTOP);
    for (int n = 0; n < (which < 0 ? WORKERS : 1); n++)
        if (waitpid(group, &status, WUNTRACED) < 0 || !WIFSTOPPED(status)) abort();
    uint64_t first = look(), second = look();
    if (which < 0 && first != second) printf("not all have stopped\n");
    printf("%016lx\n", first);
    kill(which, SIGCONT);
    for (int n = 0; n < (which < 0 ? WORKERS : 1); n++)
        if (waitpid(group, &status, WCONTINUED) < 0 || !WIFCONTINUED(status)) abort();
}

static void *stops_itself(void *unused) {
    (void)unused;
    kill(getpid(), SIGSTOP);
    page[0][20] = 2;
    return NULL;
}

int main(void) {
    page = share(PAGES * 4096);
    quit = share(4096);
    pid_t worker[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = fork();
        if (!worker[i]) {
            setpgid(0, i ? worker[0] : 0);
            work_at(i);
            _exit(0);
        }
        setpgid(worker[i], worker[0]);
    }
    for (int i = 0; i < 6; i++) stop_and_look(worker[i % WORKERS], worker[i % WORKERS]);
    for (int i = 0; i < 2; i++) stop_and_look(-worker[0], -worker[0]);
    *quit = 1;
    while (waitpid(-worker[0], NULL, 0) > 0) {}

    pid_t pid = fork();
    if (!pid) {
        pthread_t t;
        page[0][20] = 1;
        pthread_create(&t, NULL, stops_itself, NULL);
        pthread_join(t, NULL);
        page[0][21] = 3;
        _exit(0);
    }
    int status;
    waitpid(pid, &status, WUNTRACED);
    printf("itself: %d, %lu %lu", WIFSTOPPED(status), page[0][20], page[0][21]);
    kill(pid, SIGCONT);
    waitpid(pid, NULL, 0);
    printf(", then %lu %lu\n", page[0][20], page[0][21]);
    return 0;
}
