/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "quality/metric.h"

#include "common/memory.h"
#include "common/simd.h"
#include "quality/scorer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRIC_ROW(name) &dl2_metric_##name,
static const struct dl2_metric *const registry[] = {DL2_METRICS(METRIC_ROW)
#ifdef HAVE_BUTTERAUGLI
                                                        DL2_METRICS_OF_LIBRARIES(METRIC_ROW)
#endif
};

const struct dl2_metric *dl2_metric_at(unsigned index)
{
    return index < sizeof registry / sizeof *registry ? registry[index] : NULL;
}

int dl2_scorer_create(struct dl2_scorer **out, struct dl2_error *error)
{
    struct dl2_scorer *scorer = dl2_alloc_aligned(1, sizeof *scorer);
    if (!scorer)
        return dl2_error_memory(error, "a scorer");
    /* The strip is zeroed because kernels read a little behind its columns; what they make of that
     * is thrown away. */
    memset(scorer, 0, sizeof *scorer);
    scorer->kernels = dl2_metric_kernels_for(dl2_simd_flags());
    scorer->input_size = DL2_INPUT_SIZE;
    for (int i = 0; i < 256; i++) {
        const double v = i / 255.0;
        scorer->linear[i] = (float)(v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    *out = scorer;
    return DL2_OK;
}

void dl2_scorer_free(struct dl2_scorer *scorer)
{
    if (!scorer)
        return;
    dl2_bytes_free(&scorer->scratch);
    dl2_resizer_free(&scorer->resizer);
    dl2_image_free(&scorer->inputs[0]);
    dl2_image_free(&scorer->inputs[1]);
    free(scorer);
}

void dl2_scorer_set_original(struct dl2_scorer *scorer, const struct dl2_image *original)
{
    scorer->original = original;
    scorer->has_input = false;
}

void dl2_scorer_set_reference(struct dl2_scorer *scorer, const struct dl2_image *reference)
{
    scorer->reference = reference;
    dl2_scorer_set_original(scorer, reference);
}

void dl2_scorer_set_input_size(struct dl2_scorer *scorer, unsigned size)
{
    scorer->input_size = size;
    scorer->has_input = false;
}

static bool is_large_enough(const struct dl2_metric *metric, const struct dl2_image *image)
{
    return image->width >= metric->min_side && image->height >= metric->min_side;
}

void dl2_score_of_sums(const struct dl2_metric *metric, const double sums[DL2_METRIC_SUMS],
                       const struct dl2_image *reference, const struct dl2_image *variant,
                       struct dl2_score *score)
{
    if (!is_large_enough(metric, variant))
        score->mean = NAN;
    else
        score->mean = metric->mean ? metric->mean(sums, reference, variant) : sums[metric->sum];
    score->value = metric->of_mse ? metric->of_mse(score->mean) : score->mean;
    if (isinf(score->value))
        score->value = NAN;
}

/* Both images of a pair as a network gets them. */
static int make_inputs(struct dl2_scorer *scorer, const struct dl2_image *variant,
                       struct dl2_error *error)
{
    if (!scorer->has_input)
        DL2_TRY(dl2_scorer_make_input(scorer, scorer->original, &scorer->inputs[0], error));
    scorer->has_input = true;
    return dl2_scorer_make_input(scorer, variant, &scorer->inputs[1], error);
}

static int check_sizes(const struct dl2_image *reference, const struct dl2_image *variant,
                       struct dl2_error *error)
{
    if (variant->width == reference->width && variant->height == reference->height)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "is %" PRIu32 "x%" PRIu32 " pixels, its reference %" PRIu32 "x%" PRIu32,
                         variant->width, variant->height, reference->width, reference->height);
}

/* Scores a pair by those of the metrics that compare inputs, or by the others. */
static int score_pair(struct dl2_scorer *scorer, const struct dl2_metric *const *metrics,
                      unsigned count, bool inputs, const struct dl2_image *variant,
                      struct dl2_score *scores, struct dl2_error *error)
{
    double sums[DL2_METRIC_SUMS];
    int (*measured)(struct dl2_scorer *, const struct dl2_image *, double *, struct dl2_error *);
    measured = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!metrics[i] || !metrics[i]->of_input == inputs)
            continue;
        const struct dl2_metric *metric = inputs ? metrics[i]->of_input : metrics[i];
        if (is_large_enough(metric, variant) && metric->measure != measured) {
            memset(sums, 0, sizeof sums);
            DL2_TRY(metric->measure(scorer, variant, sums, error));
            measured = metric->measure;
        }
        dl2_score_of_sums(metric, sums, scorer->reference, variant, &scores[i]);
    }
    return DL2_OK;
}

int dl2_scorer_score_all(struct dl2_scorer *scorer, const struct dl2_metric *const *metrics,
                         unsigned count, const struct dl2_image *variant, struct dl2_score *scores,
                         struct dl2_error *error)
{
    const struct dl2_image *const reference = scorer->reference;
    bool any = false, any_of_input = false;
    if (!reference)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no reference to score against");
    for (unsigned i = 0; i < count; i++) {
        any |= metrics[i] && !metrics[i]->of_input;
        any_of_input |= metrics[i] && metrics[i]->of_input;
    }
    if (any) {
        DL2_TRY(check_sizes(reference, variant, error));
        DL2_TRY(score_pair(scorer, metrics, count, false, variant, scores, error));
    }
    if (!any_of_input)
        return DL2_OK;
    DL2_TRY(make_inputs(scorer, variant, error));
    scorer->reference = &scorer->inputs[0];
    const int status = score_pair(scorer, metrics, count, true, &scorer->inputs[1], scores, error);
    scorer->reference = reference;
    return status;
}

int dl2_scorer_score(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                     const struct dl2_image *variant, struct dl2_score *score,
                     struct dl2_error *error)
{
    return dl2_scorer_score_all(scorer, &metric, 1, variant, score, error);
}

bool dl2_images_equal(const struct dl2_image *a, const struct dl2_image *b)
{
    const size_t row = (size_t)a->width * a->channels;
    if (a->channels == b->channels) {
        for (uint32_t y = 0; y < a->height; y++)
            if (memcmp(a->data + y * a->stride, b->data + y * b->stride, row))
                return false;
        return true;
    }
    const struct dl2_image *gray = a->channels == 1 ? a : b, *color = a->channels == 1 ? b : a;
    for (uint32_t y = 0; y < a->height; y++) {
        const uint8_t *g = gray->data + y * gray->stride, *c = color->data + y * color->stride;
        for (uint32_t x = 0; x < a->width; x++, c += 3)
            if (c[0] != g[x] || c[1] != g[x] || c[2] != g[x])
                return false;
    }
    return true;
}
