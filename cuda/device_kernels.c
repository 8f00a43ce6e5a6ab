/* SPDX-License-Identifier: BSD-2-Clause */
/* The layers of the cuda device that are one or two kernels of our own: pooling, tokens,
 * elementwise layers, the loss, optimizers. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"

#include <stdlib.h>

struct dl2_pool {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_pool_shape s;
    uint8_t *winner;
};

struct dl2_loss {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_loss_shape s;
    struct dl2_gpu_sample_loss *each;
    struct dl2_gpu_pixel_sums *parts; /* of pixels; NULL: there are too few to be any */
};

/* -- pooling -- */

static void cuda_pool_free(void *plan)
{
    struct dl2_pool *pool = plan;
    dl2_cuda_release(pool->cuda, pool->winner);
    free(pool);
}

int dl2_cuda_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                         struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    if (shape->kind == DL2_POOL_MAX && dl2_sides_count(shape->kernel) > DL2_GPU_WINDOW)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "device cuda: no max pooling over %ux%ux%u, more than %d elements",
                             shape->kernel.depth, shape->kernel.width, shape->kernel.height,
                             DL2_GPU_WINDOW);
    struct dl2_pool *pool = dl2_calloc(1, sizeof *pool);
    if (!pool)
        return dl2_cuda_out_of_memory(error, "pooling");
    pool->plan.free = cuda_pool_free;
    pool->cuda = (struct cuda *)device;
    pool->s = *shape;
    if (shape->kind == DL2_POOL_MAX) {
        int status = dl2_cuda_acquire(pool->cuda,
                                      shape->batch * dl2_sides_count(shape->out) * shape->channels,
                                      "where maxima were", &pool->winner, error);
        if (status < 0) {
            free(pool);
            return status;
        }
    }
    *out = pool;
    return DL2_OK;
}

void dl2_cuda_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    struct cuda *cuda = pool->cuda;
    LAUNCH(cuda, "pooling",
           dl2_gpu_pool(cuda->base.element, &pool->s, x, y, pool->winner, cuda->stream));
}

void dl2_cuda_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    struct cuda *cuda = pool->cuda;
    LAUNCH(cuda, "gradient of pooling",
           dl2_gpu_pool_backward(cuda->base.element, &pool->s, dy, pool->winner, dx, cuda->stream));
}

/* -- tokens -- */

void dl2_cuda_tokens_forward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                             const void *x, const float *class_token, const float *positions,
                             void *y)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "tokens",
           dl2_gpu_tokens(device->element, shape, x, class_token, positions, y, cuda->stream));
}

void dl2_cuda_tokens_backward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                              const void *dy, void *dx, float *dclass_token, float *dpositions,
                              bool accumulate)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "gradient of tokens",
           dl2_gpu_tokens_backward(device->element, shape, dy, dx, dclass_token, dpositions,
                                   accumulate, cuda->stream));
}

/* -- elementwise -- */

void dl2_cuda_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                                const void *y, const void *dy, void *dx, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "gradient of an activation",
           dl2_gpu_activate_backward(device->element, activation, y, dy, dx, count, cuda->stream));
}

void dl2_cuda_smooth(struct dl2_device *device, enum dl2_smooth kind, const void *x, void *y,
                     size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "GELU or SiLU", dl2_gpu_smooth(device->element, kind, x, y, count, cuda->stream));
}

void dl2_cuda_smooth_backward(struct dl2_device *device, enum dl2_smooth kind, const void *x,
                              const void *dy, void *dx, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "gradient of GELU or SiLU",
           dl2_gpu_smooth_backward(device->element, kind, x, dy, dx, count, cuda->stream));
}

void dl2_cuda_add(struct dl2_device *device, const void *a, const void *b,
                  enum dl2_activation activation, void *y, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "addition",
           dl2_gpu_add(device->element, a, b, activation, y, count, cuda->stream));
}

void dl2_cuda_dropout(struct dl2_device *device, const void *x, void *y, size_t count, size_t each,
                      float rate, uint64_t seed, uint64_t layer)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "dropout",
           dl2_gpu_dropout(device->element, x, y, count, each, rate, seed, layer, cuda->state,
                           cuda->stream));
}

void dl2_cuda_gate(struct dl2_device *device, const struct dl2_gate_shape *shape, const void *x,
                   const void *gate, void *y)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "gate", dl2_gpu_gate(device->element, shape, x, gate, y, cuda->stream));
}

