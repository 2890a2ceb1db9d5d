// Writes larger than PIPE_BUF are mixed with each other.
#include "race.h"
enum { SIZE = 20000 };
static int fd[2];
static volatile int writers = 3;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me < 3) {
        char *out = malloc(SIZE);
        memset(out, 'a' + (int)me, SIZE);
        for (int i = 0; i < 6; i++)
            if (write(fd[1], out, SIZE) != SIZE) break;
        free(out);
        if (__atomic_sub_fetch(&writers, 1, __ATOMIC_SEQ_CST) == 0) close(fd[1]);
        return NULL;
    }
    static char in[7000];
    uint64_t h = 0;
    long n, all = 0, switches = 0;
    char last = 0;
    while ((n = read(fd[0], in, sizeof in)) > 0) {
        all += n;
        for (long i = 0; i < n; i++)
            if (in[i] != last) {
                switches++;
                last = in[i];
                h = mix(h, (uint64_t)(all - n + i) << 8 | (unsigned char)last);
            }
    }
    printf("%ld bytes, %ld switches, %016lx\n", all, switches, h);
    return NULL;
}
int main(void) {
    if (pipe(fd)) return 1;
    race(4, body);
    return 0;
}
