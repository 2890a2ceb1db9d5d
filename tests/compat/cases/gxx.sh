# needs: g++
# tags: fast
# g++: templates, the standard library, exceptions
cat >a.cc <<'S'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 1000; i++) m[std::to_string(i % 17)].push_back(i);
    std::ostringstream o;
    for (auto &[k, v] : m) o << k << ':' << *std::max_element(v.begin(), v.end()) << ' ';
    std::cout << o.str() << '\n';
    std::string s = o.str();
    std::regex re("9[0-9]+");
    std::cout << std::distance(std::sregex_iterator(s.begin(), s.end(), re), std::sregex_iterator()) << '\n';
    int sum = 0; std::vector<std::thread> t; std::unique_ptr<int[]> r(new int[4]());
    for (int i = 0; i < 4; i++) t.emplace_back([&, i] { for (int k = 0; k < 1000; k++) r[i] += k * i; });
    for (auto &x : t) x.join();
    for (int i = 0; i < 4; i++) sum += r[i];
    try { std::stoi("no"); } catch (std::exception &e) { std::cout << e.what() << ' ' << sum << '\n'; }
}
S
$RUN g++ -std=c++17 -O1 -pthread -o a a.cc && $RUN ./a
