/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/codec_sizes.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Curves */

void dl2_bd_add(struct dl2_bd_curve *curve, double quality, double size)
{
    if (!isfinite(quality) || !(size > 0))
        return;
    const double log_size = log(size);
    size_t at = 0;
    while (at < curve->count && curve->quality[at] < quality)
        at++;
    if (at < curve->count && curve->quality[at] == quality) {
        curve->log_size[at] = fmin(curve->log_size[at], log_size);
        return;
    }
    if (curve->count == DL2_BD_POINTS)
        return;
    for (size_t i = curve->count++; i > at; i--) {
        curve->quality[i] = curve->quality[i - 1];
        curve->log_size[i] = curve->log_size[i - 1];
    }
    curve->quality[at] = quality;
    curve->log_size[at] = log_size;
}

/* The slope at an end, by three points, without overshoot. */
static double end_slope(double h0, double h1, double s0, double s1)
{
    const double slope = ((2 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
    if (slope * s0 <= 0)
        return 0;
    return s0 * s1 < 0 && fabs(slope) > 3 * fabs(s0) ? 3 * s0 : slope;
}

static void find_slopes(const struct dl2_bd_curve *curve, double slopes[DL2_BD_POINTS])
{
    const size_t last = curve->count - 1;
    double width[DL2_BD_POINTS], secant[DL2_BD_POINTS];
    for (size_t i = 0; i < last; i++) {
        width[i] = curve->quality[i + 1] - curve->quality[i];
        secant[i] = (curve->log_size[i + 1] - curve->log_size[i]) / width[i];
    }
    if (last == 1) {
        slopes[0] = slopes[1] = secant[0];
        return;
    }
    slopes[0] = end_slope(width[0], width[1], secant[0], secant[1]);
    slopes[last] = end_slope(width[last - 1], width[last - 2], secant[last - 1], secant[last - 2]);
    for (size_t i = 1; i < last; i++) { /* the weighted harmonic mean of both secants */
        const double a = 2 * width[i] + width[i - 1], b = width[i] + 2 * width[i - 1];
        slopes[i] =
            secant[i - 1] * secant[i] > 0 ? (a + b) / (a / secant[i - 1] + b / secant[i]) : 0;
    }
}

/* The integral of a piece of cubic from its left end to the share t of its width. */
static double piece_integral(double width, double y0, double y1, double d0, double d1, double t)
{
    const double t2 = t * t, t3 = t2 * t, t4 = t2 * t2;
    return width * (y0 * (t4 / 2 - t3 + t) + y1 * (t3 - t4 / 2) +
                    width * (d0 * (t4 / 4 - 2 * t3 / 3 + t2 / 2) + d1 * (t4 / 4 - t3 / 3)));
}

/* The integral of the curve's log size over [low, high], which lies within its qualities. */
static double integral(const struct dl2_bd_curve *curve, double low, double high)
{
    double slopes[DL2_BD_POINTS], sum = 0;
    find_slopes(curve, slopes);
    for (size_t i = 0; i + 1 < curve->count; i++) {
        const double x0 = curve->quality[i], x1 = curve->quality[i + 1];
        const double a = fmax(x0, low), b = fmin(x1, high);
        if (!(b > a))
            continue;
        const double ends[2] = {(a - x0) / (x1 - x0), (b - x0) / (x1 - x0)};
        for (int end = 0; end < 2; end++)
            sum +=
                (end ? 1 : -1) * piece_integral(x1 - x0, curve->log_size[i], curve->log_size[i + 1],
                                                slopes[i], slopes[i + 1], ends[end]);
    }
    return sum;
}

double dl2_bd_log_ratio(const struct dl2_bd_curve *own, const struct dl2_bd_curve *anchor,
                        const struct dl2_bd_range *range, double *overlap)
{
    *overlap = 0;
    if (own->count < 2 || anchor->count < 2)
        return NAN;
    const double own_low = own->quality[0], own_high = own->quality[own->count - 1];
    const double anchor_low = anchor->quality[0];
    const double anchor_high = anchor->quality[anchor->count - 1];
    const double low = fmax(fmax(own_low, anchor_low), range->low);
    const double high = fmin(fmin(own_high, anchor_high), range->high);
    const double least = fmax(fmin(own_low, anchor_low), range->low);
    const double most = fmin(fmax(own_high, anchor_high), range->high);
    if (!(high > low))
        return NAN;
    *overlap = (high - low) / (most - least);
    return (integral(own, low, high) - integral(anchor, low, high)) / (high - low);
}

/* ---- Scores of images */

/* What dl2-quality measured of each image in each variant, [variant][metric][image]. */
struct image_scores {
    char **keys; /* sorted */
    size_t count, metrics;
    double *scores, *bytes; /* bytes: [variant][image] */
};

static double *scores_of(const struct image_scores *images, size_t variant, size_t metric)
{
    return images->scores + (variant * images->metrics + metric) * images->count;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void image_scores_free(struct image_scores *images)
{
    for (size_t i = 0; i < images->count; i++)
        free(images->keys[i]);
    free(images->keys);
    free(images->scores);
    free(images->bytes);
}

/* Lists the images that the anchor's first variant has scores of. */
static int list_images(const struct dl2_study_variant *variant, struct image_scores *images,
                       struct dl2_error *error)
{
    json_t *file, *row;
    const json_t *rows = json_object_get(dl2_study_scores(variant, &file), "per_image");
    size_t i;
    int status = DL2_OK;
    images->keys = dl2_calloc(json_array_size(rows) + 1, sizeof *images->keys);
    if (!images->keys)
        status = dl2_error_memory(error, "%zu images", json_array_size(rows));
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", NULL);
        if (status < 0 || !key)
            continue;
        if ((images->keys[images->count] = strdup(key)))
            images->count++;
        else
            status = dl2_error_memory(error, "an image's key");
    }
    json_decref(file);
    if (status == DL2_OK)
        qsort(images->keys, images->count, sizeof *images->keys, compare_texts);
    return status;
}

static void read_scores(const struct dl2_study *study, size_t variant,
                        const struct dl2_metric_names *metrics, struct image_scores *images)
{
    json_t *file, *row;
    const json_t *rows =
        json_object_get(dl2_study_scores(&study->variants[variant], &file), "per_image");
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", "");
        char **found =
            bsearch(&key, images->keys, images->count, sizeof *images->keys, compare_texts);
        if (!found)
            continue;
        const size_t image = (size_t)(found - images->keys);
        images->bytes[variant * images->count + image] = dl2_json_get_real(row, "bytes", NAN);
        for (size_t m = 0; m < metrics->count; m++)
            scores_of(images, variant, m)[image] = dl2_json_get_real(row, metrics->names[m], NAN);
    }
    json_decref(file);
}

static int read_all_scores(const struct dl2_study *study, size_t anchor,
                           const struct dl2_metric_names *metrics, struct image_scores *images,
                           struct dl2_error *error)
{
    *images = (struct image_scores){.metrics = metrics->count};
    DL2_TRY(list_images(&study->variants[anchor], images, error));
    const size_t cells = study->variant_count * images->count;
    images->bytes = dl2_calloc(cells + 1, sizeof *images->bytes);
    images->scores = dl2_calloc(cells + 1, metrics->count * sizeof *images->scores);
    if (!images->bytes || !images->scores)
        return dl2_error_memory(error, "scores of %zu images", images->count);
    for (size_t i = 0; i < cells; i++)
        images->bytes[i] = NAN;
    for (size_t i = 0; i < cells * metrics->count; i++)
        images->scores[i] = NAN;
    for (size_t v = 0; images->count && v < study->variant_count; v++)
        read_scores(study, v, metrics, images);
    return DL2_OK;
}

/* ---- One codec by one metric */

/* A codec pair and how quality is reckoned. */
struct comparison {
    const struct dl2_study *study;
    const struct image_scores *images;
    size_t own, anchor, metric; /* first variants; the metric's number */
    const char *name;           /* the metric's */
    bool lower_is_better, one_is_best;
    struct dl2_bd_range range;
};

static double quality_of(const struct comparison *comparison, double value)
{
    if (comparison->one_is_best)
        return value < 1 ? -10 * log10(1 - value) : NAN;
    return comparison->lower_is_better ? -value : value;
}

static void curve_of_image(const struct comparison *comparison, size_t first, size_t image,
                           struct dl2_bd_curve *curve)
{
    curve->count = 0;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++)
        dl2_bd_add(
            curve,
            quality_of(comparison, scores_of(comparison->images, v, comparison->metric)[image]),
            comparison->images->bytes[v * comparison->images->count + image]);
}

