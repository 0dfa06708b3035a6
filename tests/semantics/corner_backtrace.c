// cc: -rdynamic -O0
#include "sem.h"
#include <execinfo.h>
int h(void) { void *a[20]; int n = backtrace(a, 20); char **s = backtrace_symbols(a, n); int k = 0; for (int i = 0; i < n; i++) k += strstr(s[i], "(g+") || strstr(s[i], "(h+") || strstr(s[i], "(main+"); return k; }
int g(void) { return h(); }
int main(void) { printf("%d\n", g()); }
