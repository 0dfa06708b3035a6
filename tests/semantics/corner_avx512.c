// cc: -O2 -mavx512f -mavx512bw -mavx512vl
// cpu: avx512f avx512bw
#include "sem.h"
#include <immintrin.h>
int main(void) {
    __m512i a = _mm512_set1_epi32(3), s = _mm512_setzero_si512();
    int v[16];
    for (int i = 0; i < 1000; i++) {
        __mmask16 m = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(i), _mm512_loadu_si512((int[16]){0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1, 2, 3, 4, 5, 6}));
        s = _mm512_mask_add_epi32(s, m, s, a);
        a = _mm512_ternarylogic_epi32(a, s, _mm512_set1_epi32(i), 0x96);
    }
    _mm512_storeu_si512(v, s);
    unsigned h = 0;
    for (int i = 0; i < 16; i++) h = h * 31 + v[i];
    printf("%u\n", h);
}
