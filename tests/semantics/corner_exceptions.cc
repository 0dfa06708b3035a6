#include <cstdio>
#include <stdexcept>
#include <string>
struct Noisy { int n; ~Noisy() { std::printf("~%d\n", n); } };
static int f(int n) { Noisy k{n}; if (n == 0) throw std::runtime_error("deep"); return f(n - 1) + 1; }
static void g() { try { f(5); } catch (const std::logic_error &) { std::printf("wrong\n"); } }
int main() {
    for (int i = 0; i < 3; i++) try { g(); } catch (const std::exception &e) { std::printf("%s\n", e.what()); }
    int caught = 0;
    for (int i = 0; i < 500; i++) try { if (i % 3) throw i; else throw std::string("x"); } catch (int k) { caught += k; } catch (...) { caught--; }
    std::printf("%d\n", caught);
    try { std::string().at(5); } catch (const std::out_of_range &) { std::printf("range\n"); }
    throw 5;
}
