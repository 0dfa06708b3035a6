/* A small convolutional network: five phases that share four kernels. Contexts tell each phase's part in each kernel.
 *
 *     cc -g -O1 -Iinclude client-requests/examples/pipeline.c -o pipeline
 *     grind ./pipeline
 *     cg_annotate --by-context cachegrind.out.PID
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdio.h>

#include "cachegrind.h"

/* Each is a function of its own, so that it is seen in the profile. */
#define KERNEL static __attribute__((noinline)) void

enum { SIDE = 20, KERNEL_SIDE = 3, CHANNELS = 4, CLASSES = 10, MOST = CHANNELS * SIDE * SIDE };

static float image[MOST], patches[9 * MOST], layer[MOST], weights[9 * CHANNELS * CHANNELS + CLASSES * MOST / 16];

/* Lays out what each place of the kernel covers, so that the convolution is a product of matrices. */
KERNEL im2col(float *out, const float *in, int channels, int side)
{
    int to = side - KERNEL_SIDE + 1;
    for (int c = 0; c < channels; c++)
        for (int j = 0; j < KERNEL_SIDE; j++)
            for (int i = 0; i < KERNEL_SIDE; i++)
                for (int y = 0; y < to; y++)
                    for (int x = 0; x < to; x++)
                        *out++ = in[(c * side + y + j) * side + x + i];
}

/* out = a * b; a has n rows of k, b has k rows of m. */
KERNEL gemm(float *out, const float *a, const float *b, int n, int k, int m)
{
    for (int row = 0; row < n; row++)
        for (int column = 0; column < m; column++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[row * k + i] * b[i * m + column];
            out[row * m + column] = sum;
        }
}

KERNEL relu(float *values, int n)
{
    for (int i = 0; i < n; i++)
        values[i] = values[i] > 0 ? values[i] : 0;
}

/* The largest of each four. */
KERNEL pool(float *out, const float *in, int channels, int side)
{
    for (int c = 0; c < channels; c++)
        for (int y = 0; y + 1 < side; y += 2)
            for (int x = 0; x + 1 < side; x += 2) {
                const float *at = in + (c * side + y) * side + x;
                float above = at[0] > at[1] ? at[0] : at[1];
                float below = at[side] > at[side + 1] ? at[side] : at[side + 1];
                *out++ = above > below ? above : below;
            }
}

int main(void)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        image[i] = (float)(i * 7 % 11 - 5);
    for (unsigned i = 0; i < sizeof(weights) / sizeof(weights[0]); i++)
        weights[i] = (float)((int)(i * 13 % 7) - 3) / 8;

    CG_PUSH_CONTEXT_NAMED("conv1");
    im2col(patches, image, 1, SIDE);
    gemm(layer, weights, patches, CHANNELS, 9, 18 * 18);
    relu(layer, CHANNELS * 18 * 18);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("pool1");
    pool(image, layer, CHANNELS, 18);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("conv2");
    im2col(patches, image, CHANNELS, 9);
    gemm(layer, weights, patches, CHANNELS, 9 * CHANNELS, 7 * 7);
    relu(layer, CHANNELS * 7 * 7);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("pool2");
    pool(image, layer, CHANNELS, 7);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("dense");
    gemm(layer, weights, image, CLASSES, CHANNELS * 3 * 3, 1);
    relu(layer, CLASSES);
    CG_POP_CONTEXT();

    for (int i = 0; i < CLASSES; i++)
        printf("%.2f\n", layer[i]);
    return 0;
}
