/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pooling on the cpu device. oneDNN's maximum is not used: without AVX-512, gradients of windows
 * that overlap come out with other last bits from run to run.
 */
#include "common/memory.h"
#include "device/cpu.h"

#include <stdlib.h>
#include <string.h>

struct dl2_pool {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_pool_shape s;
    uint16_t *winners; /* DL2_POOL_MAX: the place in its window that each output came from */
    const float *from; /* of the call that runs */
    float *to;
};

static void cpu_pool_free(void *plan)
{
    struct dl2_pool *pool = plan;
    free(pool->winners);
    free(pool);
}

int dl2_cpu_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                        struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    if (shape->kind == DL2_POOL_MAX && dl2_sides_count(shape->kernel) > UINT16_MAX)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "max pooling of windows above %d elements",
                             UINT16_MAX);
    struct dl2_pool *pool = dl2_calloc(1, sizeof *pool);
    if (!pool)
        return dl2_cpu_out_of_memory(error, "pooling");
    pool->plan.free = cpu_pool_free;
    pool->cpu = (struct dl2_cpu *)device;
    pool->s = *shape;
    if (shape->kind == DL2_POOL_MAX) {
        const size_t outs = shape->batch * dl2_sides_count(shape->out) * shape->channels;
        pool->winners = dl2_calloc(outs, sizeof *pool->winners);
        if (!pool->winners) {
            cpu_pool_free(pool);
            return dl2_cpu_out_of_memory(error, "max pooling");
        }
    }
    *out = pool;
    return DL2_OK;
}

/* Element (n, d, h, w, 0) of the input. */
static size_t cpu_pool_at(const struct dl2_pool_shape *s, size_t n, size_t d, size_t h, size_t w)
{
    return (((n * s->in.depth + d) * s->in.height + h) * s->in.width + w) * s->channels;
}

/* The window of a sample's output, which counts depth, then rows, then columns. */
static struct dl2_pool_window cpu_pool_window(const struct dl2_pool_shape *s, size_t out)
{
    return dl2_pool_window(s, (unsigned)(out / s->out.width / s->out.height),
                           (unsigned)(out / s->out.width % s->out.height),
                           (unsigned)(out % s->out.width));
}

/* Elements `out` of the outputs and `in` of the inputs, [channels] each; `in` is number `place` of
 * the `size` in the window of `out`. */
typedef void cpu_pool_fn(const struct dl2_pool *pool, size_t out, size_t in, size_t place,
                         size_t size);

/* Calls take() for each input of each window, in order; samples begin .. end-1. */
static inline void cpu_pool_walk(const struct dl2_pool *pool, size_t begin, size_t end,
                                 cpu_pool_fn *take)
{
    const struct dl2_pool_shape *s = &pool->s;
    const size_t outs = dl2_sides_count(s->out);
    for (size_t n = begin; n < end; n++)
        for (size_t o = 0; o < outs; o++) {
            const struct dl2_pool_window v = cpu_pool_window(s, o);
            const size_t out = (n * outs + o) * s->channels, size = dl2_pool_window_size(&v);
            size_t place = 0;
            for (unsigned d = v.d0; d < v.d1; d++)
                for (unsigned h = v.h0; h < v.h1; h++)
                    for (unsigned w = v.w0; w < v.w1; w++)
                        take(pool, out, cpu_pool_at(s, n, d, h, w), place++, size);
        }
}

static void cpu_take_mean(const struct dl2_pool *pool, size_t out, size_t in, size_t place,
                          size_t size)
{
    const float *x = pool->from + in, share = 1 / (float)size;
    float *y = pool->to + out;
    for (size_t c = 0; c < pool->s.channels; c++)
        y[c] = (place ? y[c] : 0) + x[c];
    for (size_t c = 0; place + 1 == size && c < pool->s.channels; c++)
        y[c] *= share;
}

static void cpu_give_mean(const struct dl2_pool *pool, size_t out, size_t in, size_t place,
                          size_t size)
{
    const float *dy = pool->from + out, share = 1 / (float)size;
    float *dx = pool->to + in;
    (void)place;
    for (size_t c = 0; c < pool->s.channels; c++)
        dx[c] += dy[c] * share;
}

/* The first of equal ones. */
static void cpu_take_largest(const struct dl2_pool *pool, size_t out, size_t in, size_t place,
                             size_t size)
{
    const float *x = pool->from + in;
    float *y = pool->to + out;
    uint16_t *winner = pool->winners + out;
    (void)size;
    for (size_t c = 0; c < pool->s.channels; c++) {
        const bool wins = !place || x[c] > y[c];
        winner[c] = wins ? (uint16_t)place : winner[c];
        y[c] = wins ? x[c] : y[c];
    }
}

static void cpu_give_largest(const struct dl2_pool *pool, size_t out, size_t in, size_t place,
                             size_t size)
{
    const float *dy = pool->from + out;
    const uint16_t *winner = pool->winners + out;
    float *dx = pool->to + in;
    (void)size;
    for (size_t c = 0; c < pool->s.channels; c++)
        dx[c] += winner[c] == place ? dy[c] : 0;
}

static void cpu_pool_forward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    (void)part;
    if (pool->s.kind == DL2_POOL_MAX)
        cpu_pool_walk(pool, begin, end, cpu_take_largest);
    else
        cpu_pool_walk(pool, begin, end, cpu_take_mean);
}

static void cpu_pool_backward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    const size_t first = cpu_pool_at(&pool->s, begin, 0, 0, 0);
    (void)part;
    memset(pool->to + first, 0, (cpu_pool_at(&pool->s, end, 0, 0, 0) - first) * sizeof *pool->to);
    if (pool->s.kind == DL2_POOL_MAX)
        cpu_pool_walk(pool, begin, end, cpu_give_largest);
    else
        cpu_pool_walk(pool, begin, end, cpu_give_mean);
}

static void cpu_pool(struct dl2_pool *pool, dl2_cpu_work_fn *work, const void *from, void *to)
{
    pool->from = from;
    pool->to = to;
    dl2_cpu_share_out(pool->cpu, pool->s.batch, 1, work, pool);
}

void dl2_cpu_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    cpu_pool(pool, cpu_pool_forward, x, y);
}

void dl2_cpu_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    cpu_pool(pool, cpu_pool_backward, dy, dx);
}
