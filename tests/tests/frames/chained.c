/* What a CPython 3.14 has in its symbol table, of the shape that one has which is built with tail calls: the evaluation function changes
   frames when it begins and ends, and leaves the rest to functions that lead to one another. */
#include <stdint.h>

#ifndef VERSION
#define VERSION 0x030e0af0
#endif
const uint32_t Py_Version = VERSION;

/* Its type of code objects: the seventh word is the function that takes one back. */
static void gone(void *code) { *(volatile long *)code = 0; }
void *PyCode_Type[52] = {[6] = (void *)gone};

/* Offsets, by number of the word: of the frame that runs, of a frame's code object, and of parts of code objects and strings. */
uint64_t _PyRuntime[256] = {0x7970677562656478, VERSION, 0, sizeof(_PyRuntime), [26] = 72, [33] = 0, [40] = 112, [41] = 120,
                            [42] = 128, [44] = 68, [78] = 32, [79] = 16, [80] = 40};

struct state { char before[72]; void *frame; };

typedef void *instruction(struct state *state, void **frame);
static void *leaves(struct state *state, void **frame) {
    state->frame = frame[1];
    return frame;
}
static void *calls(struct state *state, void **frame) {
    state->frame = frame[2];
    return leaves(state, frame[2]);
}
instruction *table[256] = {calls, leaves};

void *_PyEval_EvalFrameDefault(struct state *state, void **frame, int raises) {
    frame[1] = state->frame;
    state->frame = frame;
    void *returned = table[raises](state, frame);
    state->frame = frame[1];
    return returned;
}

int main(void) {
    uint64_t code[32] = {0};
    void *inner[3] = {code}, *outer[3] = {code, 0, inner};
    struct state state = {{0}};
    return _PyEval_EvalFrameDefault(&state, outer, 0) != inner;
}
