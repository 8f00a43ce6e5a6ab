#include "quality/kernel.h"

#include <immintrin.h>

#define LANES         8
#define V             __m256
#define V_LOAD(p)     _mm256_load_ps(p)
#define V_LOADU(p)    _mm256_loadu_ps(p)
#define V_STORE(p, v) _mm256_store_ps(p, v)
#define V_ZERO()      _mm256_setzero_ps()
#define V_SET1(f)     _mm256_set1_ps(f)
#define V_ADD         _mm256_add_ps
#define V_SUB         _mm256_sub_ps
#define V_MUL         _mm256_mul_ps
#define V_DIV         _mm256_div_ps
#define V_FMA         _mm256_fmadd_ps
#define V_FNMA        _mm256_fnmadd_ps

/* The first `count` lanes, zero behind them. */
static inline __m256 V_FIRST(__m256 v, size_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_and_ps(
        v, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane)));
}

static inline double V_SUM(__m256 v)
{
    const __m256d d = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                                    _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(d), _mm256_extractf128_pd(d, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

#include "quality/kernel_simd.inc"

static void luma(const uint8_t *pixels, size_t count, uint32_t channels, float *out)
{
    size_t i = 0;
    if (channels == 1) {
        for (; i + 8 <= count; i += 8) {
            const __m256i gray =
                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(pixels + i)));
            _mm256_storeu_ps(out + i,
                             _mm256_cvtepi32_ps(_mm256_mullo_epi32(gray, _mm256_set1_epi32(1000))));
        }
        dl2_luma_c(pixels + i, count - i, 1, out + i);
        return;
    }
    /* Four pixels to each half, then (R, G) and (B, 0) as pairs of 16 bits for the multiply-add. */
    const __m256i six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
    const __m256i halves = _mm256_setr_epi32(0, 1, 2, 3, 3, 4, 5, 5);
    const __m256i red_green = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
    const __m256i blue = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
    const __m256i weights_rg = _mm256_set1_epi32(587 << 16 | 299),
                  weights_b = _mm256_set1_epi32(114);
    for (; i + 8 <= count; i += 8) {
        __m256i rgb = _mm256_maskload_epi32((const int *)(pixels + 3 * i), six);
        rgb = _mm256_permutevar8x32_epi32(rgb, halves);
        const __m256i rg = _mm256_madd_epi16(_mm256_shuffle_epi8(rgb, red_green), weights_rg);
        const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(rgb, blue), weights_b);
        _mm256_storeu_ps(out + i, _mm256_cvtepi32_ps(_mm256_add_epi32(rg, b)));
    }
    dl2_luma_c(pixels + 3 * i, count - i, 3, out + i);
}

static uint64_t byte_error(const uint8_t *a, const uint8_t *b, size_t count)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i total = zero;
    size_t i = 0;
    while (i + 32 <= count) {
        /* Each step adds at most 4 * 255^2 to a lane of 32 bits: 8192 steps stay below 2^31. */
        __m256i part = zero;
        for (int step = 0; step < 8192 && i + 32 <= count; step++, i += 32) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(a + i));
            const __m256i y = _mm256_loadu_si256((const __m256i *)(b + i));
            const __m256i d = _mm256_or_si256(_mm256_subs_epu8(x, y), _mm256_subs_epu8(y, x));
            const __m256i low = _mm256_unpacklo_epi8(d, zero), high = _mm256_unpackhi_epi8(d, zero);
            part = _mm256_add_epi32(
                part, _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high)));
        }
        total = _mm256_add_epi64(total, _mm256_unpacklo_epi32(part, zero));
        total = _mm256_add_epi64(total, _mm256_unpackhi_epi32(part, zero));
    }
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, total);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + dl2_byte_error_c(a + i, b + i, count - i);
}

static uint64_t luma_error(const float *a, const float *b, size_t count)
{
    __m256i total = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i d =
            _mm256_cvtps_epi32(_mm256_sub_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
        const __m256i odd = _mm256_srli_epi64(d, 32);
        total = _mm256_add_epi64(
            total, _mm256_add_epi64(_mm256_mul_epi32(d, d), _mm256_mul_epi32(odd, odd)));
    }
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, total);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + dl2_luma_error_c(a + i, b + i, count - i);
}

const struct dl2_kernels dl2_kernels_avx2 = {
    .name = "avx2",
    .luma = luma,
    .byte_error = byte_error,
    .luma_error = luma_error,
    .sum_difference = sum_difference,
    .ssim_columns = ssim_columns,
    .ssim_row = ssim_row,
};
