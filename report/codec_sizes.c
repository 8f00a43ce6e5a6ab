/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/codec_sizes.h"

#include "common/keep.h"
#include "common/random.h"
#include "common/scope.h"
#include "common/stats.h"

#include <math.h>
#include <string.h>

/* ---- One codec by one metric */

/* Images are drawn in so many blocks at most, which chance has filled: more would tell no more. */
enum { BLOCKS = 1000 };

/* Room for what one comparison needs. */
struct scratch {
    double *values, *draws;  /* of all images; of all draws */
    bool *common;            /* [images]: do all variants of both codecs have a score? */
    double *scores, *bytes;  /* [variant][BLOCKS]: sums over a block's common images */
    uint32_t counts[BLOCKS]; /* these images */
    uint32_t times[BLOCKS];  /* how often each block was drawn */
    size_t blocks;
};

/* A codec pair and how quality is reckoned. */
struct comparison {
    const struct dl2_study *study;
    const struct dl2_image_scores *images;
    size_t own, anchor, metric; /* first variants; the metric's number */
    const char *name;           /* the metric's */
    bool lower_is_better, one_is_best;
    struct dl2_bd_range range;
    struct scratch *scratch;
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
        dl2_bd_add(curve,
                   quality_of(comparison, dl2_image_scores_at(comparison->images, v,
                                                              comparison->metric)[image]),
                   comparison->images->bytes[v * comparison->images->count + image]);
}

static void bootstrap_random(const struct comparison *comparison, bool pooled,
                             struct dl2_random *random)
{
    dl2_random_init(random, 1, DL2_RANDOM_BOOTSTRAP, comparison->own * 64 + comparison->metric,
                    pooled);
}

/* The mean of the images' values and its interval. */
static void bootstrap_images(const struct comparison *comparison, struct dl2_codec_size *size)
{
    const double *values = comparison->scratch->values;
    double sum = 0, *draws = comparison->scratch->draws;
    struct dl2_random random;
    for (size_t i = 0; i < size->images; i++)
        sum += values[i];
    size->per_image = sum / (double)size->images;
    if (size->images < 2)
        return;
    bootstrap_random(comparison, false, &random);
    for (int draw = 0; draw < DL2_BD_DRAWS; draw++) {
        sum = 0;
        for (size_t i = 0; i < size->images; i++)
            sum += values[dl2_random_below(&random, (uint32_t)size->images)];
        draws[draw] = sum / (double)size->images;
    }
    dl2_middle_95(draws, DL2_BD_DRAWS, &size->low, &size->high);
}

static void compare_images(const struct comparison *comparison, struct dl2_codec_size *size)
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
        comparison->scratch->values[size->images++] = 100 * exp(ratio);
    }
    if (!size->images)
        return;
    size->smaller = 100 * (double)smaller / (double)size->images;
    size->per_image_overlap = 100 * overlaps / (double)size->images;
    bootstrap_images(comparison, size);
}

/* Does any image of the variant have a value? A lossless variant has no PSNR. */
static bool has_values(const struct comparison *comparison, size_t variant)
{
    const double *scores = dl2_image_scores_at(comparison->images, variant, comparison->metric);
    for (size_t i = 0; i < comparison->images->count; i++)
        if (isfinite(quality_of(comparison, scores[i])))
            return true;
    return false;
}

/* Clears common[] of images that a variant of the codec has no value of. */
static void keep_common(const struct comparison *comparison, size_t first)
{
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        const double *scores = dl2_image_scores_at(comparison->images, v, comparison->metric);
        if (has_values(comparison, v))
            for (size_t i = 0; i < comparison->images->count; i++)
                comparison->scratch->common[i] &= isfinite(quality_of(comparison, scores[i]));
    }
}

/* Adds up the codec's scores and bytes of the common images, block by block. */
static void fill_blocks(const struct comparison *comparison, size_t first)
{
    const struct scratch *scratch = comparison->scratch;
    const size_t count = comparison->images->count;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        const double *scores = dl2_image_scores_at(comparison->images, v, comparison->metric);
        double *sums = scratch->scores + v * BLOCKS, *bytes = scratch->bytes + v * BLOCKS;
        memset(sums, 0, BLOCKS * sizeof *sums);
        memset(bytes, 0, BLOCKS * sizeof *bytes);
        for (size_t i = 0, c = 0; i < count; i++)
            if (scratch->common[i]) {
                sums[c % BLOCKS] += scores[i];
                bytes[c++ % BLOCKS] += comparison->images->bytes[v * count + i];
            }
    }
}

