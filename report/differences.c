/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/differences.h"

#include "common/memory.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t dl2_pairs_find(const struct dl2_study *study, const char *arch, size_t variant,
                      struct dl2_run_pair *pairs)
{
    const size_t raw = dl2_study_find(study, "raw");
    size_t count = 0;
    for (size_t i = 0; variant != raw && i < study->run_count; i++) {
        const struct dl2_study_run *own = &study->runs[i];
        if (own->variant != variant || strcmp(own->arch, arch) != 0 || !isfinite(own->accuracy))
            continue;
        const struct dl2_study_run *original = dl2_study_run_of(study, raw, arch, own->seed);
        if (original)
            pairs[count++] = (struct dl2_run_pair){own, original};
    }
    return count;
}

/* Whether a pair's own training (of a variant) or its original is right, by image; NULL: not
 * known. */
static const uint8_t *correct_of(const struct dl2_study_run *run, enum dl2_measure measure,
                                 bool own)
{
    return own && measure == DL2_MEASURE_ON_ORIGINAL ? run->original_correct : run->correct;
}

static double value_of(const struct dl2_study_run *run, enum dl2_measure measure, bool own,
                       size_t image)
{
    return measure == DL2_MEASURE_LOSS ? (double)run->loss[image]
                                       : correct_of(run, measure, own)[image];
}

static bool has_images(const struct dl2_study_run *run, enum dl2_measure measure, bool own)
{
    return correct_of(run, measure, own) && (measure != DL2_MEASURE_LOSS || run->loss);
}

static int allocate(struct dl2_differences *table, size_t seeds, size_t images, bool grouped,
                    struct dl2_error *error)
{
    *table = (struct dl2_differences){.seeds = seeds, .images = images};
    table->cells = dl2_calloc(images, seeds * sizeof *table->cells);
    table->image = dl2_calloc(images, sizeof *table->image);
    table->of = grouped ? dl2_calloc(images, sizeof *table->of) : NULL;
    if (!table->cells || !table->image || (grouped && !table->of))
        return dl2_error_memory(error, "%zu validation images of %zu trainings", images, seeds);
    return DL2_OK;
}

/* Numbers groups anew, so that none is empty: table->of holds numbers below `most`. */
static int number_groups(struct dl2_differences *table, size_t most, struct dl2_error *error)
{
    DL2_AUTO_FREE uint32_t *numbers = NULL;
    DL2_TRY(DL2_NEW(&numbers, most, "groups of validation images", error));
    for (size_t i = 0; i < table->images; i++) {
        uint32_t *number = &numbers[table->of[i]];
        if (!*number)
            *number = (uint32_t)++table->of_count;
        table->of[i] = *number - 1;
    }
    return DL2_OK;
}

int dl2_differences_make(const struct dl2_run_pair *pairs, size_t count, enum dl2_measure measure,
                         const struct dl2_prediction_table *reference,
                         struct dl2_differences *table, struct dl2_error *error)
{
    *table = (struct dl2_differences){.seeds = count};
    for (size_t p = 0; p < count; p++)
        if (!has_images(pairs[p].own, measure, true) ||
            !has_images(pairs[p].original, measure, false))
            return DL2_OK;
    if (!count)
        return DL2_OK;
    const size_t all = pairs[0].own->images; /* the same for all runs of a network */
    const bool grouped = reference && reference->group;
    DL2_TRY(allocate(table, count, all, grouped, error));
    size_t images = 0;
    for (size_t i = 0; i < all; i++) {
        bool known = true;
        for (size_t p = 0; p < count; p++)
            known &= correct_of(pairs[p].own, measure, true)[i] != DL2_STUDY_ABSENT &&
                     pairs[p].original->correct[i] != DL2_STUDY_ABSENT;
        if (known)
            table->image[images++] = (uint32_t)i;
    }
    table->images = images;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < images; i++)
            table->cells[p * images + i] =
                value_of(pairs[p].own, measure, true, table->image[i]) -
                value_of(pairs[p].original, measure, false, table->image[i]);
    if (!grouped)
        return DL2_OK;
    for (size_t i = 0; i < images; i++)
        table->of[i] = reference->group[table->image[i]];
    return number_groups(table, reference->group_count, error);
}

int dl2_differences_choose(const struct dl2_differences *all, const uint32_t *chosen, size_t count,
                           struct dl2_differences *part, struct dl2_error *error)
{
    DL2_TRY(allocate(part, all->seeds, count, all->of != NULL, error));
    for (size_t i = 0; i < count; i++) {
        part->image[i] = all->image[chosen[i]];
        if (all->of)
            part->of[i] = all->of[chosen[i]];
        for (size_t s = 0; s < all->seeds; s++)
            part->cells[s * count + i] = all->cells[s * all->images + chosen[i]];
    }
    return all->of ? number_groups(part, all->of_count, error) : DL2_OK;
}

int dl2_differences_squares(const struct dl2_differences *table, struct dl2_mean_squares *squares,
                            struct dl2_error *error)
{
    const struct dl2_groups groups = {table->of, table->of_count};
    return dl2_mean_squares(table->cells, table->seeds, table->images, table->of ? &groups : NULL,
                            squares, error);
}

void dl2_differences_free(struct dl2_differences *table)
{
    free(table->cells);
    free(table->image);
    free(table->of);
    *table = (struct dl2_differences){0};
}
