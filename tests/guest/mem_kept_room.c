/* Memory at fixed places where the runtime would keep translations of libraries: they go elsewhere, and code that lies there
 * runs. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOW 0x20000000ul
#define HIGH 0x40000000ul
#define STEP 0x4000000ul

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Something that is done by libraries. */
static int use_libraries(int seed) {
    int list[100];
    for (int i = 0; i < 100; i++) list[i] = (i * 37 + seed) % 101;
    qsort(list, 100, sizeof list[0], compare);
    char text[32];
    snprintf(text, sizeof text, "%d", list[50]);
    return atoi(text);
}

static int run_at(uint8_t *at, uint32_t n) {
    uint8_t code[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov $n, %eax; ret */
    memcpy(code + 1, &n, sizeof n);
    memcpy(at, code, sizeof code);
    return ((int (*)(void))(uintptr_t)at)();
}

static int sum;

static void map(uint64_t at, uint64_t len, int flags, const char *how) {
    uint8_t *p = mmap((void *)at, len, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (p != (void *)at) {
        printf("no memory at %lx, %s\n", at, how);
        return;
    }
    sum += use_libraries((int)(at >> 26)) + run_at(p, (uint32_t)(at >> 20)) + run_at(p + len - 4096, 7);
}

int main(void) {
    sum = use_libraries(1);
    for (uint64_t at = LOW; at < HIGH; at += STEP) map(at, 1 << 16, MAP_FIXED_NOREPLACE, "piece by piece");
    for (uint64_t at = LOW; at < HIGH; at += STEP) munmap((void *)at, 1 << 16);
    map(LOW, HIGH - LOW, MAP_FIXED, "all at once");
    sum += use_libraries(2) + use_libraries(3);
    munmap((void *)LOW, HIGH - LOW);
    sum += use_libraries(4);
    printf("%d\n", sum);
    return 0;
}
