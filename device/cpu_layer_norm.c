/* SPDX-License-Identifier: BSD-2-Clause */
/* Layer norm on the cpu device, by kernels over shares of the rows. */
#include "common/memory.h"
#include "device/cpu.h"

#include <stdlib.h>

struct dl2_layer_norm {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_layer_norm_shape s;
    float *mean, *inverse; /* [rows] of the last forward; inverse is 1 / sqrt(var + epsilon) */
    /* Arguments of the current call. */
    const float *x, *gamma, *beta, *dy;
    float *y, *dx;
};

static void cpu_layer_norm_free(void *plan)
{
    struct dl2_layer_norm *norm = plan;
    free(norm->mean);
    free(norm->inverse);
    free(norm);
}

int dl2_cpu_layer_norm_create(struct dl2_device *device, const struct dl2_layer_norm_shape *shape,
                              struct dl2_layer_norm **out, struct dl2_error *error)
{
    if (!shape->channels || !shape->rows)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no layer norm over nothing");
    struct dl2_layer_norm *norm = dl2_calloc(1, sizeof *norm);
    if (!norm)
        return dl2_cpu_out_of_memory(error, "layer norm");
    norm->plan.free = cpu_layer_norm_free;
    norm->cpu = (struct dl2_cpu *)device;
    norm->s = *shape;
    norm->mean = dl2_alloc_aligned(shape->rows, sizeof *norm->mean);
    norm->inverse = dl2_alloc_aligned(shape->rows, sizeof *norm->inverse);
    if (!norm->mean || !norm->inverse || !dl2_cpu_reserve_partials(norm->cpu, shape->channels)) {
        cpu_layer_norm_free(norm);
        return dl2_cpu_out_of_memory(error, "layer norm");
    }
    *out = norm;
    return DL2_OK;
}

static void cpu_layer_norm_forward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_layer_norm *norm = context;
    const size_t at = begin * norm->s.channels;
    (void)part;
    norm->cpu->kernels->layer_norm(norm->x + at, end - begin, norm->s.channels, norm->s.epsilon,
                                   norm->gamma, norm->beta, norm->mean + begin,
                                   norm->inverse + begin, norm->y + at);
}

void dl2_cpu_layer_norm_forward(struct dl2_layer_norm *norm, const void *x, const float *gamma,
                                const float *beta, void *y)
{
    norm->x = x;
    norm->gamma = gamma;
    norm->beta = beta;
    norm->y = y;
    dl2_cpu_share_out(norm->cpu, norm->s.rows, dl2_cpu_row_grain(norm->s.channels),
                      cpu_layer_norm_forward_part, norm);
}

static void cpu_layer_norm_backward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_layer_norm *norm = context;
    const size_t channels = norm->s.channels, at = begin * channels;
    double *sums = dl2_cpu_begin_sums(norm->cpu, part, channels);
    norm->cpu->kernels->layer_norm_backward(norm->x + at, norm->dy + at, end - begin, channels,
                                            norm->gamma, norm->mean + begin, norm->inverse + begin,
                                            norm->dx + at, sums, sums + channels);
}

void dl2_cpu_layer_norm_backward(struct dl2_layer_norm *norm, const void *x, const void *dy,
                                 const float *gamma, void *dx, float *dgamma, float *dbeta,
                                 bool accumulate)
{
    const size_t channels = norm->s.channels;
    const struct dl2_cpu *cpu = norm->cpu;
    norm->x = x;
    norm->dy = dy;
    norm->gamma = gamma;
    norm->dx = dx;
    const unsigned parts = dl2_cpu_share_out(cpu, norm->s.rows, dl2_cpu_row_grain(channels),
                                             cpu_layer_norm_backward_part, norm);
    for (size_t c = 0; c < channels; c++) {
        double of_gamma = accumulate ? dgamma[c] : 0, of_beta = accumulate ? dbeta[c] : 0;
        for (unsigned part = 0; part < parts; part++) {
            const double *sums = dl2_cpu_part_sums(cpu, part);
            of_gamma += sums[c];
            of_beta += sums[channels + c];
        }
        dgamma[c] = (float)of_gamma;
        dbeta[c] = (float)of_beta;
    }
}
