// C++: exceptions through frames with destructors, virtual functions, templates, the library's containers.
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

int destroyed, caught;

struct Shape {
    virtual ~Shape() { destroyed++; }
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side; }
};
struct Broken : Shape {
    int area() const override { throw std::runtime_error("no area"); }
};

template <typename T> T largest(const std::vector<T> &all) {
    T best{};
    for (const T &one : all)
        if (best < one) best = one;
    return best;
}

static int measure(const Shape &shape) {
    Square local(1);
    return shape.area() + local.area();
}

static int attempt(const Shape &shape) {
    try {
        return measure(shape);
    } catch (const std::runtime_error &e) {
        caught++;
        return -1;
    }
}

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 1; i <= 3; i++) {
        shapes.push_back(std::make_unique<Square>(i));
        shapes.push_back(std::make_unique<Broken>());
    }
    std::vector<int> areas;
    std::map<std::string, int> named;
    for (auto &s : shapes) {
        areas.push_back(attempt(*s));
        named["n" + std::to_string(areas.size())] = areas.back();
    }
    std::printf("%d %d %d %zu\n", largest(areas), caught, destroyed, named.size());
    return 0;
}
