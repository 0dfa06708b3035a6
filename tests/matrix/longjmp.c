// Frames that are left without returning, at once or many of them, with requests in between.
#include "common.h"
#include <setjmp.h>

static jmp_buf outer, inner;

APART void jumps(jmp_buf *to, int deep, int asks)
{
    if (deep > 0) {
        jumps(to, deep - 1, asks);
        leaf(2);
        return;
    }
    if (asks == 1) point();
    leaf(3);
    longjmp(*to, 1);
}

APART void nested(int n)
{
    if (setjmp(inner) == 0) {
        jumps(n % 3 ? &inner : &outer, n % 4, n % 2);
        leaf(99);
    }
    leaf(1);
}

APART void catches(int n)
{
    if (setjmp(outer) == 0) {
        nested(n);
        leaf(4);
    }
    if (n % 2 == 0) point();
    leaf(5);
}

static void once(int n)
{
    leaf(1);
    catches(n);
    leaf(2);
}
