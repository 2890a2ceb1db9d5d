// One thread grows a file, others look at its size and contents.
#include "race.h"
#include <fcntl.h>
#include <sys/stat.h>
static int fd;
static volatile int done;
static uint64_t digest[2];
static int steps[2];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me == 2) {
        for (int i = 0; i < 300; i++) {
            char line[16];
            int n = snprintf(line, sizeof line, "line %d\n", i);
            if (write(fd, line, (size_t)n) != n) break;
            if (i % 10 == 0) work(2000);
        }
        done = 1;
        return NULL;
    }
    off_t last = -1;
    for (int n = 0; !done && n < 20000; n++) {
        struct stat st;
        fstat(fd, &st);
        if (st.st_size != last) {
            char tail[8] = "";
            if (st.st_size >= 8 && pread(fd, tail, 8, st.st_size - 8) < 0) break;
            digest[me] = mix_bytes(mix(digest[me], (uint64_t)st.st_size), tail, 8);
            last = st.st_size;
            steps[me]++;
        }
    }
    return NULL;
}
int main(void) {
    char name[] = "/tmp/race-XXXXXX";
    fd = mkstemp(name);
    unlink(name);
    race(3, body);
    for (int i = 0; i < 2; i++) printf("watcher %d saw %d sizes, %016lx\n", i, steps[i], digest[i]);
    return 0;
}
