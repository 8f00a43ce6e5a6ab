/* SPDX-License-Identifier: BSD-2-Clause */
/* The cpu device's methods for labels of pixels and voxels: the Dice loss, biases, columns. */
#include "common/memory.h"
#include "device/cpu.h"
#include "device/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- Dice loss -- */

struct dl2_dice {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_dice_shape s;
    struct dl2_dice_slope *slopes; /* [classes] */
    float *softmax;                /* [threads][classes] */
    /* Arguments of the current call, of one sample. */
    const float *logits;
    const int32_t *labels;
    float *dlogits;
    double scale;
};

static void cpu_dice_free(void *plan)
{
    struct dl2_dice *dice = plan;
    free(dice->slopes);
    free(dice->softmax);
    free(dice);
}

int dl2_cpu_dice_create(struct dl2_device *device, const struct dl2_dice_shape *shape,
                        struct dl2_dice **out, struct dl2_error *error)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    DL2_TRY(dl2_dice_shape_check(shape, error));
    struct dl2_dice *dice = dl2_calloc(1, sizeof *dice);
    if (!dice)
        return dl2_cpu_out_of_memory(error, "the Dice loss");
    dice->plan.free = cpu_dice_free;
    dice->cpu = cpu;
    dice->s = *shape;
    dice->slopes = dl2_calloc(shape->classes, sizeof *dice->slopes);
    dice->softmax = dl2_calloc(cpu->threads, shape->classes * sizeof *dice->softmax);
    if (!dice->slopes || !dice->softmax ||
        !dl2_cpu_reserve_partials(cpu, 2 * (size_t)shape->classes)) {
        cpu_dice_free(dice);
        return dl2_cpu_out_of_memory(error, "the Dice loss");
    }
    *out = dice;
    return DL2_OK;
}

/* The softmax of a row's logits, in the memory of a part. */
static const float *cpu_dice_softmax(const struct dl2_dice *dice, unsigned part, size_t row)
{
    const size_t classes = dice->s.classes;
    const float *logits = dice->logits + row * classes;
    float *softmax = dice->softmax + part * classes, highest = logits[0], sum = 0;
    for (size_t k = 1; k < classes; k++)
        highest = logits[k] > highest ? logits[k] : highest;
    for (size_t k = 0; k < classes; k++)
        sum += softmax[k] = expf(logits[k] - highest);
    for (size_t k = 0; k < classes; k++)
        softmax[k] /= sum;
    return softmax;
}

/* A part's sums: t * p and t of each class, and p. */
static void cpu_dice_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_dice *dice = context;
    const size_t classes = dice->s.classes;
    double *both = dl2_cpu_begin_sums(dice->cpu, part, 2 * classes);
    double *target = both + classes, *predicted = target + classes;
    for (size_t n = begin; n < end; n++) {
        const int32_t label = dice->labels[n];
        if (label < 0)
            continue;
        const float *softmax = cpu_dice_softmax(dice, part, n);
        for (size_t k = 0; k < classes; k++)
            predicted[k] += softmax[k];
        both[label] += softmax[label];
        target[label]++;
    }
}

/* The sum of 1 - D over the classes of the current sample; sets their slopes. */
static double cpu_dice_score(struct dl2_dice *dice)
{
    const size_t classes = dice->s.classes;
    const unsigned parts = dl2_cpu_share_out(
        dice->cpu, dice->s.rows, dl2_cpu_row_grain(8 * classes), cpu_dice_sums_part, dice);
    double lost = 0;
    for (size_t k = 1; k < classes; k++) {
        double both = 0, target = 0, predicted = 0;
        for (unsigned part = 0; part < parts; part++) {
            const double *sums = dl2_cpu_part_sums(dice->cpu, part);
            both += sums[k];
            target += sums[classes + k];
            predicted += sums[2 * classes + k];
        }
        lost +=
            1 - dl2_dice_score(both, target, predicted,
                               (double)dice->s.samples * (double)(classes - 1), &dice->slopes[k]);
    }
    return lost;
}