/* The mean of the values and its 95% interval by the percentile bootstrap. `scratch` has room for
 * DL2_BD_DRAWS. */
static void bootstrap(const double *values, size_t count, uint64_t stream, double *scratch,
                      struct dl2_codec_size *size)
{
    struct dl2_random random;
    struct dl2_summary summary;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    size->per_image = sum / (double)count;
    if (count < 2)
        return;
    dl2_random_init(&random, 1, DL2_RANDOM_BOOTSTRAP, stream, 0);
    for (int draw = 0; draw < DL2_BD_DRAWS; draw++) {
        sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += values[dl2_random_below(&random, (uint32_t)count)];
        scratch[draw] = sum / (double)count;
    }
    dl2_summarize(scratch, DL2_BD_DRAWS, &summary); /* sorts */
    size->low = dl2_percentile(scratch, DL2_BD_DRAWS, 0.025);
    size->high = dl2_percentile(scratch, DL2_BD_DRAWS, 0.975);
}

/* `values` has room for all images. */
static void compare_images(const struct comparison *comparison, double *values, double *scratch,
                           struct dl2_codec_size *size)
{
    struct dl2_bd_curve own, anchor;
    double overlaps = 0;
    size_t smaller = 0;
    for (size_t i = 0; i < comparison->images->count; i++) {
        double overlap;
        curve_of_image(comparison, comparison->own, i, &own);
        curve_of_image(comparison, comparison->anchor, i, &anchor);
        const double ratio = dl2_bd_log_ratio(&own, &anchor, &comparison->range, &overlap);
        if (isnan(ratio)) {
            size->left_out++;
            continue;
        }
        smaller += ratio < 0;
        overlaps += overlap;
        values[size->images++] = 100 * exp(ratio);
    }
    if (!size->images)
        return;
    size->smaller = 100 * (double)smaller / (double)size->images;
    size->per_image_overlap = 100 * overlaps / (double)size->images;
    bootstrap(values, size->images, comparison->own * 64 + comparison->metric, scratch, size);
}

