/* Returns that are not what they seem: changed return addresses, push/ret, call/pop, ret imm, tail calls, calls never
 * returned from, returns into the middle of a function, mutual recursion deeper than any return stack. */
#include "guest.h"

long change_return(void), push_ret(void), call_pop(void), ret_imm(long, long), call_next(long), never_return(long),
    mid(void);
__asm__(".text\n"
        "change_return: call 1f\n mov $1, %eax\n ret\n 2: mov $2, %eax\n ret\n"
        "1: lea 2b(%rip), %rax\n mov %rax, (%rsp)\n ret\n"
        "push_ret: lea 3f(%rip), %rax\n push %rax\n ret\n ud2\n 3: mov $3, %eax\n ret\n"
        "call_pop: call 4f\n 4: pop %rax\n lea 4b(%rip), %rcx\n sub %rcx, %rax\n add $4, %rax\n ret\n"
        "ret_imm: push %rsi\n push %rdi\n call 5f\n ret\n 5: mov 8(%rsp), %rax\n add 16(%rsp), %rax\n ret $16\n"
        "call_next: xor %eax, %eax\n 6: inc %rax\n call 7f\n 7: add $8, %rsp\n dec %rdi\n jnz 6b\n ret\n"
        "never_return: mov %rsp, %rdx\n xor %eax, %eax\n 8: inc %rax\n call 9f\n ud2\n 9: dec %rdi\n jnz 8b\n mov "
        "%rdx, %rsp\n ret\n"
        "mid: sub $8, %rsp\n call 10f\n jmp 11f\n nop\n nop\n 11: mov $6, %eax\n add $8, %rsp\n ret\n"
        "10: addq $2, (%rsp)\n ret\n");

__attribute__((noinline)) static int even(int n);
__attribute__((noinline, noipa)) static int odd(int n) { return n == 0 ? 0 : even(n - 1) + 0 * n; }
__attribute__((noinline, noipa)) static int even(int n) { return n == 0 ? 1 : odd(n - 1) + 0 * n; }
__attribute__((noinline, noipa)) static long down(long n) {
    volatile long k = n;
    return n ? down(n - 1) + k : 0;
}
__attribute__((noinline, noipa)) static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
typedef long op(long);
static long o1(long x) { return x * 3; }
static long o2(long x) { return x + 7; }
static long o3(long x) { return x ^ 0x55; }
static long o4(long x) { return x - (x >> 3); }

int main(void) {
    for (int i = 0; i < 3; i++)
        printf("%ld %ld %ld %ld %ld %ld %ld\n", change_return(), push_ret(), call_pop(), ret_imm(2, 3), call_next(1000),
               never_return(5000), mid());
    printf("%d %ld %ld\n", even(50001), down(60000), fib(24));
    op *table[] = {o1, o2, o3, o4};
    long x = 1;
    uint32_t r = 1;
    for (int i = 0; i < 300000; i++) r = r * 1664525 + 1013904223, x = table[r >> 30](x) & 0xffffffff;
    printf("indirect %ld\n", x);
    return finish();
}
