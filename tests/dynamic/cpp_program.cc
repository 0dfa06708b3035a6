// cc: -O1
// Exceptions, containers, strings and virtual calls.
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Square : Shape {
    int n;
    explicit Square(int n) : n(n) {}
    int area() const override { return n * n; }
};
struct Line : Shape {
    int area() const override { return 0; }
};
static int risky(int n) {
    std::string guard(n % 40, 'x');
    if (n % 7 == 0) throw std::runtime_error("seven " + std::to_string(n));
    return guard.size();
}
int main() {
    std::map<std::string, int> names;
    std::unordered_map<int, int> squares;
    std::vector<std::unique_ptr<Shape>> shapes;
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        try {
            sum += risky(i);
        } catch (const std::exception &e) {
            sum += std::string(e.what()).size();
        }
        names["n" + std::to_string(i * 37 % 500)] += i;
        squares[i * i % 701]++;
        if (i % 3) shapes.push_back(std::make_unique<Square>(i));
        else shapes.push_back(std::make_unique<Line>());
    }
    for (const auto &s : shapes) sum += s->area();
    for (const auto &[k, v] : names) sum += k.size() * v;
    std::cout << sum << " " << squares.size() << std::endl;
}
