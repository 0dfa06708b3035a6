// cc: -O1
// A byte code interpreter, once with a switch and once with computed gotos, and a table of functions.
#include "rt.h"
enum { PUSH, ADD, MUL, DUP, SWAP, DEC, JNZ, HALT };
static const u8 program[] = {PUSH, 1, PUSH, 200, SWAP, PUSH, 3, MUL, PUSH, 7, ADD, SWAP, DEC, DUP, JNZ, 4, HALT};
__attribute__((noinline)) static u64 switched(void) {
    u64 s[16], *p = s;
    for (const u8 *pc = program;;) switch (*pc++) {
        case PUSH: *p++ = *pc++; break;
        case ADD: p--, p[-1] += *p; break;
        case MUL: p--, p[-1] *= *p; break;
        case DUP: *p = p[-1], p++; break;
        case SWAP: { u64 t = p[-1]; p[-1] = p[-2]; p[-2] = t; break; }
        case DEC: p[-1]--; break;
        case JNZ: pc = *--p ? program + *pc : pc + 1; break;
        default: return s[0];
        }
}
__attribute__((noinline)) static u64 threaded(void) {
    static const void *const go[] = {&&push, &&add, &&mul, &&dup, &&swap, &&dec, &&jnz, &&halt};
    u64 s[16], *p = s, t;
    const u8 *pc = program;
#define NEXT goto *go[*pc++]
    NEXT;
push: *p++ = *pc++; NEXT;
add: p--, p[-1] += *p; NEXT;
mul: p--, p[-1] *= *p; NEXT;
dup: *p = p[-1], p++; NEXT;
swap: t = p[-1], p[-1] = p[-2], p[-2] = t; NEXT;
dec: p[-1]--; NEXT;
jnz: pc = *--p ? program + *pc : pc + 1; NEXT;
halt: return s[0];
}
static u64 twice(u64 x) { return x * 2; }
static u64 third(u64 x) { return x / 3; }
static u64 flip(u64 x) { return ~x; }
static u64 (*volatile ops[])(u64) = {twice, third, flip};
int run(i64 *stack) {
    u64 h = hash(switched(), threaded());
    for (u32 i = 0; i < 300; i++) h = hash(h, ops[i % 3](h));
    print("interpreter", h);
    return 0;
}
