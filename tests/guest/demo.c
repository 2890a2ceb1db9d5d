/* The program of `make demo`: threads, a lock, a fault that is repaired, a child, an exit status. */
// cflags: -O2
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static char *page;

static int is_prime(long n) {
    for (long d = 2; d * d <= n; d++)
        if (n % d == 0) return 0;
    return n > 1;
}

static void *count_primes(void *start) {
    long found = 0;
    for (long n = (long)start; n < 200000; n += 2) found += is_prime(n);
    pthread_mutex_lock(&lock);
    total += found;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void repair(int sig, siginfo_t *info, void *context) {
    if (info->si_addr != page + 42 || mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0) _exit(99);
}

int main(void) {
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], NULL, count_primes, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    printf("two threads found %ld primes below 200000\n", total);

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction sa = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, NULL);
    page[42] = 'x';
    printf("a handler repaired a fault: the page now holds '%c'\n", page[42]);
    fflush(stdout);

    int status;
    pid_t child = fork();
    if (child == 0) _exit(5);
    waitpid(child, &status, 0);
    printf("a child exited with %d\n", WEXITSTATUS(status));
    return 7;
}
