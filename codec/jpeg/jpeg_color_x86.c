/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops of jpeg_color_kernels.inc, with rgb_block() in vectors: each lane has eight pixels. */
#include "codec/jpeg/jpeg_color.h"

#include "common/vectors.h"

#define RGB_BLOCK

/* value * factor / 65536, rounded. */
static inline vector scale_words(vector value, int16_t factor)
{
    const vector twice = OP(mulhi_epi16)(OP(slli_epi16)(value, 1), OP(set1_epi16)(factor));
    return OP(srai_epi16)(OP(add_epi16)(twice, OP(set1_epi16)(1)), 1);
}

static void rgb_block(const uint8_t *restrict y, const uint8_t *restrict cb,
                      const uint8_t *restrict cr, uint8_t *restrict out)
{
    enum { RED = 91881 - 65536, GREEN_CB = -22554, GREEN_CR = 65536 - 46802 };
    enum { BLUE = 116130 - 2 * 65536, HALF = 1 << 15, PIXELS = sizeof(vector) / 2 };
    const vector middle = OP(set1_epi16)(128), rounding = OP(set1_epi32)(HALF);
    const vector green_factors =
        OP(set1_epi32)((int)((uint32_t)(uint16_t)GREEN_CB | (uint32_t)GREEN_CR << 16));
    /* A lane's bytes r0 .. r7, g0 .. g7 and b0 .. b7 in turns: the first 16, and the last 8. */
    const vector rg_first =
        BROADCAST(_mm_setr_epi8(0, 8, -1, 1, 9, -1, 2, 10, -1, 3, 11, -1, 4, 12, -1, 5));
    const vector b_first =
        BROADCAST(_mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1));
    const vector rg_last =
        BROADCAST(_mm_setr_epi8(13, -1, 6, 14, -1, 7, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const vector b_last =
        BROADCAST(_mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, -1, -1, -1, -1, -1, -1));
    for (size_t i = 0; i < DL2_JPEG_COLOR_BLOCK; i += PIXELS) {
        const vector luma = OP(cvtepu8_epi16)(LOAD_HALF(y + i));
        const vector u = OP(sub_epi16)(OP(cvtepu8_epi16)(LOAD_HALF(cb + i)), middle);
        const vector v = OP(sub_epi16)(OP(cvtepu8_epi16)(LOAD_HALF(cr + i)), middle);
        const vector low = OP(madd_epi16)(OP(unpacklo_epi16)(u, v), green_factors);
        const vector high = OP(madd_epi16)(OP(unpackhi_epi16)(u, v), green_factors);
        const vector green = OP(packs_epi32)(OP(srai_epi32)(OP(add_epi32)(low, rounding), 16),
                                             OP(srai_epi32)(OP(add_epi32)(high, rounding), 16));
        const vector r = OP(add_epi16)(OP(add_epi16)(luma, v), scale_words(v, RED));
        const vector g = OP(add_epi16)(OP(sub_epi16)(luma, v), green);
        const vector b =
            OP(add_epi16)(OP(add_epi16)(luma, OP(slli_epi16)(u, 1)), scale_words(u, BLUE));
        const vector rg = OP(packus_epi16)(r, g), bb = OP(packus_epi16)(b, b);
        /* No byte is in both; adding is or. */
        const vector first =
            OP(add_epi8)(OP(shuffle_epi8)(rg, rg_first), OP(shuffle_epi8)(bb, b_first));
        const vector last =
            OP(add_epi8)(OP(shuffle_epi8)(rg, rg_last), OP(shuffle_epi8)(bb, b_last));
#define STORE_LANE(lane)                                                                           \
    do {                                                                                           \
        uint8_t *const to = out + 3 * i + 24 * (lane);                                             \
        _mm_storeu_si128((__m128i *)(void *)to, LANE(first, lane));                                \
        _mm_storel_epi64((__m128i *)(void *)(to + 16), LANE(last, lane));                          \
    } while (0)
        STORE_LANE(0);
        STORE_LANE(1);
#if LANES == 4
        STORE_LANE(2);
        STORE_LANE(3);
#endif
#undef STORE_LANE
    }
}

#define KERNELS VARIANT(dl2_jpeg_color_kernels)
#define NAME    VARIANT_NAME
#include "codec/jpeg/jpeg_color_kernels.inc"
