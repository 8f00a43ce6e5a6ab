/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear layers of the device cuda, by cublasLt. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"
#include "cuda/matmul.h"
#include "device/element.h"

#include <stdlib.h>

struct dl2_cuda_linear {
    struct cuda *cuda;
    struct dl2_linear_shape s;
    struct dl2_product *forward, *data, *weights;
    void *bias; /* as an element; NULL where the caller's will do */
};

void dl2_cuda_linear_free(struct dl2_linear *plan)
{
    struct dl2_cuda_linear *linear = (struct dl2_cuda_linear *)plan;
    if (!linear)
        return;
    dl2_product_free(linear->forward);
    dl2_product_free(linear->data);
    dl2_product_free(linear->weights);
    dl2_cuda_give(linear->cuda, linear->bias);
    free(linear);
}

static int cuda_linear_plan(struct dl2_cuda_linear *linear, struct dl2_error *error)
{
    struct cuda *cuda = linear->cuda;
    const struct dl2_linear_shape *s = &linear->s;
    const struct dl2_product_shape forward = {.rows = s->batch,
                                              .columns = s->out,
                                              .inner = s->in,
                                              .b_transposed = true,
                                              .bias = s->bias,
                                              .precision = cuda->precision,
                                              .what = "forward pass of a linear layer"};
    const struct dl2_product_shape data = {.rows = s->batch,
                                           .columns = s->in,
                                           .inner = s->out,
                                           .precision = cuda->precision,
                                           .what = "gradient of a linear layer's input"};
    const struct dl2_product_shape weights = {.rows = s->out,
                                              .columns = s->in,
                                              .inner = s->batch,
                                              .a_transposed = true,
                                              .float_result = true,
                                              .precision = cuda->precision,
                                              .what = "gradient of a linear layer's weights"};
    const struct {
        const struct dl2_product_shape *shape;
        struct dl2_product **product;
    } products[] = {
        {&forward, &linear->forward}, {&data, &linear->data}, {&weights, &linear->weights}};
    for (int i = 0; i < 3; i++) {
        DL2_TRY(dl2_product_create(cuda->blas, products[i].shape, cuda->workspace_limit,
                                   products[i].product, error));
        DL2_TRY(dl2_cuda_grow(cuda, &cuda->workspace, dl2_product_workspace(*products[i].product),
                              "a workspace", error));
    }
    if (s->bias && cuda->base.element != DL2_ELEMENT_F32)
        DL2_TRY(dl2_cuda_take(cuda, s->out * dl2_element_size(cuda->base.element), "a bias",
                              &linear->bias, error));
    return s->bias ? dl2_cuda_grow_partials(cuda, s->out, error) : DL2_OK;
}

int dl2_cuda_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                           struct dl2_linear **out, struct dl2_error *error)
{
    struct dl2_cuda_linear *linear = dl2_calloc(1, sizeof *linear);
    if (!linear)
        return dl2_cuda_out_of_memory(error, "a linear layer");
    linear->cuda = (struct cuda *)device;
    linear->s = *shape;
    int status = cuda_linear_plan(linear, error);
    if (status < 0) {
        dl2_error_prefix(error, "device cuda");
        dl2_cuda_linear_free((struct dl2_linear *)linear);
        return status;
    }
    *out = (struct dl2_linear *)linear;
    return DL2_OK;
}

void dl2_cuda_linear_forward(struct dl2_linear *plan, const void *x, const void *weights,
                             const float *bias, void *y)
{
    struct dl2_cuda_linear *linear = (struct dl2_cuda_linear *)plan;
    struct cuda *cuda = linear->cuda;
    if (!well(cuda))
        return;
    if (linear->bias) {
        launched(cuda,
                 dl2_gpu_lower(cuda->base.element, bias, linear->bias, linear->s.out, cuda->stream),
                 "a linear layer's bias");
        bias = linear->bias;
    }
    if (well(cuda))
        library(cuda, dl2_product_run(linear->forward, cuda->blas, x, weights, bias, y, false,
                                      cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

void dl2_cuda_linear_backward_data(struct dl2_linear *plan, const void *dy, const void *weights,
                                   void *dx)
{
    struct dl2_cuda_linear *linear = (struct dl2_cuda_linear *)plan;
    struct cuda *cuda = linear->cuda;
    if (well(cuda))
        library(cuda, dl2_product_run(linear->data, cuda->blas, dy, weights, NULL, dx, false,
                                      cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

void dl2_cuda_linear_backward_weights(struct dl2_linear *plan, const void *x, const void *dy,
                                      float *dweights, float *dbias, bool accumulate)
{
    struct dl2_cuda_linear *linear = (struct dl2_cuda_linear *)plan;
    struct cuda *cuda = linear->cuda;
    if (!well(cuda))
        return;
    library(cuda, dl2_product_run(linear->weights, cuda->blas, dy, x, NULL, dweights, accumulate,
                                  cuda->workspace.memory, cuda->stream, &cuda->base.failure));
    if (dbias && well(cuda))
        launched(cuda,
                 dl2_gpu_column_sums(cuda->base.element, dy, linear->s.batch, linear->s.out,
                                     cuda->partials.memory, dbias, accumulate, cuda->stream),
                 "gradient of a linear layer's bias");
}
