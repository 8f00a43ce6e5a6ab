/* SPDX-License-Identifier: BSD-2-Clause */
/* Pooling on the cpu device: the maximum by oneDNN, means by loops of our own. */
#include "common/memory.h"
#include "device/cpu.h"

#include <stdlib.h>
#include <string.h>

struct dl2_pool {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_pool_shape s;
    dnnl_primitive_t forward, backward; /* DL2_POOL_MAX; the rest too */
    dnnl_memory_t in, out, winners;
    void *winners_block;
    const float *from; /* of the call that runs */
    float *to;
};

static void cpu_pool_free(void *plan)
{
    struct dl2_pool *pool = plan;
    if (pool->forward)
        dnnl_primitive_destroy(pool->forward);
    if (pool->backward)
        dnnl_primitive_destroy(pool->backward);
    dnnl_memory_t memories[] = {pool->in, pool->out, pool->winners};
    for (int i = 0; i < 3; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    free(pool->winners_block);
    free(pool);
}

/* Makes room for the position of each window's largest element, which backward needs. */
static int cpu_make_winners(struct dl2_pool *pool, const_dnnl_primitive_desc_t forward,
                            const char *what, struct dl2_error *error)
{
    dl2_const_layout winners = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    pool->winners_block = dl2_alloc_aligned(dnnl_memory_desc_get_size(winners), 1);
    if (!pool->winners_block)
        return dl2_cpu_out_of_memory(error, "max pooling");
    return dl2_cpu_check(
        dnnl_memory_create(&pool->winners, winners, pool->cpu->engine, pool->winners_block), what,
        error);
}

static int cpu_fill_max_pool(struct dl2_pool *pool, struct dl2_operands *ours,
                             struct dl2_error *error)
{
    const struct dl2_pool_shape *s = &pool->s;
    dnnl_engine_t engine = pool->cpu->engine;
    const char *what = "plan max pooling";
    const bool deep = s->in.depth > 1 || s->kernel.depth > 1;
    const dnnl_format_tag_t tag = deep ? dnnl_ndhwc : dnnl_nhwc;
    dnnl_dims_t in = {s->batch, s->channels}, out = {s->batch, s->channels};
    struct dl2_window window = {.kernel = {0}};
    dl2_cpu_put_sides(in + 2, deep, s->in);
    dl2_cpu_put_sides(out + 2, deep, s->out);
    dl2_cpu_put_sides(window.kernel, deep, s->kernel);
    dl2_cpu_put_sides(window.strides, deep, s->stride);
    dl2_cpu_put_sides(window.near_pad, deep, s->pad);
    for (int i = 0; i < 2 + deep; i++) /* so that windows end where the last one does */
        window.far_pad[i] = (out[2 + i] - 1) * window.strides[i] + window.kernel[i] - in[2 + i] -
                            window.near_pad[i];
    DL2_TRY(dl2_cpu_make_layout(&ours->in, 4 + deep, in, tag, error));
    DL2_TRY(dl2_cpu_make_layout(&ours->out, 4 + deep, out, tag, error));
    DL2_TRY(dl2_cpu_check(dnnl_memory_create(&pool->in, ours->in, engine, DNNL_MEMORY_NONE), what,
                          error));
    DL2_TRY(dl2_cpu_check(dnnl_memory_create(&pool->out, ours->out, engine, DNNL_MEMORY_NONE), what,
                          error));

    dnnl_primitive_desc_t forward, backward;
    DL2_TRY(dl2_cpu_check(dl2_describe_max_pool(&forward, engine, DL2_FORWARD, ours, &window, NULL),
                          what, error));
    int status = dl2_cpu_check(dnnl_primitive_create(&pool->forward, forward), what, error);
    if (status == DL2_OK)
        status = cpu_make_winners(pool, forward, what, error);
    if (status == DL2_OK)
        status = dl2_cpu_check(
            dl2_describe_max_pool(&backward, engine, DL2_BACKWARD_DATA, ours, &window, forward),
            what, error);
    if (status == DL2_OK) {
        status = dl2_cpu_check(dnnl_primitive_create(&pool->backward, backward), what, error);
        dnnl_primitive_desc_destroy(backward);
    }
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static int cpu_make_max_pool(struct dl2_pool *pool, struct dl2_error *error)
{
    struct dl2_operands ours = {NULL};
    int status = cpu_fill_max_pool(pool, &ours, error);
    dl2_layout_free(ours.in);
    dl2_layout_free(ours.out);
    return status;
}

int dl2_cpu_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                        struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    struct dl2_pool *pool = dl2_calloc(1, sizeof *pool);
    if (!pool)
        return dl2_cpu_out_of_memory(error, "pooling");
    pool->plan.free = cpu_pool_free;
    pool->cpu = (struct dl2_cpu *)device;
    pool->s = *shape;
    int status = shape->kind == DL2_POOL_MAX ? cpu_make_max_pool(pool, error) : DL2_OK;
    if (status < 0) {
        cpu_pool_free(pool);
        return status;
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

/* The mean of each window; samples begin .. end-1. */
static void cpu_average_pool_forward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    const struct dl2_pool_shape *s = &pool->s;
    const size_t channels = s->channels, outs = dl2_sides_count(s->out);
    (void)part;
    for (size_t n = begin; n < end; n++)
        for (size_t o = 0; o < outs; o++) {
            const struct dl2_pool_window v = cpu_pool_window(s, o);
            float share = 1 / (float)dl2_pool_window_size(&v);
            float *y = pool->to + (n * outs + o) * channels;
            memset(y, 0, channels * sizeof *y);
            for (unsigned d = v.d0; d < v.d1; d++)
                for (unsigned h = v.h0; h < v.h1; h++)
                    for (unsigned w = v.w0; w < v.w1; w++) {
                        const float *x = pool->from + cpu_pool_at(s, n, d, h, w);
                        for (size_t c = 0; c < channels; c++)
                            y[c] += x[c];
                    }
            for (size_t c = 0; c < channels; c++)
                y[c] *= share;
        }
}

static void cpu_average_pool_backward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    const struct dl2_pool_shape *s = &pool->s;
    const size_t channels = s->channels, outs = dl2_sides_count(s->out);
    (void)part;
    memset(pool->to + cpu_pool_at(s, begin, 0, 0, 0), 0,
           cpu_pool_at(s, end - begin, 0, 0, 0) * sizeof *pool->to);
    for (size_t n = begin; n < end; n++)
        for (size_t o = 0; o < outs; o++) {
            const struct dl2_pool_window v = cpu_pool_window(s, o);
            float share = 1 / (float)dl2_pool_window_size(&v);
            const float *dy = pool->from + (n * outs + o) * channels;
            for (unsigned d = v.d0; d < v.d1; d++)
                for (unsigned h = v.h0; h < v.h1; h++)
                    for (unsigned w = v.w0; w < v.w1; w++) {
                        float *dx = pool->to + cpu_pool_at(s, n, d, h, w);
                        for (size_t c = 0; c < channels; c++)
                            dx[c] += dy[c] * share;
                    }
        }
}

/* One of the two primitives, each between a tensor of the input's shape and one of the output's. */
static void cpu_max_pool(struct dl2_pool *pool, dnnl_primitive_t primitive, int in_argument,
                         const void *in, int out_argument, const void *out, const char *what)
{
    dl2_cpu_point(pool->in, in);
    dl2_cpu_point(pool->out, out);
    const dnnl_exec_arg_t args[] = {
        {in_argument, pool->in}, {out_argument, pool->out}, {DNNL_ARG_WORKSPACE, pool->winners}};
    dl2_cpu_execute(pool->cpu, primitive, 3, args, what);
}

static void cpu_average_pool(struct dl2_pool *pool, dl2_cpu_work_fn *work, const void *from,
                             void *to)
{
    pool->from = from;
    pool->to = to;
    dl2_cpu_share_out(pool->cpu, pool->s.batch, 1, work, pool);
}

void dl2_cpu_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    if (pool->s.kind == DL2_POOL_MAX)
        cpu_max_pool(pool, pool->forward, DNNL_ARG_SRC, x, DNNL_ARG_DST, y, "run max pooling");
    else
        cpu_average_pool(pool, cpu_average_pool_forward, x, y);
}

void dl2_cpu_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    if (pool->s.kind == DL2_POOL_MAX)
        cpu_max_pool(pool, pool->backward, DNNL_ARG_DIFF_SRC, dx, DNNL_ARG_DIFF_DST, dy,
                     "run max pooling's backward pass");
    else
        cpu_average_pool(pool, cpu_average_pool_backward, dy, dx);
}
