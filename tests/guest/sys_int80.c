// cflags: -no-pie -fno-pie
/* int $0x80 with arguments that are laid out differently there: lists of pointers, vectors, a thread without a library. */
#include "guest.h"

static long int80(long nr, void *a, void *b, void *c, void *d, void *e) {
    long ret;
    __asm__ volatile("int $0x80"
                     : "=a"(ret)
                     : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory", "r8", "r9", "r10", "r11");
    return ret;
}

static uint32_t low(const void *p) { return (uint32_t)(uintptr_t)p; }

#define EXECVE 11
#define CLONE 120
#define READV 145
#define WRITEV 146

static char words[2][16] = {"two ", "pieces\n"}, path[] = "/bin/sh", option[] = "-c", script[] = "echo \"$0 $LIKE $#\"",
            name[] = "name", one[] = "1", variable[] = "LIKE=this";
static uint32_t argv[6], envp[2], vector[4];
volatile int told;
static uint8_t stack[65536] __attribute__((aligned(16)));

/* The new thread shares no stack with us; rbx, rsi and rdi are what they were. */
static long make_thread(void) {
    long ret;
    __asm__ volatile("int $0x80\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "mov %%esi, %%eax\n"
                     "add %%ebx, %%eax\n"
                     "mov %%eax, told(%%rip)\n"
                     "mov $1, %%eax\n"
                     "xor %%ebx, %%ebx\n"
                     "int $0x80\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(CLONE), "b"(0x10f00 /* VM, FS, FILES, SIGHAND, THREAD */), "c"(stack + sizeof stack), "d"(0),
                       "S"(77), "D"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    return ret;
}

int main(void) {
    char buf[2][4];
    static char *in;
    int fds[2];
    vector[0] = low(words[0]), vector[1] = 4, vector[2] = low(words[1]), vector[3] = 7;
    printf("writev: %ld\n", int80(WRITEV, (void *)1, vector, (void *)2, 0, 0));
    CHECK(pipe(fds) == 0 && write(fds[1], "abcdef", 6) == 6);
    in = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    vector[0] = low(in), vector[1] = 3, vector[2] = low(in + 8), vector[3] = 3;
    printf("readv: %ld", int80(READV, (void *)(long)fds[0], vector, (void *)2, 0, 0));
    memcpy(buf[0], in, 4);
    memcpy(buf[1], in + 8, 4);
    printf(" %s %s\n", buf[0], buf[1]);
    printf("bad vector: %ld\n", int80(WRITEV, (void *)1, (void *)16, (void *)2, 0, 0));
    CHECK(make_thread() > 0);
    while (!told) usleep(1000);
    printf("thread: %x\n", told);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        argv[0] = low(path), argv[1] = low(option), argv[2] = low(script), argv[3] = low(name), argv[4] = low(one);
        envp[0] = low(variable);
        printf("no such file: %ld\n", int80(EXECVE, one, argv, envp, 0, 0));
        printf("bad list: %ld\n", int80(EXECVE, path, (void *)16, envp, 0, 0));
        fflush(stdout);
        int80(EXECVE, path, argv, envp, 0, 0);
        _exit(1);
    }
    puts(wait_text(child));
    return finish();
}
