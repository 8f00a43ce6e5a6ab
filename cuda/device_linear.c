/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear layers of the device cuda, by cublasLt. */
#include "cuda/device_check.h"
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"
#include "cuda/matmul.h"
#include "device/element.h"

#include <stdio.h>
#include <stdlib.h>

struct dl2_linear {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_linear_shape s;
    struct dl2_product *forward, *data, *weights;
    bool biased; /* forward adds the bias */
    void *bias;  /* for that, as an element; NULL where the caller's will do */
};

static void cuda_linear_free(void *plan)
{
    struct dl2_linear *linear = plan;
    dl2_product_free(linear->forward);
    dl2_product_free(linear->data);
    dl2_product_free(linear->weights);
    dl2_cuda_release(linear->cuda, linear->bias);
    free(linear);
}

/* The products of the three passes. */
static void cuda_linear_products(const struct dl2_linear_shape *s, enum dl2_precision precision,
                                 struct dl2_product_shape shapes[3])
{
    shapes[DL2_PASS_FORWARD] = (struct dl2_product_shape){.rows = s->batch,
                                                          .columns = s->out,
                                                          .inner = s->in,
                                                          .b_transposed = true,
                                                          .bias = s->bias,
                                                          .relu = s->activation == DL2_RELU,
                                                          .precision = precision,
                                                          .what = "forward pass of a linear layer"};
    shapes[DL2_PASS_DATA] =
        (struct dl2_product_shape){.rows = s->batch,
                                   .columns = s->in,
                                   .inner = s->out,
                                   .precision = precision,
                                   .what = "gradient of a linear layer's input"};
    shapes[DL2_PASS_WEIGHTS] =
        (struct dl2_product_shape){.rows = s->out,
                                   .columns = s->in,
                                   .inner = s->batch,
                                   .a_transposed = true,
                                   .float_result = true,
                                   .precision = precision,
                                   .what = "gradient of a linear layer's weights"};
}

static int cuda_linear_plan(struct dl2_linear *linear, struct dl2_error *error)
{
    struct cuda *cuda = linear->cuda;
    const struct dl2_linear_shape *s = &linear->s;
    struct dl2_product_shape shapes[3];
    struct dl2_product **products[] = {&linear->forward, &linear->data, &linear->weights};
    cuda_linear_products(s, cuda->precision, shapes);
    /* cublasLt may have no product that ends with a bias, of few columns in 16 bits. */
    linear->biased = s->bias && s->activation != DL2_ELU &&
                     dl2_product_create(cuda->blas, &shapes[0], cuda->workspace_limit, products[0],
                                        NULL) == DL2_OK;
    shapes[0].bias = shapes[0].relu = false;
    for (int i = 0; i < 3; i++) {
        if (!*products[i])
            DL2_TRY(dl2_product_create(cuda->blas, &shapes[i], cuda->workspace_limit, products[i],
                                       error));
        DL2_TRY(dl2_cuda_grow(cuda, &cuda->workspace, dl2_product_workspace(*products[i]),
                              "a workspace", error));
    }
    if (linear->biased && cuda->base.element != DL2_ELEMENT_F32)
        DL2_TRY(dl2_cuda_acquire(cuda, s->out * dl2_element_size(cuda->base.element), "a bias",
                                 &linear->bias, error));
    return s->bias ? dl2_cuda_grow_partials(cuda, s->out, error) : DL2_OK;
}

int dl2_cuda_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                           struct dl2_linear **out, struct dl2_error *error)
{
    struct dl2_linear *linear = dl2_calloc(1, sizeof *linear);
    if (!linear)
        return dl2_cuda_out_of_memory(error, "a linear layer");
    linear->plan.free = cuda_linear_free;
    linear->cuda = (struct cuda *)device;
    linear->s = *shape;
    int status = cuda_linear_plan(linear, error);
    if (status < 0) {
        dl2_error_prefix(error, "device cuda");
        cuda_linear_free(linear);
        return status;
    }
    *out = linear;
    return DL2_OK;
}