/* Finds the images that both codecs have in common. Returns how many these are. */
static size_t pool_images(const struct comparison *comparison)
{
    struct scratch *scratch = comparison->scratch;
    size_t common = 0;
    for (size_t i = 0; i < comparison->images->count; i++)
        scratch->common[i] = true;
    keep_common(comparison, comparison->own);
    keep_common(comparison, comparison->anchor);
    memset(scratch->counts, 0, sizeof scratch->counts);
    for (size_t i = 0; i < comparison->images->count; i++)
        if (scratch->common[i])
            scratch->counts[common++ % BLOCKS]++;
    scratch->blocks = common < BLOCKS ? common : BLOCKS;
    fill_blocks(comparison, comparison->own);
    fill_blocks(comparison, comparison->anchor);
    return common;
}

static void curve_of_pool(const struct comparison *comparison, size_t first, enum dl2_cost cost,
                          struct dl2_bd_curve *curve)
{
    const struct scratch *scratch = comparison->scratch;
    double images = 0;
    for (size_t b = 0; b < scratch->blocks; b++)
        images += (double)scratch->times[b] * scratch->counts[b];
    curve->count = 0;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        double sum = 0, bytes = 0;
        for (size_t b = 0; b < scratch->blocks; b++) {
            sum += scratch->times[b] * scratch->scores[v * BLOCKS + b];
            bytes += scratch->times[b] * scratch->bytes[v * BLOCKS + b];
        }
        dl2_bd_add(curve, quality_of(comparison, sum / images),
                   cost == DL2_COST_BYTES
                       ? bytes
                       : dl2_variant_cost(&comparison->study->variants[v], cost));
    }
}

/* The same where nothing is known of single images. */
static void curve_of_aggregates(const struct comparison *comparison, size_t first,
                                enum dl2_cost cost, struct dl2_bd_curve *curve)
{
    curve->count = 0;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        const struct dl2_study_variant *variant = &comparison->study->variants[v];
        dl2_bd_add(
            curve, quality_of(comparison, dl2_metric_aggregate(variant, comparison->name, "mean")),
            cost == DL2_COST_BYTES ? variant->bits_per_pixel : dl2_variant_cost(variant, cost));
    }
}

/* The cost in percent, with blocks drawn times[]; *overlap as dl2_bd_log_ratio() has it. */
static double pooled_cost(const struct comparison *comparison, enum dl2_cost cost, double *overlap)
{
    struct dl2_bd_curve curves[2];
    const size_t firsts[2] = {comparison->own, comparison->anchor};
    for (int c = 0; c < 2; c++)
        if (comparison->scratch->blocks)
            curve_of_pool(comparison, firsts[c], cost, &curves[c]);
        else
            curve_of_aggregates(comparison, firsts[c], cost, &curves[c]);
    return 100 * exp(dl2_bd_log_ratio(&curves[0], &curves[1], &comparison->range, overlap));
}

/* Draws images anew; one draw without common qualities leaves the interval unknown. */
static void bootstrap_pool(const struct comparison *comparison, struct dl2_codec_size *size)
{
    struct scratch *scratch = comparison->scratch;
    struct dl2_random random;
    double overlap;
    bootstrap_random(comparison, true, &random);
    for (int draw = 0; draw < DL2_BD_DRAWS; draw++) {
        memset(scratch->times, 0, sizeof scratch->times);
        for (size_t b = 0; b < scratch->blocks; b++)
            scratch->times[dl2_random_below(&random, (uint32_t)scratch->blocks)]++;
        scratch->draws[draw] = pooled_cost(comparison, DL2_COST_BYTES, &overlap);
        if (isnan(scratch->draws[draw]))
            return;
    }
    dl2_middle_95(scratch->draws, DL2_BD_DRAWS, &size->pooled_low, &size->pooled_high);
}

