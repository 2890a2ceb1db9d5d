// A reference count that is not atomic: objects die early, late or never.
#include "race.h"

namespace {
volatile int born, died, early;

struct Object {
    volatile int refs = 1;
    volatile int alive = 1;
    Object() { born = born + 1; }
    void get() { refs = refs + 1; }
    void put() {
        int n = refs - 1;
        window();
        refs = n;
        if (n == 0) {
            if (!alive) early = early + 1;
            alive = 0;
            died = died + 1;
        }
    }
};

Object objects[200];
volatile int used_dead;

void *body(void *) {
    for (int i = 0; i < 200; i++)
        for (int k = 0; k < 1000; k++) {
            objects[i].get();
            if (!objects[i].alive) used_dead = used_dead + 1;
            objects[i].put();
        }
    return nullptr;
}
} // namespace

int main() {
    race(3, body);
    uint64_t h = 0;
    int alive = 0;
    for (auto &o : objects) {
        h = mix(h, (uint64_t)o.refs);
        alive += o.alive;
    }
    printf("born %d, died %d, twice %d, used when dead %d, alive %d, %016lx\n", born, died, early, used_dead, alive, h);
}
