// Relaxed atomics: two threads watch two others write, and disagree about the order.
#include <atomic>

#include "race.h"

namespace {
std::atomic<int> x{0}, y{0};
int outcome[2][4];
uint64_t digest[2];

void *body(void *arg) {
    auto me = (intptr_t)arg;
    if (me < 2) {
        for (int i = 1; i <= 400000; i++) (me ? y : x).store(i, std::memory_order_relaxed);
        return nullptr;
    }
    for (int i = 0; i < 400000; i++) {
        window();
        int a = (me == 2 ? x : y).load(std::memory_order_relaxed),
            b = (me == 2 ? y : x).load(std::memory_order_relaxed);
        outcome[me - 2][a == b ? 0 : a < b ? 1 : a > b + 100 ? 2 : 3]++;
        if (i % 16 == 0) digest[me - 2] = mix(digest[me - 2], (uint64_t)a << 32 | (uint64_t)b);
    }
    return nullptr;
}
} // namespace

int main() {
    race(4, body);
    for (int i = 0; i < 2; i++)
        printf("watcher %d: %d %d %d %d, %016lx\n", i, outcome[i][0], outcome[i][1], outcome[i][2], outcome[i][3],
               digest[i]);
}
