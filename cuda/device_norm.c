/* SPDX-License-Identifier: BSD-2-Clause */
/* Batch norm of the device cuda, over several cards where it is synchronized, and layer norm. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <stdlib.h>

struct dl2_norm {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_norm_shape s;
    float *moments, *kept, *sums, *shared; /* [2][channels] each */
    uint8_t *mask;                         /* where y's activation was open; NULL: y says it */
    size_t mask_bytes;
    bool masked; /* in the last forward */
};

struct dl2_layer_norm {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_layer_norm_shape s;
    float *kept; /* [2][rows] */
};

/* -- batch norm -- */

static void cuda_norm_free(void *plan)
{
    struct dl2_norm *norm = plan;
    norm->cuda->allocated -= norm->mask_bytes;
    dl2_cuda_release(norm->cuda, norm->moments);
    dl2_cuda_release(norm->cuda, norm->mask);
    free(norm);
}

int dl2_cuda_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                         struct dl2_norm **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    struct dl2_norm *norm = dl2_calloc(1, sizeof *norm);
    if (!norm)
        return dl2_cuda_out_of_memory(error, "batch norm");
    /* Each of the four begins at a multiple of 16 floats. */
    size_t each = (2 * (size_t)shape->channels + 15) / 16 * 16;
    norm->plan.free = cuda_norm_free;
    norm->cuda = cuda;
    norm->s = *shape;
    int status = dl2_cuda_grow_partials(cuda, shape->channels, error);
    if (status == DL2_OK)
        status =
            dl2_cuda_acquire(cuda, 4 * each * sizeof(float), "batch norm", &norm->moments, error);
    const size_t mask_bytes =
        shape->rows * shape->channels * dl2_element_size(cuda->base.element) / 16;
    if (status == DL2_OK &&
        dl2_gpu_norm_masks(cuda->base.element, shape, NULL, NULL, NULL, NULL, NULL, NULL)) {
        status = dl2_cuda_acquire(cuda, mask_bytes, "batch norm", &norm->mask, error);
        norm->mask_bytes = status == DL2_OK ? mask_bytes : 0;
        cuda->allocated += norm->mask_bytes;
    }
    if (status < 0) {
        cuda_norm_free(norm);
        return status;
    }
    norm->kept = norm->moments + each;
    norm->sums = norm->kept + each;
    norm->shared = norm->sums + each;
    *out = norm;
    return DL2_OK;
}

static bool cuda_norm_is_shared(const struct dl2_norm *norm)
{
    return norm->s.synchronized && norm->cuda->ranks > 1;
}

/* Rows of all that the statistics are of. */
static size_t cuda_norm_all_rows(const struct dl2_norm *norm)
{
    return norm->s.rows * (cuda_norm_is_shared(norm) ? norm->cuda->ranks : 1);
}

/* Moments of the world's batch from those of the ranks: the mean of the means, and squared
 * differences that were moved there before they are added up. */
static void cuda_norm_share_moments(struct dl2_norm *norm)
{
    struct cuda *cuda = norm->cuda;
    struct dl2_device *device = &cuda->base;
    unsigned channels = norm->s.channels;
    dl2_cuda_copy(device, norm->shared, norm->moments, channels * sizeof(float));
    LAUNCH(cuda, "batch norm",
           dl2_gpu_scale(norm->shared, channels, 1.0f / (float)cuda->ranks, cuda->stream));
    dl2_cuda_all_reduce(device, norm->shared, channels);
    dl2_cuda_all_reduce_wait(device);
    LAUNCH(
        cuda, "batch norm",
        dl2_gpu_norm_recenter(norm->moments, norm->shared, norm->s.rows, channels, cuda->stream));
    dl2_cuda_all_reduce(device, norm->moments + channels, channels);
    dl2_cuda_all_reduce_wait(device);
}

static void cuda_norm_apply(struct dl2_norm *norm, const void *x, const void *residual,
                            const float *gamma, const float *beta, void *y, uint8_t *mask)
{
    struct cuda *cuda = norm->cuda;
    LAUNCH(cuda, "batch norm",
           dl2_gpu_norm_apply(cuda->base.element, &norm->s, x, residual, gamma, beta, norm->kept, y,
                              mask, cuda->stream));
}

