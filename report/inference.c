/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/inference.h"

#include "common/keep.h"
#include "common/random.h"
#include "common/scope.h"
#include "common/stats.h"

#include <math.h>
#include <string.h>

struct dl2_estimate dl2_estimate_mean(double *values, size_t count)
{
    if (count == 0)
        return (struct dl2_estimate){NAN, NAN, 0};
    struct dl2_summary summary;
    dl2_summarize(values, count, &summary);
    return (struct dl2_estimate){summary.mean, dl2_confidence95(summary.stddev, count), count};
}

double dl2_spread_half(const struct dl2_spread *spread, double tail)
{
    if (!(spread->freedom > 0) || !isfinite(spread->variance))
        return isnan(spread->variance) ? NAN : INFINITY;
    const double half = dl2_student_quantile(tail, spread->freedom) * sqrt(spread->variance);
    if (!(spread->added > 0))
        return half;
    return hypot(half, dl2_student_quantile(tail, spread->added_freedom) * sqrt(spread->added));
}

struct dl2_spread dl2_spread_sum(const struct dl2_spread *a, const struct dl2_spread *b)
{
    if (!(a->freedom > 0) || !(b->freedom > 0))
        return (struct dl2_spread){.variance = INFINITY};
    return (struct dl2_spread){a->variance, a->freedom, b->variance, b->freedom};
}

struct dl2_spread dl2_spread_scaled(const struct dl2_spread *spread, double factor)
{
    struct dl2_spread scaled = *spread;
    scaled.variance *= factor * factor;
    scaled.added *= factor * factor;
    return scaled;
}

/* ---- Seeds crossed with images */

static size_t unit_of(const struct dl2_groups *groups, size_t image)
{
    return groups ? groups->of[image] : image;
}

double dl2_groups_alike(const double *values, size_t images, const struct dl2_groups *groups)
{
    const double I = (double)images, G = (double)groups->count;
    DL2_AUTO_FREE double *sizes =
        dl2_room(groups->count, 2 * sizeof *sizes, "%zu groups", groups->count);
    double *sums = sizes + groups->count, total = 0, all = 0, between = 0, size_squares = 0;
    for (size_t i = 0; i < images; i++) {
        sizes[groups->of[i]]++;
        sums[groups->of[i]] += values[i];
        total += values[i];
    }
    for (size_t i = 0; i < images; i++)
        all += (values[i] - total / I) * (values[i] - total / I);
    for (size_t g = 0; g < groups->count; g++) {
        const double rest = sums[g] / sizes[g] - total / I;
        between += sizes[g] * rest * rest;
        size_squares += sizes[g] * sizes[g];
    }
    if (groups->count < 2 || groups->count == images)
        return 1;
    const double of_groups = between / (G - 1), within = fmax(0, all - between) / (I - G);
    const double size = (I - size_squares / I) / (G - 1);
    const double variance = of_groups + (size - 1) * within;
    return variance > 0 ? fmin(1, fmax(0, (of_groups - within) / variance)) : 1;
}

