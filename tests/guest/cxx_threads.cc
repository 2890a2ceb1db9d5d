/* C++ threads: exceptions carried between threads, thread_local destructors, call_once, futures, exceptions in parallel. */
#include "guest.h"
#include <atomic>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> destroyed{0}, onces{0};
struct Local {
    int n = 0;
    ~Local() { destroyed += n; }
};
static thread_local Local local;
static std::once_flag flag;

static int work(int id) {
    int caught = 0;
    for (int i = 0; i < 500; i++) {
        try {
            std::vector<std::string> v(i % 7 + 1, "x");
            if (i % 2) throw std::runtime_error(std::to_string(id));
            v.at(99);
        } catch (std::out_of_range &) { caught += 2; } catch (std::exception &e) {
            caught += e.what()[0] == '0' + id;
        }
    }
    std::call_once(flag, [] { onces++; });
    local.n = id;
    return caught;
}

int main() {
    std::vector<std::thread> ts;
    int results[6] = {0};
    for (int i = 0; i < 6; i++) ts.emplace_back([&, i] { results[i] = work(i + 1); });
    for (auto &t : ts) t.join();
    for (int r : results) printf("%d ", r);
    printf("destroyed %d, once %d\n", destroyed.load(), onces.load());
    auto f = std::async(std::launch::async, []() -> int { throw std::runtime_error("from the other side"); });
    try {
        f.get();
    } catch (std::exception &e) { puts(e.what()); }
    std::exception_ptr p;
    std::thread([&] {
        try {
            throw 77;
        } catch (...) { p = std::current_exception(); }
    }).join();
    try {
        std::rethrow_exception(p);
    } catch (int i) { printf("carried %d\n", i); }
    return finish();
}
