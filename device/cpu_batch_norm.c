/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batch norm on the cpu device, with the residual and the activation in the same pass. One pass
 * over memory forward for the sums and one to apply them; two backward.
 */
#include "common/memory.h"
#include "device/cpu.h"
#include "ranks/sync_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dl2_norm {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_norm_shape s;
    float limit; /* of its activation */
    size_t period;
    /* [period] each: y = a * (x - mean) + b; dx = p * g + q * (x - mean) + r. */
    float *a, *b, *mean, *p, *q, *r;
    double *inverse; /* [channels] 1 / sqrt(var + epsilon) */
    double *sums;    /* [2][channels]: mean and variance, or backward's sums; see norm_train */
    /* Arguments of the current call. */
    const float *x, *residual;
    struct dl2_masked gradient;
    float *y, *dx, *dresidual;
};

static void cpu_norm_free(void *plan)
{
    struct dl2_norm *norm = plan;
    free(norm->a);
    free(norm->inverse);
    free(norm);
}

int dl2_cpu_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                        struct dl2_norm **out, struct dl2_error *error)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    size_t channels = shape->channels;
    if (!channels || !shape->rows)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no batch norm over nothing");
    size_t period = channels * (channels < 256 ? 256 / channels : 1);
    struct dl2_norm *norm = dl2_calloc(1, sizeof *norm);
    float *vectors = dl2_alloc_aligned(6 * period, sizeof *vectors);
    double *inverse = dl2_calloc(channels, 3 * sizeof *inverse);
    bool good = norm && vectors && inverse && dl2_cpu_reserve_partials(cpu, period);
    if (!good) {
        free(norm);
        free(vectors);
        free(inverse);
        return dl2_cpu_out_of_memory(error, "batch norm");
    }
    norm->plan.free = cpu_norm_free;
    norm->cpu = cpu;
    norm->s = *shape;
    norm->limit = dl2_cpu_limit(shape->activation);
    norm->period = period;
    norm->a = vectors;
    norm->b = vectors + period;
    norm->mean = vectors + 2 * period;
    norm->p = vectors + 3 * period;
    norm->q = vectors + 4 * period;
    norm->r = vectors + 5 * period;
    norm->inverse = inverse;
    norm->sums = inverse + channels;
    *out = norm;
    return DL2_OK;
}

/* Fills what per-channel vectors have beyond the channels. */
static void cpu_norm_repeat(const struct dl2_norm *norm, float *vector)
{
    for (size_t i = norm->s.channels; i < norm->period; i++)
        vector[i] = vector[i - norm->s.channels];
}

/* Adds up the parts for channel `c`, always in the same order. */
static void cpu_norm_total(const struct dl2_norm *norm, unsigned parts, size_t c, double *first,
                           double *second)
{
    *first = *second = 0;
    for (unsigned part = 0; part < parts; part++) {
        const double *sums = dl2_cpu_part_sums(norm->cpu, part);
        for (size_t i = c; i < norm->period; i += norm->s.channels) {
            *first += sums[i];
            *second += sums[norm->period + i];
        }
    }
}

static void cpu_norm_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels;
    double *sums = dl2_cpu_begin_sums(norm->cpu, part, norm->period);
    norm->cpu->kernels->norm_sums(norm->x + begin * channels, (end - begin) * channels, norm->mean,
                                  norm->period, sums, sums + norm->period);
}

static void cpu_norm_apply_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t at = begin * norm->s.channels;
    (void)part;
    norm->cpu->kernels->norm_apply(norm->x + at, norm->residual ? norm->residual + at : NULL,
                                   (end - begin) * norm->s.channels, norm->mean, norm->a, norm->b,
                                   norm->period, norm->limit, norm->y + at);
}

static void cpu_norm_apply(struct dl2_norm *norm, const float *x, const float *residual,
                           const float *gamma, const float *beta, float *y)
{
    for (size_t c = 0; c < norm->s.channels; c++) {
        norm->a[c] = (float)(gamma[c] * norm->inverse[c]);
        norm->b[c] = beta[c];
    }
    cpu_norm_repeat(norm, norm->mean);
    cpu_norm_repeat(norm, norm->a);
    cpu_norm_repeat(norm, norm->b);
    norm->x = x;
    norm->residual = residual;
    norm->y = y;
    dl2_cpu_share_out(norm->cpu, norm->s.rows, dl2_cpu_row_grain(norm->s.channels),
                      cpu_norm_apply_part, norm);
}

