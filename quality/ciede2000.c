/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Colour differences by CIEDE2000, as in Sharma, Wu, Dalal: "The CIEDE2000 color-difference
 * formula: implementation notes, supplementary test data, and mathematical observations", Color
 * Research and Application 30(1), 2005, with all parametric factors 1. Samples are sRGB; CIELAB is
 * by its primaries and D65, as in scikit-image.
 *
 * Hues are kept as directions rather than angles, so that half a difference and multiples of a mean
 * need no cosine: the mean hue is the direction of the sum of two unit vectors.
 *
 * A scorer allocates 4 bytes for each pixel of the largest image, and 256 kB, for the percentile.
 */
#include "quality/scorer.h"

#include <math.h>
#include <string.h>

struct lab {
    double l, a, b;
};

static double lab_curve(double t)
{
    return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

static struct lab lab_of(const struct dl2_scorer *scorer, const uint8_t *pixel, uint32_t channels)
{
    const double r = scorer->light[pixel[0]];
    const double g = scorer->light[pixel[channels == 1 ? 0 : 1]];
    const double b = scorer->light[pixel[channels == 1 ? 0 : 2]];
    const double x = lab_curve((0.412453 * r + 0.357580 * g + 0.180423 * b) / 0.95047);
    const double y = lab_curve(0.212671 * r + 0.715160 * g + 0.072169 * b);
    const double z = lab_curve((0.019334 * r + 0.119193 * g + 0.950227 * b) / 1.08883);
    return (struct lab){116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

static double seventh(double v)
{
    const double cube = v * v * v;
    return cube * cube * v;
}

/* sqrt(C^7 / (C^7 + 25^7)) */
static double chroma_share(double chroma)
{
    const double power = seventh(chroma);
    return sqrt(power / (power + 6103515625.0));
}

/* A colour with its chroma and the direction of its hue; none for gray. */
struct hue {
    double chroma, x, y;
};

static struct hue hue_of(double a, double b)
{
    const double chroma = sqrt(a * a + b * b);
    return chroma > 0 ? (struct hue){chroma, a / chroma, b / chroma} : (struct hue){0, 0, 0};
}

static double difference(const struct lab *one, const struct lab *two)
{
    const double chroma_1 = sqrt(one->a * one->a + one->b * one->b);
    const double chroma_2 = sqrt(two->a * two->a + two->b * two->b);
    const double stretch = 1 + 0.5 * (1 - chroma_share((chroma_1 + chroma_2) / 2));
    const struct hue p = hue_of(stretch * one->a, one->b), q = hue_of(stretch * two->a, two->b);
    const double dl = two->l - one->l, dc = q.chroma - p.chroma;
    const double dx = q.x - p.x, dy = q.y - p.y;
    /* The chord between two directions is twice the sine of half their angle. */
    double dh = sqrt(p.chroma * q.chroma) * sqrt(dx * dx + dy * dy);
    if (p.x * q.y - p.y * q.x < 0)
        dh = -dh;
    const double mean_l = (one->l + two->l) / 2, mean_c = (p.chroma + q.chroma) / 2;
    /* A gray's hue counts as 0, and as the other's if only one is gray. */
    double x = p.x + q.x, y = p.y + q.y;
    const double length = sqrt(x * x + y * y);
    if (length > 1e-9) {
        x /= length;
        y /= length;
    } else if (p.chroma > 0 && q.chroma > 0) { /* opposite hues: half way from the lower angle */
        const double sign = p.y < 0 || (p.y == 0 && p.x < 0) ? -1 : 1;
        x = -p.y * sign;
        y = p.x * sign;
    } else {
        x = 1;
        y = 0;
    }
    const double cos_2 = x * x - y * y, sin_2 = 2 * x * y;
    const double cos_3 = x * cos_2 - y * sin_2, sin_3 = y * cos_2 + x * sin_2;
    const double cos_4 = cos_2 * cos_2 - sin_2 * sin_2, sin_4 = 2 * sin_2 * cos_2;
    /* 1 - 0.17 cos(h - 30) + 0.24 cos(2h) + 0.32 cos(3h + 6) - 0.20 cos(4h - 63), in degrees */
    const double t = 1 - 0.17 * (x * 0.86602540378443865 + y * 0.5) + 0.24 * cos_2 +
                     0.32 * (cos_3 * 0.99452189536827333 - sin_3 * 0.10452846326765347) -
                     0.20 * (cos_4 * 0.45399049973954675 + sin_4 * 0.89100652418836786);
    const double degrees = 180 / 3.14159265358979323846;
    double angle = atan2(y, x) * degrees;
    if (angle < 0)
        angle += 360;
    const double off = (angle - 275) / 25, turn = 30 * exp(-off * off);
    const double rotation = -2 * chroma_share(mean_c) * sin(2 * turn / degrees);
    const double light = (mean_l - 50) * (mean_l - 50);
    const double l = dl / (1 + 0.015 * light / sqrt(20 + light));
    const double c = dc / (1 + 0.045 * mean_c), h = dh / (1 + 0.015 * mean_c * t);
    return sqrt(fmax(l * l + c * c + h * h + rotation * c * h, 0));
}

/* The differences of a row's pixels; out may be NULL. Returns their sum. */
static double row_differences(const struct dl2_scorer *scorer, const struct dl2_image *variant,
                              uint32_t y, float *out)
{
    struct dl2_pixel_run a = dl2_pixel_run_at(scorer->reference, 0, y);
    struct dl2_pixel_run b = dl2_pixel_run_at(variant, 0, y);
    double sum = 0;
    for (uint32_t x = 0; x < variant->width; x++) {
        const uint8_t *p = a.data + (size_t)x * a.channels, *q = b.data + (size_t)x * b.channels;
        const bool same = a.channels == b.channels
                              ? memcmp(p, q, a.channels) == 0
                              : p[0] == q[0] && p[a.channels - 1] == q[b.channels - 1] &&
                                    p[a.channels / 2] == q[b.channels / 2];
        double d = 0;
        if (!same) {
            const struct lab one = lab_of(scorer, p, a.channels);
            const struct lab two = lab_of(scorer, q, b.channels);
            d = difference(&one, &two);
        }
        sum += d;
        if (out)
            out[x] = (float)d;
    }
    return sum;
}

static int ciede2000_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                             double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    (void)error;
    for (uint32_t y = 0; y < variant->height; y++)
        sums[0] += row_differences(scorer, variant, y, NULL);
    return DL2_OK;
}

static double ciede2000_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                             const struct dl2_image *variant)
{
    (void)reference;
    return sums[0] / ((double)variant->width * variant->height);
}

/* ---- The percentile */

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

static int ciede2000_p95_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                                 double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    const size_t count = (size_t)variant->width * variant->height;
    DL2_TRY(dl2_bytes_resize(&scorer->scratch, (HALF + count) * sizeof(float), error));
    uint32_t *counts = (void *)scorer->scratch.data;
    float *values = (float *)(void *)(counts + HALF);
    for (uint32_t y = 0; y < variant->height; y++)
        row_differences(scorer, variant, y, values + (size_t)y * variant->width);
    /* Between the two ranks about it, as NumPy does by default. */
    const double at = 0.95 * (double)(count - 1);
    const size_t below = (size_t)at;
    const double low = value_of_rank(values, count, below, counts);
    sums[0] = low;
    if (below + 1 < count)
        sums[0] += (at - (double)below) * (value_of_rank(values, count, below + 1, counts) - low);
    return DL2_OK;
}

static double ciede2000_p95_mean(const double sums[DL2_METRIC_SUMS],
                                 const struct dl2_image *reference, const struct dl2_image *variant)
{
    (void)reference;
    (void)variant;
    return sums[0];
}

/* Its sum: of the differences. */
const struct dl2_metric dl2_metric_ciede2000 = {
    .name = "ciede2000",
    .title = "CIEDE2000",
    .unit = "",
    .definition =
        "mean over the pixels of the colour difference CIEDE2000 (Sharma et al. 2005, all "
        "factors 1; sRGB, D65); 0 for identical images, lower is better",
    .digits = 4,
    .adds_up = true,
    .lower_is_better = true,
    .missing = "too_small",
    .measure = ciede2000_measure,
    .mean = ciede2000_mean,
};

/* Its sum is the percentile itself. */
const struct dl2_metric dl2_metric_ciede2000_p95 = {
    .name = "ciede2000_p95",
    .title = "CIEDE2000 95%",
    .unit = "",
    .definition =
        "95th percentile over the pixels of the colour difference CIEDE2000, interpolated; "
        "lower is better",
    .digits = 4,
    .lower_is_better = true,
    .missing = "too_small",
    .measure = ciede2000_p95_measure,
    .mean = ciede2000_p95_mean,
};
