/* Has state of many kinds at any moment: threads in calls, preempted, with values in vector and x87 registers; handlers, masks, an
 * alternate stack; mappings that come, go, move and are closed. Ends as its argument says: crash, abort, exit, or fork (the child
 * crashes); filter: exit, with seccomp filters; file: exit, with a file that it maps shared, and its child in the end, too; secret: the
 * same with memory that the kernel does not read (memfd_secret), which is not mapped half of the time; twice: with shared anonymous
 * memory that mremap() has mapped twice; guard: crash, by a guard (MADV_GUARD_INSTALL). */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long shared_sum;
static volatile sig_atomic_t alarms;
static int never[2];
static volatile int over;

static void on_alarm(int signo, siginfo_t *info, void *context) { alarms++; }

static void *reader(void *arg) { /* in a call to the end, with something in its vector registers */
    char byte;
    register double kept __asm__("xmm9") = 1234.5;
    __asm__ volatile("" : "+x"(kept));
    long n = read(never[0], &byte, 1);
    __asm__ volatile("" : "+x"(kept));
    return kept == 1234.5 && n == 0 ? NULL : (void *)1;
}

static void *waiter(void *arg) { /* waits under another mask, again and again */
    sigset_t none;
    sigemptyset(&none);
    for (int i = 0; !over; i++) {
        struct timespec t = {0, 2000000};
        ppoll(NULL, 0, &t, &none);
        pthread_mutex_lock(&lock);
        shared_sum += (unsigned)i + (getppid() == -1 ? (unsigned)errno : 0); /* a filter's answer */
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *computer(void *arg) {
    double x = 1;
    long double y = 1;
    for (unsigned long i = 0; !over; i++) {
        x = x * 1.0000001 + (double)i * 1e-9;
        y = y * 1.0000001L + x;
        if (i % 4096 == 0) {
            pthread_mutex_lock(&lock);
            shared_sum += (unsigned long)x + (unsigned long)y % 7;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

#define FILE_SIZE 40000
#define VIEW_SIZE 65536 /* ends behind the file */
static unsigned char *view, *other_view;
static int file;
static int is_secret, is_anonymous;

static void *map_file(int prot) {
    void *at =
        is_anonymous ? mremap(view, 0, VIEW_SIZE, MREMAP_MAYMOVE) : mmap(NULL, VIEW_SIZE, prot, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) abort();
    return at;
}

static void make_file(void) {
    char name[] = "states-XXXXXX", bytes[FILE_SIZE];
    munmap(mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 4096); /* is counted */
    memset(bytes, 7, sizeof bytes);
    file = mkstemp(name);
    if (file < 0 || unlink(name) || write(file, bytes, sizeof bytes) != sizeof bytes) abort();
    view = map_file(PROT_READ | PROT_WRITE);
    other_view = map_file(PROT_READ);
}

static void make_anonymous(void) {
    is_anonymous = 1;
    view = mmap(NULL, VIEW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(view, 7, FILE_SIZE);
    other_view = map_file(PROT_READ);
    mprotect(view + VIEW_SIZE - 8192, 4096, PROT_READ); /* in pieces */
}

static void make_secret(void) {
    file = (int)syscall(447 /* memfd_secret */, 0);
    if (file < 0) exit(77);
    if (ftruncate(file, FILE_SIZE)) abort();
}

static void toggle_secret(void) {
    if (view)
        munmap(view, VIEW_SIZE), munmap(other_view, VIEW_SIZE), view = NULL;
    else
        view = map_file(PROT_READ | PROT_WRITE), other_view = map_file(PROT_READ);
}

static unsigned long churn_file(unsigned round) {
    if (is_secret && round % 64 == 0) toggle_secret();
    if (!view) return 0;
    view[round * 61 % FILE_SIZE] += (unsigned char)round;
    if (round % 256 == 0) {
        munmap(other_view, VIEW_SIZE);
        other_view = map_file(PROT_READ);
    }
    return other_view[round * 61 % FILE_SIZE];
}

/* A child changes what its parent has had alone until then. */
static unsigned long lend_file(void) {
    unsigned char *anonymous = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    anonymous[0] = view[100];
    if (fork() == 0) {
        for (unsigned i = 0; i < FILE_SIZE; i += 999) view[i]++;
        anonymous[0]++;
        _exit(0);
    }
    wait(NULL);
    return other_view[999] + view[100] + anonymous[0];
}

/* One round of changes in the address space. */
static unsigned long churn(unsigned round) {
    static unsigned char *moving;
    static size_t size = 65536;
    unsigned char *a = mmap(NULL, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static unsigned char *closed;
    for (size_t i = 0; i < 262144; i += 97) a[i] = (unsigned char)(i + round);
    if (closed) {
        mprotect(closed, 262144, PROT_READ);
        shared_sum += closed[97];
        munmap(closed, 131072);
        mprotect(closed + 131072, 131072, PROT_READ | PROT_WRITE);
        madvise(closed + 131072, 65536, MADV_DONTNEED);
        shared_sum += closed[131072];
        munmap(closed + 131072, 131072);
    }
    mprotect(a, 262144, PROT_NONE);
    closed = a;
    if (!moving) moving = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t next = size == 65536 ? 262144 : 65536;
    moving = mremap(moving, size, next, MREMAP_MAYMOVE);
    size = next;
    moving[round % size]++;
    if (getppid() == -1) shared_sum += (unsigned long)errno; /* a filter */
    return moving[(round / 2) % size] + churn_file(round);
}

static volatile char *guard;

static void make_guard(void) {
    guard = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4096;
    if (madvise((void *)guard, 4096, 102 /* MADV_GUARD_INSTALL */)) exit(77);
}

static void end(const char *how) {
    if (strcmp(how, "crash") == 0) *(volatile int *)(shared_sum & 0xff0) = 1;
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "guard") == 0) guard[0] = 1;
}

/* Calls of getppid get an answer from a filter, and then one from another. */
static void add_filter(int answer) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* nr */),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
}

int main(int argc, char **argv) {
    if (strcmp(argv[1], "filter") == 0) add_filter(33), add_filter(44);
    if (strcmp(argv[1], "file") == 0) make_file();
    if ((is_secret = strcmp(argv[1], "secret") == 0)) make_secret();
    if (strcmp(argv[1], "twice") == 0) make_anonymous();
    if (strcmp(argv[1], "guard") == 0) make_guard();
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    if (pipe(never)) return 1;
    pthread_t t[3];
    void *(*const bodies[])(void *) = {reader, waiter, computer};
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, bodies[i], NULL);
    struct itimerval every = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &every, NULL);
    unsigned long sum = 0;
    struct timespec began, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (unsigned round = 0;; round++) {
        sum += churn(round);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        if ((double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9 > seconds) break;
    }
    if (strcmp(argv[1], "fork") == 0 && fork() == 0) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
        for (unsigned round = 0;; round++) {
            sum += churn(round);
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
            if ((double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9 > seconds) break;
        }
        end("crash");
    }
    if (is_secret && !view) toggle_secret();
    if (view) sum += lend_file();
    end(argv[1]);
    over = 1;
    close(never[1]);
    void *result, *bad = NULL;
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], &result);
        if (result) bad = result;
    }
    if (strcmp(argv[1], "fork") == 0) wait(NULL);
    printf("%d\n", bad != NULL || sum == 1);
    return 0;
}
