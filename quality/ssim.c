/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SSIM after Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to
 * structural similarity", IEEE TIP 13(4), 2004, as their ssim_index.m has it.
 *
 * With the sum s = x + y and the difference d = x - y of both images, the paper's formula (13)
 * becomes
 *
 *            mean(s)^2 - mean(d)^2 + 2 C1     var(s) - var(d) + 2 C2
 *     SSIM = ---------------------------- x ------------------------
 *            mean(s)^2 + mean(d)^2 + 2 C1     var(s) + var(d) + 2 C2
 *
 * which needs two means and two variances a window where the textbook needs five sums, and in which
 * identical images give exactly 1. (Nothing of the reference is worth keeping from one variant to
 * the next: its own mean and variance would save none of these four filters, and its luma as floats
 * is more to read than its pixels are.) With a C1 beyond all means, the first factor is 1 and what
 * remains is contrast and structure, which MS-SSIM needs.
 *
 * Floats suffice because no variance is a difference of large numbers: each is taken about a value
 * close by, first down the columns, then, by the law of total variance, along the rows. Against
 * double precision the mean is off by less than 1e-7.
 */
#include "quality/scorer.h"

#include <string.h>

static const float weights[DL2_SSIM_TAPS / 2 + 1] = DL2_SSIM_WEIGHTS;

static float ssim_weight(int tap)
{
    return weights[tap <= DL2_SSIM_TAPS / 2 ? tap : DL2_SSIM_TAPS - 1 - tap];
}

void dl2_sum_difference_c(struct dl2_pixel_run a, struct dl2_pixel_run b, size_t count, float *sum,
                          float *difference)
{
    for (size_t i = 0; i < count; i++, a.data += a.channels, b.data += b.channels) {
        const int32_t x = dl2_luma_of(a.data, a.channels), y = dl2_luma_of(b.data, b.channels);
        sum[i] = (float)(x + y);
        difference[i] = (float)(x - y);
    }
}

/* Columns that are worked on together: a length that is known lets a compiler use vectors. */
enum { BLOCK = 16 };

void dl2_ssim_columns_c(const float *const *rows, size_t width, float (*mean)[DL2_SSIM_STRIDE],
                        float (*variance)[DL2_SSIM_STRIDE])
{
    for (size_t x = 0; x < width; x += BLOCK) {
        const float *center = rows[DL2_SSIM_ROWS / 2] + x;
        for (int r = 0; r < DL2_SSIM_GROUP; r++) {
            float m[BLOCK] = {0}, q[BLOCK] = {0};
            for (int tap = 0; tap < DL2_SSIM_TAPS; tap++) {
                const float w = ssim_weight(tap), *row = rows[r + tap] + x;
                for (int i = 0; i < BLOCK; i++) {
                    float t = row[i] - center[i];
                    m[i] += w * t;
                    q[i] += w * (t * t);
                }
            }
            for (int i = 0; i < BLOCK; i++) {
                mean[r][x + i] = center[i] + m[i];
                variance[r][x + i] = q[i] - m[i] * m[i];
            }
        }
    }
}

/* The moments of BLOCK windows from the moments of the columns. */
static void ssim_windows_c(const float *column_mean, const float *column_variance, float *mean,
                           float *variance)
{
    float m[BLOCK] = {0}, q[BLOCK] = {0};
    const float *center = column_mean + DL2_SSIM_TAPS / 2;
    for (int tap = 0; tap < DL2_SSIM_TAPS; tap++) {
        const float w = ssim_weight(tap);
        for (int i = 0; i < BLOCK; i++) {
            float t = column_mean[tap + i] - center[i];
            m[i] += w * t;
            q[i] += w * (t * t + column_variance[tap + i]);
        }
    }
    for (int i = 0; i < BLOCK; i++) {
        mean[i] = center[i] + m[i];
        variance[i] = q[i] - m[i] * m[i];
    }
}

double dl2_ssim_row_c(const struct dl2_ssim_moments *moments, size_t count, float c1)
{
    double sum = 0;
    for (size_t x = 0; x < count; x += BLOCK) {
        float ms[BLOCK], vs[BLOCK], md[BLOCK], vd[BLOCK], ssim[BLOCK];
        ssim_windows_c(moments->sum_mean + x, moments->sum_variance + x, ms, vs);
        ssim_windows_c(moments->difference_mean + x, moments->difference_variance + x, md, vd);
        for (int i = 0; i < BLOCK; i++) {
            float s = ms[i] * ms[i] + c1, d = md[i] * md[i], v = vs[i] + DL2_SSIM_2C2;
            ssim[i] = (s - d) * (v - vd[i]) / ((s + d) * (v + vd[i]));
        }
        for (size_t i = 0; i < BLOCK && x + i < count; i++)
            sum += (double)ssim[i];
    }
    return sum;
}

/* Each window of a row by itself. */
static void ssim_map_row(const struct dl2_scorer *scorer, const struct dl2_ssim_moments *moments,
                         size_t count, float c1, float *out)
{
    struct dl2_ssim_moments at = *moments;
    for (size_t x = 0; x < count; x++) {
        out[x] = (float)scorer->kernels->ssim_row(&at, 1, c1);
        at.sum_mean++;
        at.sum_variance++;
        at.difference_mean++;
        at.difference_variance++;
    }
}