void dl2_cuda_norm_train(struct dl2_norm *norm, const void *x, const void *residual,
                         const float *gamma, const float *beta, float *running_mean,
                         float *running_var, void *y)
{
    struct cuda *cuda = norm->cuda;
    const enum dl2_element element = cuda->base.element;
    const struct dl2_norm_shape *s = &norm->s;
    float *partials = cuda->partials.memory;
    if (cuda_norm_is_shared(norm)) {
        LAUNCH(cuda, "batch norm",
               dl2_gpu_norm_moments(element, x, s->rows, s->channels, partials, norm->moments,
                                    cuda->stream));
        cuda_norm_share_moments(norm);
        LAUNCH(cuda, "batch norm",
               dl2_gpu_norm_keep(norm->moments, cuda_norm_all_rows(norm), s, running_mean,
                                 running_var, norm->kept, cuda->stream));
    } else {
        LAUNCH(cuda, "batch norm",
               dl2_gpu_norm_statistics(element, s, x, partials, norm->moments, running_mean,
                                       running_var, norm->kept, cuda->stream));
    }
    norm->masked =
        norm->mask && dl2_gpu_norm_masks(element, s, x, residual, gamma, beta, norm->kept, y);
    cuda_norm_apply(norm, x, residual, gamma, beta, y, norm->masked ? norm->mask : NULL);
}

void dl2_cuda_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                        const float *gamma, const float *beta, const float *running_mean,
                        const float *running_var, void *y)
{
    struct cuda *cuda = norm->cuda;
    LAUNCH(
        cuda, "batch norm",
        dl2_gpu_norm_keep_running(running_mean, running_var, &norm->s, norm->kept, cuda->stream));
    cuda_norm_apply(norm, x, residual, gamma, beta, y, NULL);
}

void dl2_cuda_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                            const void *dy2, const float *gamma, const float *beta, void *dx,
                            void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    struct cuda *cuda = norm->cuda;
    const enum dl2_element element = cuda->base.element;
    const struct dl2_gpu_norm_gradient gradient = {.shape = &norm->s,
                                                   .x = x,
                                                   .y = y,
                                                   .dy = dy,
                                                   .dy2 = dy2,
                                                   .mask = norm->masked ? norm->mask : NULL,
                                                   .gamma = gamma,
                                                   .beta = beta,
                                                   .kept = norm->kept,
                                                   .sums = norm->sums,
                                                   .dresidual = dresidual};
    LAUNCH(cuda, "gradient of batch norm",
           dl2_gpu_norm_backward_sums(element, &gradient, cuda->partials.memory, dgamma, dbeta,
                                      accumulate, cuda->stream));
    if (cuda_norm_is_shared(norm)) {
        dl2_cuda_all_reduce(&cuda->base, norm->sums, 2 * (size_t)norm->s.channels);
        dl2_cuda_all_reduce_wait(&cuda->base);
    }
    LAUNCH(
        cuda, "gradient of batch norm",
        dl2_gpu_norm_backward_data(element, &gradient, cuda_norm_all_rows(norm), dx, cuda->stream));
}

/* -- layer norm -- */

static void cuda_layer_norm_free(void *plan)
{
    struct dl2_layer_norm *norm = plan;
    dl2_cuda_release(norm->cuda, norm->kept);
    free(norm);
}

int dl2_cuda_layer_norm_create(struct dl2_device *device, const struct dl2_layer_norm_shape *shape,
                               struct dl2_layer_norm **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    struct dl2_layer_norm *norm = dl2_calloc(1, sizeof *norm);
    if (!norm)
        return dl2_cuda_out_of_memory(error, "a layer norm");
    norm->plan.free = cuda_layer_norm_free;
    norm->cuda = cuda;
    norm->s = *shape;
    int status = dl2_cuda_grow_partials(cuda, shape->channels, error);
    if (status == DL2_OK)
        status = dl2_cuda_acquire(cuda, 2 * shape->rows * sizeof(float), "a layer norm",
                                  &norm->kept, error);
    if (status < 0) {
        free(norm);
        return status;
    }
    *out = norm;
    return DL2_OK;
}

void dl2_cuda_layer_norm_forward(struct dl2_layer_norm *norm, const void *x, const float *gamma,
                                 const float *beta, void *y)
{
    struct cuda *cuda = norm->cuda;
    LAUNCH(cuda, "layer norm",
           dl2_gpu_layer_norm(cuda->base.element, &norm->s, x, gamma, beta, norm->kept, y,
                              cuda->stream));
}

void dl2_cuda_layer_norm_backward(struct dl2_layer_norm *norm, const void *x, const void *dy,
                                  const float *gamma, void *dx, float *dgamma, float *dbeta,
                                  bool accumulate)
{
    struct cuda *cuda = norm->cuda;
    enum dl2_element element = cuda->base.element;
    LAUNCH(cuda, "gradient of layer norm",
           dl2_gpu_layer_norm_backward_sums(element, &norm->s, x, dy, norm->kept,
                                            cuda->partials.memory, dgamma, dbeta, accumulate,
                                            cuda->stream));
    LAUNCH(cuda, "gradient of layer norm",
           dl2_gpu_layer_norm_backward_data(element, &norm->s, x, dy, gamma, norm->kept, dx,
                                            cuda->stream));
}
