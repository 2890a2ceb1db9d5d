/* A thread goes round in a loop of several instructions, of a few kinds, until another one patches the loop: it has to notice. */
#include "guest.h"

static const struct loop {
    const char *name;
    uint8_t code[32];
    int patch_at; /* two bytes, aligned: ret; nop */
} loops[] = {
    {"a jump back into the middle", {0xb8, 1, 0, 0, 0, 0xf3, 0x90, 0x90, 0xeb, 0xfb}, 8},
    {"a jump back to the begin", {0x31, 0xc0, 0xff, 0xc0, 0xf3, 0x90, 0xeb, 0xf8}, 6},
    {"a conditional jump back", {0x31, 0xc0, 0x31, 0xc9, 0xf3, 0x90, 0x85, 0xc9, 0x74, 0xfa, 0xc3}, 8},
    {"two loops, one inside the other",
     {0x31, 0xc0, 0xb9, 3, 0, 0, 0, 0x90, 0xff, 0xc9, 0x75, 0xfc, 0xf3, 0x90, 0xeb, 0xf2},
     14},
};

static uint8_t *page;
static volatile int is_there;

static void *go_round(void *unused) {
    is_there = 1;
    ((int (*)(void))page)();
    return unused;
}

int main(void) {
    alarm(40);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const struct loop *l = &loops[i];
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(page, l->code, sizeof l->code);
        is_there = 0;
        pthread_t t;
        pthread_create(&t, NULL, go_round, NULL);
        while (!is_there) sleep_ms(1);
        sleep_ms(20);
        __atomic_store_n((uint16_t *)(page + l->patch_at), (uint16_t)0x90c3, __ATOMIC_SEQ_CST);
        pthread_join(t, NULL);
        printf("%s: over\n", l->name);
        fflush(stdout);
        munmap(page, 4096);
    }
    return finish();
}
