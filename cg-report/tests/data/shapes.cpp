#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>
#include <algorithm>
#include <cstdio>
namespace geo {
template <typename T> struct Shape { virtual ~Shape() = default; virtual T area() const = 0; };
template <typename T> struct Square : Shape<T> { T side; explicit Square(T s) : side(s) {} T area() const override { return side * side; } };
template <typename T> struct Circle : Shape<T> { T r; explicit Circle(T s) : r(s) {} T area() const override { return static_cast<T>(3.14159) * r * r; } };
template <typename T> T total(const std::vector<std::unique_ptr<Shape<T>>> &shapes) { T sum{}; for (auto &s : shapes) sum += s->area(); return sum; }
}
int main() {
    std::vector<std::unique_ptr<geo::Shape<double>>> shapes;
    for (int i = 0; i < 500; i++) { if (i % 3) shapes.push_back(std::make_unique<geo::Square<double>>(i)); else shapes.push_back(std::make_unique<geo::Circle<double>>(i)); }
    double sum = 0; for (int i = 0; i < 50; i++) sum += geo::total(shapes);
    std::map<std::string, int> words; std::string text = "the quick brown fox jumps over the lazy dog and the cat ";
    for (int i = 0; i < 20; i++) { std::string w; for (char c : text) { if (c == ' ') { words[w]++; w.clear(); } else w += c; } }
    std::vector<int> v(2000); std::iota(v.begin(), v.end(), 0); std::sort(v.begin(), v.end(), [](int a, int b) { return (a * 7919) % 2003 < (b * 7919) % 2003; });
    std::printf("%f %zu %d\n", sum, words.size(), v[7]);
}
