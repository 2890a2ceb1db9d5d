/* Threads that the runtime has for itself (for checkpoints, for shared memory) are not seen, and do not count where the kernel wants a
 * process with a single thread. */
#include "guest.h"

#include <dirent.h>
#include <sched.h>

static volatile unsigned sink;

static void compute(long ms) {
    for (long end = now_ms() + ms; now_ms() < end;)
        for (int i = 0; i < 100000; i++) sink += i;
}

static int tasks(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void look(const char *when) {
    char text[4096];
    int threads = 0;
    slurp("/proc/self/status", text, sizeof text);
    char *line = strstr(text, "Threads:");
    struct stat by_name, by_path, by_fd;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    CHECK(stat("/proc/self/task", &by_name) == 0 && fstatat(AT_FDCWD, "/proc/self/task/", &by_path, 0) == 0 &&
          fstat(fd, &by_fd) == 0);
    close(fd);
    printf("%s: links %d %d %d, tasks %d, status %.*s", when, (int)by_name.st_nlink, (int)by_path.st_nlink,
           (int)by_fd.st_nlink, tasks(), line ? (int)strcspn(line, "\n") : 0, line ? line : "");
    slurp("/proc/self/stat", text, sizeof text);
    char *s = strrchr(text, ')');
    for (int field = 2; s && field < 20; field++) s = strchr(s + 1, ' ');
    sscanf(s, "%d", &threads);
    printf(", stat %d\n", threads);
}

static void *idle(void *arg) {
    sleep_ms(50);
    return NULL;
}

static int user_namespace(void) {
    pid_t child = fork();
    if (child == 0) {
        compute(300);
        look("child");
        int err = unshare(CLONE_NEWUSER) ? errno : 0;
        _exit(err == EINVAL);
    }
    puts(wait_text(child));
    return 0;
}

int main(void) {
    compute(300);
    look("alone");
    pthread_t t;
    pthread_create(&t, NULL, idle, NULL);
    look("two");
    pthread_join(t, NULL);
    while (tasks() > 1) sched_yield();
    user_namespace();
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    user_namespace();
    pid_t child = fork();
    if (child == 0) _exit(++*shared);
    CHECK(waitpid(child, NULL, 0) == child && *shared == 1);
    look("sharing");
    printf("user namespace: %s\n", unshare(CLONE_NEWUSER) && errno == EINVAL ? "EINVAL" : "not EINVAL");
    child = fork();
    if (child == 0) _exit(++*shared);
    CHECK(waitpid(child, NULL, 0) == child && *shared == 2);
    compute(200);
    look("at the end");
    return finish();
}
