/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values are put on the scale of images, from 0, the reference's lowest, to 255, its highest. Then
 * PSNR and SSIM are those of images, and the peak is the reference's range.
 */
#include "quality/volume_metrics.h"

#include "common/memory.h"
#include "quality/scorer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct dl2_metric volume_psnr = {
    .name = "volume_psnr",
    .title = "PSNR",
    .unit = "dB",
    .definition =
        "of volumes: 10 log10(range^2 / MSE), MSE over all voxels and channels, range the "
        "reference volume's highest value less its lowest",
    .digits = 3,
    .by_default = true,
    .missing = "identical",
    .of_mse = dl2_psnr_of_mse,
};

static const struct dl2_metric volume_ssim = {
    .name = "volume_ssim",
    .title = "SSIM",
    .unit = "",
    .definition = "of volumes: the mean over slices and channels of SSIM as images have it, with "
                  "the reference volume's range as L",
    .digits = 6,
    .one_is_best = true,
    .by_default = true,
    .missing = "too_small",
    .missing_note = "too small for SSIM",
    .min_side = DL2_SSIM_TAPS,
};

enum { PSNR, SSIM };
static const struct dl2_metric *const metrics[] = {
    [PSNR] = &volume_psnr, [SSIM] = &volume_ssim, NULL};

const struct dl2_metric *dl2_volume_metric_at(unsigned index)
{
    return index < sizeof metrics / sizeof *metrics ? metrics[index] : NULL;
}

/* The values of a slice. */
static int read_slice(struct dl2_volume *volume, size_t channel, size_t z, double *out,
                      struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    DL2_TRY(dl2_volume_read_stored(volume, channel, z, out, error));
    for (size_t i = 0; i < info->size[1] * info->size[2]; i++)
        out[i] = info->slope * out[i] + info->intercept;
    return DL2_OK;
}

int dl2_volume_reference_open(struct dl2_volume_reference *reference, struct dl2_volume *volume,
                              struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    const size_t count = info->size[1] * info->size[2];
    *reference = (struct dl2_volume_reference){volume, INFINITY, -INFINITY, {NULL, NULL}};
    for (int i = 0; i < 2; i++)
        DL2_TRY(DL2_NEW(&reference->slices[i], count, "a slice", error));
    for (size_t s = 0; s < info->channels * info->size[0]; s++) {
        double *values = reference->slices[0];
        DL2_TRY(read_slice(volume, s / info->size[0], s % info->size[0], values, error));
        for (size_t i = 0; i < count; i++) {
            reference->low = values[i] < reference->low ? values[i] : reference->low;
            reference->high = values[i] > reference->high ? values[i] : reference->high;
        }
    }
    return DL2_OK;
}

void dl2_volume_reference_close(struct dl2_volume_reference *reference)
{
    dl2_volume_close(reference->volume);
    free(reference->slices[0]);
    free(reference->slices[1]);
    *reference = (struct dl2_volume_reference){0};
}

struct slice_pair {
    const double *reference, *variant; /* on the scale of images */
    size_t width;
};

/* In thousandths, as luma of images is. */
static void load_values(void *context, size_t x, size_t y, size_t count, float *sum,
                        float *difference)
{
    const struct slice_pair *pair = context;
    const double *a = pair->reference + y * pair->width + x;
    const double *b = pair->variant + y * pair->width + x;
    for (size_t i = 0; i < count; i++) {
        sum[i] = (float)(1000 * (a[i] + b[i]));
        difference[i] = (float)(1000 * (a[i] - b[i]));
    }
}

/* Both slices on the scale of images, and their squared error there. */
static double scale_slices(const struct dl2_volume_reference *reference, size_t count,
                           bool *identical)
{
    const double range = reference->high - reference->low, factor = 255 / (range > 0 ? range : 1);
    double *a = reference->slices[0], *b = reference->slices[1], sum = 0;
    for (size_t i = 0; i < count; i++) {
        *identical = *identical && (float)a[i] == (float)b[i];
        a[i] = factor * (a[i] - reference->low);
        b[i] = factor * (b[i] - reference->low);
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sum;
}

static int check_sizes(const struct dl2_volume_info *reference,
                       const struct dl2_volume_info *variant, struct dl2_error *error)
{
    const size_t *a = variant->size, *b = reference->size;
    if (variant->channels == reference->channels && !memcmp(a, b, sizeof reference->size))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "is of %zux%zux%zu voxels and %zu channels, its reference of %zux%zux%zu "
                         "and %zu",
                         a[0], a[1], a[2], variant->channels, b[0], b[1], b[2],
                         reference->channels);
}

int dl2_volume_compare(struct dl2_volume_reference *reference, struct dl2_scorer *scorer,
                       struct dl2_volume *variant, struct dl2_score *scores, bool *identical,
                       struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(reference->volume);
    const size_t count = info->size[1] * info->size[2], slices = info->channels * info->size[0];
    const bool has_ssim = info->size[1] >= DL2_SSIM_TAPS && info->size[2] >= DL2_SSIM_TAPS;
    const double windows =
        ((double)info->size[1] - DL2_SSIM_TAPS + 1) * ((double)info->size[2] - DL2_SSIM_TAPS + 1);
    double squares = 0, ssim = 0;
    DL2_TRY(check_sizes(info, dl2_volume_info(variant), error));
    *identical = true;
    for (size_t s = 0; s < slices; s++) {
        const size_t channel = s / info->size[0], z = s % info->size[0];
        DL2_TRY(read_slice(reference->volume, channel, z, reference->slices[0], error));
        DL2_TRY(read_slice(variant, channel, z, reference->slices[1], error));
        squares += scale_slices(reference, count, identical);
        if (!has_ssim)
            continue;
        struct slice_pair pair = {reference->slices[0], reference->slices[1], info->size[2]};
        const struct dl2_ssim_source source = {(uint32_t)info->size[2], (uint32_t)info->size[1],
                                               load_values, &pair, NULL};
        ssim += dl2_ssim_sum(scorer, &source, DL2_SSIM_2C1) / windows;
    }
    const double mse = *identical ? 0 : squares / ((double)count * (double)slices);
    const double psnr = dl2_psnr_of_mse(mse);
    scores[PSNR] = (struct dl2_score){.value = isinf(psnr) ? NAN : psnr, .mean = mse};
    scores[SSIM].value = scores[SSIM].mean = has_ssim ? ssim / (double)slices : NAN;
    return DL2_OK;
}