static void cuda_linear_multiply(struct cuda *cuda, struct dl2_product *product, const void *a,
                                 const void *b, const void *bias, void *d, bool accumulate)
{
    if (has_not_failed(cuda))
        library(cuda, dl2_product_run(product, cuda->blas, a, b, bias, d, accumulate,
                                      cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

void dl2_cuda_linear_forward(struct dl2_linear *linear, const void *x, const void *weights,
                             const float *bias, void *y)
{
    struct cuda *cuda = linear->cuda;
    const enum dl2_element element = cuda->base.element;
    const struct dl2_linear_shape *s = &linear->s;
    if (linear->bias)
        LAUNCH(cuda, "a linear layer's bias",
               dl2_gpu_convert_weights(element, bias, linear->bias, s->out, cuda->stream));
    cuda_linear_multiply(cuda, linear->forward, x, weights, linear->bias ? linear->bias : bias, y,
                         false);
    if (s->bias && !linear->biased)
        LAUNCH(cuda, "a linear layer's bias",
               dl2_gpu_add_bias(element, bias, y, s->batch, s->out, s->activation, cuda->stream));
}

void dl2_cuda_linear_backward_data(struct dl2_linear *linear, const void *dy, const void *weights,
                                   void *dx)
{
    struct cuda *cuda = linear->cuda;
    cuda_linear_multiply(cuda, linear->data, dy, weights, NULL, dx, false);
}

void dl2_cuda_linear_backward_weights(struct dl2_linear *linear, const void *x, const void *dy,
                                      float *dweights, float *dbias, bool accumulate)
{
    struct cuda *cuda = linear->cuda;
    cuda_linear_multiply(cuda, linear->weights, dy, x, NULL, dweights, accumulate);
    if (dbias)
        LAUNCH(cuda, "gradient of a linear layer's bias",
               dl2_gpu_column_sums(cuda->base.element, dy, linear->s.batch, linear->s.out,
                                   cuda->partials.memory, dbias, accumulate, cuda->stream));
}

/* -- checking -- */

/* The pass by the plan that was chosen. A weight's first row serves as the bias. */
static void cuda_linear_run(struct dl2_linear *linear, const struct dl2_check *check)
{
    void *const *t = check->elements;
    if (check->pass == DL2_PASS_FORWARD)
        dl2_cuda_linear_forward(linear, t[0], t[1], check->floats[1], t[2]);
    else if (check->pass == DL2_PASS_DATA)
        dl2_cuda_linear_backward_data(linear, t[2], t[1], t[0]);
    else
        dl2_cuda_linear_backward_weights(linear, t[0], t[2], check->elements[1], NULL, false);
}

/* The pass in float32. */
static int cuda_linear_run_reference(struct dl2_linear *linear, struct dl2_check *check,
                                     struct dl2_error *error)
{
    struct cuda *cuda = linear->cuda;
    void *const *t = check->floats;
    void *const operands[3][4] = {[DL2_PASS_FORWARD] = {t[0], t[1], t[1], t[2]},
                                  [DL2_PASS_DATA] = {t[2], t[1], NULL, t[0]},
                                  [DL2_PASS_WEIGHTS] = {t[2], t[0], NULL, t[1]}};
    void *const *o = operands[check->pass];
    struct dl2_product_shape shapes[3];
    struct dl2_product *product;
    cuda_linear_products(&linear->s, DL2_PRECISION_FP32, shapes);
    DL2_TRY(dl2_product_create(cuda->blas, &shapes[check->pass], cuda->workspace_limit, &product,
                               error));
    int status =
        dl2_cuda_grow(cuda, &cuda->workspace, dl2_product_workspace(product), "a workspace", error);
    if (status == DL2_OK)
        status = dl2_product_run(product, cuda->blas, o[0], o[1], o[2], o[3], false,
                                 cuda->workspace.memory, cuda->stream, error);
    dl2_product_free(product);
    return status;
}

static int cuda_linear_check_pass(struct dl2_linear *linear, enum dl2_gpu_pass pass,
                                  unsigned *checked, struct dl2_error *error)
{
    const struct dl2_linear_shape *s = &linear->s;
    const size_t batch = s->batch, in = s->in;
    const size_t counts[3] = {batch * in, in * s->out, batch * s->out};
    const unsigned channels[3] = {s->in, s->in, s->out};
    const double terms[3] = {s->in, s->out, s->batch};
    const int out = dl2_check_output(pass);
    struct dl2_product_shape shapes[3];
    struct dl2_check check;
    char what[128];
    int status = DL2_OK;
    cuda_linear_products(s, linear->cuda->precision, shapes);
    snprintf(what, sizeof what, "%s, from %u to %u channels on %u rows", shapes[pass].what, s->in,
             s->out, s->batch);
    if (dl2_check_open_pass(&check, linear->cuda, pass, counts, channels[out], what)) {
        cuda_linear_run(linear, &check);
        status = dl2_cuda_sync(&linear->cuda->base, error);
        if (status == DL2_OK)
            status = cuda_linear_run_reference(linear, &check, error);
        if (status == DL2_OK)
            status = dl2_check_compare(&check, out, counts[out] / channels[out], channels[out],
                                       terms[pass], pass == DL2_PASS_FORWARD && s->bias ? 2 : 1,
                                       what, "of cublasLt", error);
        ++*checked;
    }
    dl2_check_close(&check);
    return status;
}

/* In float32 there is only one way. */
int dl2_cuda_linear_check(struct dl2_linear *linear, unsigned *checked, struct dl2_error *error)
{
    for (int pass = DL2_PASS_FORWARD; pass <= DL2_PASS_WEIGHTS; pass++)
        if (linear->cuda->precision != DL2_PRECISION_FP32)
            DL2_TRY(cuda_linear_check_pass(linear, (enum dl2_gpu_pass)pass, checked, error));
    return DL2_OK;
}
