/* personality(READ_IMPLIES_EXEC): what is mapped readable may be executed, by threads and children, too, until exec. */
#include "guest.h"
#include <sys/personality.h>

static const char code[] = "\xb8\x2a\0\0\0\xc3"; /* mov $42,%eax; ret */

static int run(char *at) {
    memcpy(at, code, sizeof code);
    return ((int (*)(void))at)();
}

static void *map(int prot) { return mmap(NULL, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void *thread(void *arg) {
    CHECK(run(map(PROT_READ | PROT_WRITE)) == 42);
    return arg;
}

static void run_everywhere(void) {
    pthread_t t;
    CHECK(run(map(PROT_READ | PROT_WRITE)) == 42);
    CHECK(run(sbrk(8192)) == 42);
    char *p = map(PROT_NONE);
    CHECK(mprotect(p, 8192, PROT_READ | PROT_WRITE) == 0 && run(p) == 42);
    CHECK(pthread_create(&t, NULL, thread, NULL) == 0 && pthread_join(t, NULL) == 0);
}

int main(int argc, char **argv) {
    int now = personality(0xffffffff);
    if (argc == 1) {
        char *before = map(PROT_READ | PROT_WRITE);
        if (now < 0 || personality((unsigned)now | READ_IMPLIES_EXEC) < 0) return 77;
        CHECK(personality(0xffffffff) == (now | READ_IMPLIES_EXEC));
        run_everywhere();
        sleep_ms(120); /* checkpoints come and go */
        run_everywhere();
        pid_t pid = fork();
        if (!pid) run_everywhere(), run(before), _exit(1);
        puts(wait_text(pid));
        execl("/proc/self/exe", argv[0], "again", NULL);
        return 1;
    }
    pid_t pid = fork();
    if (!pid) _exit(run(map(PROT_READ | PROT_WRITE)));
    puts(wait_text(pid));
    return finish();
}
