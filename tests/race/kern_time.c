// Everything that differs from run to run by itself: time, process numbers, random numbers, addresses.
#include "race.h"
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <x86intrin.h>
int main(void) {
    struct timeval tv;
    struct timespec ts;
    struct rusage ru;
    uint64_t r[2];
    gettimeofday(&tv, NULL);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    getrusage(RUSAGE_SELF, &ru);
    if (getrandom(r, sizeof r, 0) != sizeof r) return 1;
    printf("time %ld.%06ld, since boot %ld.%09ld, %ld\n", tv.tv_sec, tv.tv_usec, ts.tv_sec, ts.tv_nsec, time(NULL));
    printf("pid %d of %d, tsc %llu, cpu %d\n", getpid(), getppid(), __rdtsc(), sched_getcpu());
    printf("random %016lx %016lx, faults %ld\n", r[0], r[1], ru.ru_minflt);
    const unsigned char *seed = (const unsigned char *)getauxval(AT_RANDOM);
    for (int i = 0; i < 16; i++) printf("%02x", seed[i]);
    printf("\nstack %p, heap %p, code %p, brk %p\n", (void *)&tv, malloc(10), (void *)main, sbrk(0));
    srand((unsigned)ts.tv_nsec);
    for (int i = 0; i < 5; i++) printf("%d ", rand());
    puts("");
    return (int)(r[0] % 100);
}
