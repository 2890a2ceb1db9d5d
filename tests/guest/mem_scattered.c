/* Memory that is written here and there, in many more places than the kernel tells of at once. Checkpoints have each page once. */
#include "guest.h"

#define PLACES 1500
#define APART 32768

int main(void) {
    char *at = mmap(NULL, (size_t)PLACES * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long end = now_ms() + 400;
    unsigned sum = 0;
    for (int round = 1; now_ms() < end; round++)
        for (int i = 0; i < PLACES; i++) at[(size_t)i * APART] = (char)i;
    for (int i = 0; i < PLACES; i++) sum = sum * 31 + (unsigned char)at[(size_t)i * APART];
    printf("%u\n", sum);
    return finish();
}
