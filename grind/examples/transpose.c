/* A matrix is transposed, first row by row, then block by block: how well are the lines of the cache used?

   gcc -O1 -g -static -o transpose transpose.c
   grind --tool=callgrind --cacheuse=yes --D1=32768,8,64 --LL=1048576,16,64 ./transpose
   callgrind_annotate --inclusive=yes --show=AcCost1,SpLoss1,AcCost2,SpLoss2 --sort=AcCost1 callgrind.out.PID */
enum { N = 512, BLOCK = 8 };

static _Alignas(64) double from[N][N], to[N][N];

__attribute__((noinline)) static void fill(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            from[i][j] = i - j;
}

__attribute__((noinline)) static void piece(int row, int rows, int column, int columns)
{
    for (int i = row; i < row + rows; i++)
        for (int j = column; j < column + columns; j++)
            to[j][i] = from[i][j];
}

__attribute__((noinline)) static void by_rows(void)
{
    piece(0, N, 0, N);
}

__attribute__((noinline)) static void by_blocks(void)
{
    for (int i = 0; i < N; i += BLOCK)
        for (int j = 0; j < N; j += BLOCK)
            piece(i, BLOCK, j, BLOCK);
}

int main(void)
{
    fill();
    by_rows();
    by_blocks();
    return to[1][2] != 1;
}
