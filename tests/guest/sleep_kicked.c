/* Another process writes to the memory of one that sleeps: the sleep goes on, takes as long as was asked for, and leaves nothing where
 * an interrupted one says how much is left. */
#define _GNU_SOURCE
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

#define PIECE 400 /* ms */

static char word[8];

static long ms_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void poke(pid_t pid, const char *what) {
    struct iovec from = {(void *)what, 8}, to = {word, 8};
    usleep(PIECE * 1000);
    CHECK(process_vm_writev(pid, &from, 1, &to, 1, 0) == 8);
}

static int sleeps(void) {
    struct timespec time = {1, 0}, left = {12, 34}, both = {1, 0};
    long begin = ms_now();
    CHECK(nanosleep(&time, &left) == 0);
    CHECK(left.tv_sec == 12 && left.tv_nsec == 34);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &both, &both) == 0);
    CHECK(both.tv_sec == 1 && both.tv_nsec == 0);
    long took = ms_now() - begin;
    CHECK(took >= 2000);
    if (took >= 2000 + 3 * PIECE) printf("slept for %ld ms\n", took);
    return finish();
}

int main(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) return sleeps();
    poke(pid, "first..");
    poke(pid, "second.");
    poke(pid, "third..");
    poke(pid, "fourth.");
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return finish();
}
