/* remap_file_pages: another page of the file, or no such call (while recording); never something else. */
#include "guest.h"

int main(void) {
    int fd = memfd_create("pages", 0);
    CHECK(ftruncate(fd, 8192) == 0);
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map[0] = 'a';
    map[4096] = 'b';
    long ret = syscall(SYS_remap_file_pages, map, 4096, 0, 1, 0);
    CHECK(ret == 0 || (ret == -1 && errno == ENOSYS));
    CHECK(map[0] == (ret == 0 ? 'b' : 'a'));
    CHECK(pwrite(fd, "c", 1, 4096) == 1);
    CHECK(map[4096] == 'c' && map[0] == (ret == 0 ? 'c' : 'a'));
    printf("%c%c\n", map[0], map[4096]);
    return failures != 0;
}
