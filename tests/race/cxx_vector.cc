// push_back from several threads into a vector that never has to grow: sizes and elements are lost.
#include <vector>

#include "race.h"

namespace {
std::vector<uint32_t> shared;

void *body(void *arg) {
    auto me = (uint32_t)(intptr_t)arg;
    for (uint32_t i = 0; i < 50000; i++) {
        shared.push_back(me << 16 | i);
        window();
    }
    return nullptr;
}
} // namespace

int main() {
    shared.reserve(260000);
    race(4, body);
    uint64_t h = 0;
    unsigned by[4] = {};
    for (uint32_t v : shared) {
        h = mix(h, v);
        by[v >> 16 & 3]++;
    }
    printf("%zu of 200000 (%u %u %u %u), %016lx\n", shared.size(), by[0], by[1], by[2], by[3], h);
}
