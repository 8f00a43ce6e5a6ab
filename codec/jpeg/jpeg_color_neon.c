/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops of jpeg_color_kernels.inc, of which compilers make NEON, and a better rgb_block(). */
#include "codec/jpeg/jpeg_color.h"

#include <arm_neon.h>

#define RGB_BLOCK

/* value * factor / 65536, rounded. */
static inline int16x8_t scale_words(int16x8_t value, int16_t factor)
{
    return vrshrq_n_s16(vqdmulhq_n_s16(value, factor), 1);
}

/* u * GREEN_CB + v * GREEN_CR over 65536, rounded. */
static inline int16x4_t green_words(int16x4_t u, int16x4_t v)
{
    enum { GREEN_CB = -22554, GREEN_CR = 65536 - 46802 };
    return vrshrn_n_s32(vmlal_n_s16(vmull_n_s16(u, GREEN_CB), v, GREEN_CR), 16);
}

static void rgb_block(const uint8_t *restrict y, const uint8_t *restrict cb,
                      const uint8_t *restrict cr, uint8_t *restrict out)
{
    enum { RED = 91881 - 65536, BLUE = 116130 - 2 * 65536 };
    const uint8x8_t middle = vdup_n_u8(128);
    for (size_t i = 0; i < DL2_JPEG_COLOR_BLOCK; i += 16) {
        uint8x16x3_t pixels;
        uint8x8_t part[2][3];
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; half++) {
            const size_t at = i + 8 * half;
            const int16x8_t luma = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(y + at)));
            const int16x8_t u = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(cb + at), middle));
            const int16x8_t v = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(cr + at), middle));
            const int16x8_t green = vcombine_s16(green_words(vget_low_s16(u), vget_low_s16(v)),
                                                 green_words(vget_high_s16(u), vget_high_s16(v)));
            part[half][0] = vqmovun_s16(vaddq_s16(vaddq_s16(luma, v), scale_words(v, RED)));
            part[half][1] = vqmovun_s16(vaddq_s16(vsubq_s16(luma, v), green));
            part[half][2] =
                vqmovun_s16(vaddq_s16(vaddq_s16(luma, vshlq_n_s16(u, 1)), scale_words(u, BLUE)));
        }
#pragma GCC unroll 3
        for (int c = 0; c < 3; c++)
            pixels.val[c] = vcombine_u8(part[0][c], part[1][c]);
        vst3q_u8(out + 3 * i, pixels);
    }
}

#define KERNELS dl2_jpeg_color_kernels_neon
#define NAME    "neon"
#include "codec/jpeg/jpeg_color_kernels.inc"
