/* Code in a shared page that changes hands, which accesses words of another page that everybody writes to. The page of the code may be gone
 * when the other one, after a wait, is found to be nobody's: the instruction begins again with getting its own page back. */
#include "shared.h"

#define PAGES 100 /* each becomes nobody's once */
#define ROUNDS 300

static uint8_t *code;
static uint64_t *words;
static pthread_barrier_t *both;

/* lock add %rsi, (%rdi); mov (%rdi), %rax; ret */
static const uint8_t adds[] = {0xf0, 0x48, 0x01, 0x37, 0x48, 0x8b, 0x07, 0xc3};

static void work(int who) {
    uint64_t (*add)(uint64_t *, uint64_t) = (uint64_t(*)(uint64_t *, uint64_t))(uintptr_t)code;
    uint64_t sum = 0;
    for (int i = 0; i < PAGES; i++) {
        pthread_barrier_wait(both);
        for (int k = 0; k < ROUNDS; k++) {
            sum = mix(sum, add(words + i * 512, (uint64_t)who + 1));
            for (int n = 0; n < 3000; n++) sum = mix(sum, (uint64_t)n);
        }
    }
    printf("%d: %016lx\n", who, sum);
}

/* Wants the page of the code all the time. */
static pid_t start_disturber(void) {
    pid_t child = fork();
    for (int i = 0; child == 0; i++) {
        code[2048]++;
        usleep(20);
    }
    return child;
}

int main(void) {
    uint64_t sum = 0;
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    words = share(PAGES * 4096);
    both = share(sizeof *both);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(both, &shared, 2);
    if (code == MAP_FAILED) abort();
    memcpy(code, adds, sizeof adds);
    pid_t disturber = start_disturber(), worker = fork();
    if (worker == 0) {
        work(1);
        fflush(stdout);
        _exit(0);
    }
    work(0);
    waitpid(worker, NULL, 0);
    kill(disturber, SIGTERM);
    waitpid(disturber, NULL, 0);
    for (int i = 0; i < PAGES; i++) sum += words[i * 512];
    return sum != PAGES * ROUNDS * (1 + 2);
}
