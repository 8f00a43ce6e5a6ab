/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/transfer.h"

#include "common/memory.h"
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
    struct dl2_mean_squares squares;  /* of the part */
    uint32_t *columns;                /* of `all` that make the part */
};

static void free_side(struct side *side)
{
    dl2_differences_free(&side->all);
    dl2_differences_free(&side->part);
    free(side->columns);
}

static int make_side(const struct dl2_study *study, size_t arch, size_t variant,
                     struct dl2_run_pair *pairs, struct side *side, struct dl2_error *error)
{
    const size_t count = dl2_pairs_find(study, study->archs[arch], variant, pairs);
    side->images = &study->images[arch];
    DL2_TRY(dl2_differences_make(pairs, count, DL2_MEASURE_TOP1, side->images, &side->all, error));
    side->columns = dl2_calloc(side->all.images, sizeof *side->columns);
    return side->columns ? DL2_OK
                         : dl2_error_memory(error, "%zu validation images", side->all.images);
}

/* Sets the columns of the images that both have. Other images than the other's: none. */
static int join(struct side *a, struct side *b, size_t *common, struct dl2_error *error)
{
    DL2_AUTO_FREE size_t *found = dl2_calloc(a->images->count, sizeof *found);
    /* Of b's rows, from 1. */
    DL2_AUTO_FREE uint32_t *column = dl2_calloc(b->images->count, sizeof *column);
    *common = 0;
    if (!found || !column)
        return dl2_error_memory(error, "%zu validation images", a->images->count);
    for (size_t i = 0; i < b->all.images; i++)
        column[b->all.image[i]] = (uint32_t)i + 1;
    if (dl2_prediction_table_join(a->images, b->images, found, NULL) == DL2_OK)
        for (size_t i = 0; i < a->all.images; i++) {
            const size_t row = found[a->all.image[i]];
            if (row == b->images->count || !column[row])
                continue;
            a->columns[*common] = (uint32_t)i;
            b->columns[(*common)++] = column[row] - 1;
        }
    return DL2_OK;
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
static int compare_images(struct side *a, struct side *b, size_t common,
                          struct dl2_transfer *transfer, struct dl2_spread *spread,
                          struct dl2_error *error)
{
    DL2_TRY(dl2_differences_choose(&a->all, a->columns, common, &a->part, error));
    DL2_TRY(dl2_differences_choose(&b->all, b->columns, common, &b->part, error));
    DL2_TRY(dl2_differences_squares(&a->part, &a->squares, error));
    DL2_TRY(dl2_differences_squares(&b->part, &b->squares, error));
    for (size_t i = 0; i < common; i++) /* into the first row: its own cells are read before */
        a->part.cells[i] = mean_of_column(&a->part, i) - mean_of_column(&b->part, i);
    const double residual =
        a->squares.residual / (double)a->part.seeds + b->squares.residual / (double)b->part.seeds;
    struct dl2_mean_squares squares;
    a->part.seeds = 1;
    DL2_TRY(dl2_differences_squares(&a->part, &squares, error));
    if (squares.units < 2)
        return DL2_OK;
    squares.residual = residual;
    *spread = (struct dl2_spread){.variance = 1e4 * dl2_variance_of_images(&squares),
                                  .freedom = (double)squares.units - 1};
    transfer->difference = 100 * squares.mean;
    transfer->images = common;
    return DL2_OK;
}

/* ---- The family */

static int compare(const struct dl2_study *study, const struct dl2_analysis *analyses,
                   struct dl2_run_pair *pairs, double share, struct dl2_transfer *transfer,
                   struct dl2_error *error)
{
    const struct dl2_comparison *of_a = &analyses[transfer->a].comparisons[transfer->variant];
    const struct dl2_comparison *of_b = &analyses[transfer->b].comparisons[transfer->variant];
    const struct dl2_looks *looks = &analyses[transfer->a].question.looks;
    DL2_CLEANUP(free_side) struct side a = {0};
    DL2_CLEANUP(free_side) struct side b = {0};
    size_t common = 0;
    transfer->difference = of_a->difference - of_b->difference;
    struct dl2_spread of_images = {0};
    DL2_TRY(make_side(study, transfer->a, transfer->variant, pairs, &a, error));
    DL2_TRY(make_side(study, transfer->b, transfer->variant, pairs, &b, error));
    if (a.all.images && b.all.images)
        DL2_TRY(join(&a, &b, &common, error));
    if (common)
        DL2_TRY(compare_images(&a, &b, common, transfer, &of_images, error));
    const struct dl2_spread training = dl2_spread_sum(&of_a->training, &of_b->training);
    const size_t fewer = of_a->pairs < of_b->pairs ? of_a->pairs : of_b->pairs;
    const double tail = dl2_interval_tail(looks, fewer) / share;
    transfer->half = hypot(dl2_spread_half(&training, tail),
                           transfer->images ? dl2_spread_half(&of_images, tail) : 0);
    return DL2_OK;
}

int dl2_transfers_make(const struct dl2_study *study, const struct dl2_analysis *analyses,
                       struct dl2_transfer **list, size_t *count, struct dl2_error *error)
{
    const size_t archs = study->arch_count, networks = archs > 1 ? archs * (archs - 1) / 2 : 0;
    DL2_AUTO_FREE struct dl2_run_pair *pairs = dl2_calloc(study->run_count, sizeof *pairs);
    *count = 0;
    *list = dl2_calloc(study->variant_count, networks * sizeof **list);
    if (!pairs || !*list)
        return dl2_error_memory(error, "%zu variants of %zu networks", study->variant_count, archs);
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t a = 0; a < archs; a++)
            for (size_t b = a + 1; b < archs; b++)
                if (is_known(&analyses[a], v) && is_known(&analyses[b], v))
                    (*list)[(*count)++] = (struct dl2_transfer){.variant = v, .a = a, .b = b};
    for (size_t i = 0; i < *count; i++)
        DL2_TRY(compare(study, analyses, pairs, (double)*count, &(*list)[i], error));
    return DL2_OK;
}

bool dl2_transfer_differs(const struct dl2_transfer *transfer)
{
    return fabs(transfer->difference) > transfer->half;
}
