/* Memory that children do not get: the copies that a debugger makes of the process have it. And shared memory, which keeps what it holds
 * where private memory would lose it. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *kept, *wiped, *shared;

static void look(int round) {
    kept[0] += round;
    wiped[0] += 2 * round;
    shared[0] += 3 * round;
}

static volatile int *memory(int advice) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED || madvise(p, 4096, advice) ? NULL : p;
}

int main(void) {
    kept = memory(MADV_DONTFORK);
    wiped = memory(MADV_WIPEONFORK);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!kept || !wiped || shared == MAP_FAILED) return 1;
    for (int i = 1; i <= 20; i++) {
        look(i);
        if (madvise((void *)shared, 4096, i == 15 ? MADV_REMOVE : MADV_DONTNEED)) return 2;
    }
    int status;
    if (fork() == 0) _exit(wiped[0] ? 2 : 3);
    wait(&status);
    printf("%d %d %d, the child found %d\n", kept[0], wiped[0], shared[0], WEXITSTATUS(status));
    return 0;
}
