/* As many mappings as the kernel allows: the program is told, and goes on. */
#include "guest.h"

int main(void) {
    unsigned long most = 0;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
    if (!f || fscanf(f, "%lu", &most) != 1 || most > 200000) return 77;
    fclose(f);
    int fd = memfd_create("page", 0);
    CHECK(ftruncate(fd, 4096) == 0);
    unsigned long n = 0;
    while (n < most && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED) n++;
    printf("%s, %d\n", strerror(errno), n > most / 2);
    pid_t child = fork();
    if (child == 0) _exit(7);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    return finish();
}
