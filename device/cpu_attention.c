/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attention on the cpu device. A thread does a head of a sample by itself, so that its scores stay
 * in the cache between the products (oneDNN's, each on that one thread) and the softmax.
 */
#include "common/memory.h"
#include "device/cpu.h"

#include <math.h>
#include <stdlib.h>

/* A part's own: every thread has one. */
struct part {
    float *gradient; /* [tokens][tokens], of a head's softmax and then of its scores */
    dnnl_status_t status;
};

struct dl2_attention {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_attention_shape s;
    float *softmax; /* [batch][heads][tokens][tokens] of the last forward */
    float *gradients;
    struct part *parts; /* [threads] */
    /* Arguments of the current call. */
    const float *qkv, *dy;
    float *y, *dqkv;
};

static void cpu_attention_free(void *plan)
{
    struct dl2_attention *attention = plan;
    free(attention->softmax);
    free(attention->gradients);
    free(attention->parts);
    free(attention);
}

int dl2_cpu_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                             struct dl2_attention **out, struct dl2_error *error)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    const size_t size = (size_t)shape->tokens * shape->tokens;
    size_t scores, all;
    DL2_TRY(dl2_attention_shape_check(shape, &scores, error));
    struct dl2_attention *attention = dl2_calloc(1, sizeof *attention);
    if (!attention)
        return dl2_cpu_out_of_memory(error, "attention");
    attention->plan.free = cpu_attention_free;
    attention->cpu = cpu;
    attention->s = *shape;
    attention->softmax = dl2_alloc_aligned(scores, sizeof *attention->softmax);
    if (dl2_size_mul(size, cpu->threads, &all))
        attention->gradients = dl2_alloc_aligned(all, sizeof *attention->gradients);
    attention->parts = dl2_calloc(cpu->threads, sizeof *attention->parts);
    if (!attention->softmax || !attention->gradients || !attention->parts) {
        cpu_attention_free(attention);
        return dl2_cpu_out_of_memory(error, "attention");
    }
    for (unsigned p = 0; p < cpu->threads; p++)
        attention->parts[p].gradient = attention->gradients + p * size;
    *out = attention;
    return DL2_OK;
}

/* The start of a head's first token, in qkv and in y. */
struct head {
    size_t q, k, v, y;
    float *softmax;
};

static struct head cpu_attention_head(const struct dl2_attention *attention, size_t index)
{
    const struct dl2_attention_shape *s = &attention->s;
    const size_t tokens = s->tokens, channels = s->channels;
    const size_t first = index / s->heads * tokens,
                 shift = index % s->heads * (channels / s->heads);
    const size_t q = first * 3 * channels + shift;
    return (struct head){.q = q,
                         .k = q + channels,
                         .v = q + 2 * channels,
                         .y = first * channels + shift,
                         .softmax = attention->softmax + index * tokens * tokens};
}

/* A matrix of rows that are `step` elements apart. */
struct matrix {
    const float *at;
    size_t step;
    char transposed; /* 'T' or 'N' */
};

/* c = scale * a * b, [rows][columns], summed over `depth`; unless a product before has failed. */
static void cpu_attention_multiply(struct part *part, size_t rows, size_t columns, size_t depth,
                                   float scale, struct matrix a, struct matrix b, float *c,
                                   size_t step)
{
    if (part->status == dnnl_success)
        part->status = dnnl_sgemm(a.transposed, b.transposed, (dnnl_dim_t)rows, (dnnl_dim_t)columns,
                                  (dnnl_dim_t)depth, scale, a.at, (dnnl_dim_t)a.step, b.at,
                                  (dnnl_dim_t)b.step, 0, c, (dnnl_dim_t)step);
}

static float cpu_attention_scale(const struct dl2_attention *attention)
{
    return 1 / sqrtf((float)(attention->s.channels / attention->s.heads));
}

static void cpu_attention_forward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_attention *attention = context;
    const size_t tokens = attention->s.tokens, channels = attention->s.channels;
    const size_t size = channels / attention->s.heads, step = 3 * channels;
    const float *qkv = attention->qkv;
    struct part *own = &attention->parts[part];
    for (size_t index = begin; index < end; index++) {
        const struct head h = cpu_attention_head(attention, index);
        cpu_attention_multiply(own, tokens, tokens, size, cpu_attention_scale(attention),
                               (struct matrix){qkv + h.q, step, 'N'},
                               (struct matrix){qkv + h.k, step, 'T'}, h.softmax, tokens);
        attention->cpu->kernels->softmax(h.softmax, tokens, tokens);
        cpu_attention_multiply(own, tokens, size, tokens, 1,
                               (struct matrix){h.softmax, tokens, 'N'},
                               (struct matrix){qkv + h.v, step, 'N'}, attention->y + h.y, channels);
    }
}

static void cpu_attention_backward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_attention *attention = context;
    const size_t tokens = attention->s.tokens, channels = attention->s.channels;
    const size_t size = channels / attention->s.heads, step = 3 * channels;
    const float *qkv = attention->qkv;
    float *dqkv = attention->dqkv;
    struct part *own = &attention->parts[part];
    for (size_t index = begin; index < end; index++) {
        const struct head h = cpu_attention_head(attention, index);
        const struct matrix dy = {attention->dy + h.y, channels, 'N'};
        cpu_attention_multiply(own, tokens, size, tokens, 1,
                               (struct matrix){h.softmax, tokens, 'T'}, dy, dqkv + h.v, step);
        cpu_attention_multiply(own, tokens, tokens, size, cpu_attention_scale(attention), dy,
                               (struct matrix){qkv + h.v, step, 'T'}, own->gradient, tokens);
        attention->cpu->kernels->softmax_backward(h.softmax, own->gradient, tokens, tokens);
        cpu_attention_multiply(own, tokens, size, tokens, 1,
                               (struct matrix){own->gradient, tokens, 'N'},
                               (struct matrix){qkv + h.k, step, 'N'}, dqkv + h.q, step);
        cpu_attention_multiply(own, tokens, size, tokens, 1,
                               (struct matrix){own->gradient, tokens, 'T'},
                               (struct matrix){qkv + h.q, step, 'N'}, dqkv + h.k, step);
    }
}

static void cpu_attention_each_head(struct dl2_attention *attention, dl2_cpu_work_fn *work)
{
    struct dl2_cpu *cpu = attention->cpu;
    if (cpu->base.failure.status)
        return;
    dl2_cpu_claim_threads(cpu);
    const unsigned parts =
        dl2_cpu_share_out(cpu, (size_t)attention->s.batch * attention->s.heads, 1, work, attention);
    for (unsigned p = 0; p < parts; p++) {
        if (!cpu->base.failure.status)
            dl2_cpu_check(attention->parts[p].status, "run attention", &cpu->base.failure);
        attention->parts[p].status = dnnl_success;
    }
}

void dl2_cpu_attention_forward(struct dl2_attention *attention, const void *qkv, void *y)
{
    attention->qkv = qkv;
    attention->y = y;
    cpu_attention_each_head(attention, cpu_attention_forward_part);
}

void dl2_cpu_attention_backward(struct dl2_attention *attention, const void *qkv, const void *y,
                                const void *dy, void *dqkv)
{
    (void)y;
    attention->qkv = qkv;
    attention->dy = dy;
    attention->dqkv = dqkv;
    cpu_attention_each_head(attention, cpu_attention_backward_part);
}
