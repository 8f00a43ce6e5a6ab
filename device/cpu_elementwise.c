/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of the cpu device that need no plan: elementwise, optimizer steps, tokens. */
#include "common/random.h"
#include "device/cpu.h"
#include "ranks/world.h"

#include <math.h>
#include <string.h>

struct elementwise {
    const struct dl2_cpu *cpu;
    void (*kernel)(const float *a, const float *b, float *y, size_t count);
    void (*one)(const float *a, float *y, size_t count);
    const float *a, *b, *c;
    float *y, *z;
    float rate, limit;
    uint64_t seed, layer;
    size_t each;
    const struct dl2_gate_shape *gate;
    double *sums; /* one of each part */
};

static void cpu_activate_backward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->activate_backward(e->a + begin, e->b + begin, e->y + begin, end - begin,
                                       e->limit);
}

void dl2_cpu_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                               const void *y, const void *dy, void *dx, size_t count)
{
    struct elementwise e = {.cpu = (struct dl2_cpu *)device,
                            .a = y,
                            .b = dy,
                            .y = dx,
                            .limit = dl2_cpu_limit(activation)};
    if (activation != DL2_IDENTITY)
        dl2_cpu_share_out(e.cpu, count, DL2_CPU_GRAIN, cpu_activate_backward_part, &e);
    else if (dx != dy)
        memcpy(dx, dy, count * sizeof(float));
}

static void cpu_unary_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->one(e->a + begin, e->y + begin, end - begin);
}

void dl2_cpu_smooth(struct dl2_device *device, enum dl2_smooth kind, const void *x, void *y,
                    size_t count)
{
    const struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    const struct dl2_cpu_kernels *kernels = cpu->kernels;
    struct elementwise e = {
        .one = kind == DL2_GELU ? kernels->gelu : kernels->silu, .a = x, .y = y};
    dl2_cpu_share_out(cpu, count, DL2_CPU_GRAIN, cpu_unary_part, &e);
}

static void cpu_binary_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->kernel(e->a + begin, e->b + begin, e->y + begin, end - begin);
}

void dl2_cpu_smooth_backward(struct dl2_device *device, enum dl2_smooth kind, const void *x,
                             const void *dy, void *dx, size_t count)
{
    const struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    const struct dl2_cpu_kernels *kernels = cpu->kernels;
    struct elementwise e = {.kernel =
                                kind == DL2_GELU ? kernels->gelu_backward : kernels->silu_backward,
                            .a = x,
                            .b = dy,
                            .y = dx};
    dl2_cpu_share_out(cpu, count, DL2_CPU_GRAIN, cpu_binary_part, &e);
}

void dl2_cpu_add(struct dl2_device *device, const void *a, const void *b,
                 enum dl2_activation activation, void *y, size_t count)
{
    const struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    const struct dl2_cpu_kernels *kernels = cpu->kernels;
    struct elementwise e = {.kernel = activation == DL2_RELU ? kernels->add_relu : kernels->add,
                            .a = a,
                            .b = b,
                            .y = y};
    dl2_cpu_share_out(cpu, count, DL2_CPU_GRAIN, cpu_binary_part, &e);
}

/* Samples begin .. end-1. */
static void cpu_gate_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    const struct dl2_cpu_kernels *kernels = e->cpu->kernels;
    const size_t rows = e->gate->rows, channels = e->gate->channels;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        const size_t at = n * rows * channels, gate = n * channels;
        if (e->c)
            kernels->gate_backward(e->a + at, e->b + gate, e->c + at, rows, channels, e->y + at,
                                   e->z + gate);
        else
            kernels->gate(e->a + at, e->b + gate, rows, channels, e->y + at);
    }
}

void dl2_cpu_gate(struct dl2_device *device, const struct dl2_gate_shape *shape, const void *x,
                  const void *gate, void *y)
{
    struct elementwise e = {
        .cpu = (struct dl2_cpu *)device, .gate = shape, .a = x, .b = gate, .y = y};
    dl2_cpu_share_out(e.cpu, shape->batch, 1, cpu_gate_part, &e);
}

void dl2_cpu_gate_backward(struct dl2_device *device, const struct dl2_gate_shape *shape,
                           const void *x, const void *gate, const void *dy, void *dx, void *dgate)
{
    struct elementwise e = {.cpu = (struct dl2_cpu *)device,
                            .gate = shape,
                            .a = x,
                            .b = gate,
                            .c = dy,
                            .y = dx,
                            .z = dgate};
    dl2_cpu_share_out(e.cpu, shape->batch, 1, cpu_gate_part, &e);
}

/* Runs begin .. end-1. */
static void cpu_dropout_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    const float scale = 1 / (1 - e->rate);
    struct dl2_random random;
    (void)part;
    for (size_t i = begin; i < end; i++) {
        if (i == begin || i % 4096 == 0)
            dl2_random_init(&random, e->seed, DL2_RANDOM_DROPOUT, e->cpu->base.params.step,
                            (e->layer << 24) + i / 4096);
        for (size_t before = i == begin ? i % 4096 : 0; before > 0; before--)
            dl2_random_u32(&random);
        const bool kept = dl2_random_u32(&random) >= e->rate * 4294967296.0;
        for (size_t k = i * e->each; k < (i + 1) * e->each; k++)
            e->y[k] = kept ? e->a[k] * scale : 0;
    }
}