struct dl2_mean_squares dl2_mean_squares(const double *table, size_t seeds, size_t images,
                                         const struct dl2_groups *groups)
{
    const size_t units = groups ? groups->count : images;
    DL2_AUTO_FREE double *sizes =
        dl2_room(units, 3 * sizeof *sizes, "%zu validation images", images);
    double *row = sizes + units, *columns = row + units;
    double total = 0, all = 0, of_seeds = 0, of_images = 0, size_squares = 0;
    for (size_t i = 0; i < images; i++)
        sizes[unit_of(groups, i)]++;
    for (size_t cell = 0; cell < seeds * images; cell++)
        total += table[cell];
    const double S = (double)seeds, I = (double)images, U = (double)units, mean = total / (S * I);
    for (size_t s = 0; s < seeds; s++) {
        double sum = 0;
        memset(row, 0, units * sizeof *row);
        for (size_t i = 0; i < images; i++)
            row[unit_of(groups, i)] += table[s * images + i];
        for (size_t u = 0; u < units; u++) {
            const double rest = row[u] - mean * sizes[u];
            sum += rest;
            columns[u] += rest;
            all += rest * rest;
        }
        of_seeds += sum * sum / U;
    }
    for (size_t u = 0; u < units; u++) {
        of_images += columns[u] * columns[u] / S;
        size_squares += sizes[u] * sizes[u];
    }
    const double scale = (U / I) * (U / I); /* from sums to means */
    return (struct dl2_mean_squares){
        .seeds = seeds,
        .units = units,
        .mean = mean,
        .seed = seeds > 1 ? scale * of_seeds / (S - 1) : 0,
        .image = units > 1 ? scale * of_images / (U - 1) : 0,
        .residual = seeds > 1 && units > 1
                        ? scale * fmax(0, all - of_seeds - of_images) / ((S - 1) * (U - 1))
                        : 0,
        /* A group's size, as an image finds it, is its square's mean over the mean. */
        .unit = fmax(1, 2 * (1 + (groups ? groups->alike : 0) * (size_squares / I - 1)) / 3) / I,
    };
}

double dl2_variance_of_images(const struct dl2_mean_squares *squares)
{
    const double cells = (double)squares->seeds * (double)squares->units;
    return fmax(0, (squares->image - squares->residual) / cells + squares->unit * squares->unit);
}

struct dl2_spread dl2_spread_of_both(const struct dl2_mean_squares *squares,
                                     const struct dl2_spread *seeds)
{
    const struct dl2_spread images = {.variance = dl2_variance_of_images(squares),
                                      .freedom = (double)squares->units - 1};
    return dl2_spread_sum(seeds, &images);
}

struct dl2_spread dl2_spread_of_resamples(const double *table, size_t seeds, size_t resamples)
{
    const double S = (double)seeds, B = (double)resamples;
    double of_mean = 0, of_each = 0, total = 0;
    for (size_t b = 0; b < resamples; b++)
        for (size_t s = 0; s < seeds; s++)
            total += table[s * resamples + b] / (S * B);
    for (size_t b = 0; b < resamples; b++) {
        double mean = 0;
        for (size_t s = 0; s < seeds; s++)
            mean += table[s * resamples + b] / S;
        of_mean += (mean - total) * (mean - total) / (B - 1);
    }
    for (size_t s = 0; s < seeds; s++) {
        double mean = 0;
        for (size_t b = 0; b < resamples; b++)
            mean += table[s * resamples + b] / B;
        for (size_t b = 0; b < resamples; b++) {
            const double rest = table[s * resamples + b] - mean;
            of_each += rest * rest / (S * (B - 1));
        }
    }
    return (struct dl2_spread){.variance =
                                   seeds > 1 ? fmax(0, (S * of_mean - of_each) / (S - 1)) : of_mean,
                               .freedom = B - 1};
}

void dl2_middle_95(double *draws, size_t count, double *low, double *high)
{
    dl2_sort(draws, count);
    *low = dl2_percentile(draws, count, 0.025);
    *high = dl2_percentile(draws, count, 0.975);
}

void dl2_pigeonhole(const double *table, size_t seeds, size_t images,
                    const struct dl2_groups *groups, uint64_t stream, double *means, size_t draws)
{
    const size_t units = groups ? groups->count : images;
    DL2_AUTO_FREE uint32_t *times = dl2_room(units, sizeof *times, "%zu validation images", images);
    DL2_AUTO_FREE double *rows = dl2_room(seeds, sizeof *rows, "%zu seeds", seeds);
    struct dl2_random random;
    dl2_random_init(&random, stream, DL2_RANDOM_BOOTSTRAP, 0, 0);
    for (size_t draw = 0; draw < draws; draw++) {
        double drawn = 0;
        memset(times, 0, units * sizeof *times);
        for (size_t u = 0; u < units; u++)
            times[dl2_random_below(&random, (uint32_t)units)]++;
        for (size_t i = 0; i < images; i++)
            drawn += times[unit_of(groups, i)];
        for (size_t s = 0; s < seeds; s++) {
            rows[s] = 0;
            for (size_t i = 0; i < images; i++)
                rows[s] += times[unit_of(groups, i)] * table[s * images + i];
            rows[s] /= drawn;
        }
        means[draw] = 0;
        for (size_t s = 0; s < seeds; s++)
            means[draw] += rows[dl2_random_below(&random, (uint32_t)seeds)] / (double)seeds;
    }
}

