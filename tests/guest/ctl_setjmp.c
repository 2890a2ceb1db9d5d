// cflags: -Wno-infinite-recursion
/* setjmp and longjmp: out of deep recursion, from loops, with values, repeatedly, and without the return stack. */
#include "guest.h"

static jmp_buf env;
static int depth_reached;
__attribute__((noinline)) static int dive(int n) {
    if (n == 0) longjmp(env, 7);
    depth_reached++;
    return dive(n - 1) + n;
}
__attribute__((noinline)) static void throw_it(int v) { longjmp(env, v); }

int main(void) {
    int r = setjmp(env);
    if (r == 0) dive(1000);
    printf("returned %d from %d deep\n", r, depth_reached);
    volatile long sum = 0;
    for (volatile int i = 0; i < 200000; i++)
        if ((r = setjmp(env)) == 0)
            throw_it(i & 0xff);
        else
            sum += r;
    printf("sum %ld\n", sum); /* longjmp(0) gives 1 */
    /* many nested frames thrown away again and again, then ordinary returns below them */
    volatile int rounds = 0;
    if (setjmp(env) < 0) return 1;
    if (rounds < 300) rounds++, depth_reached = 0, dive(rounds * 3);
    printf("rounds %d\n", rounds);
    sigjmp_buf sb;
    sigset_t s;
    volatile int n = 0;
    if (sigsetjmp(sb, 1) < 1000) {
        sigfillset(&s), sigprocmask(SIG_SETMASK, &s, NULL);
        if (++n < 1000) siglongjmp(sb, n);
    }
    printf("n %d\n", n);
    return finish();
}
