// A pass over the columns of four arrays, as hydrodynamic codes that split directions make it (HYDRO's gatherConservativeVars): so many
// columns at a time, each of which becomes a row.
#include <stdio.h>
#include <stdlib.h>

#define N 600
#ifndef SLICES
#define SLICES 1
#endif
#define SIZE (N * N * sizeof(double))

static double *array(size_t bytes)
{
    return aligned_alloc(64, bytes);
}

static void fill(double *array)
{
    for (int i = 0; i < N * N; i++)
        array[i] = i % 7;
}

static void gather(double *u[4], const double *density, const double *momentum_x, const double *momentum_y,
                   const double *energy)
{
    for (int first = 0; first < N; first += SLICES)
        for (int j = 0; j < N; j++)
            for (int s = first; s < first + SLICES; s++) {
                u[0][s * N + j] = density[j * N + s];
                u[1][s * N + j] = momentum_y[j * N + s];
                u[2][s * N + j] = momentum_x[j * N + s];
                u[3][s * N + j] = energy[j * N + s];
            }
}

int main(void)
{
    double *density = array(SIZE);
    double *momentum_x = array(SIZE);
    double *momentum_y = array(SIZE);
    double *energy = array(SIZE);
    double *u[4] = {array(SIZE), array(SIZE), array(SIZE), array(SIZE)};
    fill(density);
    fill(momentum_x);
    fill(momentum_y);
    fill(energy);
    gather(u, density, momentum_x, momentum_y, energy);
    printf("%g\n", u[0][1] + u[3][N * N - 1]);
    return 0;
}
