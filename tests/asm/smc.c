/* Code that changes: stores to the next instruction, to earlier blocks, through another mapping, by the kernel, from
 * another thread; code on the stack, in remapped memory, across page boundaries. Each test mixes what it saw into a
 * number that does not depend on addresses. */
#define _GNU_SOURCE
#include "smc.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
typedef uint64_t (*code_fn)(uint64_t);
const char *smc_current;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
}

static uint8_t *map(size_t pages, int prot, int flags, int fd)
{
    uint8_t *p = mmap(NULL, pages * PAGE, prot, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (p == MAP_FAILED)
        perror("smc: mmap"), exit(2);
    return p;
}

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

/* mov $value, %eax; ret */
static size_t put_constant(uint8_t *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
    return 6;
}

static uint64_t call(const void *code, uint64_t arg)
{
    code_fn f;
    memcpy(&f, &code, sizeof f);
    return f(arg);
}

static uint64_t rewritten_often(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        put_constant(p + i % 3 * 16, i);
        h = mix(h, call(p + i % 3 * 16, 0));
        h = mix(h, call(p + (i > 2 ? (i + 1) % 3 * 16 : 0), 0));
    }
    munmap(p, PAGE);
    return h;
}

/* movb %dil, 1+1f(%rip); 1: mov $0x11, %eax; ret */
static uint64_t next_instruction(void)
{
    static const uint8_t code[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb8, 0x11, 0, 0, 0, 0xc3};
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    memcpy(p, code, sizeof code);
    for (uint64_t i = 0; i < 300; i++)
        h = mix(h, call(p, i));
    return h;
}

static uint64_t next_opcode(void)
{
    /* mov $100, %eax; mov %dil, 1+1f(%rip); 1: inc %eax (ff c0) or dec %eax (ff c8); ret */
    static const uint8_t code[] = {0xb8, 100, 0, 0, 0, 0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xff, 0xc0, 0xc3};
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    memcpy(p, code, sizeof code);
    for (int i = 0; i < 100; i++)
        h = mix(h, call(p, i % 3 ? 0xc0 : 0xc8));
    return h;
}

/* A loop whose body changes an instruction at the loop's head: counts 1, 2, 4, ... */
static uint64_t loop_head(void)
{
    /* xor %eax, %eax; mov $20, %ecx; 1: add $1, %eax (83 c0 ib); incb 1b+2(%rip); dec %ecx; jnz 1b; ret */
    static const uint8_t code[] = {0x31, 0xc0, 0xb9, 20, 0, 0, 0, 0x83, 0xc0, 0x01, 0xfe, 0x05, 0xf9, 0xff, 0xff, 0xff,
                                   0xff, 0xc9, 0x75, 0xf3, 0xc3};
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    memcpy(p, code, sizeof code);
    for (int i = 0; i < 5; i++)
        h = mix(h, call(p, 0));
    return h;
}

/* rep movsb that overwrites the instructions right behind itself. */
static uint64_t rep_movs_ahead(void)
{
    /* lea 1f(%rip), %rdi -> rsi is the argument; mov $6, %ecx; rep movsb; 1: 6 bytes that are overwritten */
    static const uint8_t code[] = {0x48, 0x89, 0xfe, 0x48, 0x8d, 0x3d, 7, 0, 0, 0, 0xb9, 6, 0, 0, 0, 0xf3, 0xa4,
                                   0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b};
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), source[8];
    uint64_t h = 0;
    for (uint32_t i = 0; i < 50; i++) {
        memcpy(p, code, sizeof code);
        put_constant(source, i * 77);
        h = mix(h, call(p, (uint64_t)source));
    }
    return h;
}

/* An interrupted loop of data writes on the very page that holds the code: correct, and not endless. */
static uint64_t data_next_to_code(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    /* mov %rdi, %rax; 1: incl 0x800(from p): add %eax, data(%rip); dec %rdi; jnz 1b; mov data(%rip), %eax; ret */
    static const uint8_t code[] = {0x48, 0x89, 0xf8, 0x01, 0x05, 0xf7, 0x07, 0, 0, 0x48, 0xff, 0xcf, 0x75, 0xf5,
                                   0x8b, 0x05, 0xec, 0x07, 0, 0, 0xc3};
    memcpy(p, code, sizeof code);
    return call(p, 3000);
}