void dl2_cpu_dropout(struct dl2_device *device, const void *x, void *y, size_t count, size_t each,
                     float rate, uint64_t seed, uint64_t layer)
{
    struct elementwise e = {.cpu = (struct dl2_cpu *)device,
                            .a = x,
                            .y = y,
                            .rate = rate,
                            .seed = seed,
                            .layer = layer,
                            .each = each};
    dl2_cpu_share_out(e.cpu, count / each, DL2_CPU_GRAIN / each + 1, cpu_dropout_part, &e);
}

struct weight_update {
    const struct dl2_cpu_kernels *kernels;
    struct dl2_cpu_update update;
};

static void cpu_update_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct weight_update *u = context;
    (void)part;
    u->kernels->update(&u->update, begin, end);
}

void dl2_cpu_optimizer_step(struct dl2_device *device, const struct dl2_optimizer_step *step)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    const struct dl2_step_params *params = &device->params;
    const double t = (double)params->update;
    struct weight_update u = {
        .kernels = cpu->kernels,
        .update = {.step = step,
                   .share = 1 / (float)dl2_world_size(device->world),
                   .rate = params->rate,
                   .decay = step->decays ? params->weight_decay : 0,
                   .beta1 = params->momentum,
                   .beta2 = params->beta2,
                   .epsilon = params->epsilon,
                   .correction1 = (float)(1 - pow(params->momentum, t)),
                   .correction2 = (float)(1 - pow(params->beta2, t))},
    };
    cpu->version++;
    dl2_cpu_share_out(cpu, step->count, DL2_CPU_GRAIN, cpu_update_part, &u);
}

static void cpu_squares_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    e->sums[part] = e->cpu->kernels->squares(e->a + begin, end - begin);
}

static void cpu_multiply_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->multiply(e->y + begin, end - begin, e->rate);
}

void dl2_cpu_clip_gradients(struct dl2_device *device, float *gradient, size_t count, float limit)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    if (!dl2_cpu_reserve_partials(cpu, 1)) {
        if (!device->failure.status)
            dl2_cpu_out_of_memory(&device->failure, "the norm of gradients");
        return;
    }
    struct elementwise e = {.cpu = cpu, .a = gradient, .y = gradient, .sums = cpu->partials};
    const unsigned parts = dl2_cpu_share_out(cpu, count, DL2_CPU_GRAIN, cpu_squares_part, &e);
    double sum = 0;
    for (unsigned part = 0; part < parts; part++)
        sum += e.sums[part];
    e.rate = (float)(limit / (sqrt(sum) / dl2_world_size(device->world) + 1e-6));
    if (!(e.rate >= 1))
        dl2_cpu_share_out(cpu, count, DL2_CPU_GRAIN, cpu_multiply_part, &e);
}

static void cpu_move_average_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->move_average(e->y + begin, e->a + begin, end - begin,
                                  1 - e->cpu->base.params.average_decay);
}

void dl2_cpu_move_average(struct dl2_device *device, float *average, const float *values,
                          size_t count)
{
    struct elementwise e = {.cpu = (struct dl2_cpu *)device, .a = values, .y = average};
    dl2_cpu_share_out(e.cpu, count, DL2_CPU_GRAIN, cpu_move_average_part, &e);
}

/* -- tokens -- */

struct tokens {
    const struct dl2_cpu *cpu;
    const struct dl2_tokens_shape *s;
    const float *from, *class_token, *positions;
    float *to, *sums;
    bool accumulate;
};

/* Samples begin .. end-1. */
static void cpu_tokens_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct tokens *t = context;
    const size_t channels = t->s->channels, size = t->s->tokens * channels;
    (void)part;
    for (size_t b = begin; b < end; b++) {
        float *y = t->to + b * size;
        t->cpu->kernels->add(t->class_token, t->positions, y, channels);
        t->cpu->kernels->add(t->from + b * (size - channels), t->positions + channels, y + channels,
                             size - channels);
    }
}

void dl2_cpu_tokens_forward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                            const void *x, const float *class_token, const float *positions,
                            void *y)
{
    struct tokens t = {.cpu = (struct dl2_cpu *)device,
                       .s = shape,
                       .from = x,
                       .class_token = class_token,
                       .positions = positions,
                       .to = y};
    dl2_cpu_share_out(t.cpu, shape->batch, 1, cpu_tokens_part, &t);
}

static void cpu_tokens_gradient_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct tokens *t = context;
    const size_t channels = t->s->channels, size = t->s->tokens * channels;
    (void)part;
    for (size_t b = begin; b < end; b++)
        memcpy(t->to + b * (size - channels), t->from + b * size + channels,
               (size - channels) * sizeof *t->to);
}

/* Elements begin .. end-1 of a sample's, over the batch: the order of
 * the sum is always the same. */
static void cpu_tokens_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct tokens *t = context;
    (void)part;
    t->cpu->kernels->sum_rows(t->from + begin, t->s->batch, (size_t)t->s->tokens * t->s->channels,
                              end - begin, t->sums + begin, t->accumulate);
}

void dl2_cpu_tokens_backward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                             const void *dy, void *dx, float *dclass_token, float *dpositions,
                             bool accumulate)
{
    const size_t channels = shape->channels, grain = DL2_CPU_GRAIN / shape->batch + 1;
    struct tokens t = {.cpu = (struct dl2_cpu *)device,
                       .s = shape,
                       .from = dy,
                       .to = dx,
                       .sums = dclass_token,
                       .accumulate = accumulate};
    dl2_cpu_share_out(t.cpu, shape->batch, 1, cpu_tokens_gradient_part, &t);
    dl2_cpu_share_out(t.cpu, channels, grain, cpu_tokens_sums_part, &t);
    t.sums = dpositions;
    dl2_cpu_share_out(t.cpu, shape->tokens * channels, grain, cpu_tokens_sums_part, &t);
}