/* ---- The noise of a training, from all variants together */

enum { MAX_ROUNDS = 500 };

struct layout { /* of a table: which cells there are */
    const double *table;
    size_t rows, seeds;
    size_t *row_cells, *seed_cells; /* how many */
    double *row_effect, *seed_effect;
    size_t freedom; /* of the residual */
};

static bool has_cell(const struct layout *layout, size_t r, size_t s)
{
    return !isnan(layout->table[r * layout->seeds + s]);
}

/* Parts of the table that no cell connects: within each, a constant may go to rows or to seeds. */
static size_t count_parts(const struct layout *layout)
{
    const size_t rows = layout->rows, count = rows + layout->seeds;
    size_t *part = layout->row_cells + count; /* the second half of the block */
    for (size_t i = 0; i < count; i++)
        part[i] = i;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t r = 0; r < rows; r++)
            for (size_t s = 0; s < layout->seeds; s++) {
                if (!has_cell(layout, r, s) || part[r] == part[rows + s])
                    continue;
                const size_t least = part[r] < part[rows + s] ? part[r] : part[rows + s];
                part[r] = part[rows + s] = least;
                moved = true;
            }
    }
    size_t parts = 0;
    for (size_t i = 0; i < count; i++)
        parts += part[i] == i && layout->row_cells[i] > 0; /* seeds' counts follow those of rows */
    return parts;
}

static void count_cells(struct layout *layout)
{
    size_t cells = 0, used = 0;
    for (size_t r = 0; r < layout->rows; r++)
        for (size_t s = 0; s < layout->seeds; s++)
            if (has_cell(layout, r, s)) {
                layout->row_cells[r]++;
                layout->seed_cells[s]++;
                cells++;
            }
    for (size_t i = 0; i < layout->rows + layout->seeds; i++)
        used += layout->row_cells[i] > 0;
    layout->freedom = cells + count_parts(layout) - used;
}

/*
 * Fits row + seed to the table by least squares, the two in turn until nothing moves (at once where
 * no cell is missing), and sets each row's sum of squared residuals.
 */
static void fit_rows_and_seeds(struct layout *layout, double *squares)
{
    const double *values = layout->table;
    const size_t seeds = layout->seeds;
    memset(layout->seed_effect, 0, seeds * sizeof *layout->seed_effect);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double moved = 0;
        for (size_t r = 0; r < layout->rows; r++) {
            double sum = 0;
            for (size_t s = 0; s < seeds; s++)
                if (has_cell(layout, r, s))
                    sum += values[r * seeds + s] - layout->seed_effect[s];
            layout->row_effect[r] = layout->row_cells[r] ? sum / (double)layout->row_cells[r] : 0;
        }
        for (size_t s = 0; s < seeds; s++) {
            double sum = 0;
            for (size_t r = 0; r < layout->rows; r++)
                if (has_cell(layout, r, s))
                    sum += values[r * seeds + s] - layout->row_effect[r];
            const double effect = layout->seed_cells[s] ? sum / (double)layout->seed_cells[s] : 0;
            moved = fmax(moved, fabs(effect - layout->seed_effect[s]));
            layout->seed_effect[s] = effect;
        }
        if (moved < 1e-10) /* points of accuracy */
            break;
    }
    for (size_t r = 0; r < layout->rows; r++) {
        squares[r] = 0;
        for (size_t s = 0; s < seeds; s++)
            if (has_cell(layout, r, s)) {
                const double rest =
                    values[r * seeds + s] - layout->row_effect[r] - layout->seed_effect[s];
                squares[r] += rest * rest;
            }
    }
}