static uint64_t double_mapped(void)
{
    int fd = memfd_create("code", 0);
    if (fd < 0 || ftruncate(fd, PAGE))
        return 0;
    uint8_t *rw = map(1, PROT_READ | PROT_WRITE, MAP_SHARED, fd), *rx = map(1, PROT_READ | PROT_EXEC, MAP_SHARED, fd);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 500; i++) {
        put_constant(rw + i % 2 * 64, i * 3);
        h = mix(h, call(rx + i % 2 * 64, 0));
    }
    close(fd);
    munmap(rw, PAGE);
    munmap(rx, PAGE);
    return h;
}

static uint64_t by_pwrite_to_shared(void)
{
    int fd = memfd_create("code", 0);
    uint8_t buf[8];
    uint64_t h = 0;
    if (fd < 0 || ftruncate(fd, PAGE))
        return 0;
    uint8_t *rx = map(1, PROT_READ | PROT_EXEC, MAP_SHARED, fd);
    for (uint32_t i = 0; i < 50; i++) {
        size_t n = put_constant(buf, i * 5);
        if (pwrite(fd, buf, n, 0) != (ssize_t)n)
            return 0;
        h = mix(h, call(rx, 0));
    }
    close(fd);
    return h;
}

static uint64_t by_read(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), buf[8];
    int fds[2];
    uint64_t h = 0;
    if (pipe(fds))
        return 0;
    for (uint32_t i = 0; i < 50; i++) {
        size_t n = put_constant(buf, i * 7);
        if (write(fds[1], buf, n) != (ssize_t)n || read(fds[0], p, n) != (ssize_t)n)
            return mix(h, 0xbad);
        h = mix(h, call(p, 0));
    }
    close(fds[0]), close(fds[1]);
    return h;
}

static uint64_t by_process_vm_writev(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), buf[8];
    uint64_t h = 0;
    for (uint32_t i = 0; i < 20; i++) {
        struct iovec from = {buf, put_constant(buf, i * 9)}, to = {p, from.iov_len};
        if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != (ssize_t)from.iov_len)
            put_constant(p, i * 9); /* not allowed here: the same result otherwise */
        h = mix(h, call(p, 0));
    }
    return h;
}

static uint64_t by_proc_self_mem(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), buf[8];
    int fd = open("/proc/self/mem", O_RDWR);
    uint64_t h = 0;
    put_constant(p, 1);
    mprotect(p, PAGE, PROT_READ | PROT_EXEC);
    call(p, 0);
    for (uint32_t i = 0; i < 20; i++) {
        size_t n = put_constant(buf, i * 11);
        h = mix(h, (uint64_t)pwrite(fd, buf, n, (off_t)(uintptr_t)p));
        h = mix(h, call(p, 0));
    }
    close(fd);
    return h;
}

static uint64_t write_xor_execute(void)
{
    uint8_t *p = map(2, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 200; i++) {
        mprotect(p, PAGE, PROT_READ | PROT_WRITE);
        put_constant(p, i * 13);
        mprotect(p, PAGE, PROT_READ | PROT_EXEC);
        h = mix(h, call(p, 0));
    }
    return h;
}

static uint64_t remapped(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 100; i++) {
        put_constant(p, i * 17);
        h = mix(h, call(p, 0));
        munmap(p, PAGE);
        if (mmap(p, PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p)
            return 0;
    }
    return h;
}

static uint64_t moved(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), *to = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 20; i++) {
        put_constant(p, i * 19);
        put_constant(to, i);
        h = mix(h, call(p, 0));
        h = mix(h, call(to, 0));
        if (mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
            return 0;
        h = mix(h, call(to, 0));
        p = to;
        to = map(1, RWX, MAP_PRIVATE, -1);
    }
    return h;
}

static uint64_t zeroed_by_madvise(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 20; i++) {
        put_constant(p, i * 23);
        h = mix(h, call(p, 0));
        madvise(p, PAGE, MADV_DONTNEED);
        h = mix(h, p[0]);
        put_constant(p, i);
        h = mix(h, call(p, 0));
    }
    return h;
}

