/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Color differences by CIEDE2000, as in Sharma, Wu, Dalal: "The CIEDE2000 color-difference
 * formula: implementation notes, supplementary test data, and mathematical observations", Color
 * Research and Application 30(1), 2005, with all parametric factors 1. Samples are sRGB; CIELAB is
 * by its primaries and D65, as in scikit-image.
 *
 * Hues are kept as directions rather than angles, so that half a difference and multiples of a mean
 * need no cosine: the mean hue is the direction of the sum of two unit vectors. The formula is in
 * ciede2000_loops.h.
 *
 * A scorer allocates 4 bytes for each pixel of the largest image, and 256 kB.
 */
#include "quality/scorer.h"
#include "quality/ssimulacra2.h"

#include <string.h>

enum { RUN = 16 * DL2_SSIMULACRA2_BLOCK }; /* pixels that are worked on together */

/* Linear light of `count` pixels, in planes. */
static void make_linear(const struct dl2_scorer *scorer, struct dl2_pixel_run run, size_t count,
                        float (*out)[RUN])
{
    const uint32_t g = run.channels == 1 ? 0 : 1, b = run.channels == 1 ? 0 : 2;
    for (size_t i = 0; i < count; i++, run.data += run.channels) {
        out[0][i] = scorer->linear[run.data[0]];
        out[1][i] = scorer->linear[run.data[g]];
        out[2][i] = scorer->linear[run.data[b]];
    }
}

/* The differences of a row's pixels. Returns their sum. */
static double row_differences(const struct dl2_scorer *scorer, const struct dl2_image *variant,
                              uint32_t y, float *out)
{
    float one[3][RUN] = {{0}}, two[3][RUN] = {{0}}, differences[RUN];
    double sum = 0;
    for (size_t x = 0; x < variant->width; x += RUN) {
        const size_t count = variant->width - x < RUN ? variant->width - x : RUN;
        make_linear(scorer, dl2_pixel_run_at(scorer->reference, x, y), count, one);
        make_linear(scorer, dl2_pixel_run_at(variant, x, y), count, two);
        scorer->kernels->ciede2000((const float *const[]){one[0], one[1], one[2]},
                                   (const float *const[]){two[0], two[1], two[2]},
                                   (count + DL2_SSIMULACRA2_BLOCK - 1) / DL2_SSIMULACRA2_BLOCK *
                                       DL2_SSIMULACRA2_BLOCK,
                                   differences);
        for (size_t i = 0; i < count; i++)
            sum += (double)differences[i];
        memcpy(out + x, differences, count * sizeof *out);
    }
    return sum;
}

enum { HALF = 1 << 16 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The value of rank `rank`, from 0, among `count` that are not negative: their bits are in their
 * order. The upper 16 bits are found first, then the lower. `counts` has HALF places. */
static double value_of_rank(const float *values, size_t count, size_t rank, uint32_t *counts)
{
    uint32_t found = 0;
    for (int shift = 16; shift >= 0; shift -= 16) {
        memset(counts, 0, HALF * sizeof *counts);
        for (size_t i = 0; i < count; i++) {
            const uint32_t bits = bits_of(values[i]);
            if (shift || bits >> 16 == found >> 16)
                counts[bits >> shift & (HALF - 1)]++;
        }
        uint32_t part = 0;
        for (; counts[part] <= rank; part++)
            rank -= counts[part];
        found |= part << shift;
    }
    float value;
    memcpy(&value, &found, sizeof value);
    return (double)value;
}

static int ciede2000_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                             double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    const size_t count = (size_t)variant->width * variant->height;
    DL2_TRY(dl2_bytes_resize(&scorer->scratch, (HALF + count) * sizeof(float), error));
    uint32_t *counts = (void *)scorer->scratch.data;
    float *values = (float *)(void *)(counts + HALF);
    for (uint32_t y = 0; y < variant->height; y++)
        sums[0] += row_differences(scorer, variant, y, values + (size_t)y * variant->width);
    /* Between the two ranks about it, as NumPy does by default. */
    const double at = 0.95 * (double)(count - 1);
    const size_t below = (size_t)at;
    const double low = value_of_rank(values, count, below, counts);
    sums[1] = low;
    if (below + 1 < count)
        sums[1] += (at - (double)below) * (value_of_rank(values, count, below + 1, counts) - low);
    return DL2_OK;
}

static double ciede2000_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                             const struct dl2_image *variant)
{
    (void)reference;
    return sums[0] / ((double)variant->width * variant->height);
}

/* Their sums: of the differences; and the percentile itself. */
const struct dl2_metric dl2_metric_ciede2000 = {
    .name = "ciede2000",
    .title = "CIEDE2000",
    .unit = "",
    .definition = "mean over the pixels of the color difference CIEDE2000 (Sharma et al. 2005, all "
                  "factors 1; sRGB, D65); 0 for identical images, lower is better",
    .digits = 4,
    .adds_up = true,
    .lower_is_better = true,
    .missing = "too_small",
    .measure = ciede2000_measure,
    .mean = ciede2000_mean,
};

const struct dl2_metric dl2_metric_ciede2000_p95 = {
    .name = "ciede2000_p95",
    .title = "CIEDE2000 95%",
    .unit = "",
    .definition =
        "95th percentile over the pixels of the color difference CIEDE2000, interpolated; "
        "lower is better",
    .digits = 4,
    .lower_is_better = true,
    .missing = "too_small",
    .measure = ciede2000_measure,
    .sum = 1,
};
