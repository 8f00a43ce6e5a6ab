/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/differences.h"

#include "common/scope.h"

#include <math.h>
#include <stdlib.h>

size_t dl2_pairs_find(const struct dl2_study *study, const char *arch, size_t variant,
                      struct dl2_run_pair *pairs)
{
    const size_t raw = dl2_study_find(study, "raw");
    const struct dl2_runs runs = dl2_study_runs(study, variant, arch);
    size_t count = 0;
    for (size_t i = 0; variant != raw && i < runs.count; i++) {
        const struct dl2_study_run *original = dl2_study_run_of(study, raw, arch, runs.at[i].seed);
        if (original && isfinite(runs.at[i].accuracy))
            pairs[count++] = (struct dl2_run_pair){&runs.at[i], original};
    }
    return count;
}

/* The outcomes of a pair's own training (of a variant) or its original, by image; NULL: not known.
 */
static const float *outcome_of(const struct dl2_study_run *run, enum dl2_measure measure, bool own)
{
    return own && measure == DL2_MEASURE_ON_ORIGINAL ? run->original_outcome : run->outcome;
}

static double value_of(const struct dl2_study_run *run, enum dl2_measure measure, bool own,
                       size_t image)
{
    return (double)(measure == DL2_MEASURE_LOSS ? run->loss : outcome_of(run, measure, own))[image];
}

static bool has_images(const struct dl2_study_run *run, enum dl2_measure measure, bool own)
{
    return outcome_of(run, measure, own) && (measure != DL2_MEASURE_LOSS || run->loss);
}

/* One block, which begins with the cells. */
static struct dl2_differences make_table(size_t seeds, size_t images, bool grouped)
{
    double *cells = dl2_room(images, seeds * sizeof *cells + 2 * sizeof(uint32_t),
                             "%zu validation images of %zu trainings", images, seeds);
    uint32_t *image = (uint32_t *)(cells + seeds * images);
    return (struct dl2_differences){.cells = cells,
                                    .seeds = seeds,
                                    .images = images,
                                    .image = image,
                                    .of = grouped ? image + images : NULL};
}

/* Numbers groups anew, so that none is empty: table->of holds numbers below `most`. */
static void number_groups(struct dl2_differences *table, size_t most)
{
    DL2_AUTO_FREE uint32_t *numbers =
        dl2_room(most, sizeof *numbers, "groups of validation images");
    for (size_t i = 0; i < table->images; i++) {
        uint32_t *number = &numbers[table->of[i]];
        if (!*number)
            *number = (uint32_t)++table->of_count;
        table->of[i] = *number - 1;
    }
}

/*
 * By how much one image may change: of two outcomes, such as right and wrong, by what they differ,
 * else by as much as any image here does. Losses beside top-1 have their own scale.
 */
static double find_step(const struct dl2_differences *table, const struct dl2_run_pair *pairs,
                        enum dl2_measure measure)
{
    double first = NAN, second = NAN, most = 0;
    bool two = true;
    for (size_t p = 0; measure != DL2_MEASURE_LOSS && p < table->seeds; p++)
        for (size_t i = 0; i < table->images; i++) {
            const double values[] = {value_of(pairs[p].own, measure, true, table->image[i]),
                                     value_of(pairs[p].original, measure, false, table->image[i])};
            most = fmax(most, fabs(values[0] - values[1]));
            for (size_t k = 0; k < 2; k++) {
                if (isnan(first))
                    first = values[k];
                else if (isnan(second) && values[k] != first)
                    second = values[k];
                two &= values[k] == first || values[k] == second;
            }
        }
    return !two ? most : isnan(second) ? 1 : fabs(first - second);
}

/* How alike images of a group are: how easy they are for all of these trainings. Differences
 * themselves are too few to tell. */
static double find_alike(const struct dl2_differences *table, const struct dl2_run_pair *pairs,
                         enum dl2_measure measure)
{
    const struct dl2_groups groups = {.of = table->of, .count = table->of_count};
    DL2_AUTO_FREE double *ease = dl2_room(table->images, sizeof *ease, "validation images");
    for (size_t p = 0; p < table->seeds; p++)
        for (size_t i = 0; i < table->images; i++)
            ease[i] += (double)outcome_of(pairs[p].own, measure, true)[table->image[i]] +
                       (double)pairs[p].original->outcome[table->image[i]];
    return fmax(DL2_LEAST_ALIKE, dl2_groups_alike(ease, table->images, &groups));
}

struct dl2_differences dl2_differences_make(const struct dl2_run_pair *pairs, size_t count,
                                            enum dl2_measure measure,
                                            const struct dl2_prediction_table *reference)
{
    for (size_t p = 0; p < count; p++)
        if (!has_images(pairs[p].own, measure, true) ||
            !has_images(pairs[p].original, measure, false))
            count = 0;
    if (!count)
        return (struct dl2_differences){0};
    const size_t all = pairs[0].own->images; /* the same for all runs of a network */
    const bool grouped = reference && reference->group;
    struct dl2_differences table = make_table(count, all, grouped);
    size_t images = 0;
    for (size_t i = 0; i < all; i++) {
        bool known = true;
        for (size_t p = 0; p < count; p++)
            known &= !isnan(outcome_of(pairs[p].own, measure, true)[i]) &&
                     !isnan(pairs[p].original->outcome[i]);
        if (known)
            table.image[images++] = (uint32_t)i;
    }
    table.images = images;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < images; i++)
            table.cells[p * images + i] =
                value_of(pairs[p].own, measure, true, table.image[i]) -
                value_of(pairs[p].original, measure, false, table.image[i]);
    table.step = find_step(&table, pairs, measure);
    for (size_t i = 0; grouped && i < images; i++)
        table.of[i] = reference->group[table.image[i]];
    if (grouped) {
        number_groups(&table, reference->group_count);
        table.alike = find_alike(&table, pairs, measure);
    }
    return table;
}

struct dl2_differences dl2_differences_choose(const struct dl2_differences *all,
                                              const uint32_t *chosen, size_t count)
{
    struct dl2_differences part = make_table(all->seeds, count, all->of != NULL);
    for (size_t i = 0; i < count; i++) {
        part.image[i] = all->image[chosen[i]];
        if (all->of)
            part.of[i] = all->of[chosen[i]];
        for (size_t s = 0; s < all->seeds; s++)
            part.cells[s * count + i] = all->cells[s * all->images + chosen[i]];
    }
    if (all->of)
        number_groups(&part, all->of_count);
    part.alike = all->alike;
    part.step = all->step;
    return part;
}

struct dl2_mean_squares dl2_differences_squares(const struct dl2_differences *table)
{
    const struct dl2_groups groups = {table->of, table->of_count, table->alike};
    struct dl2_mean_squares squares =
        dl2_mean_squares(table->cells, table->seeds, table->images, table->of ? &groups : NULL);
    squares.unit *= table->step;
    return squares;
}

void dl2_differences_free(struct dl2_differences *table)
{
    free(table->cells);
}