/* An instruction over a page boundary, either half of it changing. */
static uint64_t straddling(void)
{
    uint8_t *p = map(2, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 40; i++) {
        uint8_t *at = p + PAGE - 3;
        if (i % 4 == 0)
            put_constant(at, i);
        else if (i % 2)
            p[PAGE] = (uint8_t)(i * 29); /* third byte of the constant */
        else
            p[PAGE - 2] = (uint8_t)(i * 31); /* first */
        uint64_t v = call(at, 0);
        printf("%s %u: %lx\n", smc_current, i, v);
        h = mix(h, v);
    }
    return h;
}

static sigjmp_buf out_of_fault;
static siginfo_t last_fault;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)context;
    last_fault = *info;
    siglongjmp(out_of_fault, signo);
}

/* Calls code that may fault; prints signal, code and the fault's distance from base. */
static uint64_t call_fault(const uint8_t *code, const uint8_t *base)
{
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old, old_ill;
    volatile uint64_t result = 0;
    sigaction(SIGSEGV, &sa, &old);
    sigaction(SIGILL, &sa, &old_ill);
    int signo = sigsetjmp(out_of_fault, 1);
    if (!signo)
        result = call(code, 0);
    sigaction(SIGSEGV, &old, NULL);
    sigaction(SIGILL, &old_ill, NULL);
    if (signo)
        printf("%s signal=%d code=%d addr=%+ld\n", smc_current, signo, last_fault.si_code,
               (long)((uint8_t *)last_fault.si_addr - base));
    else
        printf("%s result=%lx\n", smc_current, result);
    return result;
}

static uint64_t runs_off_the_end(void)
{
    uint8_t *p = map(3, RWX, MAP_PRIVATE, -1);
    mprotect(p + PAGE, PAGE, PROT_NONE);
    memset(p, 0x90, PAGE);
    return call_fault(p + PAGE - 8, p); /* nops up to the boundary */
}

static uint64_t cut_off_instruction(void)
{
    uint8_t *p = map(3, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    memset(p, 0x90, PAGE);
    put_constant(p + PAGE - 3, 0x010203);
    h = mix(h, call_fault(p + PAGE - 10, p));
    mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE); /* not executable */
    h = mix(h, call_fault(p + PAGE - 10, p));
    munmap(p + PAGE, PAGE);
    h = mix(h, call_fault(p + PAGE - 10, p));
    return h;
}

static uint64_t execute_permission_taken(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    uint64_t h = 0;
    for (uint32_t i = 0; i < 5; i++) {
        put_constant(p, i);
        h = mix(h, call_fault(p, p));
        mprotect(p, PAGE, PROT_READ | PROT_WRITE);
        h = mix(h, call_fault(p, p));
        mprotect(p, PAGE, PROT_NONE);
        h = mix(h, call_fault(p, p));
        mprotect(p, PAGE, RWX);
    }
    munmap(p, PAGE);
    return mix(h, call_fault(p, p));
}

static uint64_t execute_only_page(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1);
    put_constant(p, 99);
    mprotect(p, PAGE, PROT_EXEC);
    return call(p, 0);
}

static uint64_t on_the_stack(void)
{
    uint8_t local[64] __attribute__((aligned(64)));
    uint64_t h = 0;
    mprotect((void *)((uintptr_t)local & ~(uintptr_t)(PAGE - 1)), PAGE, RWX);
    for (uint32_t i = 0; i < 50; i++) {
        put_constant(local, i * 37);
        h = mix(h, call(local, 0));
    }
    return h;
}

/* A nested function whose address is taken: the compiler builds a trampoline on the stack. */
static uint64_t apply(uint64_t (*f)(uint64_t), uint64_t n)
{
    uint64_t h = 0;
    for (uint64_t i = 0; i < n; i++)
        h = mix(h, f(i));
    return h;
}

__attribute__((noinline)) static uint64_t trampoline(void)
{
    uint64_t sum = 5;
    uint64_t add(uint64_t v) { return sum += v; }
    return mix(apply(add, 100), sum);
}

/* Returns into, calls through and jumps to rsp-relative code: push code bytes, call *%rsp. */
static uint64_t call_rsp(void)
{
    uint8_t *p = map(4, RWX, MAP_PRIVATE, -1);
    uint64_t result;
    __asm__ volatile("mov %%rsp, %%rbx\n\t"
                     "lea 0x2000(%[p]), %%rsp\n\t"
                     "movabs $0xc300000063b8, %%rax\n\t" /* mov $99, %eax; ret */
                     "mov %%rax, (%%rsp)\n\t"
                     "call *%%rsp\n\t"
                     "mov %%rbx, %%rsp\n\t"
                     : "=&a"(result) : [p] "r"(p) : "rbx", "memory");
    return result;
}

