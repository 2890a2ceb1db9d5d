/* A program is written through a shared mapping, as lld does it, and maps its own file when it runs: its code and constants stay what they
 * are, also where they are touched for the first time behind that. */
#include <sys/stat.h>

#include "guest.h"

static const volatile int constants[8192] = {[0 ... 8191] = 7};

static int run_as_copy(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    const volatile char *own = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("%c%c%c %d %d\n", own[1], own[2], own[3], constants[2048], constants[6000]);
    return 0;
}

static void write_copy(const char *from, const char *to) {
    char temp[64];
    struct stat st;
    int in = open(from, O_RDONLY), out;
    CHECK(in >= 0 && fstat(in, &st) == 0);
    const char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
    snprintf(temp, sizeof temp, "%s.new", to);
    unlink(temp);
    out = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    CHECK(out >= 0 && ftruncate(out, st.st_size) == 0);
    char *copy = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
    for (volatile int i = 0; i < 200000000; i++) {} /* a replay does the next program's part meanwhile */
    memcpy(copy, bytes, (size_t)st.st_size);
    munmap(copy, (size_t)st.st_size);
    close(out);
    CHECK(rename(temp, to) == 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return run_as_copy();
    pid_t pid = fork();
    if (pid == 0) { /* the writer is another process than the one that starts it */
        write_copy("/proc/self/exe", "copy");
        _exit(0);
    }
    wait_text(pid);
    pid = fork();
    if (pid == 0) {
        execl("./copy", "copy", "runs", (char *)NULL);
        _exit(1);
    }
    printf("%s\n", wait_text(pid));
    unlink("copy");
    return finish();
}
