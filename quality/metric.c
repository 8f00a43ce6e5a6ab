#include "quality/metric.h"

#include "common/memory.h"
#include "common/simd.h"
#include "quality/score_device.h"
#include "quality/scorer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct dl2_metric *const metrics[DL2_METRIC_COUNT] = {
    &dl2_metric_psnr_rgb,
    &dl2_metric_psnr_y,
    &dl2_metric_ssim,
};

const struct dl2_metric *dl2_metric_at(unsigned index)
{
    return index < DL2_METRIC_COUNT ? metrics[index] : NULL;
}

const struct dl2_metric *dl2_metric_find(const char *name)
{
    for (unsigned i = 0; i < DL2_METRIC_COUNT; i++)
        if (!strcmp(metrics[i]->name, name))
            return metrics[i];
    return NULL;
}

const char *dl2_score_gap_text(enum dl2_score_gap gap)
{
    switch (gap) {
    case DL2_SCORE_PRESENT:
        return NULL;
    case DL2_SCORE_IDENTICAL:
        return "identical";
    case DL2_SCORE_TOO_SMALL:
        return "smaller than 11x11";
    }
    return "unknown";
}

int dl2_scorer_create(struct dl2_scorer **out, struct dl2_error *error)
{
    struct dl2_scorer *scorer = dl2_alloc_aligned(1, sizeof *scorer);
    if (!scorer)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a scorer");
    /* Zeroed also because kernels read a little behind a strip's columns and throw the result away.
     */
    memset(scorer, 0, sizeof *scorer);
    scorer->kernels = dl2_metric_kernels_for(dl2_simd_flags());
    *out = scorer;
    return DL2_OK;
}

void dl2_scorer_free(struct dl2_scorer *scorer)
{
    free(scorer);
}

void dl2_scorer_set_reference(struct dl2_scorer *scorer, const struct dl2_image *reference)
{
    scorer->reference = reference;
}

int dl2_scorer_score(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                     const struct dl2_image *variant, struct dl2_score *score,
                     struct dl2_error *error)
{
    const struct dl2_image *reference = scorer->reference;
    if (!reference)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no reference to score against");
    if (variant->width != reference->width || variant->height != reference->height)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "is %" PRIu32 "x%" PRIu32 " pixels, its reference %" PRIu32
                             "x%" PRIu32,
                             variant->width, variant->height, reference->width, reference->height);
    *score = (struct dl2_score){NAN, NAN, DL2_SCORE_PRESENT};
    return metric->score(scorer, variant, score, error);
}

void dl2_scores_of_sums(const struct dl2_score_sums *sums, const struct dl2_image *reference,
                        const struct dl2_image *variant, struct dl2_score *scores)
{
    const double pixels = (double)variant->width * variant->height;
    const bool gray = reference->channels == 1 && variant->channels == 1;
    const bool fits = variant->width >= DL2_SSIM_TAPS && variant->height >= DL2_SSIM_TAPS;
    const double windows = ((double)variant->width - (DL2_SSIM_TAPS - 1)) *
                           ((double)variant->height - (DL2_SSIM_TAPS - 1));
    for (unsigned i = 0; i < DL2_METRIC_COUNT; i++) {
        struct dl2_score *score = &scores[i];
        *score = (struct dl2_score){NAN, NAN, DL2_SCORE_PRESENT};
        if (metrics[i] == &dl2_metric_ssim && !fits)
            score->gap = DL2_SCORE_TOO_SMALL;
        else if (metrics[i] == &dl2_metric_ssim)
            score->value = sums->ssim / windows;
        else if (metrics[i] == &dl2_metric_psnr_rgb)
            dl2_set_psnr(score, sums->samples / (pixels * (gray ? 1 : 3)));
        else
            dl2_set_psnr(score, sums->luma / 1e6 / pixels);
    }
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
    const struct dl2_image *gray = a->channels == 1 ? a : b, *colour = a->channels == 1 ? b : a;
    for (uint32_t y = 0; y < a->height; y++) {
        const uint8_t *g = gray->data + y * gray->stride, *c = colour->data + y * colour->stride;
        for (uint32_t x = 0; x < a->width; x++, c += 3)
            if (c[0] != g[x] || c[1] != g[x] || c[2] != g[x])
                return false;
    }
    return true;
}
