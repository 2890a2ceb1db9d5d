/* New code on writable pages while another thread waits in a call whose arguments lie in memory that processes share. */
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

struct shared {
    struct sockaddr_storage from;
    socklen_t len;
};
static struct shared *shared;

static void *receive(void *arg) {
    char byte;
    ssize_t n = recvfrom(*(int *)arg, &byte, 1, 0, (struct sockaddr *)&shared->from, &shared->len);
    printf("received %zd, address %u\n", n, shared->len);
    return NULL;
}

int main(void) {
    static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea 1(%rdi), %eax; ret */
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared->len = sizeof shared->from;
    int ends[2], sum = 0;
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    pid_t child = fork(); /* from here on the page has an owner */
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    pthread_t t;
    pthread_create(&t, NULL, receive, &ends[0]);
    for (int i = 0; i < 20; i++) {
        unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(page, code, sizeof code);
        sum += ((int (*)(int))page)(i);
        usleep(1000);
    }
    write(ends[1], "x", 1);
    pthread_join(t, NULL);
    printf("sum %d\n", sum);
    return 0;
}