static void compare_pools(const struct comparison *comparison, struct dl2_codec_size *size)
{
    double overlap;
    size->pooled_images = pool_images(comparison);
    if (comparison->images->count && !size->pooled_images)
        return;
    for (size_t b = 0; b < BLOCKS; b++)
        comparison->scratch->times[b] = 1;
    size->encoding = pooled_cost(comparison, DL2_COST_ENCODING, &overlap);
    size->loading = pooled_cost(comparison, DL2_COST_LOADING, &overlap);
    size->pooled = pooled_cost(comparison, DL2_COST_BYTES, &overlap);
    size->overlap = 100 * overlap;
    if (size->pooled_images > 1 && !isnan(size->pooled))
        bootstrap_pool(comparison, size);
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

double dl2_variant_cost(const struct dl2_study_variant *variant, enum dl2_cost cost)
{
    return cost == DL2_COST_BYTES      ? variant->bytes
           : cost == DL2_COST_ENCODING ? variant->encode_seconds / variant->images
                                       : 1 / variant->load_rate;
}

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

/* All codecs but the anchor's by one metric. */
static void compare_codecs(const struct dl2_study *study, const struct dl2_image_scores *images,
                           const struct dl2_codec_choice *choice, size_t metric,
                           struct scratch *scratch, struct dl2_codec_sizes *sizes)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!dl2_study_starts_codec(study, v) || v == sizes->anchor)
            continue;
        struct comparison comparison = {.study = study,
                                        .images = images,
                                        .own = v,
                                        .anchor = sizes->anchor,
                                        .metric = metric,
                                        .name = sizes->metrics.names[metric],
                                        .lower_is_better = sizes->metrics.lower_is_better[metric],
                                        .one_is_best = sizes->metrics.one_is_best[metric],
                                        .scratch = scratch};
        comparison.range = range_of(&comparison, choice);
        struct dl2_codec_size *size = &sizes->items[metric * study->variant_count + v];
        compare_images(&comparison, size);
        compare_pools(&comparison, size);
    }
}

struct dl2_codec_sizes dl2_codec_sizes_find(const struct dl2_study *study,
                                            const struct dl2_image_scores *images,
                                            const struct dl2_codec_choice *choice)
{
    struct dl2_codec_sizes sizes = {.anchor = dl2_codec_anchor(study, choice),
                                    .metrics = images->metrics};
    const size_t variants = study->variant_count, count = sizes.metrics.count * variants;
    sizes.items = dl2_keep(count + 1, sizeof *sizes.items, "sizes of codecs");
    for (size_t i = 0; i < count; i++)
        sizes.items[i] = (struct dl2_codec_size){.per_image = NAN,
                                                 .low = NAN,
                                                 .high = NAN,
                                                 .smaller = NAN,
                                                 .pooled = NAN,
                                                 .pooled_low = NAN,
                                                 .pooled_high = NAN,
                                                 .overlap = NAN,
                                                 .encoding = NAN,
                                                 .loading = NAN,
                                                 .per_image_overlap = NAN};
    if (sizes.anchor == variants)
        return sizes;
    DL2_AUTO_FREE double *figures = dl2_room(images->count + DL2_BD_DRAWS + 2 * BLOCKS * variants,
                                             sizeof *figures, "%zu images", images->count);
    DL2_AUTO_FREE bool *common =
        dl2_room(images->count, sizeof *common, "%zu images", images->count);
    double *draws = figures + images->count, *scores = draws + DL2_BD_DRAWS;
    struct scratch scratch = {.values = figures,
                              .draws = draws,
                              .common = common,
                              .scores = scores,
                              .bytes = scores + BLOCKS * variants};
    for (size_t m = 0; m < sizes.metrics.count; m++)
        compare_codecs(study, images, choice, m, &scratch, &sizes);
    return sizes;
}

const struct dl2_codec_size *dl2_codec_size_at(const struct dl2_study *study,
                                               const struct dl2_codec_sizes *sizes, size_t m,
                                               size_t v)
{
    const struct dl2_codec_size *size = &sizes->items[m * study->variant_count + v];
    return isnan(size->pooled) && isnan(size->per_image) ? NULL : size;
}
