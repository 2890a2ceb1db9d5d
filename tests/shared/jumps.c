/* A loop that is closed by a jump to where shared memory says. The page goes to another process, with those behind it, at a tick point
 * that is this very jump: all of them are gone before it is begun again and has to get its page back. */
#include "shared.h"

/* Counts n down. *where is the address of the loop. */
void count_down(uint64_t n, void **where);
__asm__("    .pushsection .text\n"
        "count_down:\n"
        "    lea 1f(%rip), %rax\n"
        "    mov %rax, (%rsi)\n"
        "1:  sub $1, %rdi\n"
        "    jz 2f\n"
        "    jmp *(%rsi)\n"
        "2:  ret\n"
        "    .popsection\n");

#define ROUNDS 12
#define COUNT 10000000ul
#define PAGES 16 /* that go together */
#define WORDS (PAGES * 4096 / sizeof(uint64_t))

static void ask(int from, uint64_t *pages) {
    for (int i = 0; i < ROUNDS; i++) {
        char c;
        if (read(from, &c, 1) != 1) _exit(1);
        usleep(1000);
        pages[i * WORDS + 1] = (uint64_t)i + 1;
    }
    _exit(0);
}

int main(void) {
    uint64_t *pages = share(ROUNDS * WORDS * sizeof *pages), sum = 0;
    int to_child[2], status;
    if (pipe(to_child) != 0) return 1;
    pid_t child = fork();
    if (child == 0) ask(to_child[0], pages);
    for (int i = 0; i < ROUNDS; i++) {
        if (write(to_child[1], "x", 1) != 1) return 1;
        count_down(COUNT, (void **)(pages + i * WORDS));
    }
    if (waitpid(child, &status, 0) != child || status) return 1;
    for (int i = 0; i < ROUNDS; i++) sum += pages[i * WORDS + 1];
    printf("%lu\n", sum);
    return sum != ROUNDS * (ROUNDS + 1) / 2;
}
