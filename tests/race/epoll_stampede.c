// Several threads wait in epoll for the same eventfd.
#include "race.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
static int ep, ev;
static int woken[4], took[4];
static uint64_t sum[4];
static volatile int done;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me == 4) {
        for (uint64_t i = 1; i <= 60; i++) {
            if (write(ev, &i, 8) != 8) break;
            work(25000);
        }
        done = 1;
        return NULL;
    }
    while (!done) {
        struct epoll_event e;
        if (epoll_wait(ep, &e, 1, 3) <= 0) continue;
        woken[me]++;
        uint64_t v;
        if (read(ev, &v, 8) == 8) {
            took[me]++;
            sum[me] += v;
        }
    }
    return NULL;
}
int main(void) {
    ep = epoll_create1(0);
    ev = eventfd(0, EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e);
    race(5, body);
    for (int i = 0; i < 4; i++) printf("thread %d: woken %d, took %d, sum %lu\n", i, woken[i], took[i], sum[i]);
    return 0;
}
