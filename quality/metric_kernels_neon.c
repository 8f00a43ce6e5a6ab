/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/metric_kernels.h"

#include <arm_neon.h>

#define LANES            4
#define V                float32x4_t
#define KERNEL(name)     name##_neon
#define V_LOAD           vld1q_f32
#define V_LOADU          vld1q_f32
#define V_STORE          vst1q_f32
#define V_ZERO()         vdupq_n_f32(0)
#define V_SET1           vdupq_n_f32
#define V_ADD            vaddq_f32
#define V_SUB            vsubq_f32
#define V_MUL            vmulq_f32
#define V_DIV            vdivq_f32
#define V_FMA(a, b, sum) vfmaq_f32(sum, a, b)
/* sum - a * b */
#define V_FNMA(a, b, sum) vfmsq_f32(sum, a, b)

/* The first `count` lanes, zero behind them. */
static inline float32x4_t first(float32x4_t v, size_t count)
{
    static const uint32_t lanes[LANES] = {0, 1, 2, 3};
    const uint32x4_t taken = vcltq_u32(vld1q_u32(lanes), vdupq_n_u32((uint32_t)count));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), taken));
}

static inline double total(float32x4_t v)
{
    return vaddvq_f64(vaddq_f64(vcvt_f64_f32(vget_low_f32(v)), vcvt_high_f64_f32(v)));
}

/* Luma of eight pixels in thousandths, four and four. */
static inline int32x4x2_t luma(struct dl2_pixel_run run, size_t at)
{
    uint32x4x2_t sum;
    if (run.channels == 1) {
        const uint16x8_t gray = vmovl_u8(vld1_u8(run.data + at));
        sum.val[0] = vmull_n_u16(vget_low_u16(gray), 1000);
        sum.val[1] = vmull_n_u16(vget_high_u16(gray), 1000);
    } else {
        const uint8x8x3_t pixels = vld3_u8(run.data + 3 * at);
        const uint16x8_t r = vmovl_u8(pixels.val[0]), g = vmovl_u8(pixels.val[1]);
        const uint16x8_t b = vmovl_u8(pixels.val[2]);
        sum.val[0] = vmull_n_u16(vget_low_u16(r), 299);
        sum.val[0] = vmlal_n_u16(sum.val[0], vget_low_u16(g), 587);
        sum.val[0] = vmlal_n_u16(sum.val[0], vget_low_u16(b), 114);
        sum.val[1] = vmull_n_u16(vget_high_u16(r), 299);
        sum.val[1] = vmlal_n_u16(sum.val[1], vget_high_u16(g), 587);
        sum.val[1] = vmlal_n_u16(sum.val[1], vget_high_u16(b), 114);
    }
    return (int32x4x2_t){{vreinterpretq_s32_u32(sum.val[0]), vreinterpretq_s32_u32(sum.val[1])}};
}

static uint64_t byte_error_neon(const uint8_t *a, const uint8_t *b, size_t count)
{
    uint64x2_t sum = vdupq_n_u64(0);
    size_t i = 0;
    while (i + 16 <= count) {
        /* Each step adds at most 4 * 255^2 to a lane of 32 bits: 8192 steps stay below 2^32. */
        uint32x4_t part = vdupq_n_u32(0);
        for (int step = 0; step < 8192 && i + 16 <= count; step++, i += 16) {
            const uint8x16_t d = vabdq_u8(vld1q_u8(a + i), vld1q_u8(b + i));
            part = vpadalq_u16(part, vmull_u8(vget_low_u8(d), vget_low_u8(d)));
            part = vpadalq_u16(part, vmull_high_u8(d, d));
        }
        sum = vpadalq_u32(sum, part);
    }
    return vaddvq_u64(sum) + dl2_byte_error_c(a + i, b + i, count - i);
}

/* sum + d * d */
static inline int64x2_t add_squares(int64x2_t sum, int32x4_t d)
{
    return vmlal_high_s32(vmlal_s32(sum, vget_low_s32(d), vget_low_s32(d)), d, d);
}

static uint64_t luma_error_neon(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count)
{
    int64x2_t sum = vdupq_n_s64(0);
    for (; count >= 8; count -= 8) {
        const int32x4x2_t x = luma(a, 0), y = luma(b, 0);
        sum = add_squares(sum, vsubq_s32(x.val[0], y.val[0]));
        sum = add_squares(sum, vsubq_s32(x.val[1], y.val[1]));
        a.data += 8 * a.channels;
        b.data += 8 * b.channels;
    }
    return (uint64_t)vaddvq_s64(sum) + dl2_luma_error_c(a, b, count);
}

static void sum_difference_neon(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count,
                                float *sum, float *difference)
{
    if (count < 8) {
        dl2_sum_difference_c(a, b, count, sum, difference);
        return;
    }
    for (size_t i = 0;;) {
        const int32x4x2_t x = luma(a, i), y = luma(b, i);
        for (int half = 0; half < 2; half++) {
            const int32x4_t s = vaddq_s32(x.val[half], y.val[half]);
            const int32x4_t d = vsubq_s32(x.val[half], y.val[half]);
            vst1q_f32(sum + i + 4 * half, vcvtq_f32_s32(s));
            vst1q_f32(difference + i + 4 * half, vcvtq_f32_s32(d));
        }
        if (i + 8 == count)
            break;
        /* The last vector overlaps the one before, so that there is no rest. */
        i = i + 16 <= count ? i + 8 : count - 8;
    }
}

#include "quality/metric_filters.inc"
#include "quality/metric_loops.h"

const struct dl2_metric_kernels dl2_metric_kernels_neon = {
    .name = "neon",
    .byte_error = byte_error_neon,
    .luma_error = luma_error_neon,
    .sum_difference = sum_difference_neon,
    .ssim_columns = ssim_columns_neon,
    .ssim_row = ssim_row_neon,
    LOOPS,
};
