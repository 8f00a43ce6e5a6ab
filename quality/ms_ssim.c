/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multi-scale SSIM after Wang, Simoncelli, Bovik: "Multi-scale structural similarity for image
 * quality assessment", Asilomar Conference on Signals, Systems and Computers, 2003, as their
 * msssim.m and TensorFlow's ssim_multiscale() have it.
 *
 * Scales 1 to 4 need the mean of contrast and structure, scale 5 the mean of SSIM. Sum and
 * difference of the images, which SSIM is computed of, are linear in the images, so each scale is
 * made by averaging 2x2 of these two planes. That happens while the rows of the scale before pass
 * through the cache for SSIM; pixels are read once.
 *
 * A scorer allocates 2.7 bytes for each pixel of the largest image.
 */
#include "quality/scorer.h"

#include <math.h>
#include <string.h>

enum {
    SCALES = 5,
    /* The shorter side at the last scale is at least a window's, as msssim.m wants it. */
    MIN_SIDE = DL2_SSIM_TAPS << (SCALES - 1),
    BLOCK = 16,
};

static const double scale_weights[SCALES] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};

/* The sum and the difference of both images at one scale. */
struct ms_ssim_scale {
    size_t width, height;
    float *sum, *difference;    /* [height][width]; NULL at scale 1, which is made of pixels */
    struct ms_ssim_scale *next; /* NULL at scale 5 */
    /* The row above the one that is loaded next, from the same column on. */
    const float *sum_above, *difference_above;
    const struct dl2_scorer *scorer;
    const struct dl2_image *variant;
};

/* The next scale's size; where it is odd, the last row or column is paired with itself. */
static size_t half_of(size_t size)
{
    return (size + 1) / 2;
}

/* out[i] is the mean of values 2i and 2i + 1 of both rows. */
static void halve_rows(const float *restrict above, const float *restrict below, size_t count,
                       float *restrict out)
{
    for (; count >= BLOCK; count -= BLOCK, above += 2 * BLOCK, below += 2 * BLOCK, out += BLOCK)
        for (int i = 0; i < BLOCK; i++)
            out[i] = (above[2 * i] + below[2 * i] + (above[2 * i + 1] + below[2 * i + 1])) * 0.25f;
    for (size_t i = 0; i < count; i++)
        out[i] = (above[2 * i] + below[2 * i] + (above[2 * i + 1] + below[2 * i + 1])) * 0.25f;
}

/* Loads `count` columns from x on, and makes the columns of the next scale that they cover. What
 * two strips both cover is made twice. */
static void ms_ssim_load(void *context, size_t x, size_t y, size_t count, float *sum,
                         float *difference)
{
    struct ms_ssim_scale *scale = context;
    if (scale->sum) {
        memcpy(sum, scale->sum + y * scale->width + x, count * sizeof *sum);
        memcpy(difference, scale->difference + y * scale->width + x, count * sizeof *difference);
    } else {
        scale->scorer->kernels->sum_difference(dl2_pixel_run_at(scale->scorer->reference, x, y),
                                               dl2_pixel_run_at(scale->variant, x, y), count, sum,
                                               difference);
    }
    struct ms_ssim_scale *next = scale->next;
    if (!next)
        return;
    const bool is_odd_end = x + count == scale->width && scale->width % 2;
    if (is_odd_end) { /* a row of the strip has room behind its columns */
        sum[count] = sum[count - 1];
        difference[count] = difference[count - 1];
    }
    if (y % 2 == 0) {
        scale->sum_above = sum;
        scale->difference_above = difference;
        if (y + 1 < scale->height)
            return;
    }
    const size_t skip = x % 2, to = (x + skip) / 2, made = (count - skip + is_odd_end) / 2;
    float *const sum_row = next->sum + y / 2 * next->width + to;
    float *const difference_row = next->difference + y / 2 * next->width + to;
    halve_rows(scale->sum_above + skip, sum + skip, made, sum_row);
    halve_rows(scale->difference_above + skip, difference + skip, made, difference_row);
}

static int ms_ssim_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                           double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    struct ms_ssim_scale scales[SCALES] = {{.width = variant->width, .height = variant->height}};
    size_t floats = 0;
    for (int i = 0; i < SCALES; i++) {
        scales[i].scorer = scorer;
        scales[i].variant = variant;
        if (i == 0)
            continue;
        scales[i - 1].next = &scales[i];
        scales[i].width = half_of(scales[i - 1].width);
        scales[i].height = half_of(scales[i - 1].height);
        floats += 2 * scales[i].width * scales[i].height;
    }
    DL2_TRY(dl2_bytes_resize(&scorer->scratch, floats * sizeof(float), error));
    float *plane = (float *)(void *)scorer->scratch.data;
    for (int i = 1; i < SCALES; i++) {
        const size_t size = scales[i].width * scales[i].height;
        scales[i].sum = plane;
        scales[i].difference = plane + size;
        plane += 2 * size;
    }
    for (int i = 0; i < SCALES; i++) {
        const struct dl2_ssim_source source = {scales[i].width, scales[i].height, ms_ssim_load,
                                               &scales[i], NULL};
        sums[i] =
            dl2_ssim_sum(scorer, &source, i + 1 < SCALES ? DL2_SSIM_NO_LUMINANCE : DL2_SSIM_2C1);
    }
    return DL2_OK;
}

static double ms_ssim_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                           const struct dl2_image *variant)
{
    (void)reference;
    size_t width = variant->width, height = variant->height;
    double product = 1;
    for (int i = 0; i < SCALES; i++) {
        const double windows =
            ((double)width - (DL2_SSIM_TAPS - 1)) * ((double)height - (DL2_SSIM_TAPS - 1));
        product *= pow(fmax(sums[i] / windows, 0), scale_weights[i]);
        width = half_of(width);
        height = half_of(height);
    }
    return product;
}

/* Its sums: of contrast and structure over the windows of scales 1 to 4, of SSIM over those of
 * scale 5. */
const struct dl2_metric dl2_metric_ms_ssim = {
    .name = "ms_ssim",
    .viewer_name = "msssim",
    .title = "MS-SSIM",
    .unit = "",
    .definition =
        "Wang, Simoncelli, Bovik 2003 as msssim.m: five scales, each the 2x2 means of the one "
        "before (an odd last row or column is repeated); the product of mean contrast and "
        "structure at scales 1 to 4 and mean SSIM at scale 5, raised to the powers 0.0448, 0.2856, "
        "0.3001, 0.2363, 0.1333, a negative mean counting as 0; window, constants and luma of ssim",
    .digits = 6,
    .one_is_best = true,
    .missing = "too_small",
    .missing_note = "too small for MS-SSIM",
    .min_side = MIN_SIDE,
    .measure = ms_ssim_measure,
    .mean = ms_ssim_mean,
};
