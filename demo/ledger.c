/* A small ledger with a bug, for `make demo`: two clerks book the payments of a month that a file lists; long after one of them
 * has written where it should not, the auditor falls over the damage. Where it falls says nothing about who did it, when, or why.
 *
 *   ledger --make FILE    writes such a file
 *   ledger FILE           books it */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAYS 31
#define PAYMENTS 4000
#define CLERKS 2

struct account {
    long booked[DAYS];
    const char *owner;
};

struct payment {
    long amount;
    int account, day; /* of the month, counted from 1 */
};

static struct account accounts[8];
static struct payment payments[PAYMENTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void book(struct account *a, int day, long amount) { a->booked[day - 1] = amount; }

static void *clerk(void *arg) {
    for (size_t i = (size_t)arg; i < PAYMENTS; i += CLERKS) {
        const struct payment *p = &payments[i];
        pthread_mutex_lock(&lock);
        book(&accounts[p->account], p->day, p->amount);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void load(const char *path) {
    int fd = open(path, O_RDONLY);
    char *to = (char *)payments;
    for (ssize_t n, left = sizeof payments; left > 0; left -= n, to += n)
        if (fd < 0 || (n = read(fd, to, left < 4096 ? (size_t)left : 4096)) <= 0) exit(1);
    close(fd);
}

static void audit(const struct account *a) {
    long sum = 0;
    for (int d = 0; d < DAYS; d++) sum += a->booked[d];
    printf("%-8.3s %8ld (%zu letters)\n", a->owner, sum, strlen(a->owner));
}

/* Payment 2667 is of the 32nd. */
static int make(const char *path) {
    FILE *f = fopen(path, "w");
    unsigned seed = 1;
    for (int i = 0; f && i < PAYMENTS; i++) {
        seed = seed * 1103515245u + 12345u;
        struct payment p = {
            .amount = seed >> 16 & 0xfff, .account = seed >> 8 & 7, .day = (int)(seed >> 20) % DAYS + 1};
        if (i == 2667) p.day = 32;
        fwrite(&p, sizeof p, 1, f);
    }
    return f && fclose(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    static const char *const names[8] = {"ada", "bob", "cyd", "dee", "eve", "fay", "gus", "hal"};
    if (argc == 3 && strcmp(argv[1], "--make") == 0) return make(argv[2]);
    if (argc != 2) return 2;
    for (int i = 0; i < 8; i++) accounts[i].owner = names[i];
    load(argv[1]);
    pthread_t clerks[CLERKS];
    for (size_t i = 0; i < CLERKS; i++) pthread_create(&clerks[i], NULL, clerk, (void *)i);
    for (int i = 0; i < CLERKS; i++) pthread_join(clerks[i], NULL);
    puts("the month is over; auditing");
    fflush(stdout);
    for (int i = 0; i < 8; i++) audit(&accounts[i]);
    return 0;
}
