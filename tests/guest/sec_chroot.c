// cflags: -static
/* chroot into an empty directory: exec fails with ENOENT, everything else goes on; with a static program inside, exec works. */
#include "guest.h"

static void *thread(void *arg) { return arg; }
static volatile int handled;
static void on(int sig) { (void)sig, handled++; }

int main(int argc, char **argv) {
    (void)argv;
    if (argc == 2) {
        puts("run inside the new root");
        return 5;
    }
    if (getuid()) {
        puts("needs root");
        return 77;
    }
    char self[4096] = "", copy[] = "root/me";
    CHECK(mkdir("root", 0755) == 0 && readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    int in = open(self, O_RDONLY), out = open(copy, O_WRONLY | O_CREAT, 0755);
    static char bytes[4 << 20];
    ssize_t n = read(in, bytes, sizeof bytes);
    CHECK(n > 0 && write(out, bytes, n) == n);
    close(in), close(out);
    signal(SIGUSR1, on);
    CHECK(chroot("root") == 0 && chdir("/") == 0);
    CHECK(execl("/bin/sh", "sh", "-c", "true", NULL) == -1 && errno == ENOENT);
    CHECK(open("/etc/passwd", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(open("/proc/self/maps", O_RDONLY) == -1 && errno == ENOENT);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, thread, NULL) == 0 && pthread_join(t, NULL) == 0);
    raise(SIGUSR1);
    CHECK(handled == 1);
    pid_t pid = fork();
    if (!pid) {
        CHECK(setresuid(65534, 65534, 65534) == 0);
        CHECK(open("/new", O_CREAT | O_WRONLY, 0600) == -1 && errno == EACCES);
        _exit(failures ? 1 : 4);
    }
    puts(wait_text(pid));
    pid = fork();
    if (!pid) execl("/me", "me", "inside", NULL), _exit(1);
    puts(wait_text(pid));
    int fd = open("/file", O_CREAT | O_RDWR, 0600);
    CHECK(fd >= 0);
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, (uint8_t[]){0xb8, 9, 0, 0, 0, 0xc3}, 6);
    printf("new code: %d\n", ((int (*)(void))code)());
    return finish();
}