void dl2_cpu_norm_train(struct dl2_norm *norm, const void *from, const void *residual,
                        const float *gamma, const float *beta, float *running_mean,
                        float *running_var, void *y)
{
    const struct dl2_norm_shape *s = &norm->s;
    const float *x = from;
    double rows = (double)s->rows, momentum = s->momentum;
    double *means = norm->sums, *variances = norm->sums + s->channels;
    /* One pass, with the first row taken off so that the squares do not cancel. */
    memcpy(norm->mean, x, s->channels * sizeof *x);
    cpu_norm_repeat(norm, norm->mean);
    norm->x = x;
    unsigned parts = dl2_cpu_share_out(norm->cpu, s->rows, dl2_cpu_row_grain(s->channels),
                                       cpu_norm_sums_part, norm);
    for (size_t c = 0; c < s->channels; c++) {
        double sum, squares;
        cpu_norm_total(norm, parts, c, &sum, &squares);
        double var = squares / rows - sum / rows * (sum / rows);
        means[c] = x[c] + sum / rows;
        variances[c] = var > 0 ? var : 0;
    }
    if (s->synchronized) {
        struct dl2_device *device = &norm->cpu->base;
        dl2_sync_moments(device->world, means, running_mean, s->channels, &device->failure);
        rows *= dl2_world_size(device->world);
    }
    for (size_t c = 0; c < s->channels; c++) {
        double unbiased = rows > 1 ? variances[c] * rows / (rows - 1) : variances[c];
        norm->mean[c] = (float)means[c];
        norm->inverse[c] = 1 / sqrt(variances[c] + s->epsilon);
        running_mean[c] = (float)((1 - momentum) * running_mean[c] + momentum * means[c]);
        running_var[c] = (float)((1 - momentum) * running_var[c] + momentum * unbiased);
    }
    cpu_norm_apply(norm, x, residual, gamma, beta, y);
}

void dl2_cpu_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                       const float *gamma, const float *beta, const float *running_mean,
                       const float *running_var, void *y)
{
    for (size_t c = 0; c < norm->s.channels; c++) {
        norm->mean[c] = running_mean[c];
        norm->inverse[c] = 1 / sqrt((double)running_var[c] + norm->s.epsilon);
    }
    cpu_norm_apply(norm, x, residual, gamma, beta, y);
}

/* The gradient from element `at` on. */
static struct dl2_masked cpu_norm_masked_from(const struct dl2_masked *gradient, size_t at)
{
    struct dl2_masked g = *gradient;
    g.dy += at;
    g.dy2 = g.dy2 ? g.dy2 + at : NULL;
    g.x += at;
    g.y += at;
    return g;
}

static void cpu_norm_backward_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels, at = begin * channels;
    struct dl2_masked gradient = cpu_norm_masked_from(&norm->gradient, at);
    double *sums = dl2_cpu_begin_sums(norm->cpu, part, norm->period);
    norm->cpu->kernels->norm_backward_sums(&gradient, (end - begin) * channels, norm->period, sums,
                                           sums + norm->period,
                                           norm->dresidual ? norm->dresidual + at : NULL);
}

static void cpu_norm_backward_data_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels, at = begin * channels;
    struct dl2_masked gradient = cpu_norm_masked_from(&norm->gradient, at);
    (void)part;
    norm->cpu->kernels->norm_backward_data(&gradient, (end - begin) * channels, norm->p, norm->q,
                                           norm->r, norm->period, norm->dx + at);
}

void dl2_cpu_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                           const void *dy2, const float *gamma, const float *beta, void *dx,
                           void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    const struct dl2_norm_shape *s = &norm->s;
    double rows = (double)s->rows, *sums = norm->sums, *products = norm->sums + s->channels;
    (void)beta;
    norm->dx = dx;
    norm->dresidual = dresidual;
    norm->gradient = (struct dl2_masked){
        .dy = dy,
        .dy2 = dy2,
        .x = x,
        .y = y,
        .mean = norm->mean,
        .a = norm->a,
        .b = norm->b,
        /* Without a residual, x tells the mask, and y need not be read; to tell ELU's slopes it
         * would take another exponential. */
        .mask = s->activation == DL2_IDENTITY             ? DL2_MASK_NONE
                : s->residual || s->activation == DL2_ELU ? DL2_MASK_Y
                                                          : DL2_MASK_X,
        .limit = norm->limit,
    };
    unsigned parts = dl2_cpu_share_out(norm->cpu, s->rows, dl2_cpu_row_grain(s->channels),
                                       cpu_norm_backward_sums_part, norm);
    for (size_t c = 0; c < s->channels; c++) {
        cpu_norm_total(norm, parts, c, &sums[c], &products[c]);
        dgamma[c] = (float)(products[c] * norm->inverse[c] + (accumulate ? dgamma[c] : 0));
        dbeta[c] = (float)(sums[c] + (accumulate ? dbeta[c] : 0));
    }
    if (s->synchronized) {
        struct dl2_device *device = &norm->cpu->base;
        dl2_world_sum(device->world, sums, 2 * (size_t)s->channels, &device->failure);
        rows *= dl2_world_size(device->world);
    }
    for (size_t c = 0; c < s->channels; c++) {
        double inverse = norm->inverse[c];
        norm->p[c] = (float)(gamma[c] * inverse);
        norm->q[c] = (float)(-gamma[c] * inverse * inverse * inverse * products[c] / rows);
        norm->r[c] = (float)(-gamma[c] * inverse * sums[c] / rows);
    }
    cpu_norm_repeat(norm, norm->p);
    cpu_norm_repeat(norm, norm->q);
    cpu_norm_repeat(norm, norm->r);
    if (dresidual) /* holds the masked gradient by now */
        norm->gradient = (struct dl2_masked){.dy = dresidual, .x = x, .y = y, .mean = norm->mean};
    dl2_cpu_share_out(norm->cpu, s->rows, dl2_cpu_row_grain(s->channels),
                      cpu_norm_backward_data_part, norm);
}
