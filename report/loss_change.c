/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loss_change.h"

#include "common/memory.h"
#include "common/scope.h"

#include <math.h>
#include <string.h>

/* A training's mean over the images that it could read, or NAN. */
static double mean_loss(const struct dl2_study_run *run)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; run->loss && i < run->images; i++)
        if (run->correct[i] != DL2_STUDY_ABSENT) {
            sum += (double)run->loss[i];
            count++;
        }
    return count ? sum / (double)count : NAN;
}

/* Fills the rows of a table of losses, [variants][seeds]: those of the original's seeds. */
static void tabulate(const struct dl2_study *study, const char *arch, const uint64_t *seeds,
                     size_t count, double *table)
{
    for (size_t i = 0; i < study->variant_count * count; i++)
        table[i] = NAN;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (strcmp(run->arch, arch) != 0)
            continue;
        for (size_t s = 0; s < count; s++)
            if (seeds[s] == run->seed)
                table[run->variant * count + s] = mean_loss(run);
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

static int compare(const struct dl2_study *study, const struct dl2_analysis *analysis, size_t arch,
                   size_t variant, const struct dl2_noise *noise, struct dl2_run_pair *pairs,
                   struct dl2_loss_change *change, struct dl2_error *error)
{
    const size_t count = dl2_pairs_find(study, study->archs[arch], variant, pairs);
    const double tail = dl2_interval_tail(&analysis->question.looks, count);
    DL2_CLEANUP(dl2_differences_free) struct dl2_differences table = {0};
    struct dl2_mean_squares squares;
    DL2_TRY(
        dl2_differences_make(pairs, count, DL2_MEASURE_LOSS, &study->images[arch], &table, error));
    if (!table.images)
        return DL2_OK;
    DL2_TRY(dl2_differences_squares(&table, &squares, error));
    if (!isfinite(squares.mean))
        return DL2_OK;
    const double of_seeds = squares.seed / (double)squares.units;
    const struct dl2_spread training = dl2_spread_of_pairs(of_seeds, count, noise);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &training);
    change->difference = squares.mean;
    change->half = squares.units > 1 ? dl2_spread_half(&both, tail) : INFINITY;
    return DL2_OK;
}

int dl2_loss_changes_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                          size_t arch, struct dl2_loss_change *changes, struct dl2_error *error)
{
    const size_t variants = study->variant_count, raw = dl2_study_find(study, "raw");
    DL2_AUTO_FREE struct dl2_run_pair *pairs = dl2_calloc(study->run_count, sizeof *pairs);
    DL2_AUTO_FREE uint64_t *seeds = dl2_calloc(study->run_count, sizeof *seeds);
    DL2_AUTO_FREE double *table = dl2_calloc(variants, (study->run_count + 1) * sizeof *table);
    struct dl2_noise noise = {NAN, 0};
    size_t count = 0;
    if (!pairs || !seeds || !table)
        return dl2_error_memory(error, "the losses of %zu trainings", study->run_count);
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].variant == raw && strcmp(study->runs[i].arch, study->archs[arch]) == 0)
            seeds[count++] = study->runs[i].seed;
    tabulate(study, study->archs[arch], seeds, count, table);
    for (size_t v = 0; v < variants; v++)
        changes[v] = (struct dl2_loss_change){mean_of_row(table + v * count, count), NAN, INFINITY};
    if (raw < variants) {
        const size_t rows = drop_repetitions(table, variants, count, raw);
        DL2_TRY(dl2_noise_estimate(table, rows, count, &noise, error));
    }
    for (size_t v = 0; v < variants; v++)
        DL2_TRY(compare(study, analysis, arch, v, &noise, pairs, &changes[v], error));
    return DL2_OK;
}

int dl2_loss_changes_find(const struct dl2_study *study, const struct dl2_analysis *analyses,
                          struct dl2_loss_change **changes, struct dl2_error *error)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE struct dl2_loss_change *all = NULL;
    *changes = NULL;
    DL2_TRY(DL2_NEW(&all, study->arch_count * count + 1, "variants", error));
    for (size_t a = 0; a < study->arch_count; a++)
        DL2_TRY(dl2_loss_changes_make(study, &analyses[a], a, all + a * count, error));
    for (size_t i = 0; i < study->arch_count * count; i++)
        if (isfinite(all[i].mean)) {
            *changes = all;
            all = NULL;
            break;
        }
    return DL2_OK;
}

bool dl2_loss_is_higher(const struct dl2_loss_change *change)
{
    return isfinite(change->half) && change->difference - change->half > 0;
}
