// cflags: -fomit-frame-pointer -O2
/* Returns whose call was made long ago, by code that is gone: stacks that are copied elsewhere (as language runtimes do
 * when they collect garbage), return addresses pushed by hand where a call of unmapped code once left its own. */
#include "guest.h"

long call_from(void *code, void *callee); /* calls code, which calls callee, at a fixed depth of the stack */
long push_ret_at_same_depth(void);
__asm__(".text\n"
        ".globl call_from\ncall_from: mov %rsi, %rax\n call *%rdi\n ret\n"
        /* the same two pushes, by hand, then the two returns */
        ".globl push_ret_at_same_depth\npush_ret_at_same_depth: lea 1f(%rip), %rax\n push %rax\n lea 2f(%rip), %rax\n "
        "push %rax\n"
        "mov $5, %eax\n ret\n"
        "2: add $10, %eax\n ret\n"
        "1: add $100, %eax\n ret\n");
static long seven(void) { return 7; }

/* A stack in the heap that moves: switch_to runs a body on it which yields back. */
void switch_stack(void **save, void *to);
__asm__(".globl switch_stack\nswitch_stack:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
static void *main_sp, *co_sp;
static long steps;
__attribute__((noinline, noipa)) static void yield_deep(int n) {
    if (n)
        yield_deep(n - 1);
    else
        switch_stack(&co_sp, main_sp);
    steps += n;
}
static void body(void) {
    for (;;) yield_deep(20);
}

int main(void) {
    static const uint8_t fn[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0x48, 0xff, 0xc0, 0xc3};
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        size_t size = 2 << 20;
        uint8_t *at = (uint8_t *)(0x300000000000 + (uintptr_t)i * 0x1000000000);
        uint8_t *p = mmap(at, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int k = 0; k < 100; k++) { /* the same function in many places */
            memcpy(p + k * 20000, fn, sizeof fn);
            sum += call_from(p + k * 20000, (void *)seven);
        }
        munmap(p, size);
        sum += push_ret_at_same_depth();
    }
    printf("sum %ld\n", sum);

    /* the coroutine's stack is copied to fresh memory between steps; no pointers into it are kept */
    enum { SIZE = 16384 };
    char *stack = malloc(SIZE);
    void **s = (void **)(stack + SIZE);
    *--s = NULL, *--s = (void *)body;
    for (int k = 0; k < 6; k++) *--s = NULL;
    co_sp = s;
    for (int i = 0; i < 2000; i++) {
        switch_stack(&main_sp, co_sp);
        char *fresh = malloc(SIZE);
        memcpy(fresh, stack, SIZE);
        co_sp = fresh + ((char *)co_sp - stack);
        memset(stack, 0xee, SIZE);
        if (i % 3) free(stack);
        stack = fresh;
    }
    printf("steps %ld\n", steps);
    return finish();
}
