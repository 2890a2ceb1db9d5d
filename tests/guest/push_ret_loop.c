/* Loops that are closed by a pushed address and a return alone: signals arrive there, and other threads get their turn. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile int over;

static void on_alarm(int sig) { over = 1; }

static void *end_it(void *arg) {
    over = 1;
    return arg;
}

static void push_immediate(void) {
    __asm__ volatile("sub $128, %%rsp\n"
                     "1: cmpl $0, %0\n"
                     "jne 2f\n"
                     "lea 1b(%%rip), %%rax\n"
                     "push %%rax\n"
                     "ret\n"
                     "2: add $128, %%rsp\n"
                     :
                     : "m"(over)
                     : "rax", "memory", "cc");
}

static void push_memory(void) {
    static void *again;
    __asm__ volatile("sub $128, %%rsp\n"
                     "lea 1f(%%rip), %%rax\n"
                     "mov %%rax, %1\n"
                     "1: cmpl $0, %0\n"
                     "jne 2f\n"
                     "push %1\n"
                     "ret\n"
                     "2: add $128, %%rsp\n"
                     : "+m"(over), "=m"(again)
                     :
                     : "rax", "memory", "cc");
}

int main(void) {
    pthread_t t;
    struct itimerval soon = {.it_value = {0, 20000}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &soon, NULL);
    push_immediate();
    over = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    push_memory();
    puts("signals arrive");
    over = 0;
    pthread_create(&t, NULL, end_it, NULL);
    push_immediate();
    pthread_join(t, NULL);
    puts("threads take turns");
    return 0;
}
