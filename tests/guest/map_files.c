/* /proc/self/map_files has a link for each line of /proc/self/maps that shows a file, also where pages of shared memory are another
 * process's. Shared anonymous memory can be opened there and mapped again: what is written to one mapping is in the other. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096l
#define PAGES 8

static int n_lines, n_wrong;

static void check_line(const char *line) {
    unsigned long lo, hi, ino;
    char name[4200] = "", link[4200], path[80];
    if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %4199[^\n]", &lo, &hi, &ino, name) < 3 || !ino) return;
    sprintf(path, "/proc/self/map_files/%lx-%lx", lo, hi);
    long n = readlink(path, link, sizeof link - 1);
    link[n > 0 ? n : 0] = '\0';
    n_lines++;
    if (n > 0 && strcmp(link, name) == 0) return;
    n_wrong++;
    printf("%s: %s instead of %s", path, n < 0 ? strerror(errno) : link, line);
}

/* Reads all of maps first: it changes with what the C library allocates. */
static void check_links(const char *when) {
    static char text[1 << 18];
    size_t len = 0;
    n_lines = n_wrong = 0;
    int fd = open("/proc/self/maps", O_RDONLY);
    for (long n; (n = read(fd, text + len, sizeof text - 1 - len)) > 0;) len += n;
    close(fd);
    text[len] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        check_line(line);
    }
    int listed = 0, known = 0;
    DIR *d = opendir("/proc/self/map_files");
    for (struct dirent *e; d && (e = readdir(d));) {
        char link[4200];
        if (e->d_name[0] == '.') continue;
        listed++;
        known += e->d_type == DT_LNK && readlinkat(dirfd(d), e->d_name, link, sizeof link) > 0;
    }
    if (d) closedir(d);
    printf("%s: %d wrong, listed %s, all lead somewhere: %s\n", when, n_wrong, listed == n_lines ? "as in maps" : "others",
           listed == known ? "yes" : "no");
    fflush(stdout);
}

/* Of the pages at `at`, mapped together. */
static int open_link(const char *at, int pages, int flags) {
    char path[80];
    sprintf(path, "/proc/self/map_files/%lx-%lx", (long)at, (long)at + pages * PAGE);
    int fd = open(path, flags);
    if (fd < 0 && errno == EPERM) exit(77);
    if (fd < 0) printf("%s: %s\n", path, strerror(errno));
    return fd;
}

static void await(volatile char *word, char what) {
    while (*word != what) {}
}

int main(void) {
    char *shared = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(shared + 2 * PAGE, "written before");
    int fd = open_link(shared, PAGES, O_RDWR);
    char *again = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *part = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE);
    printf("again: %s, part: %s\n", again + 2 * PAGE, part);
    strcpy(again + 3 * PAGE, "written to the second");
    printf("first: %s, part: %s\n", shared + 3 * PAGE, part + PAGE);
    check_links("alone");
    if (fork() == 0) {
        await(shared, 1);
        char *late = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        for (int i = 1; i < PAGES; i += 2) snprintf(late + i * PAGE, 20, "page %d", i);
        munmap(again, PAGES * PAGE);
        check_links("child");
        late[0] = 2;
        await(shared, 3);
        printf("child: %s, %s\n", late + 4 * PAGE, shared + 4 * PAGE);
        return 0;
    }
    again[0] = 1;
    await(again, 2);
    check_links("parent");
    strcpy(again + 4 * PAGE, "of the parent");
    printf("parent: %s, %s, %s\n", shared + PAGE, again + 5 * PAGE, part + PAGE);
    munmap(shared, PAGES * PAGE);
    fflush(stdout);
    again[0] = 3;
    wait(NULL);
    return 0;
}
