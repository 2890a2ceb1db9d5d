/* RLIMIT_NOFILE: a full table gives EMFILE at the right number; a lowered limit hurts nothing that is open. */
#include "guest.h"
#include <sys/resource.h>

static void *thread(void *arg) { return arg; }
int main(void) {
    closefrom(3);
    struct rlimit lim = {20, 20};
    CHECK(setrlimit(RLIMIT_NOFILE, &lim) == 0);
    int n = 0, last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) n++, last = fd;
    printf("opened %d, last %d, then %s\n", n, last, strerror(errno));
    CHECK(pipe((int[2]){0, 0}) == -1 && errno == EMFILE);
    CHECK(sysconf(_SC_OPEN_MAX) == 20);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, thread, NULL) == 0 && pthread_join(t, NULL) == 0);
    pid_t pid = fork();
    if (!pid) close(19), execl("/bin/sh", "sh", "-c", "exec 3<&-; echo full table; ulimit -n", NULL), _exit(1);
    puts(wait_text(pid));
    lim.rlim_cur = 3; /* nothing can be opened, yet processes go on */
    CHECK(setrlimit(RLIMIT_NOFILE, &lim) == 0);
    closefrom(3);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    CHECK(write(1, "still writing\n", 14) == 14);
    pid = fork();
    if (!pid) _exit(4);
    puts(wait_text(pid));
    return finish();
}
