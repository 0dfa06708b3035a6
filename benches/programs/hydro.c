/* A gas in a square box, by Godunov's method: sweeps along rows, then along columns, of a grid of 500 x 500 cells, 10 steps.
   Each sweep gathers a line of cells, computes states, slopes and fluxes through faces, and scatters the line back; those
   along columns miss the first level of a cache for every cell. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 500, VARS = 4 };
static const double gamma_gas = 1.4;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Density, momentum along x and y, energy. */
static double (*grid)[N][N];

static double u[VARS][N + 4], q[VARS][N + 4], dq[VARS][N + 4], left[VARS][N + 4], right[VARS][N + 4], flux[VARS][N + 4];

__attribute__((noinline)) static void gather(int column, int k)
{
    for (int v = 0; v < VARS; v++)
        for (int i = 0; i < N; i++)
            u[v][i + 2] = column ? grid[v][i][k] : grid[v][k][i];
    for (int v = 0; v < VARS; v++) {
        double sign = v == 1 + column ? -1 : 1; /* walls */
        u[v][1] = sign * u[v][2];
        u[v][0] = sign * u[v][3];
        u[v][N + 2] = sign * u[v][N + 1];
        u[v][N + 3] = sign * u[v][N];
    }
}

__attribute__((noinline)) static void primitive(int normal, int other)
{
    for (int i = 0; i < N + 4; i++) {
        double r = u[0][i], un = u[normal][i] / r, ut = u[other][i] / r;
        q[0][i] = r;
        q[1][i] = un;
        q[2][i] = ut;
        q[3][i] = larger((gamma_gas - 1) * (u[3][i] - 0.5 * r * (un * un + ut * ut)), 1e-10);
    }
}

__attribute__((noinline)) static void slopes(void)
{
    for (int v = 0; v < VARS; v++)
        for (int i = 1; i < N + 3; i++) {
            double l = q[v][i] - q[v][i - 1], r = q[v][i + 1] - q[v][i];
            dq[v][i] = l * r <= 0 ? 0 : fabs(l) < fabs(r) ? l : r;
        }
}

__attribute__((noinline)) static void trace(double ratio)
{
    for (int i = 1; i < N + 3; i++) {
        double r = q[0][i], un = q[1][i], p = q[3][i];
        double dr = dq[0][i], du = dq[1][i], dt = dq[2][i], dp = dq[3][i];
        double half = 0.5 * ratio;
        double s[VARS] = {
            r - half * (un * dr + r * du),
            un - half * (un * du + dp / r),
            q[2][i] - half * un * dt,
            p - half * (un * dp + gamma_gas * p * du),
        };
        double d[VARS] = { dr, du, dt, dp };
        for (int v = 0; v < VARS; v++) {
            left[v][i + 1] = s[v] + 0.5 * d[v];
            right[v][i] = s[v] - 0.5 * d[v];
        }
    }
}

/* The flux through a face: two sound waves and what is between them. */
__attribute__((noinline)) static void riemann(void)
{
    for (int i = 2; i < N + 3; i++) {
        double rl = larger(left[0][i], 1e-10), ul = left[1][i], pl = larger(left[3][i], 1e-10);
        double rr = larger(right[0][i], 1e-10), ur = right[1][i], pr = larger(right[3][i], 1e-10);
        double p = 0.5 * (pl + pr);
        double wl = 0, wr = 0;
        for (int n = 0; n < 3; n++) {
            wl = sqrt(rl * (gamma_gas * pl + 0.5 * (gamma_gas + 1) * (p - pl)));
            wr = sqrt(rr * (gamma_gas * pr + 0.5 * (gamma_gas + 1) * (p - pr)));
            p = larger((wr * pl + wl * pr + wl * wr * (ul - ur)) / (wl + wr), 1e-10);
        }
        double un = (wl * ul + wr * ur + pl - pr) / (wl + wr);
        int from_left = un > 0;
        double r0 = from_left ? rl : rr, p0 = from_left ? pl : pr, ut = from_left ? left[2][i] : right[2][i];
        double r = r0 * (1 + (p - p0) / (gamma_gas * p0));
        double e = p / (gamma_gas - 1) + 0.5 * r * (un * un + ut * ut);
        flux[0][i] = r * un;
        flux[1][i] = r * un * un + p;
        flux[2][i] = r * un * ut;
        flux[3][i] = un * (e + p);
    }
}

__attribute__((noinline)) static void scatter(int column, int k, int normal, int other, double ratio)
{
    int order[VARS] = { 0, normal, other, 3 };
    for (int v = 0; v < VARS; v++)
        for (int i = 0; i < N; i++) {
            double *cell = column ? &grid[order[v]][i][k] : &grid[order[v]][k][i];
            *cell = u[order[v]][i + 2] + ratio * (flux[v][i + 2] - flux[v][i + 3]);
        }
}

__attribute__((noinline)) static void sweep(int column, double ratio)
{
    int normal = 1 + column, other = 2 - column;
    for (int k = 0; k < N; k++) {
        gather(column, k);
        primitive(normal, other);
        slopes();
        trace(ratio);
        riemann();
        scatter(column, k, normal, other, ratio);
    }
}

int main(int argc, char **argv)
{
    grid = malloc(VARS * sizeof *grid);
    if (!grid)
        return 1;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            grid[0][i][k] = 1;
            grid[1][i][k] = grid[2][i][k] = 0;
            grid[3][i][k] = i < 20 && k < 20 ? 10 : 0.1;
        }
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    for (int step = 0; step < steps; step++) {
        sweep(0, 0.1);
        sweep(1, 0.1);
    }
    double mass = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            mass += grid[0][i][k];
    printf("%.6f\n", mass);
    free(grid);
    return 0;
}
