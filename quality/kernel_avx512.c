#include "quality/kernel.h"

#include <immintrin.h>

#define LANES         16
#define V             __m512
#define V_LOAD(p)     _mm512_load_ps(p)
#define V_LOADU(p)    _mm512_loadu_ps(p)
#define V_STORE(p, v) _mm512_store_ps(p, v)
#define V_ZERO()      _mm512_setzero_ps()
#define V_SET1(f)     _mm512_set1_ps(f)
#define V_ADD         _mm512_add_ps
#define V_SUB         _mm512_sub_ps
#define V_MUL         _mm512_mul_ps
#define V_DIV         _mm512_div_ps
#define V_FMA         _mm512_fmadd_ps
#define V_FNMA        _mm512_fnmadd_ps

/* The first `count` lanes, zero behind them. */
static inline __m512 V_FIRST(__m512 v, size_t count)
{
    return _mm512_maskz_mov_ps((__mmask16)((1u << count) - 1), v);
}

static inline double V_SUM(__m512 v)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
                                              _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))));
}

#include "quality/kernel_simd.inc"

static void luma(const uint8_t *pixels, size_t count, uint32_t channels, float *out)
{
    size_t i = 0;
    if (channels == 1) {
        for (; i + 16 <= count; i += 16) {
            const __m512i gray =
                _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(pixels + i)));
            _mm512_storeu_ps(out + i,
                             _mm512_cvtepi32_ps(_mm512_mullo_epi32(gray, _mm512_set1_epi32(1000))));
        }
        dl2_luma_c(pixels + i, count - i, 1, out + i);
        return;
    }
    /* Four pixels to each quarter, then (R, G) and (B, 0) as pairs of 16 bits for the multiply-add.
     */
    const __m512i quarters = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    const __m512i red_green = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
    const __m512i blue = _mm512_broadcast_i32x4(
        _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
    const __m512i weights_rg = _mm512_set1_epi32(587 << 16 | 299),
                  weights_b = _mm512_set1_epi32(114);
    for (; i + 16 <= count; i += 16) {
        __m512i rgb = _mm512_maskz_loadu_epi32(0x0fff, pixels + 3 * i);
        rgb = _mm512_permutexvar_epi32(quarters, rgb);
        const __m512i rg = _mm512_madd_epi16(_mm512_shuffle_epi8(rgb, red_green), weights_rg);
        const __m512i b = _mm512_madd_epi16(_mm512_shuffle_epi8(rgb, blue), weights_b);
        _mm512_storeu_ps(out + i, _mm512_cvtepi32_ps(_mm512_add_epi32(rg, b)));
    }
    dl2_luma_c(pixels + 3 * i, count - i, 3, out + i);
}

static uint64_t byte_error(const uint8_t *a, const uint8_t *b, size_t count)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i total = zero;
    size_t i = 0;
    while (i + 64 <= count) {
        /* Each step adds at most 4 * 255^2 to a lane of 32 bits: 8192 steps stay below 2^31. */
        __m512i part = zero;
        for (int step = 0; step < 8192 && i + 64 <= count; step++, i += 64) {
            const __m512i x = _mm512_loadu_si512(a + i), y = _mm512_loadu_si512(b + i);
            const __m512i d = _mm512_or_si512(_mm512_subs_epu8(x, y), _mm512_subs_epu8(y, x));
            const __m512i low = _mm512_unpacklo_epi8(d, zero), high = _mm512_unpackhi_epi8(d, zero);
            part = _mm512_add_epi32(
                part, _mm512_add_epi32(_mm512_madd_epi16(low, low), _mm512_madd_epi16(high, high)));
        }
        total = _mm512_add_epi64(total, _mm512_unpacklo_epi32(part, zero));
        total = _mm512_add_epi64(total, _mm512_unpackhi_epi32(part, zero));
    }
    return (uint64_t)_mm512_reduce_add_epi64(total) + dl2_byte_error_c(a + i, b + i, count - i);
}

static uint64_t luma_error(const float *a, const float *b, size_t count)
{
    __m512i total = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i d =
            _mm512_cvtps_epi32(_mm512_sub_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
        const __m512i odd = _mm512_srli_epi64(d, 32);
        total = _mm512_add_epi64(
            total, _mm512_add_epi64(_mm512_mul_epi32(d, d), _mm512_mul_epi32(odd, odd)));
    }
    return (uint64_t)_mm512_reduce_add_epi64(total) + dl2_luma_error_c(a + i, b + i, count - i);
}

const struct dl2_kernels dl2_kernels_avx512 = {
    .name = "avx512",
    .luma = luma,
    .byte_error = byte_error,
    .luma_error = luma_error,
    .sum_difference = sum_difference,
    .ssim_columns = ssim_columns,
    .ssim_row = ssim_row,
};
