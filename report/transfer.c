/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/transfer.h"

#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>

static bool is_known(const struct dl2_analysis *analysis, size_t variant)
{
    return isfinite(analysis->comparisons[variant].difference);
}

/* ---- Images that both networks were validated on */

struct side { /* one network's */
    const struct dl2_prediction_table *images;
    struct dl2_differences all, part; /* of the variant; over the images that both have */
    uint32_t *columns;                /* of `all` that make the part */
};

static void free_side(struct side *side)
{
    dl2_differences_free(&side->all);
    dl2_differences_free(&side->part);
    free(side->columns);
}

static struct side make_side(const struct dl2_study *study, size_t arch, size_t variant,
                             struct dl2_run_pair *pairs)
{
    const size_t count = dl2_pairs_find(study, study->archs[arch], variant, pairs);
    struct side side = {.images = &study->images[arch]};
    side.all = dl2_differences_make(pairs, count, DL2_MEASURE_OUTCOME, side.images);
    side.columns = dl2_room(side.all.images, sizeof *side.columns, "validation images");
    return side;
}

/* Sets the columns of the images that both have, and returns how many these are. Other images than
 * the other's: none. */
static size_t join(struct side *a, struct side *b)
{
    DL2_AUTO_FREE size_t *found = dl2_room(a->images->count, sizeof *found, "validation images");
    DL2_AUTO_FREE uint32_t *column = /* of b's rows, from 1 */
        dl2_room(b->images->count, sizeof *column, "validation images");
    size_t common = 0;
    for (size_t i = 0; i < b->all.images; i++)
        column[b->all.image[i]] = (uint32_t)i + 1;
    if (dl2_prediction_table_join(a->images, b->images, found, NULL) == DL2_OK)
        for (size_t i = 0; i < a->all.images; i++) {
            const size_t row = found[a->all.image[i]];
            if (row == b->images->count || !column[row])
                continue;
            a->columns[common] = (uint32_t)i;
            b->columns[common++] = column[row] - 1;
        }
    return common;
}

static double mean_of_column(const struct dl2_differences *table, size_t image)
{
    double sum = 0;
    for (size_t s = 0; s < table->seeds; s++)
        sum += table->cells[s * table->images + image];
    return sum / (double)table->seeds;
}

/*
 * The spread by the choice of images of what each loses more with a than with b, a mean over seeds.
 * Its variance between images has a part of each network's residual, which the chance of training
 * counts already.
 */
static void compare_images(struct side *a, struct side *b, size_t common,
                           struct dl2_transfer *transfer, struct dl2_spread *spread)
{
    a->part = dl2_differences_choose(&a->all, a->columns, common);
    b->part = dl2_differences_choose(&b->all, b->columns, common);
    const struct dl2_mean_squares of_a = dl2_differences_squares(&a->part);
    const struct dl2_mean_squares of_b = dl2_differences_squares(&b->part);
    for (size_t i = 0; i < common; i++) /* into the first row: its own cells are read before */
        a->part.cells[i] = mean_of_column(&a->part, i) - mean_of_column(&b->part, i);
    const double residual =
        of_a.residual / (double)a->part.seeds + of_b.residual / (double)b->part.seeds;
    a->part.seeds = 1;
    struct dl2_mean_squares squares = dl2_differences_squares(&a->part);
    if (squares.units < 2)
        return;
    squares.residual = residual;
    *spread = (struct dl2_spread){.variance = 1e4 * dl2_variance_of_images(&squares),
                                  .freedom = (double)squares.units - 1};
    transfer->difference = 100 * squares.mean;
    transfer->images = common;
}

/* ---- The family */

static void compare(const struct dl2_study *study, const struct dl2_analysis *analyses,
                    struct dl2_run_pair *pairs, double share, struct dl2_transfer *transfer)
{
    const struct dl2_comparison *of_a = &analyses[transfer->a].comparisons[transfer->variant];
    const struct dl2_comparison *of_b = &analyses[transfer->b].comparisons[transfer->variant];
    const struct dl2_looks *looks = &analyses[transfer->a].question.looks;
    DL2_CLEANUP(free_side)
    struct side a = make_side(study, transfer->a, transfer->variant, pairs);
    DL2_CLEANUP(free_side)
    struct side b = make_side(study, transfer->b, transfer->variant, pairs);
    transfer->difference = of_a->difference - of_b->difference;
    struct dl2_spread of_images = {0};
    const size_t common = a.all.images && b.all.images ? join(&a, &b) : 0;
    if (common)
        compare_images(&a, &b, common, transfer, &of_images);
    const struct dl2_spread training = dl2_spread_sum(&of_a->training, &of_b->training);
    const size_t fewer = of_a->pairs < of_b->pairs ? of_a->pairs : of_b->pairs;
    const double tail = dl2_interval_tail(looks, fewer) / share;
    transfer->half = hypot(dl2_spread_half(&training, tail),
                           transfer->images ? dl2_spread_half(&of_images, tail) : 0);
}

struct dl2_transfer *dl2_transfers_make(const struct dl2_study *study,
                                        const struct dl2_analysis *analyses, size_t *count)
{
    const size_t archs = study->arch_count, networks = archs > 1 ? archs * (archs - 1) / 2 : 0;
    DL2_AUTO_FREE struct dl2_run_pair *pairs =
        dl2_room(study->run_count, sizeof *pairs, "%zu trainings", study->run_count);
    struct dl2_transfer *list = dl2_keep(study->variant_count, networks * sizeof *list,
                                         "%zu variants", study->variant_count);
    *count = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t a = 0; a < archs; a++)
            for (size_t b = a + 1; b < archs; b++)
                if (is_known(&analyses[a], v) && is_known(&analyses[b], v))
                    list[(*count)++] = (struct dl2_transfer){.variant = v, .a = a, .b = b};
    for (size_t i = 0; i < *count; i++)
        compare(study, analyses, pairs, (double)*count, &list[i]);
    return list;
}

bool dl2_transfer_differs(const struct dl2_transfer *transfer)
{
    return fabs(transfer->difference) > transfer->half;
}
