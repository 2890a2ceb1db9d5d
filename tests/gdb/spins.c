/* A function that never returns and makes a system call in each round, for debuggers that call it. */
#include <sched.h>
#include <stdio.h>

volatile long rounds;

__attribute__((used)) static void spin(void) {
    for (;;) {
        rounds++;
        sched_yield();
    }
}

int main(void) {
    rounds = 1;
    puts("done");
    return 0;
}
