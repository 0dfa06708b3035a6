/* Three phases that share their kernels: each phase's part in every kernel is told apart by contexts.
 *
 *     cc -g -O1 -Iinclude client-requests/examples/pipeline.c -o pipeline
 *     grind ./pipeline
 *     cg_annotate --by-context cachegrind.out.*
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "cachegrind.h"

enum { SIDE = 32 };

typedef float image[SIDE][SIDE];

static image input, first, second;

/* Each is a function of its own, so that it is seen in the profile. */
#define KERNEL static __attribute__((noinline)) void

KERNEL convolve(image out, image in, int kernel)
{
    for (int y = 0; y + kernel <= SIDE; y++)
        for (int x = 0; x + kernel <= SIDE; x++) {
            float sum = 0;
            for (int j = 0; j < kernel; j++)
                for (int i = 0; i < kernel; i++)
                    sum += in[y + j][x + i];
            out[y][x] = sum / (float)(kernel * kernel);
        }
}

KERNEL relu(image out)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (out[y][x] < 0)
                out[y][x] = 0;
}

KERNEL pool(image out, image in)
{
    memset(out, 0, sizeof(image));
    for (int y = 0; y + 1 < SIDE; y += 2)
        for (int x = 0; x + 1 < SIDE; x += 2) {
            float a = in[y][x] > in[y][x + 1] ? in[y][x] : in[y][x + 1];
            float b = in[y + 1][x] > in[y + 1][x + 1] ? in[y + 1][x] : in[y + 1][x + 1];
            out[y / 2][x / 2] = a > b ? a : b;
        }
}

int main(void)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            input[y][x] = (float)((x * 7 + y * 13) % 11 - 5);

    CG_PUSH_CONTEXT_NAMED("conv1");
    convolve(first, input, 5);
    relu(first);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("pool1");
    pool(second, first);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("conv2");
    convolve(first, second, 3);
    relu(first);
    CG_POP_CONTEXT();

    printf("%.3f\n", first[3][4]);
    return 0;
}
