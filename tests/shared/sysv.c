/* System V shared memory, attached before and after the fork. */
#include <sys/shm.h>

#include "shared.h"

static int id;
static _Atomic long *before;

static void count(int self) {
    _Atomic long *mine = shmat(id, NULL, 0);
    for (int k = 0; k < 500; k++) atomic_fetch_add(k % 2 ? mine : before, 1);
    printf("%d at %ld\n", self, mine[0]);
    shmdt((void *)mine);
}

int main(void) {
    id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    before = shmat(id, NULL, 0);
    in_children(3, count);
    printf("%ld\n", before[0]);
    shmctl(id, IPC_RMID, NULL);
    return before[0] != 1500;
}