struct dl2_noise dl2_noise_estimate(const double *table, size_t rows, size_t seeds)
{
    DL2_AUTO_FREE size_t *counts =
        dl2_room(rows + seeds, 2 * sizeof *counts, "%zu rows of %zu seeds", rows, seeds);
    DL2_AUTO_FREE double *effects =
        dl2_room(2 * rows + seeds, sizeof *effects, "%zu rows of %zu seeds", rows, seeds);
    struct layout layout = {.table = table,
                            .rows = rows,
                            .seeds = seeds,
                            .row_cells = counts,
                            .seed_cells = counts + rows,
                            .row_effect = effects,
                            .seed_effect = effects + rows};
    double *squares = effects + rows + seeds, sum = 0;
    count_cells(&layout);
    fit_rows_and_seeds(&layout, squares);
    for (size_t r = 0; r < rows; r++)
        sum += squares[r];
    const double deviation = layout.freedom ? sqrt(sum / (double)layout.freedom) : NAN;
    return (struct dl2_noise){deviation, layout.freedom};
}

struct dl2_spread dl2_spread_of_pairs(double variance, size_t pairs, const struct dl2_noise *noise)
{
    if (pairs < 1)
        return (struct dl2_spread){.variance = INFINITY};
    const double own = (double)pairs - 1;
    /* A study of one variant has no other trainings than these. */
    const double others = noise->freedom > pairs - 1 ? DL2_POOL_FREEDOM : 0;
    if (!(own + others > 0))
        return (struct dl2_spread){.variance = INFINITY};
    const double of_own = own > 0 ? own * variance : 0;
    const double of_others = others > 0 ? others * 2 * noise->deviation * noise->deviation : 0;
    return (struct dl2_spread){.variance = (of_own + of_others) / (own + others) / (double)pairs,
                               .freedom = own + others};
}

/* ---- Several studies */

void dl2_random_effects(const double *differences, const double *variances, size_t count,
                        struct dl2_random_effects *effects)
{
    double mean = 0, of_means = 0, chance = 0;
    for (size_t i = 0; i < count; i++) {
        mean += differences[i] / (double)count;
        chance += variances[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++)
        of_means += (differences[i] - mean) * (differences[i] - mean);
    if (count > 1)
        of_means /= (double)count - 1;
    /* By luck studies agree more than their own chance allows: that is no certainty. */
    const double least = dl2_student_quantile(0.025, INFINITY) * sqrt(chance / (double)count);
    const double half = fmax(dl2_confidence95(sqrt(of_means), count), count ? least : 0);
    *effects = (struct dl2_random_effects){
        .mean = count ? mean : NAN,
        .half = half,
        .half_new = half * sqrt((double)count + 1),
        .between = count > 1 ? sqrt(fmax(0, of_means - chance)) : NAN,
    };
}

double dl2_noninferiority_p(double difference, const struct dl2_spread *spread, double tolerance)
{
    const double margin = difference + tolerance;
    if (!(spread->freedom > 0) || !isfinite(spread->variance))
        return 1;
    if (!(spread->variance > 0))
        return margin >= 0 ? 0 : 1;
    return dl2_student_tail(margin / sqrt(spread->variance), spread->freedom);
}

void dl2_partial_conjunction(double *p, size_t count)
{
    dl2_sort(p, count);
    for (size_t i = 0; i < count; i++) {
        p[i] = fmin(1, (double)(count - i) * p[i]);
        if (i)
            p[i] = fmax(p[i], p[i - 1]);
    }
}
