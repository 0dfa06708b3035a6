/* A program without a library that treats caches in many ways: strides, straddles, a matrix, a list, much code. */
typedef unsigned long word;
static unsigned char bytes[1 << 20] __attribute__((aligned(4096)));
static int matrix[256][256], turned[256][256];
static word list[1 << 15];
static volatile word sink;

#define ONE sum += sum * 3 + (sum >> 5) + at[(sum >> 7) & 1023];
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static word much_code(unsigned char *at, word sum) {
    HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
    return sum;
}

static void work(void) {
    word i, j, at, sum = 0;
    for (i = 0; i < sizeof bytes; i += 64) bytes[i] = (unsigned char)i;
    for (i = 0; i < sizeof bytes; i += 4096) sum += bytes[i];
    for (i = sizeof bytes - 64; i > 64; i -= 64) bytes[i]++;
    for (i = 0; i < 40000; i += 61) *(word *)(bytes + i) += i;
    for (i = 0; i < 256; i++)
        for (j = 0; j < 256; j++) matrix[i][j] = (int)(i * j);
    for (i = 0; i < 256; i++)
        for (j = 0; j < 256; j++) turned[j][i] = matrix[i][j];
    for (i = 0; i < 1 << 15; i++) list[i] = (i * 12345 + 6789) & ((1 << 15) - 1);
    for (i = 0, at = 0; i < 50000; i++) at = list[at];
    sum += at;
    for (i = 0; i < 6; i++) sum = much_code(bytes, sum);
    sink = sum;
}

void _start(void) {
    work();
    __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
}