static void cpu_dice_gradient_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_dice *dice = context;
    const size_t classes = dice->s.classes;
    const struct dl2_dice_slope *slopes = dice->slopes;
    for (size_t n = begin; n < end; n++) {
        const int32_t label = dice->labels[n];
        float *dlogits = dice->dlogits + n * classes;
        if (label < 0)
            continue;
        const float *softmax = cpu_dice_softmax(dice, part, n);
        double mean = label > 0 ? softmax[label] * slopes[label].own : 0;
        for (size_t k = 1; k < classes; k++)
            mean += softmax[k] * slopes[k].all;
        for (size_t k = 0; k < classes; k++) {
            const double slope = k ? slopes[k].all + (k == (size_t)label ? slopes[k].own : 0) : 0;
            dlogits[k] = (float)(dlogits[k] / 2 + dice->scale * softmax[k] * (slope - mean));
        }
    }
}

void dl2_cpu_dice_run(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                      void *dlogits, const struct dl2_loss_sums *entropy,
                      struct dl2_loss_sums *sums)
{
    const size_t size = dice->s.rows * dice->s.classes;
    double lost = 0;
    dice->scale = (double)dice->cpu->base.params.scale;
    for (unsigned i = 0; i < dice->s.samples; i++) {
        dice->logits = (const float *)logits + i * size;
        dice->labels = labels + i * dice->s.rows;
        dice->dlogits = dlogits ? (float *)dlogits + i * size : NULL;
        lost += cpu_dice_score(dice);
        if (dlogits)
            dl2_cpu_share_out(dice->cpu, dice->s.rows, dl2_cpu_row_grain(8 * dice->s.classes),
                              cpu_dice_gradient_part, dice);
    }
    lost /= (double)dice->s.samples * (double)(dice->s.classes - 1);
    sums->loss += (entropy->loss + (double)entropy->counted * lost) / 2;
    sums->counted += entropy->counted;
    sums->top1 += entropy->top1;
    sums->top5 += entropy->top5;
}

/* -- rows -- */

struct rows {
    struct dl2_cpu *cpu;
    const float *from;
    float *to;
    size_t from_step, to_step, columns;
};

static void cpu_add_bias_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct rows *rows = context;
    (void)part;
    for (size_t n = begin; n < end; n++)
        for (size_t c = 0; c < rows->columns; c++)
            rows->to[n * rows->columns + c] += rows->from[c];
}

void dl2_cpu_add_bias(struct dl2_device *device, const float *bias, void *y, size_t count,
                      unsigned channels)
{
    struct rows rows = {
        .cpu = (struct dl2_cpu *)device, .from = bias, .to = y, .columns = channels};
    dl2_cpu_share_out(rows.cpu, count, dl2_cpu_row_grain(channels), cpu_add_bias_part, &rows);
}

static void cpu_sum_rows_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct rows *rows = context;
    double *sums = dl2_cpu_begin_sums(rows->cpu, part, rows->columns);
    for (size_t n = begin; n < end; n++)
        for (size_t c = 0; c < rows->columns; c++)
            sums[c] += rows->from[n * rows->columns + c];
}

void dl2_cpu_sum_rows(struct dl2_device *device, const void *dy, size_t count, unsigned channels,
                      float *dbias, bool accumulate)
{
    struct rows rows = {.cpu = (struct dl2_cpu *)device, .from = dy, .columns = channels};
    if (!dl2_cpu_reserve_partials(rows.cpu, channels)) {
        dl2_cpu_out_of_memory(&device->failure, "the gradient of a bias");
        return;
    }
    const unsigned parts =
        dl2_cpu_share_out(rows.cpu, count, dl2_cpu_row_grain(channels), cpu_sum_rows_part, &rows);
    for (size_t c = 0; c < channels; c++) {
        double sum = accumulate ? dbias[c] : 0;
        for (unsigned part = 0; part < parts; part++)
            sum += dl2_cpu_part_sums(rows.cpu, part)[c];
        dbias[c] = (float)sum;
    }
}

static void cpu_copy_columns_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct rows *rows = context;
    (void)part;
    for (size_t n = begin; n < end; n++)
        memcpy(rows->to + n * rows->to_step, rows->from + n * rows->from_step,
               rows->columns * sizeof *rows->to);
}

void dl2_cpu_copy_columns(struct dl2_device *device, void *to, size_t to_step, const void *from,
                          size_t from_step, size_t columns, size_t count)
{
    struct rows rows = {
        .from = from, .to = to, .from_step = from_step, .to_step = to_step, .columns = columns};
    dl2_cpu_share_out((struct dl2_cpu *)device, count, dl2_cpu_row_grain(columns),
                      cpu_copy_columns_part, &rows);
}