void dl2_cuda_gate_backward(struct dl2_device *device, const struct dl2_gate_shape *shape,
                            const void *x, const void *gate, const void *dy, void *dx, void *dgate)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "gradient of a gate",
           dl2_gpu_gate_backward(device->element, shape, x, gate, dy, dx, dgate, cuda->stream));
}

/* -- loss -- */

static void cuda_loss_free(void *plan)
{
    struct dl2_loss *loss = plan;
    dl2_cuda_release(loss->cuda, loss->each);
    dl2_cuda_release(loss->cuda, loss->parts);
    free(loss);
}

int dl2_cuda_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                         struct dl2_loss **out, struct dl2_error *error)
{
    struct dl2_loss *loss = dl2_calloc(1, sizeof *loss);
    if (!loss)
        return dl2_cuda_out_of_memory(error, "the loss");
    loss->plan.free = cuda_loss_free;
    loss->cuda = (struct cuda *)device;
    loss->s = *shape;
    int status = dl2_cuda_acquire(loss->cuda, shape->batch * sizeof *loss->each, "the loss",
                                  &loss->each, error);
    if (status == DL2_OK && shape->batch >= DL2_GPU_PIXELS)
        status = dl2_cuda_acquire(loss->cuda, 2 * DL2_GPU_PIXEL_PARTS * sizeof *loss->parts,
                                  "the loss", &loss->parts, error);
    if (status < 0) {
        cuda_loss_free(loss);
        return status;
    }
    *out = loss;
    return DL2_OK;
}

void dl2_cuda_loss_run(struct dl2_loss *loss, const void *logits, const int32_t *labels,
                       const uint32_t *partner, float *losses, void *dlogits,
                       struct dl2_loss_sums *sums)
{
    struct cuda *cuda = loss->cuda;
    if (loss->parts && !partner) {
        LAUNCH(cuda, "the loss",
               dl2_gpu_pixel_loss(cuda->base.element, &loss->s, logits, labels, losses, dlogits,
                                  sums, loss->parts, cuda->state, cuda->stream));
        return;
    }
    LAUNCH(cuda, "the loss",
           dl2_gpu_loss(cuda->base.element, &loss->s, logits, labels, partner, losses, dlogits,
                        sums, loss->each, cuda->state, cuda->stream));
}

/* -- optimizer -- */

void dl2_cuda_check_gradients(struct dl2_device *device, const float *gradient, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (cuda->precision == DL2_PRECISION_FP16)
        LAUNCH(cuda, "the optimizer",
               dl2_gpu_check_gradients(gradient, count, cuda->state, cuda->stream));
}

void dl2_cuda_clip_gradients(struct dl2_device *device, float *gradient, size_t count, float limit)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda) &&
        dl2_cuda_grow(cuda, &cuda->partials, DL2_GPU_CLIP_PARTIALS * sizeof(float), "partial sums",
                      &device->failure) == DL2_OK)
        LAUNCH(cuda, "the norm of gradients",
               dl2_gpu_clip_gradients(gradient, count, limit, cuda->ranks, cuda->partials.memory,
                                      cuda->state, cuda->stream));
}

void dl2_cuda_optimizer_step(struct dl2_device *device, const struct dl2_optimizer_step *step)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "the optimizer",
           dl2_gpu_update(device->element, step, cuda->ranks, cuda->state, cuda->stream));
}

void dl2_cuda_end_update(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (cuda->precision == DL2_PRECISION_FP16)
        LAUNCH(cuda, "the optimizer", dl2_gpu_end_update(cuda->state, cuda->stream));
}

void dl2_cuda_move_average(struct dl2_device *device, float *average, const float *values,
                           size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "the optimizer",
           dl2_gpu_move_average(average, values, count, cuda->state, cuda->stream));
}

void dl2_cuda_convert_weights(struct dl2_device *device, const float *weights, void *low_precision,
                              size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "low-precision weights",
           dl2_gpu_convert_weights(device->element, weights, low_precision, count, cuda->stream));
}

int dl2_cuda_get_loss_scale(struct dl2_device *device, struct dl2_loss_scale *scale,
                            struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    return dl2_cuda_download(device, scale, &cuda->state->loss_scale, sizeof *scale, error);
}

int dl2_cuda_set_loss_scale(struct dl2_device *device, const struct dl2_loss_scale *scale,
                            struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda))
        dl2_cuda_note(cuda,
                      cudaMemcpyAsync(&cuda->state->loss_scale, scale, sizeof *scale,
                                      cudaMemcpyHostToDevice, cuda->stream),
                      "cudaMemcpyAsync", "the loss scale");
    return dl2_cuda_sync(device, error);
}
