/* Memory that grows downwards: what is below it is its own once it was touched; nothing new is put there. */
#include "guest.h"
#include <sys/shm.h>

#define PAGE 4096ul
#define ROOM (64 * PAGE)

static bool is_apart(const char *new, size_t len, const char *low, const char *high) {
    return new + len <= low || new >= high;
}

static void growing(void) {
    char *room = mmap(NULL, 2 * ROOM + 2048 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(room, 2 * ROOM + 2048 * PAGE);
    char *top = room + 2 * ROOM + 2047 * PAGE;
    char *memory =
        mmap(top, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
    CHECK(memory == top);
    for (unsigned long at = PAGE; at <= ROOM; at += PAGE) *(volatile char *)(top - at) = 7;
    for (int i = 0; i < 20; i++) {
        char *other = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(other != MAP_FAILED && is_apart(other, 8 * PAGE, top - ROOM, top + PAGE));
    }
    int id = shmget(IPC_PRIVATE, 4 * PAGE, 0600 | IPC_CREAT);
    char *segment = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    CHECK(segment != (char *)-1 && is_apart(segment, 4 * PAGE, top - ROOM, top + PAGE));
    int lost = 0;
    for (unsigned long at = PAGE; at <= ROOM; at += PAGE) lost += *(volatile char *)(top - at) != 7;
    CHECK(mprotect(top - ROOM, PAGE, PROT_READ) == 0);
    CHECK(munmap(top - ROOM, ROOM + PAGE) == 0);
    CHECK(msync(top - PAGE, PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
    printf("lost %d\n", lost);
}

/* As the dynamic linker does for a library that wants its stack executable. */
static void stack(void) {
    char here;
    char *page = (char *)((uintptr_t)&here & ~(PAGE - 1));
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_GROWSDOWN) == 0);
    char *other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(other, PAGE, PROT_READ | PROT_GROWSDOWN) == -1 && errno == EINVAL);
}

int main(void) {
    growing();
    stack();
    return failures != 0;
}