/* The sum of SSIM over all windows whose left column lies in [x, x + count). */
static double ssim_strip_sum(struct dl2_scorer *scorer, const struct dl2_ssim_source *source,
                             float c1, size_t x, size_t count)
{
    struct dl2_ssim_strip *strip = &scorer->strip;
    const size_t columns = count + DL2_SSIM_TAPS - 1, height = source->height;
    const size_t windows = height - (DL2_SSIM_TAPS - 1);
    size_t loaded = 0;
    double sum = 0;
    for (size_t y = 0; y < windows; y += DL2_SSIM_GROUP) {
        for (; loaded < height && loaded < y + DL2_SSIM_ROWS; loaded++)
            source->load(source->context, x, loaded, columns, strip->sum[loaded % DL2_SSIM_ROWS],
                         strip->difference[loaded % DL2_SSIM_ROWS]);
        const float *sums[DL2_SSIM_ROWS], *differences[DL2_SSIM_ROWS];
        for (size_t r = 0; r < DL2_SSIM_ROWS; r++) {
            /* Below the last row it doesn't matter: no window that counts reaches there. */
            size_t row = y + r < height ? y + r : height - 1;
            sums[r] = strip->sum[row % DL2_SSIM_ROWS];
            differences[r] = strip->difference[row % DL2_SSIM_ROWS];
        }
        scorer->kernels->ssim_columns(sums, columns, strip->sum_mean, strip->sum_variance);
        scorer->kernels->ssim_columns(differences, columns, strip->difference_mean,
                                      strip->difference_variance);
        for (size_t r = 0; r < DL2_SSIM_GROUP && y + r < windows; r++) {
            const struct dl2_ssim_moments moments = {strip->sum_mean[r], strip->sum_variance[r],
                                                     strip->difference_mean[r],
                                                     strip->difference_variance[r]};
            sum += scorer->kernels->ssim_row(&moments, count, c1);
            if (source->map)
                ssim_map_row(scorer, &moments, count, c1,
                             source->map + (y + r) * (source->width - (DL2_SSIM_TAPS - 1)) + x);
        }
    }
    return sum;
}

double dl2_ssim_sum(struct dl2_scorer *scorer, const struct dl2_ssim_source *source, float c1)
{
    const size_t windows = source->width - (DL2_SSIM_TAPS - 1);
    const size_t most = DL2_SSIM_STRIP - (DL2_SSIM_TAPS - 1);
    /* Strips of equal width, so that the last isn't a sliver. */
    const size_t strips = (windows + most - 1) / most, width = (windows + strips - 1) / strips;
    double sum = 0;
    for (size_t x = 0; x < windows; x += width)
        sum += ssim_strip_sum(scorer, source, c1, x, windows - x < width ? windows - x : width);
    return sum;
}

struct ssim_pixels {
    const struct dl2_scorer *scorer;
    const struct dl2_image *variant;
};

static void ssim_load_pixels(void *context, size_t x, size_t y, size_t count, float *sum,
                             float *difference)
{
    const struct ssim_pixels *pixels = context;
    const struct dl2_scorer *scorer = pixels->scorer;
    scorer->kernels->sum_difference(dl2_pixel_run_at(scorer->reference, x, y),
                                    dl2_pixel_run_at(pixels->variant, x, y), count, sum,
                                    difference);
}

static int ssim_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                        double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    (void)error;
    struct ssim_pixels pixels = {scorer, variant};
    const struct dl2_ssim_source source = {variant->width, variant->height, ssim_load_pixels,
                                           &pixels, NULL};
    sums[0] = dl2_ssim_sum(scorer, &source, DL2_SSIM_2C1);
    return DL2_OK;
}

int dl2_ssim_map(struct dl2_scorer *scorer, const struct dl2_image *variant, const float **map,
                 struct dl2_error *error)
{
    const size_t columns = variant->width - (DL2_SSIM_TAPS - 1);
    const size_t rows = variant->height - (DL2_SSIM_TAPS - 1);
    DL2_TRY(dl2_bytes_resize(&scorer->scratch, columns * rows * sizeof **map, error));
    struct ssim_pixels pixels = {scorer, variant};
    const struct dl2_ssim_source source = {variant->width, variant->height, ssim_load_pixels,
                                           &pixels, (float *)(void *)scorer->scratch.data};
    dl2_ssim_sum(scorer, &source, DL2_SSIM_2C1);
    *map = source.map;
    return DL2_OK;
}

static double ssim_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                        const struct dl2_image *variant)
{
    (void)reference;
    return sums[0] / (((double)variant->width - (DL2_SSIM_TAPS - 1)) *
                      ((double)variant->height - (DL2_SSIM_TAPS - 1)));
}

/* Its sum: of SSIM over all windows. */
const struct dl2_metric dl2_metric_ssim = {
    .name = "ssim",
    .viewer_name = "ssim",
    .title = "SSIM Y",
    .unit = "",
    .definition = "Wang et al. 2004 as ssim_index.m: 11x11 Gaussian window, sigma 1.5, K1 0.01, K2 "
                  "0.03, L 255, population "
                  "covariance, valid region, no downsampling; luma BT.601, full range, not rounded",
    .digits = 6,
    .one_is_best = true,
    .by_default = true,
    .missing = "too_small",
    .missing_note = "too small for SSIM",
    .adds_up = true,
    .overlap = DL2_SSIM_TAPS - 1,
    .min_side = DL2_SSIM_TAPS,
    .measure = ssim_measure,
    .mean = ssim_mean,
};
