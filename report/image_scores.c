/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/image_scores.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/quote.h"
#include "common/scope.h"
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>

double *dl2_image_scores_at(const struct dl2_image_scores *scores, size_t variant, size_t metric)
{
    return scores->scores + (variant * scores->metrics.count + metric) * scores->count;
}

/* Lists the images that the variant has scores of. */
static void list_images(const struct dl2_study_variant *variant, struct dl2_image_scores *scores)
{
    json_auto_t *file = NULL;
    json_t *row;
    const json_t *rows = json_object_get(dl2_study_scores(variant, &file), "per_image");
    size_t i;
    scores->keys = dl2_keep(json_array_size(rows), sizeof *scores->keys, "images");
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", NULL);
        if (key)
            scores->keys[scores->count++] = dl2_text_copy(key);
    }
    qsort(scores->keys, scores->count, sizeof *scores->keys, dl2_compare_texts);
}

static void read_variant(const struct dl2_study *study, size_t variant,
                         struct dl2_image_scores *scores)
{
    json_auto_t *file = NULL;
    json_t *row;
    const json_t *rows =
        json_object_get(dl2_study_scores(&study->variants[variant], &file), "per_image");
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", "");
        char **found =
            bsearch(&key, scores->keys, scores->count, sizeof *scores->keys, dl2_compare_texts);
        if (!found)
            continue;
        const size_t image = (size_t)(found - scores->keys);
        scores->bytes[variant * scores->count + image] = dl2_json_get_real(row, "bytes", NAN);
        for (size_t m = 0; m < scores->metrics.count; m++)
            dl2_image_scores_at(scores, variant, m)[image] =
                dl2_json_get_real(row, scores->metrics.names[m], NAN);
    }
}

/* `known` has room for all images. */
static struct dl2_score_spread find_spread(const struct dl2_study *study,
                                           const struct dl2_image_scores *scores, size_t v,
                                           size_t m, double *known)
{
    static const double at[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    struct dl2_score_spread spread = {
        .mean = dl2_metric_aggregate(&study->variants[v], scores->metrics.names[m], "mean"),
        .low = NAN,
        .high = NAN};
    for (size_t i = 0; i < scores->count; i++)
        if (isfinite(dl2_image_scores_at(scores, v, m)[i]))
            known[spread.images++] = dl2_image_scores_at(scores, v, m)[i];
    for (size_t p = 0; p < sizeof at / sizeof *at; p++)
        spread.percentiles[p] = NAN;
    if (!spread.images)
        return spread;
    const struct dl2_estimate mean = dl2_estimate_mean(known, spread.images); /* sorts */
    spread.mean = mean.mean;
    if (isfinite(mean.half)) {
        spread.low = mean.mean - mean.half;
        spread.high = mean.mean + mean.half;
    }
    for (size_t p = 0; p < sizeof at / sizeof *at; p++)
        spread.percentiles[p] = dl2_percentile(known, spread.images, at[p]);
    return spread;
}

struct dl2_image_scores dl2_image_scores_read(const struct dl2_study *study, size_t first)
{
    struct dl2_image_scores scores = {.keys = NULL};
    dl2_metric_names_find(study, &scores.metrics);
    const size_t metrics = scores.metrics.count;
    if (first < study->variant_count)
        list_images(&study->variants[first], &scores);
    for (size_t v = 0; !scores.count && v < study->variant_count; v++)
        list_images(&study->variants[v], &scores);
    const size_t cells = study->variant_count * scores.count;
    scores.bytes = dl2_keep(cells, sizeof *scores.bytes, "scores of %zu images", scores.count);
    scores.scores = dl2_keep(cells, (metrics + 1) * sizeof *scores.scores, "scores of %zu images",
                             scores.count);
    scores.spreads = dl2_keep(study->variant_count, (metrics + 1) * sizeof *scores.spreads,
                              "scores of %zu variants", study->variant_count);
    DL2_AUTO_FREE double *known =
        dl2_room(scores.count, sizeof *known, "scores of %zu images", scores.count);
    for (size_t i = 0; i < cells; i++)
        scores.bytes[i] = NAN;
    for (size_t i = 0; i < cells * metrics; i++)
        scores.scores[i] = NAN;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (scores.count)
            read_variant(study, v, &scores);
        for (size_t m = 0; m < metrics; m++)
            scores.spreads[v * metrics + m] = find_spread(study, &scores, v, m, known);
    }
    return scores;
}
