/* SPDX-License-Identifier: BSD-2-Clause */
/* The reference device's methods for labels of pixels and voxels, as their definitions read. */
#include "device/ref_dense.h"
#include "common/memory.h"
#include "device/dense.h"
#include "device/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dl2_dice {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    struct dl2_dice_shape s;
    double *both, *target, *predicted, *softmax; /* [classes] each */
    struct dl2_dice_slope *slopes;               /* [classes] */
};

static double get(const struct dl2_device *device, const void *tensor, size_t i)
{
    float value;
    dl2_elements_to_floats(device->element,
                           (const uint8_t *)tensor + i * dl2_element_size(device->element), &value,
                           1);
    return value;
}

static void set(const struct dl2_device *device, void *tensor, size_t i, double value)
{
    const float rounded = (float)value;
    dl2_elements_from_floats(device->element, &rounded,
                             (uint8_t *)tensor + i * dl2_element_size(device->element), 1);
}

/* -- Dice loss -- */

static void ref_dice_free(void *plan)
{
    struct dl2_dice *dice = plan;
    free(dice->both);
    free(dice->slopes);
    free(dice);
}

int dl2_ref_dice_create(struct dl2_device *device, const struct dl2_dice_shape *shape,
                        struct dl2_dice **out, struct dl2_error *error)
{
    DL2_TRY(dl2_dice_shape_check(shape, error));
    struct dl2_dice *dice = dl2_calloc(1, sizeof *dice);
    if (!dice)
        return dl2_error_memory(error, "the Dice loss");
    dice->plan.free = ref_dice_free;
    dice->device = device;
    dice->s = *shape;
    dice->both = dl2_calloc(shape->classes, 4 * sizeof *dice->both);
    dice->slopes = dl2_calloc(shape->classes, sizeof *dice->slopes);
    if (!dice->both || !dice->slopes) {
        ref_dice_free(dice);
        return dl2_error_memory(error, "the Dice loss");
    }
    dice->target = dice->both + shape->classes;
    dice->predicted = dice->target + shape->classes;
    dice->softmax = dice->predicted + shape->classes;
    *out = dice;
    return DL2_OK;
}

/* Writes the softmax of a row's logits to dice->softmax. */
static void softmax_of(struct dl2_dice *dice, const void *logits, size_t row)
{
    const size_t classes = dice->s.classes;
    double highest = -INFINITY, sum = 0;
    for (size_t k = 0; k < classes; k++) {
        dice->softmax[k] = get(dice->device, logits, row * classes + k);
        highest = dice->softmax[k] > highest ? dice->softmax[k] : highest;
    }
    for (size_t k = 0; k < classes; k++)
        sum += dice->softmax[k] = exp(dice->softmax[k] - highest);
    for (size_t k = 0; k < classes; k++)
        dice->softmax[k] /= sum;
}

/* A sample's sums; returns the sum of 1 - D over its classes, and sets their slopes. */
static double score_sample(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                           size_t first)
{
    const size_t classes = dice->s.classes;
    double lost = 0;
    memset(dice->both, 0, 3 * classes * sizeof *dice->both);
    for (size_t n = first; n < first + dice->s.rows; n++) {
        if (labels[n] < 0)
            continue;
        softmax_of(dice, logits, n);
        for (size_t k = 0; k < classes; k++)
            dice->predicted[k] += dice->softmax[k];
        dice->both[labels[n]] += dice->softmax[labels[n]];
        dice->target[labels[n]]++;
    }
    for (size_t k = 1; k < classes; k++)
        lost +=
            1 - dl2_dice_score(dice->both[k], dice->target[k], dice->predicted[k],
                               (double)dice->s.samples * (double)(classes - 1), &dice->slopes[k]);
    return lost;
}

static void gradient_of_sample(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                               size_t first, double scale, void *dlogits)
{
    const size_t classes = dice->s.classes;
    for (size_t n = first; n < first + dice->s.rows; n++) {
        double mean = 0;
        if (labels[n] < 0)
            continue;
        softmax_of(dice, logits, n);
        for (size_t k = 1; k < classes; k++)
            mean += dice->softmax[k] *
                    (dice->slopes[k].all + (k == (size_t)labels[n] ? dice->slopes[k].own : 0));
        for (size_t k = 0; k < classes; k++) {
            const double slope =
                k ? dice->slopes[k].all + (k == (size_t)labels[n] ? dice->slopes[k].own : 0) : 0;
            const size_t at = n * classes + k;
            set(dice->device, dlogits, at,
                get(dice->device, dlogits, at) / 2 + scale * dice->softmax[k] * (slope - mean));
        }
    }
}

void dl2_ref_dice_run(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                      void *dlogits, const struct dl2_loss_sums *entropy,
                      struct dl2_loss_sums *sums)
{
    struct dl2_device *device = dice->device;
    struct dl2_loss_scale scale;
    double lost = 0;
    device->ops->get_loss_scale(device, &scale, NULL);
    for (unsigned i = 0; i < dice->s.samples; i++) {
        lost += score_sample(dice, logits, labels, i * dice->s.rows);
        if (dlogits)
            gradient_of_sample(dice, logits, labels, i * dice->s.rows,
                               device->params.scale * scale.scale, dlogits);
    }
    lost /= (double)dice->s.samples * (double)(dice->s.classes - 1);
    sums->loss += (entropy->loss + (double)entropy->counted * lost) / 2;
    sums->counted += entropy->counted;
    sums->top1 += entropy->top1;
    sums->top5 += entropy->top5;
}

/* -- rows -- */

void dl2_ref_add_bias(struct dl2_device *device, const float *bias, void *y, size_t rows,
                      unsigned channels)
{
    for (size_t i = 0; i < rows * channels; i++)
        set(device, y, i, get(device, y, i) + (double)bias[i % channels]);
}

void dl2_ref_sum_rows(struct dl2_device *device, const void *dy, size_t rows, unsigned channels,
                      float *dbias, bool accumulate)
{
    for (size_t c = 0; c < channels; c++) {
        double sum = accumulate ? dbias[c] : 0;
        for (size_t n = 0; n < rows; n++)
            sum += get(device, dy, n * channels + c);
        dbias[c] = (float)sum;
    }
}

void dl2_ref_copy_columns(struct dl2_device *device, void *to, size_t to_step, const void *from,
                          size_t from_step, size_t columns, size_t rows)
{
    const size_t size = dl2_element_size(device->element);
    for (size_t n = 0; n < rows; n++)
        memcpy((uint8_t *)to + n * to_step * size, (const uint8_t *)from + n * from_step * size,
               columns * size);
}
