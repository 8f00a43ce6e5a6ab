/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peak signal-to-noise ratio, 10 log10(255^2 / MSE). The sums of squares are whole numbers, so that
 * every path and any order of summing gives the same figure.
 */
#include "quality/scorer.h"

#include <math.h>

double dl2_psnr_of_mse(double mse)
{
    return mse > 0 ? 10 * log10(255.0 * 255.0 / mse) : INFINITY;
}

uint64_t dl2_byte_error_c(const uint8_t *a, const uint8_t *b, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int difference = a[i] - b[i];
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}

uint64_t dl2_luma_error_c(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++, a.data += a.channels, b.data += b.channels) {
        int64_t difference = dl2_luma_of(a.data, a.channels) - dl2_luma_of(b.data, b.channels);
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}

/* The squared error of a gray row against a color one; each gray sample counts three times. */
static uint64_t psnr_mixed_error(const uint8_t *gray, const uint8_t *color, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < 3 * count; i++) {
        int difference = gray[i / 3] - color[i];
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}

static int psnr_rgb_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                            double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    (void)error;
    const struct dl2_image *reference = scorer->reference;
    const bool mixed = reference->channels != variant->channels;
    const struct dl2_image *gray = variant->channels == 1 ? variant : reference;
    const struct dl2_image *color = gray == variant ? reference : variant;
    double sum = 0; /* exact below 2^53 */
    for (uint32_t y = 0; y < variant->height; y++) {
        const uint8_t *a = gray->data + y * gray->stride, *b = color->data + y * color->stride;
        sum += (double)(mixed ? psnr_mixed_error(a, b, variant->width)
                              : scorer->kernels->byte_error(
                                    a, b, (size_t)variant->width * variant->channels));
    }
    sums[0] = sum;
    return DL2_OK;
}

static double psnr_rgb_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                            const struct dl2_image *variant)
{
    const bool gray = reference->channels == 1 && variant->channels == 1;
    return sums[0] / ((double)variant->width * variant->height * (gray ? 1 : 3));
}

/* Pixels of a row that are summed at a time, in 64 bits. */
enum { MOST = 1 << 24 };

static int psnr_y_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                          double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    (void)error;
    double sum = 0; /* of whole numbers; in the same order on every path, should it pass 2^53 */
    for (uint32_t y = 0; y < variant->height; y++)
        for (size_t x = 0; x < variant->width; x += MOST)
            sum += (double)scorer->kernels->luma_error(
                dl2_pixel_run_at(scorer->reference, x, y), dl2_pixel_run_at(variant, x, y),
                variant->width - x < MOST ? variant->width - x : MOST);
    sums[0] = sum;
    return DL2_OK;
}

static double psnr_y_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                          const struct dl2_image *variant)
{
    (void)reference;
    return sums[0] / 1e6 / ((double)variant->width * variant->height);
}

static void psnr_rgb_measure_deep(const struct dl2_deep_image *reference,
                                  const struct dl2_deep_image *variant,
                                  double sums[DL2_METRIC_SUMS])
{
    const uint32_t a_channels = reference->channels, b_channels = variant->channels;
    const size_t samples = (size_t)variant->width * (a_channels == 1 && b_channels == 1 ? 1 : 3);
    double total = 0;
    for (uint32_t y = 0; y < variant->height; y++) {
        const uint16_t *a = dl2_deep_row(reference, y), *b = dl2_deep_row(variant, y);
        uint64_t sum = 0;
        for (size_t i = 0; i < samples; i++) {
            const int64_t d = (int64_t)a[a_channels < b_channels ? i / 3 : i] -
                              b[b_channels < a_channels ? i / 3 : i];
            sum += (uint64_t)(d * d);
        }
        total += (double)sum;
    }
    sums[0] = total / (257.0 * 257.0);
}

static double deep_luma(const uint16_t *pixel, uint32_t channels)
{
    return channels == 1 ? 1000.0 * pixel[0]
                         : 299.0 * pixel[0] + 587.0 * pixel[1] + 114.0 * pixel[2];
}

static void psnr_y_measure_deep(const struct dl2_deep_image *reference,
                                const struct dl2_deep_image *variant, double sums[DL2_METRIC_SUMS])
{
    double total = 0;
    for (uint32_t y = 0; y < variant->height; y++) {
        const uint16_t *a = dl2_deep_row(reference, y), *b = dl2_deep_row(variant, y);
        for (uint32_t x = 0; x < variant->width; x++) {
            const double d = deep_luma(a + (size_t)x * reference->channels, reference->channels) -
                             deep_luma(b + (size_t)x * variant->channels, variant->channels);
            total += d * d;
        }
    }
    sums[0] = total / (257.0 * 257.0);
}

/* Its sum: of (a - b)^2 over all samples; those of gray against color count three times. */
const struct dl2_metric dl2_metric_psnr_rgb = {
    .name = "psnr_rgb",
    .viewer_name = "psnr",
    .title = "PSNR RGB",
    .unit = "dB",
    .definition =
        "10 log10(255^2 / MSE), MSE over all samples of R, G and B as coded; a gray "
        "image counts as R = G = B; of files with more than 8 bits, 16-bit samples and 65535",
    .digits = 3,
    .by_default = true,
    .missing = "identical",
    .adds_up = true,
    .measure = psnr_rgb_measure,
    .measure_deep = psnr_rgb_measure_deep,
    .mean = psnr_rgb_mean,
    .of_mse = dl2_psnr_of_mse,
};

/* Its sum: of (a - b)^2 over luma in thousandths. */
const struct dl2_metric dl2_metric_psnr_y = {
    .name = "psnr_y",
    .title = "PSNR Y",
    .unit = "dB",
    .definition = "10 log10(255^2 / MSE) of luma 0.299 R + 0.587 G + 0.114 B (BT.601, full range, "
                  "not rounded); of files with more than 8 bits, 16-bit samples and 65535",
    .digits = 3,
    .by_default = true,
    .missing = "identical",
    .adds_up = true,
    .measure = psnr_y_measure,
    .measure_deep = psnr_y_measure_deep,
    .mean = psnr_y_mean,
    .of_mse = dl2_psnr_of_mse,
};
