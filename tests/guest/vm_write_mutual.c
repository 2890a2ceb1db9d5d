/* Processes that write to each other's memory at the same time, each with process_vm_writev, and open for writing what all of them have
 * mapped privately: nobody waits for somebody who waits for him. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

#define PROCESSES 3
#define ROUNDS 100

static volatile uint64_t from[PROCESSES]; /* what came from whom */
static int ready[2], go[2], over[2];

static void give(pid_t pid, int me, uint64_t value) {
    struct iovec here = {&value, 8}, there = {(void *)&from[me], 8};
    CHECK(process_vm_writev(pid, &here, 1, &there, 1, 0) == 8);
}

static int one(int me, const char *name) {
    pid_t pids[PROCESSES];
    int fd = open(name, O_RDONLY);
    char byte = 0;
    volatile char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && map[0] == 'x');
    CHECK(write(ready[1], "r", 1) == 1 && read(go[0], pids, sizeof pids) == sizeof pids);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        for (int other = 0; other < PROCESSES; other++)
            if (other != me) give(pids[other], me, i);
        if (i % 10) continue;
        int own = open(name, O_RDWR);
        CHECK(own >= 0 && pwrite(own, "y", 1, 100 + me) == 1 && close(own) == 0);
    }
    CHECK(write(ready[1], "d", 1) == 1 && read(over[0], &byte, 1) == 0);
    for (int other = 0; other < PROCESSES; other++) CHECK(other == me || from[other] == ROUNDS);
    return finish();
}

int main(void) {
    pid_t pids[PROCESSES];
    char name[] = "mapped", byte;
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(fd, "x", 1) == 1 && ftruncate(fd, 4096) == 0 && close(fd) == 0);
    CHECK(pipe(ready) == 0 && pipe(go) == 0 && pipe(over) == 0);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(over[1]);
            return one(i, name);
        }
    }
    for (int i = 0; i < PROCESSES; i++) CHECK(read(ready[0], &byte, 1) == 1);
    for (int i = 0; i < PROCESSES; i++) CHECK(write(go[1], pids, sizeof pids) == sizeof pids);
    for (int i = 0; i < PROCESSES; i++) CHECK(read(ready[0], &byte, 1) == 1);
    close(over[1]);
    for (int i = 0, status; i < PROCESSES; i++) CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    return finish();
}
