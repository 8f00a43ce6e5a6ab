/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/accuracy_sizes.h"

#include "common/keep.h"
#include "common/scope.h"
#include "common/stats.h"

#include <math.h>

/* A codec's variants with their bytes and accuracies, by rising bytes. */
struct points {
    size_t count;
    size_t variants[DL2_BD_POINTS];
    double accuracy[DL2_BD_POINTS];
};

/* What all codecs of a network are compared with. */
struct comparison {
    const struct dl2_study *study;
    const double *costs[DL2_COSTS]; /* [variant_count] each */
    size_t own, anchor;             /* first variants */
};

/* `accuracy` has an accuracy of each variant, `stride` numbers apart. */
static void find_points(const struct comparison *comparison, size_t first, const double *accuracy,
                        size_t stride, struct points *points)
{
    const double *bytes = comparison->costs[DL2_COST_BYTES];
    points->count = 0;
    for (size_t v = first; v < dl2_study_end_of_codec(comparison->study, first); v++) {
        if (!(bytes[v] > 0) || !isfinite(accuracy[v * stride]) || points->count == DL2_BD_POINTS)
            continue;
        size_t at = points->count++;
        for (; at && bytes[points->variants[at - 1]] > bytes[v]; at--) {
            points->variants[at] = points->variants[at - 1];
            points->accuracy[at] = points->accuracy[at - 1];
        }
        points->variants[at] = v;
        points->accuracy[at] = accuracy[v * stride];
    }
}

/* Returns how many variants are less accurate than a smaller one. */
static size_t pool_falls(struct points *points)
{
    size_t falls = 0, used = 0, ends[DL2_BD_POINTS];
    double best = -INFINITY, means[DL2_BD_POINTS];
    for (size_t i = 0; i < points->count; i++) {
        falls += points->accuracy[i] < best;
        best = fmax(best, points->accuracy[i]);
        means[used] = points->accuracy[i];
        ends[used++] = i + 1;
        for (; used > 1 && means[used - 2] > means[used - 1]; used--) {
            const size_t start = used > 2 ? ends[used - 3] : 0;
            const double before = (double)(ends[used - 2] - start);
            const double after = (double)(ends[used - 1] - ends[used - 2]);
            means[used - 2] =
                (before * means[used - 2] + after * means[used - 1]) / (before + after);
            ends[used - 2] = ends[used - 1];
        }
    }
    for (size_t level = 0, i = 0; level < used; level++)
        for (; i < ends[level]; i++)
            points->accuracy[i] = means[level];
    return falls;
}

/* log(own cost / anchor's) at equal accuracy. */
static double log_ratio_of_cost(const struct comparison *comparison, const struct points points[2],
                                enum dl2_cost cost, double *overlap)
{
    struct dl2_bd_curve curves[2] = {{.count = 0}, {.count = 0}};
    for (int c = 0; c < 2; c++)
        for (size_t i = 0; i < points[c].count; i++)
            dl2_bd_add(&curves[c], points[c].accuracy[i],
                       comparison->costs[cost][points[c].variants[i]]);
    return dl2_bd_log_ratio(&curves[0], &curves[1], &DL2_BD_EVERYWHERE, overlap);
}

/* Points of accuracy that the own curve is above the anchor's, over the bytes of both. */
static double gain_of(const struct comparison *comparison, const struct points points[2])
{
    struct dl2_bd_curve curves[2] = {{.count = 0}, {.count = 0}};
    double overlap;
    for (int c = 0; c < 2; c++)
        for (size_t i = 0; i < points[c].count; i++)
            dl2_bd_add_log(&curves[c],
                           log(comparison->costs[DL2_COST_BYTES][points[c].variants[i]]),
                           -points[c].accuracy[i]);
    return -dl2_bd_log_ratio(&curves[0], &curves[1], &DL2_BD_EVERYWHERE, &overlap);
}

/* The middle 95% of the draws that are known, if 95% of all are; sorts them. */
static void find_interval(double *draws, double *low, double *high)
{
    size_t known = 0;
    for (size_t d = 0; d < DL2_REPETITIONS; d++)
        if (isfinite(draws[d]))
            draws[known++] = draws[d];
    if (20 * known >= 19 * DL2_REPETITIONS)
        dl2_middle_95(draws, known, low, high);
}

