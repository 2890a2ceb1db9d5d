/* Memory that the kernel itself does not map (memfd_secret): it works, or is not there. */
#include "guest.h"

int main(void) {
    int fd = (int)syscall(447 /* memfd_secret */, 0);
    CHECK(fd >= 0 || errno == ENOSYS);
    if (fd < 0) return 77;
    CHECK(ftruncate(fd, 8192) == 0);
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    if (p == MAP_FAILED) return finish();
    strcpy(p + 4000, "nobody else sees this");
    pid_t pid = fork();
    if (pid == 0) {
        strcpy(p, "a child does");
        _exit(strcmp(p + 4000, "nobody else sees this") != 0);
    }
    CHECK(!strcmp(wait_text(pid), "exit 0"));
    CHECK(!strcmp(p, "a child does"));
    return finish();
}
