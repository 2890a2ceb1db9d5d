/* Processes that map a file, which is new to all of them, at the same moment: each finds in it what is there. */
#include "guest.h"

#define ROUNDS 150
#define PROCESSES 4

static void look(const char *name, const char *text, int wait_fd) {
    char c;
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(read(wait_fd, &c, 1) == 0); /* until everybody is there */
    const char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    CHECK(strcmp(p, text) == 0);
    _exit(0);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char name[32], text[32];
        int start[2], status;
        sprintf(name, "file%d", i);
        sprintf(text, "contents %d", i);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        CHECK(write(fd, text, sizeof text) == sizeof text);
        close(fd);
        CHECK(pipe(start) == 0);
        for (int k = 0; k < PROCESSES; k++)
            if (fork() == 0) {
                close(start[1]);
                look(name, text, start[0]);
            }
        close(start[0]);
        close(start[1]);
        for (int k = 0; k < PROCESSES; k++) {
            CHECK(wait(&status) > 0);
            CHECK(status == 0);
        }
        unlink(name);
    }
    puts("done");
    return 0;
}