/* `draws` has room for DL2_COSTS + 1 times all repetitions. */
static void find_intervals(const struct comparison *comparison,
                           const struct dl2_repetitions *repetitions, double *draws,
                           struct dl2_accuracy_size *size)
{
    struct points points[2];
    double overlap;
    for (size_t d = 0; d < DL2_REPETITIONS; d++) {
        const size_t firsts[2] = {comparison->own, comparison->anchor};
        for (int c = 0; c < 2; c++)
            find_points(comparison, firsts[c], repetitions->accuracy + d, DL2_REPETITIONS,
                        &points[c]);
        draws[DL2_COSTS * DL2_REPETITIONS + d] = gain_of(comparison, points);
        pool_falls(&points[0]);
        pool_falls(&points[1]);
        for (int cost = 0; cost < DL2_COSTS; cost++)
            draws[(size_t)cost * DL2_REPETITIONS + d] =
                100 * exp(log_ratio_of_cost(comparison, points, cost, &overlap));
    }
    for (int cost = 0; cost < DL2_COSTS; cost++)
        if (isfinite(size->cost[cost]))
            find_interval(draws + (size_t)cost * DL2_REPETITIONS, &size->low[cost],
                          &size->high[cost]);
    if (isfinite(size->gain))
        find_interval(draws + DL2_COSTS * DL2_REPETITIONS, &size->gain_low, &size->gain_high);
}

static void compare(const struct comparison *comparison, const double *accuracy,
                    struct dl2_accuracy_size *size)
{
    struct points points[2];
    double overlap;
    *size = (struct dl2_accuracy_size){.gain = NAN, .gain_low = NAN, .gain_high = NAN};
    find_points(comparison, comparison->own, accuracy, 1, &points[0]);
    find_points(comparison, comparison->anchor, accuracy, 1, &points[1]);
    if (comparison->own != comparison->anchor)
        size->gain = gain_of(comparison, points);
    size->variants = points[0].count;
    size->falls = pool_falls(&points[0]);
    pool_falls(&points[1]);
    for (int cost = 0; cost < DL2_COSTS; cost++) {
        size->low[cost] = size->high[cost] = size->cost[cost] = NAN;
        if (comparison->own != comparison->anchor)
            size->cost[cost] = 100 * exp(log_ratio_of_cost(comparison, points, cost, &overlap));
        if (cost == DL2_COST_BYTES)
            size->overlap = comparison->own != comparison->anchor ? 100 * overlap : 100;
    }
}

static void compare_network(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            const struct dl2_speeds *speeds, size_t arch, size_t anchor,
                            struct dl2_accuracy_size *sizes)
{
    const size_t count = study->variant_count;
    struct comparison comparison = {.study = study, .anchor = anchor};
    DL2_AUTO_FREE double *accuracy = /* of each variant, and behind it all costs */
        dl2_room(count, (DL2_COSTS + 1) * sizeof *accuracy, "codecs at equal accuracy");
    DL2_AUTO_FREE double *draws =
        dl2_room(DL2_COSTS + 1, DL2_REPETITIONS * sizeof *draws, "codecs at equal accuracy");
    for (size_t v = 0; v < count; v++)
        accuracy[v] = analysis->comparisons[v].accuracy.mean;
    for (size_t cost = 0; cost < DL2_COSTS; cost++) {
        double *costs = accuracy + (cost + 1) * count;
        comparison.costs[cost] = costs;
        for (size_t v = 0; v < count; v++)
            costs[v] = cost == DL2_COST_LOADING && speeds->variants[v].load_rate.count
                           ? 1 / speeds->variants[v].load_rate.mean
                           : dl2_variant_cost(&study->variants[v], (enum dl2_cost)cost);
    }
    const struct dl2_repetitions repetitions = dl2_repetitions_draw(study, analysis, arch);
    for (size_t v = 0; v < count; v++) {
        if (!dl2_study_starts_codec(study, v))
            continue;
        comparison.own = v;
        compare(&comparison, accuracy, &sizes[v]);
        if (repetitions.accuracy && v != anchor)
            find_intervals(&comparison, &repetitions, draws, &sizes[v]);
    }
    free(repetitions.accuracy);
}

struct dl2_accuracy_size *dl2_accuracy_sizes_find(const struct dl2_study *study,
                                                  const struct dl2_analysis *analyses,
                                                  const struct dl2_speeds *speeds, size_t anchor)
{
    struct dl2_accuracy_size *sizes = dl2_keep(study->arch_count * study->variant_count + 1,
                                               sizeof *sizes, "codecs at equal accuracy");
    for (size_t a = 0; a < study->arch_count && anchor < study->variant_count; a++)
        compare_network(study, &analyses[a], &speeds[a], a, anchor,
                        sizes + a * study->variant_count);
    return sizes;
}
