/* Threads that are preempted at a conditional jump to another page of the file, after some code of that file was found to use contended
 * memory. The jump's tick leaves no flags behind: they have to be those with which it is taken. */
#include "shared.h"

/* Counts to n: the jump on the second page is taken while ZF is set, and flags are dead where it leads to. */
uint64_t count_to(uint64_t n);
__asm__("    .pushsection .text\n"
        "    .p2align 12\n"
        "    .skip 4096 - 9\n"
        "count_to:\n"
        "    xor %eax, %eax\n"
        "1:  add $1, %rax\n"
        "    nop; nop; nop\n" /* the second page */
        "    xor %ecx, %ecx\n"
        "    cmp %rdi, %rax\n"
        "    sete %cl\n"
        "    test %ecx, %ecx\n"
        "    je 1b\n"
        "    ret\n"
        "    .popsection\n");

#define ROUNDS 60
#define COUNT 3000000ul

static _Atomic int *whose, *wrong;

static void *count(void *unused) {
    for (int i = 0; i < 8; i++)
        if (count_to(COUNT) != COUNT) ++*wrong;
    return unused;
}

static void work(int self) {
    count_to(1000);
    for (int i = 0; i < ROUNDS; i++) {
        while (*whose != self) sched_yield();
        *whose = !self;
    }
    pthread_t t;
    pthread_create(&t, NULL, count, NULL);
    count(NULL);
    pthread_join(t, NULL);
}

int main(void) {
    whose = share(8192);
    wrong = whose + 1024;
    in_children(2, work);
    printf("%d wrong counts\n", *wrong);
    return *wrong;
}
