/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/codec_sizes.h"

#include <math.h>

enum { MAX_POINTS = 64 };

/* Size against a metric: points sorted by the metric. */
struct codec_curve {
    double metric[MAX_POINTS], log_size[MAX_POINTS];
    size_t count;
};

static struct codec_curve curve_of(const struct dl2_study *study, size_t first, size_t field)
{
    struct codec_curve curve = {.count = 0};
    const size_t end = dl2_study_end_of_codec(study, first);
    for (size_t v = first; v < end && curve.count < MAX_POINTS; v++) {
        const double metric = *(const double *)((const char *)&study->variants[v] + field);
        const double size = study->variants[v].bits_per_pixel;
        if (!isfinite(metric) || !(size > 0))
            continue;
        size_t at = curve.count++;
        for (; at && curve.metric[at - 1] > metric; at--) {
            curve.metric[at] = curve.metric[at - 1];
            curve.log_size[at] = curve.log_size[at - 1];
        }
        curve.metric[at] = metric;
        curve.log_size[at] = log(size);
    }
    return curve;
}

/* The integral of the curve's log size over [low, high], which lies within its metrics. */
static double integral(const struct codec_curve *curve, double low, double high)
{
    double sum = 0;
    for (size_t i = 0; i + 1 < curve->count; i++) {
        const double x0 = curve->metric[i], x1 = curve->metric[i + 1];
        const double a = fmax(x0, low), b = fmin(x1, high);
        if (!(b > a))
            continue;
        const double slope = (curve->log_size[i + 1] - curve->log_size[i]) / (x1 - x0);
        sum += (b - a) * (curve->log_size[i] + slope * ((a + b) / 2 - x0));
    }
    return sum;
}

double dl2_codec_relative_size(const struct dl2_study *study, size_t first, size_t reference,
                               size_t field)
{
    const struct codec_curve own = curve_of(study, first, field);
    const struct codec_curve other = curve_of(study, reference, field);
    if (own.count < 2 || other.count < 2)
        return NAN;
    const double low = fmax(own.metric[0], other.metric[0]);
    const double high = fmin(own.metric[own.count - 1], other.metric[other.count - 1]);
    if (!(high > low))
        return NAN;
    return 100 * exp((integral(&own, low, high) - integral(&other, low, high)) / (high - low));
}
