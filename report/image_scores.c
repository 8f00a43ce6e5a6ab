/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/image_scores.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *scores_at(const struct dl2_image_scores *scores, size_t variant, size_t metric)
{
    return scores->scores + (variant * scores->metrics.count + metric) * scores->count;
}

const double *dl2_image_scores_at(const struct dl2_image_scores *scores, size_t variant,
                                  size_t metric)
{
    return scores_at(scores, variant, metric);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void dl2_image_scores_free(struct dl2_image_scores *scores)
{
    for (size_t i = 0; i < scores->count; i++)
        free(scores->keys[i]);
    free(scores->keys);
    free(scores->scores);
    free(scores->bytes);
    free(scores->spreads);
}

/* Lists the images that the variant has scores of. */
static int list_images(const struct dl2_study_variant *variant, struct dl2_image_scores *scores,
                       struct dl2_error *error)
{
    json_t *file, *row;
    const json_t *rows = json_object_get(dl2_study_scores(variant, &file), "per_image");
    size_t i;
    int status = DL2_OK;
    free(scores->keys);
    scores->keys = dl2_calloc(json_array_size(rows) + 1, sizeof *scores->keys);
    if (!scores->keys)
        status = dl2_error_memory(error, "%zu images", json_array_size(rows));
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", NULL);
        if (status < 0 || !key)
            continue;
        if ((scores->keys[scores->count] = strdup(key)))
            scores->count++;
        else
            status = dl2_error_memory(error, "an image's key");
    }
    json_decref(file);
    if (status == DL2_OK)
        qsort(scores->keys, scores->count, sizeof *scores->keys, compare_texts);
    return status;
}

static void read_variant(const struct dl2_study *study, size_t variant,
                         struct dl2_image_scores *scores)
{
    json_t *file, *row;
    const json_t *rows =
        json_object_get(dl2_study_scores(&study->variants[variant], &file), "per_image");
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", "");
        char **found =
            bsearch(&key, scores->keys, scores->count, sizeof *scores->keys, compare_texts);
        if (!found)
            continue;
        const size_t image = (size_t)(found - scores->keys);
        scores->bytes[variant * scores->count + image] = dl2_json_get_real(row, "bytes", NAN);
        for (size_t m = 0; m < scores->metrics.count; m++)
            scores_at(scores, variant, m)[image] =
                dl2_json_get_real(row, scores->metrics.names[m], NAN);
    }
    json_decref(file);
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
        if (isfinite(scores_at(scores, v, m)[i]))
            known[spread.images++] = scores_at(scores, v, m)[i];
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

int dl2_image_scores_read(const struct dl2_study *study, size_t first,
                          struct dl2_image_scores *scores, struct dl2_error *error)
{
    *scores = (struct dl2_image_scores){.keys = NULL};
    dl2_metric_names_find(study, &scores->metrics);
    const size_t metrics = scores->metrics.count;
    if (first < study->variant_count)
        DL2_TRY(list_images(&study->variants[first], scores, error));
    for (size_t v = 0; !scores->count && v < study->variant_count; v++)
        DL2_TRY(list_images(&study->variants[v], scores, error));
    const size_t cells = study->variant_count * scores->count;
    scores->bytes = dl2_calloc(cells + 1, sizeof *scores->bytes);
    scores->scores = dl2_calloc(cells + 1, (metrics + 1) * sizeof *scores->scores);
    scores->spreads = dl2_calloc(study->variant_count + 1, (metrics + 1) * sizeof *scores->spreads);
    double *known = dl2_calloc(scores->count + 1, sizeof *known);
    const bool got = scores->bytes && scores->scores && scores->spreads && known;
    for (size_t i = 0; got && i < cells; i++)
        scores->bytes[i] = NAN;
    for (size_t i = 0; got && i < cells * metrics; i++)
        scores->scores[i] = NAN;
    for (size_t v = 0; got && v < study->variant_count; v++) {
        if (scores->count)
            read_variant(study, v, scores);
        for (size_t m = 0; m < metrics; m++)
            scores->spreads[v * metrics + m] = find_spread(study, scores, v, m, known);
    }
    free(known);
    return got ? DL2_OK : dl2_error_memory(error, "scores of %zu images", scores->count);
}