/* Self-modification by compare-and-swap, xchg, vector store, x87 store and push. */
static uint64_t odd_stores(void)
{
    uint8_t *p = map(1, RWX, MAP_PRIVATE, -1), image[16] = {0};
    uint64_t h = 0, was, now;
    put_constant(p, 1);
    for (uint32_t i = 0; i < 40; i++) {
        h = mix(h, call(p, 0));
        put_constant(image, i * 41);
        memcpy(&was, p, 8), memcpy(&now, image, 8);
        switch (i % 5) {
        case 0:
            __atomic_compare_exchange_n((uint64_t *)(void *)p, &was, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
            break;
        case 1:
            __atomic_exchange_n((uint64_t *)(void *)p, now, __ATOMIC_SEQ_CST);
            break;
        case 2:
            __asm__ volatile("movdqu (%1), %%xmm0; movdqu %%xmm0, (%0)" : : "r"(p), "r"(image) : "xmm0", "memory");
            break;
        case 3:
            __asm__ volatile("fildll (%1); fistpll (%0)" : : "r"(p), "r"(image) : "memory");
            break;
        case 4:
            __asm__ volatile("xchg %0, %%rsp; push %1; xchg %0, %%rsp" : : "r"(p + 8), "r"(now) : "memory");
            break;
        }
    }
    return mix(h, call(p, 0));
}

/* Another thread changes the code while this one waits: ordinary cross-modification. */
static _Atomic uint32_t step;
static uint8_t *shared_code;

static void *modifier(void *arg)
{
    for (uint32_t i = 0; i < 100; i++) {
        while (atomic_load(&step) != 2 * i)
            sched_yield();
        put_constant(shared_code, i * 43);
        atomic_store(&step, 2 * i + 1);
    }
    return arg;
}

static uint64_t by_another_thread(void)
{
    pthread_t thread;
    uint64_t h = 0;
    shared_code = map(1, RWX, MAP_PRIVATE, -1);
    atomic_store(&step, 0);
    if (pthread_create(&thread, NULL, modifier, NULL))
        return 0;
    for (uint32_t i = 0; i < 100; i++) {
        while (atomic_load(&step) != 2 * i + 1)
            sched_yield();
        uint32_t leaf = 0;
        __asm__ volatile("cpuid" : "+a"(leaf) : : "rbx", "rcx", "rdx"); /* serialises */
        h = mix(h, call(shared_code, 0));
        atomic_store(&step, 2 * i + 2);
    }
    pthread_join(thread, NULL);
    return h;
}

const struct smc_test smc_tests[] = {
    {"smc_rewritten_often", rewritten_often},
    {"smc_next_instruction", next_instruction},
    {"smc_next_opcode", next_opcode},
    {"smc_loop_head", loop_head},
    {"smc_rep_movs_ahead", rep_movs_ahead},
    {"smc_data_next_to_code", data_next_to_code},
    {"smc_double_mapped", double_mapped},
    {"smc_by_pwrite_to_shared", by_pwrite_to_shared},
    {"smc_by_read", by_read},
    {"smc_by_process_vm_writev", by_process_vm_writev},
    {"smc_by_proc_self_mem", by_proc_self_mem},
    {"smc_write_xor_execute", write_xor_execute},
    {"smc_remapped", remapped},
    {"smc_moved", moved},
    {"smc_zeroed_by_madvise", zeroed_by_madvise},
    {"smc_straddling", straddling},
    {"smc_runs_off_the_end", runs_off_the_end},
    {"smc_cut_off_instruction", cut_off_instruction},
    {"smc_execute_permission_taken", execute_permission_taken},
    {"smc_execute_only_page", execute_only_page},
    {"smc_on_the_stack", on_the_stack},
    {"smc_trampoline", trampoline},
    {"smc_call_rsp", call_rsp},
    {"smc_odd_stores", odd_stores},
    {"smc_by_another_thread", by_another_thread},
    {NULL, NULL},
};