/* Does any image of the variant have a value? A lossless variant has no PSNR. */
static bool has_values(const struct comparison *comparison, size_t variant)
{
    const double *scores = scores_of(comparison->images, variant, comparison->metric);
    for (size_t i = 0; i < comparison->images->count; i++)
        if (isfinite(quality_of(comparison, scores[i])))
            return true;
    return false;
}

/* Clears marks[] of images that a variant of the codec has no value of. */
static void mark_common(const struct comparison *comparison, size_t first, bool *marks)
{
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        const double *scores = scores_of(comparison->images, v, comparison->metric);
        if (has_values(comparison, v))
            for (size_t i = 0; i < comparison->images->count; i++)
                marks[i] &= isfinite(quality_of(comparison, scores[i]));
    }
}

static void curve_of_pool(const struct comparison *comparison, size_t first, const bool *marks,
                          size_t marked, struct dl2_bd_curve *curve)
{
    curve->count = 0;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        if (!marked) { /* nothing is known of single images */
            const struct dl2_study_variant *variant = &comparison->study->variants[v];
            dl2_bd_add(
                curve,
                quality_of(comparison, dl2_metric_aggregate(variant, comparison->name, "mean")),
                variant->bits_per_pixel);
            continue;
        }
        const double *scores = scores_of(comparison->images, v, comparison->metric);
        const double *sizes = comparison->images->bytes + v * comparison->images->count;
        double sum = 0, bytes = 0;
        for (size_t i = 0; i < comparison->images->count; i++)
            if (marks[i]) {
                sum += scores[i];
                bytes += sizes[i];
            }
        dl2_bd_add(curve, quality_of(comparison, sum / (double)marked), bytes);
    }
}

