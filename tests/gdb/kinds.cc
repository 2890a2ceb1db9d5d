// Conditions on bool and enumerations, in many forms: each is true once.
#include <cstdio>

enum Color { RED, GREEN, BLUE };
enum class Mode : char { OFF, ON = 7 };
struct State {
    bool done, flags[4];
    Color color;
    Mode mode;
    int n;
};

static volatile long visits;

static void visit(State *s, bool last, Color c) { visits = visits + s->n + last + c; }

int main() {
    State s = {};
    for (int i = 0; i < 30000; i++) {
        s.done = i == 20000;
        s.color = i == 25000 ? BLUE : GREEN;
        s.mode = i == 15000 ? Mode::ON : Mode::OFF;
        s.flags[2] = i == 12000;
        s.n = i;
        visit(&s, i == 10000, i == 5000 ? RED : GREEN);
    }
    std::printf("%ld\n", visits);
}
