/* Memory of all kinds that changes in all ways, for a while: what checkpoints must get right. Prints a sum of it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define MAPS 24
#define MOST 64 /* pages */

static uint64_t random_state = 12345;
static uint64_t any(uint64_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % below;
}

static struct map {
    uint8_t *at;
    size_t pages;
    int is_in_pieces; /* for the kernel: cannot be moved as a whole */
} maps[MAPS];
static int file, tube[2];

static int make_file(void) {
    char name[] = "mem_changes-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0 || unlink(name) < 0) abort();
    for (uint64_t i = 0; i < MOST * PAGE / 8; i++)
        if (write(fd, &i, 8) != 8) abort();
    return fd;
}

static void map_anew(struct map *m) {
    int flags = any(3) ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE; /* some show the file */
    m->pages = 1 + any(MOST);
    m->is_in_pieces = 0;
    m->at = mmap(NULL, m->pages * PAGE, PROT_READ | PROT_WRITE, flags, flags & MAP_ANONYMOUS ? -1 : file, 0);
    if (m->at == MAP_FAILED) abort();
}

static uint8_t *place(struct map *m) { return m->at + any(m->pages * PAGE - 64); }

/* Frames of many pages, with whatever was there before below them. */
static uint64_t deep(int n) {
    volatile uint64_t room[300];
    room[any(300)] = (uint64_t)n;
    return n ? deep(n - 1) + room[0] % 2 : room[1] % 2;
}

static void change(struct map *m) {
    switch (any(10)) {
    case 0:
        munmap(m->at, m->pages * PAGE);
        map_anew(m);
        break;
    case 1: madvise(m->at + any(m->pages) * PAGE, PAGE, MADV_DONTNEED); break;
    case 2: { /* grows or shrinks, and moves */
        if (m->is_in_pieces) break;
        size_t pages = 1 + any(MOST);
        void *p = mremap(m->at, m->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
        if (p == MAP_FAILED) abort();
        m->at = p;
        m->pages = pages;
        break;
    }
    case 3: /* closed, opened again, and what was in it is still there */
        mprotect(m->at, m->pages * PAGE, PROT_NONE);
        if (any(2)) deep(20);
        mprotect(m->at, m->pages * PAGE, PROT_READ | PROT_WRITE);
        break;
    case 4: { /* the kernel writes, over the border of pages, too */
        char text[64];
        memset(text, (int)any(256), sizeof text);
        if (write(tube[1], text, sizeof text) != sizeof text || read(tube[0], place(m), 64) != 64) abort();
        break;
    }
    case 5: /* a piece of it is mapped over */
        m->is_in_pieces = 1;
        if (mmap(m->at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            abort();
        break;
    case 6: deep((int)any(60)); break;
    case 7: {
        void *p = sbrk((long)(any(3) * PAGE)); /* and back, sometimes */
        if (p == (void *)-1) abort();
        if (any(2) && sbrk(0) == (char *)p + PAGE) sbrk(-(long)PAGE);
        break;
    }
    default: *place(m) += 1 + (uint8_t)any(200);
    }
}

static uint64_t sum_of(const struct map *m, uint64_t sum) {
    for (size_t i = 0; i < m->pages * PAGE; i += 8) sum = (sum ^ *(uint64_t *)(m->at + i)) * 0x9e3779b97f4a7c15ull;
    return sum;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3000;
    uint64_t sum = 0;
    file = make_file();
    if (pipe(tube) < 0) abort();
    for (int i = 0; i < MAPS; i++) map_anew(&maps[i]);
    for (int k = 0; k < rounds; k++) {
        change(&maps[any(MAPS)]);
        volatile uint64_t work = 0;
        for (int i = 0; i < 20000; i++) work = work + (uint64_t)i * work;
    }
    for (int i = 0; i < MAPS; i++) sum = sum_of(&maps[i], sum);
    printf("%016lx\n", sum);
    return 0;
}