static void compare_pools(const struct comparison *comparison, bool *marks,
                          struct dl2_codec_size *size)
{
    struct dl2_bd_curve own, anchor;
    for (size_t i = 0; i < comparison->images->count; i++)
        marks[i] = true;
    mark_common(comparison, comparison->own, marks);
    mark_common(comparison, comparison->anchor, marks);
    for (size_t i = 0; i < comparison->images->count; i++)
        size->pooled_images += marks[i];
    if (comparison->images->count && !size->pooled_images)
        return;
    curve_of_pool(comparison, comparison->own, marks, size->pooled_images, &own);
    curve_of_pool(comparison, comparison->anchor, marks, size->pooled_images, &anchor);
    double overlap;
    size->pooled = 100 * exp(dl2_bd_log_ratio(&own, &anchor, &comparison->range, &overlap));
    size->overlap = 100 * overlap;
}

/* The range is told in the metric's unit. */
static struct dl2_bd_range range_of(const struct comparison *comparison,
                                    const struct dl2_codec_choice *choice)
{
    if (!choice->metric || strcmp(choice->metric, comparison->name) != 0)
        return DL2_BD_EVERYWHERE;
    const double low = comparison->lower_is_better ? choice->range.high : choice->range.low;
    const double high = comparison->lower_is_better ? choice->range.low : choice->range.high;
    const double end = quality_of(comparison, high);
    return (struct dl2_bd_range){quality_of(comparison, low), isnan(end) ? INFINITY : end};
}

/* ---- All of them */

size_t dl2_codec_anchor(const struct dl2_study *study, const struct dl2_codec_choice *choice)
{
    const char *wanted = choice->anchor ? choice->anchor : "jpeg";
    size_t first = study->variant_count;
    for (size_t v = study->variant_count; v-- > 0;)
        if (dl2_study_starts_codec(study, v))
            first = v;
    for (size_t v = 0; v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v) && strcmp(study->variants[v].codec, wanted) == 0)
            return v;
    return choice->anchor ? study->variant_count : first;
}

int dl2_codec_sizes_find(const struct dl2_study *study, const struct dl2_metric_names *metrics,
                         const struct dl2_codec_choice *choice, struct dl2_codec_size *sizes,
                         struct dl2_error *error)
{
    const size_t anchor = dl2_codec_anchor(study, choice);
    for (size_t i = 0; i < metrics->count * study->variant_count; i++)
        sizes[i] = (struct dl2_codec_size){.per_image = NAN,
                                           .low = NAN,
                                           .high = NAN,
                                           .smaller = NAN,
                                           .pooled = NAN,
                                           .overlap = NAN,
                                           .per_image_overlap = NAN};
    if (anchor == study->variant_count)
        return DL2_OK;
    struct image_scores images;
    int status = read_all_scores(study, anchor, metrics, &images, error);
    double *values = NULL, *scratch = NULL;
    bool *marks = NULL;
    if (status == DL2_OK) {
        values = dl2_calloc(images.count + 1, sizeof *values);
        scratch = dl2_calloc(DL2_BD_DRAWS, sizeof *scratch);
        marks = dl2_calloc(images.count + 1, sizeof *marks);
        if (!values || !scratch || !marks)
            status = dl2_error_memory(error, "%zu images", images.count);
    }
    for (size_t m = 0; status == DL2_OK && m < metrics->count; m++)
        for (size_t v = 0; v < study->variant_count; v++) {
            if (!dl2_study_starts_codec(study, v) || v == anchor)
                continue;
            struct comparison comparison = {.study = study,
                                            .images = &images,
                                            .own = v,
                                            .anchor = anchor,
                                            .metric = m,
                                            .name = metrics->names[m],
                                            .lower_is_better = metrics->lower_is_better[m],
                                            .one_is_best = metrics->one_is_best[m]};
            comparison.range = range_of(&comparison, choice);
            compare_images(&comparison, values, scratch, &sizes[m * study->variant_count + v]);
            compare_pools(&comparison, marks, &sizes[m * study->variant_count + v]);
        }
    image_scores_free(&images);
    free(values);
    free(scratch);
    free(marks);
    return status;
}
