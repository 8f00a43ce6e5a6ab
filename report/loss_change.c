/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loss_change.h"

#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <string.h>

/* A training's mean over the images that it could read, or NAN. */
static double mean_loss(const struct dl2_study_run *run)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; run->loss && i < run->images; i++)
        if (!isnan(run->outcome[i])) {
            sum += (double)run->loss[i];
            count++;
        }
    return count ? sum / (double)count : NAN;
}

/* Fills the rows of a table of losses, [variants][seeds]: those of the original's seeds. */
static void tabulate(const struct dl2_study *study, const char *arch, struct dl2_runs seeds,
                     double *table)
{
    for (size_t i = 0; i < study->variant_count * seeds.count; i++)
        table[i] = NAN;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (strcmp(run->arch, arch) != 0 || run->diverged)
            continue;
        for (size_t s = 0; s < seeds.count; s++)
            if (seeds.at[s].seed == run->seed)
                table[run->variant * seeds.count + s] = mean_loss(run);
    }
}

static double mean_of_row(const double *row, size_t count)
{
    double sum = 0;
    size_t known = 0;
    for (size_t s = 0; s < count; s++)
        if (!isnan(row[s])) {
            sum += row[s];
            known++;
        }
    return known ? sum / (double)known : NAN;
}

/* Drops rows that are the original's once more: of the same pixels, they say nothing of chance. */
static size_t drop_repetitions(double *table, size_t rows, size_t seeds, size_t raw)
{
    size_t kept = 0;
    for (size_t r = 0; r < rows; r++) {
        bool differs = r == raw;
        for (size_t s = 0; s < seeds; s++)
            differs |= table[r * seeds + s] < table[raw * seeds + s] ||
                       table[r * seeds + s] > table[raw * seeds + s];
        if (r == raw)
            raw = kept;
        if (differs)
            memmove(table + kept++ * seeds, table + r * seeds, seeds * sizeof *table);
    }
    return kept;
}

static void compare(const struct dl2_study *study, const struct dl2_analysis *analysis, size_t arch,
                    size_t variant, const struct dl2_noise *noise, struct dl2_run_pair *pairs,
                    struct dl2_loss_change *change)
{
    const size_t count = dl2_pairs_find(study, study->archs[arch], variant, pairs);
    const double tail = dl2_interval_tail(&analysis->question.looks, count);
    DL2_CLEANUP(dl2_differences_free)
    struct dl2_differences table =
        dl2_differences_make(pairs, count, DL2_MEASURE_LOSS, &study->images[arch]);
    if (!table.images)
        return;
    const struct dl2_mean_squares squares = dl2_differences_squares(&table);
    if (!isfinite(squares.mean))
        return;
    const double of_seeds = squares.seed / (double)squares.units;
    const struct dl2_spread training = study->as_it_is
                                           ? (struct dl2_spread){.variance = 0, .freedom = INFINITY}
                                           : dl2_spread_of_pairs(of_seeds, count, noise);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &training);
    change->difference = squares.mean;
    change->half = squares.units > 1 ? dl2_spread_half(&both, tail) : INFINITY;
}

void dl2_loss_changes_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                           size_t arch, struct dl2_loss_change *changes)
{
    const size_t variants = study->variant_count, raw = dl2_study_find(study, "raw");
    const struct dl2_runs seeds = dl2_study_runs(study, raw, study->archs[arch]);
    const size_t count = seeds.count;
    DL2_AUTO_FREE struct dl2_run_pair *pairs =
        dl2_room(study->run_count, sizeof *pairs, "%zu trainings", study->run_count);
    DL2_AUTO_FREE double *table =
        dl2_room(variants, count * sizeof *table, "the losses of %zu variants", variants);
    struct dl2_noise noise = {NAN, 0};
    tabulate(study, study->archs[arch], seeds, table);
    for (size_t v = 0; v < variants; v++)
        changes[v] = (struct dl2_loss_change){mean_of_row(table + v * count, count), NAN, INFINITY};
    if (raw < variants) {
        const size_t rows = drop_repetitions(table, variants, count, raw);
        noise = dl2_noise_estimate(table, rows, count);
    }
    for (size_t v = 0; v < variants; v++)
        compare(study, analysis, arch, v, &noise, pairs, &changes[v]);
}

struct dl2_loss_change *dl2_loss_changes_find(const struct dl2_study *study,
                                              const struct dl2_analysis *analyses)
{
    const size_t count = study->variant_count;
    struct dl2_loss_change *all =
        dl2_keep(study->arch_count * count + 1, sizeof *all, "%zu variants", count);
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_loss_changes_make(study, &analyses[a], a, all + a * count);
    for (size_t i = 0; i < study->arch_count * count; i++)
        if (isfinite(all[i].mean))
            return all;
    return NULL;
}

bool dl2_loss_is_higher(const struct dl2_loss_change *change)
{
    return isfinite(change->half) && change->difference - change->half > 0;
}
