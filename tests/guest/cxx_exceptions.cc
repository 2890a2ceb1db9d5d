// cflags: -Wno-terminate
/* C++ exceptions: across frames with destructors, rethrown, through C frames, deep, in constructors, many, uncaught. */
#include "guest.h"
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

static std::string trace;
struct Guard {
    char c;
    explicit Guard(char c) : c(c) { trace += c; }
    ~Guard() { trace += char(c - 32); }
};
struct Base {
    virtual ~Base() {}
    virtual int v() { return 1; }
};
struct Derived : Base {
    int x;
    explicit Derived(int x) : x(x) {}
    int v() override { return x; }
};
struct Part {
    Guard g{'p'};
};
struct Breaks {
    Part p;
    Breaks() { throw std::runtime_error("constructor"); }
};

__attribute__((noinline)) static int dive(int n) {
    Guard g('a' + n % 20);
    if (n == 0) throw Derived(42);
    return dive(n - 1) + 1;
}
static int by_qsort(const void *a, const void *b) {
    if (*(const int *)a == 13 || *(const int *)b == 13) throw 13;
    return *(const int *)a - *(const int *)b;
}

int main() {
    try {
        dive(10);
    } catch (Base &b) { printf("caught %d, %s\n", b.v(), trace.c_str()); }
    trace.clear();
    try {
        try {
            dive(2);
        } catch (const std::exception &) { puts("FAIL"); } catch (...) {
            trace += '!';
            throw;
        }
    } catch (Derived &d) { printf("rethrown %d, %s\n", d.x, trace.c_str()); }
    trace.clear();
    try {
        Breaks b;
    } catch (std::exception &e) { printf("%s, %s\n", e.what(), trace.c_str()); }
    int values[] = {5, 3, 13, 1};
    try {
        qsort(values, 4, sizeof *values, by_qsort);
    } catch (int i) { printf("through qsort %d\n", i); }
    long sum = 0;
    for (int i = 0; i < 3000; i++) {
        try {
            if (i % 3 == 0) throw i;
            if (i % 3 == 1) throw std::to_string(i);
            throw long(i);
        } catch (int x) { sum += x; } catch (std::string &s) {
            sum += s.size();
        } catch (long x) { sum -= x; }
    }
    printf("sum %ld\n", sum);
    std::function<void(int)> nest = [&](int n) {
        if (!n) throw std::logic_error("bottom");
        try {
            nest(n - 1);
        } catch (std::exception &) { std::throw_with_nested(std::runtime_error("level")); }
    };
    int levels = 0;
    try {
        nest(5);
    } catch (std::exception &e) {
        std::function<void(const std::exception &)> count = [&](const std::exception &x) {
            levels++;
            try {
                std::rethrow_if_nested(x);
            } catch (std::exception &y) { count(y); }
        };
        count(e);
    }
    printf("levels %d\n", levels);
    try {
        (void)std::vector<int>(3).at(7);
    } catch (std::out_of_range &) { puts("out of range"); }
    Base b;
    try {
        (void)dynamic_cast<Derived &>(b);
    } catch (std::bad_cast &) { puts("bad cast"); }
    pid_t pid = fork();
    if (!pid) {
        fclose(stderr);
        throw 5;
    }
    printf("uncaught: %s\n", wait_text(pid));
    pid = fork();
    if (!pid) {
        std::set_terminate([] { _exit(8); });
        [&]() noexcept { throw 1; }();
    }
    printf("noexcept: %s\n", wait_text(pid));
    return finish();
}
