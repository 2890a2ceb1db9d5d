/* Children whose first need of a shared page as a whole is a call that waits: until then single accesses did, because the page is one
 * that many want. Who wakes them needs the page, too. */
#include "shared.h"

#define CHILDREN 30
#define HAMMERS 2

static struct page {
    sem_t gate, hot;
    _Atomic int over;
} *page;

static void hammer(void) {
    while (!page->over)
        if (sem_trywait(&page->hot) == 0) sem_post(&page->hot);
}

int main(void) {
    page = share(sizeof *page);
    if (sem_init(&page->gate, 1, 0) || sem_init(&page->hot, 1, 1)) abort();
    for (int i = 0; i < HAMMERS; i++)
        if (fork() == 0) {
            hammer();
            _exit(0);
        }
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) _exit(sem_wait(&page->gate) != 0);
        usleep(1000);
        if (sem_post(&page->gate) || waitpid(child, NULL, 0) != child) abort();
    }
    page->over = 1;
    for (int i = 0; i < HAMMERS; i++) wait(NULL);
    puts("all came through");
    return 0;
}
