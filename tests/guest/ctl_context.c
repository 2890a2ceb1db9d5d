/* makecontext and swapcontext: generators, many contexts, a context moved to another thread, arguments, uc_link. */
#include "guest.h"

static ucontext_t main_ctx, gen[20];
static int yielded;
static void generator(int id, int step) {
    for (int i = 0; i < 100; i++) {
        yielded = id * 1000 + i * step;
        swapcontext(&gen[id], &main_ctx);
    }
}
static int trace_n;
static void finishes(int a, int b, int c, int d, int e, int f, int g) {
    trace_n = a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g;
}
static ucontext_t thread_ctx;
static void *elsewhere(void *arg) {
    swapcontext(&thread_ctx, &gen[1]);
    return arg;
}
static void on_thread(void) { yielded = -1; }

int main(void) {
    static char stacks[20][16384];
    for (int i = 0; i < 20; i++) {
        getcontext(&gen[i]);
        gen[i].uc_stack.ss_sp = stacks[i], gen[i].uc_stack.ss_size = sizeof stacks[i], gen[i].uc_link = &main_ctx;
        makecontext(&gen[i], (void (*)(void))generator, 2, i, i + 1);
    }
    long sum = 0;
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < 20; i++) swapcontext(&main_ctx, &gen[i]), sum += yielded;
    printf("sum %ld\n", sum);
    ucontext_t c;
    getcontext(&c);
    static char st[16384];
    c.uc_stack.ss_sp = st, c.uc_stack.ss_size = sizeof st, c.uc_link = &main_ctx;
    makecontext(&c, (void (*)(void))finishes, 7, 1, 2, 3, 4, 5, 6, 7);
    swapcontext(&main_ctx, &c);
    printf("arguments %d\n", trace_n);
    volatile int again = 0;
    getcontext(&main_ctx);
    if (again++ < 1000) setcontext(&main_ctx);
    printf("again %d\n", again);

    pthread_t t;
    void *r;
    getcontext(&gen[1]);
    gen[1].uc_stack.ss_sp = stacks[1], gen[1].uc_stack.ss_size = sizeof stacks[1], gen[1].uc_link = &thread_ctx;
    makecontext(&gen[1], on_thread, 0);
    pthread_create(&t, NULL, elsewhere, NULL), pthread_join(t, &r);
    printf("ran on another thread: %d\n", yielded == -1);
    return finish();
}
