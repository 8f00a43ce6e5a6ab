/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inner loops of the metrics, one table for each instruction set: plain C (in psnr.c and ssim.c),
 * the same with AVX2 or AVX-512 (metric_kernels_avx2.c, metric_kernels_avx512.c, both of
 * metric_kernels_simd.inc), and with NEON (metric_kernels_neon.c). All but plain C filter as
 * metric_filters.inc does.
 * Private to this room and its tests.
 */
#ifndef DL2_QUALITY_METRIC_KERNELS_H
#define DL2_QUALITY_METRIC_KERNELS_H

#include "quality/ssimulacra2.h"

#include <stddef.h>
#include <stdint.h>

/* SSIM: taps of the Gaussian, output rows that are made together, and the input rows that they
 * need. */
enum {
    DL2_SSIM_TAPS = 11,
    DL2_SSIM_GROUP = 4,
    DL2_SSIM_ROWS = DL2_SSIM_GROUP + DL2_SSIM_TAPS - 1,
    /*
     * Most columns of a strip, and what a row of its buffers holds: kernels work on whole vectors.
     * Each row of a strip touches other pages of both images; with narrower strips that costs more
     * than buffers that fit a first-level cache gain.
     */
    DL2_SSIM_STRIP = 4096,
    DL2_SSIM_STRIDE = DL2_SSIM_STRIP + 32,
};

/* The Gaussian's six different weights, outermost first; they sum to 1 with the outer five taken
 * twice. */
#define DL2_SSIM_WEIGHTS                                                                           \
    {                                                                                              \
        0.00102838008f, 0.00759875814f, 0.0360007721f, 0.10936069f, 0.213005538f, 0.266011725f     \
    }

/* 2 C1 and 2 C2 for luma in thousandths: C1 = (0.01 * 255)^2, C2 = (0.03 * 255)^2. Both exact in a
 * float. */
#define DL2_SSIM_2C1 13005000.0f
#define DL2_SSIM_2C2 117045000.0f
/* In place of 2 C1: so large, and a power of two, that the luminance's factor is 1 exactly. */
#define DL2_SSIM_NO_LUMINANCE 0x1p66f

/* Mean and variance of a row of windows: of the sum of both images, and of their difference. */
struct dl2_ssim_moments {
    const float *sum_mean, *sum_variance, *difference_mean, *difference_variance;
};

/* Pixels of a row, of 1 or 3 channels. */
struct dl2_pixel_run {
    const uint8_t *data;
    uint32_t channels;
};

struct dl2_metric_kernels {
    const char *name; /* "c", "neon", "avx2", "avx512" */

    /* Sum of (a - b)^2 over bytes. */
    uint64_t (*byte_error)(const uint8_t *a, const uint8_t *b, size_t count);

    /* Sum of (a - b)^2 over the luma of `count` pixels, at most 2^24, in thousandths; exact. */
    uint64_t (*luma_error)(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count);

    /* a + b and a - b of the luma of `count` pixels in thousandths, exact. */
    void (*sum_difference)(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count, float *sum,
                           float *difference);

    /*
     * Down the columns: rows[] are DL2_SSIM_ROWS input rows of `width` columns. Output row r, made
     * of rows r to r + 10, is the weighted mean, and the weighted variance, of its eleven. Writes
     * up to the next multiple of 16 columns.
     */
    void (*ssim_columns)(const float *const *rows, size_t width, float (*mean)[DL2_SSIM_STRIDE],
                         float (*variance)[DL2_SSIM_STRIDE]);

    /*
     * Along a row: window x, made of columns x to x + 10, has the mean of their means and, by the
     * law of total variance, the mean of their variances plus the variance of their means. Returns
     * the sum of SSIM over `count` windows; c1 is DL2_SSIM_2C1 or DL2_SSIM_NO_LUMINANCE. Reads up
     * to the next multiple of 16 windows.
     */
    double (*ssim_row)(const struct dl2_ssim_moments *moments, size_t count, float c1);

    /* SSIMULACRA 2, for whole blocks of columns; every path gives the same bits. The opponent
     * colors of linear R, G and B. */
    void (*xyb)(float *const rgb[3], size_t count, float *const xyb[3]);
    /* out[i] is the mean of values 2i and 2i + 1 of both rows; `count` values, in whole blocks or
     * not. */
    void (*halve)(const float *above, const float *below, size_t count, float *out);
    /* a^2 + b^2 and (a - b)^2. */
    void (*squares)(const float *a, const float *b, size_t count, float *squares, float *distance);
    /* Filters down the columns. */
    void (*blur_columns)(const float *const rows[DL2_SSIMULACRA2_TAPS], size_t count, float *out);
    /* Filters along the row, and adds each error and its fourth power to sums[map]. */
    void (*maps)(const struct dl2_ssimulacra2_row *row, size_t count,
                 double sums[DL2_SSIMULACRA2_MAPS][2]);

    /* The color differences of pixels of linear R, G and B, for whole blocks; every path gives the
     * same bits. */
    void (*ciede2000)(const float *const a[3], const float *const b[3], size_t count, float *out);
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_metric_kernels *dl2_metric_kernels_for(unsigned simd_flags);

extern const struct dl2_metric_kernels dl2_metric_kernels_c, dl2_metric_kernels_avx2,
    dl2_metric_kernels_avx512, dl2_metric_kernels_neon;

/* 299 R + 587 G + 114 B of a pixel. */
static inline int32_t dl2_luma_of(const uint8_t *pixel, uint32_t channels)
{
    return channels == 1 ? 1000 * pixel[0] : 299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2];
}

/* The plain C twins, each in its metric's file. */
uint64_t dl2_byte_error_c(const uint8_t *a, const uint8_t *b, size_t count);
uint64_t dl2_luma_error_c(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count);
void dl2_sum_difference_c(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count, float *sum,
                          float *difference);
void dl2_ssim_columns_c(const float *const *rows, size_t width, float (*mean)[DL2_SSIM_STRIDE],
                        float (*variance)[DL2_SSIM_STRIDE]);
double dl2_ssim_row_c(const struct dl2_ssim_moments *moments, size_t count, float c1);

#endif
