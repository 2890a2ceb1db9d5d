// One string is replaced by another while a third thread reads it.
#include "race.h"
static volatile char text[32];
static volatile int done;
static void put(const char *s) {
    int i = 0;
    do {
        text[i] = s[i];
        if (i == 7) window();
    } while (s[i++]);
}
static void *body(void *arg) {
    switch ((intptr_t)arg) {
    case 0:
        for (int i = 0; i < 60000; i++) put("the quick brown fox");
        done++;
        break;
    case 1:
        for (int i = 0; i < 60000; i++) put("LAZY DOGS SLEEP");
        done++;
        break;
    default: {
        uint64_t h = 0;
        int mixed = 0, n = 0;
        char copy[32], example[32] = "none";
        for (; done < 2 && n < 200000; n++) {
            window();
            for (int i = 0; i < 32; i++) copy[i] = text[i];
            copy[31] = 0;
            if (copy[0] && strcmp(copy, "the quick brown fox") && strcmp(copy, "LAZY DOGS SLEEP")) {
                mixed++;
                strcpy(example, copy);
                h = mix_bytes(h, copy, 32);
            }
        }
        printf("%d of %d mixed, last '%s', %016lx\n", mixed, n, example, h);
    }
    }
    return NULL;
}
int main(void) {
    race(3, body);
    return 0;
}
