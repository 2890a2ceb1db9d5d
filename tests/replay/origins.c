/* Values that come to where they are in many ways; `reprise why` has to find out each of them (why.sh). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pair {
    long first, second;
};

/* What the test asks for. */
long constant, by_registers, by_memcpy, from_file, from_argument, from_environment, from_thread, from_file_deep;
long from_sum, from_call, same_again, from_argc;
const char *variable;
long *by_realloc, *by_mremap;
struct pair by_struct;
char from_mapping;
char text[64];

static long first = 11, numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static char buffer[256], copied[256];
static struct pair pairs[4];
static void *volatile kept;
static volatile size_t forty = 40;

__attribute__((noinline)) static long pass(long a) { return a; }

__attribute__((noinline)) static void through_registers(void) {
    *(volatile long *)&first = forty + 4202;
    by_registers = pass(pass(first));
}

__attribute__((noinline)) static void through_memcpy(void) {
    char here[128];
    memset(here, 0, sizeof here);
    here[forty] = 33;
    memcpy(copied, here, forty * 3);
    memcpy(&by_memcpy, copied + forty, sizeof by_memcpy);
}

__attribute__((noinline)) static void through_struct(void) {
    pairs[2].first = 77;
    pairs[2].second = 78;
    by_struct = pairs[2];
}

__attribute__((noinline)) static void from_a_file(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0 || lseek(fd, 100, SEEK_SET) != 100 || read(fd, buffer, 16) != 16) exit(1);
    if (read(fd, buffer + 16, 32) != 32) exit(1);
    memcpy(&from_file, buffer + 24, 8);
    if (pread(fd, text, 8, 200) != 8) exit(1);
    from_file_deep = atol(text) + 1;
    char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) exit(1);
    from_mapping = map[300];
    close(fd);
}

static void *other_thread(void *arg) {
    numbers[5] = (long)arg * 3;
    return NULL;
}

__attribute__((noinline)) static void from_another_thread(void) {
    pthread_t t;
    pthread_create(&t, NULL, other_thread, (void *)33);
    pthread_join(t, NULL);
    from_thread = numbers[5];
}

__attribute__((noinline)) static void through_realloc(void) {
    by_realloc = malloc(64);
    kept = malloc(64); /* so that it has to move */
    by_realloc[3] = 1001;
    by_realloc = realloc(by_realloc, 4000);
    by_mremap = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mmap((char *)by_mremap + 4096, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    by_mremap[7] = 2002;
    by_mremap = mremap(by_mremap, 4096, 65536, MREMAP_MAYMOVE);
}

int main(int argc, char **argv) {
    constant = 5;
    through_registers();
    through_memcpy();
    through_struct();
    from_a_file(argv[1]);
    from_argument = *(const short *)argv[2];
    from_environment = getenv("ORIGIN")[2];
    from_argc = argc;
    variable = getenv("ORIGIN");
    from_another_thread();
    through_realloc();
    from_sum = 100000 + numbers[3];
    from_call = getppid();
    *(volatile long *)&same_again = pass(9);
    *(volatile long *)&same_again = pass(9);
    printf("%p %p %d\n", (void *)&by_realloc[3], (void *)&by_mremap[7], from_mapping);
    fflush(stdout);
    abort();
}
