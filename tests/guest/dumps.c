/* Dies of a signal in a known state, so that a core can be looked at (cli/dumps.sh): `dumps segv`, abrt, ill, fpe, quit, thread; spins, waits: of one
 * that is sent to the process that it prints. Without an argument it does nothing. */
#include "guest.h"

static volatile int *nowhere;

__attribute__((noinline)) static void inner(const char *how) {
    static const double numbers[2] = {1.5, -2.25};
    __asm__ volatile("movupd %0, %%xmm7" : : "m"(numbers) : "xmm7");
    if (!strcmp(how, "ill")) __asm__ volatile("mov $0x1234567, %%r14d; ud2" : : : "r14");
    if (!strcmp(how, "fpe")) __asm__ volatile("mov $7, %%eax; xor %%edx, %%edx; xor %%ecx, %%ecx; idiv %%ecx" : : : "rax", "rcx", "rdx");
    if (!strcmp(how, "abrt")) abort();
    if (!strcmp(how, "quit")) kill(getpid(), SIGQUIT);
    printf("%d\n", getpid());
    fflush(stdout);
    if (!strcmp(how, "waits")) pause();
    if (!strcmp(how, "spins")) __asm__ volatile("mov $0x1a2b3c4, %%r14d; 1: jmp 1b" : : : "r14");
    __asm__ volatile("mov $0x7654321, %%r14d; mov %%r14d, (%0)" : : "r"(nowhere) : "r14", "memory");
}

__attribute__((noinline)) static void middle(const char *how) {
    inner(how);
    printf("still here\n");
}

static void *thread_main(void *how) {
    middle(how);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2) return 0;
    if (strcmp(argv[1], "thread")) middle(argv[1]);
    pthread_t thread;
    pthread_create(&thread, NULL, thread_main, argv[1]);
    pthread_join(thread, NULL);
    return 1;
}
