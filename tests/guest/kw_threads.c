/* A thread waits in a call that will write into a page; meanwhile another thread runs code on that page for the first
 * time. And a thread whose tid word lies amid code ends. */
#include "kw_page.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static int s[2], ep;
static uint8_t *page;
static char *room;
static long result;
static volatile int waiter_tid, how;

static void *wait_for_data(void *arg) {
    (void)arg;
    waiter_tid = gettid();
    if (how == 0) result = recv(s[0], room, 64, 0);
    if (how == 1) result = read(s[0], room, 64);
    if (how == 2) result = epoll_wait(ep, (void *)room, 4, -1);
    if (how == 3) {
        struct iovec v = {room, 64};
        struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
        result = recvmsg(s[0], &h, 0);
    }
    return NULL;
}

int main(void) {
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 && (ep = epoll_create1(0)) >= 0);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, s[0], &(struct epoll_event){.events = EPOLLIN}) == 0);
    for (how = 0; how < 4; how++)
        for (int i = 0; i < 5; i++) {
            page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            room = (char *)page + 2048;
            int v = 100 * how + i;
            page[0] = 0xb8, memcpy(page + 1, &v, 4), page[5] = 0xc3;
            pthread_t t;
            waiter_tid = 0;
            pthread_create(&t, NULL, wait_for_data, NULL);
            while (!waiter_tid) sched_yield();
            wait_asleep(getpid(), waiter_tid);
            CHECK(((int (*)(void))page)() == v); /* now it is code */
            CHECK(send(s[1], "datagram", 8, 0) == 8);
            pthread_join(t, NULL);
            if (how == 2) {
                char drop[64];
                CHECK(result == 1 && ((struct epoll_event *)room)->events == EPOLLIN);
                CHECK(recv(s[0], drop, 64, MSG_DONTWAIT) == 8);
            } else
                CHECK(result == 8 && !memcmp(room, "datagram", 8));
            CHECK(((int (*)(void))page)() == v);
        }
    puts("written while waiting");

    for (int i = 0; i < 5; i++) {
        struct kw k = kw_page();
        int *tid = (int *)k.room;
        char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *tid = 1;
        CHECK(kw_run(k) == k.value);
        long flags =
            CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
        long got;
        register int *ctid __asm__("r10") = tid;
        register long tls __asm__("r8") = 0;
        register void *fn __asm__("r12") = k.page;
        __asm__ volatile(
            "syscall\n test %%eax, %%eax\n jnz 1f\n mov $100, %%ebx\n 2: call *%%r12\n dec %%ebx\n jnz 2b\n"
            "xor %%edi, %%edi\n mov $60, %%eax\n syscall\n 1:"
            : "=a"(got)
            : "a"(SYS_clone), "D"(flags), "S"(stack + 65520), "d"(0), "r"(ctid), "r"(tls), "r"(fn)
            : "rcx", "r11", "rbx", "memory");
        CHECK(got > 0);
        struct timespec limit = {5, 0};
        while (*(volatile int *)tid && syscall(SYS_futex, tid, FUTEX_WAIT, 1, &limit, NULL, 0) == 0) {}
        CHECK(*(volatile int *)tid == 0);
        CHECK(kw_run(k) == k.value);
    }
    puts("tid word cleared");
    return finish();
}
