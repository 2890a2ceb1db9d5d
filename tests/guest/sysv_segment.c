/* A System V segment that outlives the process: `make` prints the id of a new one, `use ID` what it holds, `remove ID`. */
#include "guest.h"
#include <sys/shm.h>

int main(int argc, char **argv) {
    int id = argc > 2 ? atoi(argv[2]) : shmget(IPC_PRIVATE, 5 * 4096, IPC_CREAT | 0600);
    if (argc > 2 && !strcmp(argv[1], "remove")) return shmctl(id, IPC_RMID, NULL) != 0;
    char *p = shmat(id, NULL, argc > 3 ? SHM_RDONLY : 0);
    CHECK(p != (void *)-1);
    if (argc > 2) {
        printf("%s|%s|%d\n", p, p + 3 * 4096 + 5, p[4096]);
        if (argc == 3) strcpy(p + 4096, "\1used");
    } else {
        strcpy(p, "old"), strcpy(p + 3 * 4096 + 5, "contents");
        printf("%d\n", id);
    }
    return finish();
}
