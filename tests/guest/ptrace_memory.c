// Memory of another process, written by process_vm_writev and /proc/PID/mem while it runs, waits, or is stopped; code, too.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long words[3];
static volatile char wide[9000];
static int (*code)(void); /* mov $N, %eax; ret */
static int from_child[2], to_child[2];

static void step(char c) {
    char got;
    write(from_child[1], &c, 1);
    read(to_child[0], &got, 1);
}

static void child(void) {
    printf("code %d\n", code());
    step('a'); /* waits in read while it is written to */
    printf("words %ld %ld, wide %d %d %d, code %d\n", words[0], words[1], wide[0], wide[4096], wide[8999], code());
    write(from_child[1], "b", 1);
    while (words[2] == 0) {} /* computes */
    printf("seen %ld\n", words[2]);
    step('c');
    printf("code %d, words %ld\n", code(), words[0]);
    exit(0);
}

static void expect(char c) {
    char got = 0;
    read(from_child[0], &got, 1);
    if (got != c) printf("got %c for %c\n", got, c);
}

static void put(pid_t pid, volatile void *to, const void *from, size_t n) {
    struct iovec here[2] = {{(void *)from, n / 2}, {(char *)from + n / 2, n - n / 2}}, there = {(void *)to, n};
    ssize_t got = process_vm_writev(pid, here, 2, &there, 1, 0);
    if (got != (ssize_t)n) printf("process_vm_writev: %zd %s\n", got, strerror(errno));
}

static void put_file(pid_t pid, const volatile void *to, const void *from, size_t n) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR);
    ssize_t got = pwrite(fd, from, n, (off_t)to);
    if (got != (ssize_t)n) printf("pwrite: %zd %s\n", got, strerror(errno));
    close(fd);
}

static void put_vector(pid_t pid, const volatile void *to, const void *from, size_t n) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR);
    struct iovec v[2] = {{(void *)from, n / 4}, {(char *)from + n / 4, n / 4}};
    ssize_t got = pwritev(fd, v, 2, (off_t)to);
    lseek(fd, (off_t)to + n / 2, SEEK_SET);
    v[0] = (struct iovec){(char *)from + n / 2, n / 4};
    v[1] = (struct iovec){(char *)from + n / 2 + n / 4, n / 4};
    got += writev(fd, v, 2);
    if (got != (ssize_t)n) printf("writev: %zd %s\n", got, strerror(errno));
    close(fd);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    unsigned char bytes[] = {0xb8, 1, 0, 0, 0, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, bytes, sizeof bytes);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    code = (int (*)(void))page;
    pipe(from_child), pipe(to_child);
    pid_t pid = fork();
    if (pid == 0) child();
    expect('a');
    long two[2] = {11, 22};
    put(pid, words, two, sizeof two);
    static char many[9000];
    memset(many, 7, sizeof many);
    put(pid, wide, many, sizeof many);
    put_file(pid, page, "\xb8\x02", 2);
    struct iovec here = {two, 8}, there = {(void *)8, 8};
    ssize_t got = process_vm_writev(pid, &here, 1, &there, 1, 0);
    printf("nowhere: %zd %s\n", got, got < 0 ? strerror(errno) : "");
    there.iov_base = page;
    got = process_vm_writev(pid, &here, 1, &there, 1, 0);
    printf("read-only: %zd %s\n", got, got < 0 ? strerror(errno) : "");
    write(to_child[1], "x", 1);
    expect('b');
    long three = 33;
    put_vector(pid, &words[2], &three, 8);
    expect('c');
    printf("attach %ld\n", ptrace(PTRACE_ATTACH, pid, 0, 0));
    int status;
    waitpid(pid, &status, 0);
    printf("stopped by %d\n", WSTOPSIG(status));
    put_file(pid, page, "\xb8\x03", 2);
    two[0] = 44;
    put(pid, words, two, 8);
    printf("peek %ld, ours %ld\n", ptrace(PTRACE_PEEKDATA, pid, (void *)words, 0), words[0]);
    ptrace(PTRACE_DETACH, pid, 0, 0);
    write(to_child[1], "x", 1);
    waitpid(pid, &status, 0);
    printf("status %x\n", status);
    return 0;
}
