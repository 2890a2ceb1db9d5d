// Tasks, a map under a mutex and a condition variable: the order in which results arrive.
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "race.h"

namespace {
std::mutex lock;
std::condition_variable cond;
std::map<int, std::string> results;
std::string order;

int task(int n) {
    uint64_t v = work(1000 + (unsigned)n * 300);
    std::lock_guard<std::mutex> hold(lock);
    results[n] = std::to_string(v % 1000) + "@" + std::to_string(order.size());
    order += (char)('a' + n);
    cond.notify_one();
    return (int)order.size();
}
} // namespace

int main() {
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 12; i++) futures.push_back(std::async(std::launch::async, task, i));
    int wakes = 0;
    {
        std::unique_lock<std::mutex> hold(lock);
        while (results.size() < 12) {
            cond.wait_for(hold, std::chrono::milliseconds(50));
            wakes++;
        }
    }
    int sum = 0;
    for (auto &f : futures) sum += f.get() * (int)(&f - &futures[0] + 1);
    printf("%s, woken %d times, %d\n", order.c_str(), wakes, sum);
    for (auto &r : results) printf("%d=%s ", r.first, r.second.c_str());
    puts("");
}
