/* SPDX-License-Identifier: BSD-2-Clause */
/* Convolutions of the device cuda: cuDNN's, and depthwise ones by our own kernels, which always
 * give the same bits. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/conv_choice.h"
#include "cuda/device_check.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <stdlib.h>
#include <string.h>

struct dl2_conv {
    struct cuda *cuda;
    struct dl2_conv_shape s;
    size_t out_pixels, weights;
    bool depthwise;                     /* by our own kernels */
    struct dl2_conv_choice *choices[3]; /* by pass */
};

void dl2_cuda_conv_free(struct dl2_conv *conv)
{
    free(conv); /* what was chosen stays for others of its shape */
}

static int cuda_conv_plan(struct cuda *cuda, struct dl2_conv *conv, struct dl2_error *error)
{
    size_t size = dl2_element_size(cuda->base.element);
    conv->depthwise = dl2_gpu_depthwise(&conv->s);
    if (!conv->depthwise) {
        for (int pass = DL2_CONV_FORWARD; pass <= DL2_CONV_WEIGHTS; pass++)
            DL2_TRY(dl2_conv_choose(cuda, &conv->s, (enum dl2_conv_pass)pass, &conv->choices[pass],
                                    error));
        DL2_TRY(dl2_cuda_grow(cuda, &cuda->gradient, conv->weights * size, "gradients of weights",
                              error));
    }
    return conv->depthwise || conv->s.bias
               ? dl2_cuda_grow_partials(cuda, conv->s.out_channels, error)
               : DL2_OK;
}

int dl2_cuda_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                         struct dl2_conv **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    DL2_TRY(dl2_conv_shape_check(shape, error));
    struct dl2_conv *conv = dl2_calloc(1, sizeof *conv);
    if (!conv)
        return dl2_cuda_out_of_memory(error, "a convolution");
    size_t counts[3];
    conv->cuda = cuda;
    conv->s = *shape;
    dl2_conv_counts(shape, counts);
    conv->out_pixels = counts[2] / shape->out_channels;
    conv->weights = counts[1];
    int status = cuda_conv_plan(cuda, conv, error);
    if (status < 0) {
        dl2_cuda_conv_free(conv);
        return status;
    }
    *out = conv;
    return DL2_OK;
}

/* Names the layer in a failure that has just come up. */
static void cuda_conv_name(struct dl2_conv *conv, enum dl2_conv_pass pass, bool was_well)
{
    if (!was_well || well(conv->cuda))
        return;
    char text[256];
    const struct dl2_conv_request request = {.shape = conv->s, .pass = pass};
    dl2_conv_request_text(&request, text, sizeof text);
    dl2_error_prefix(&conv->cuda->base.failure, "%s", text);
}

static void cuda_conv_run(struct dl2_conv *conv, enum dl2_conv_pass pass, const void *x,
                          const void *w, const void *y)
{
    struct cuda *cuda = conv->cuda;
    if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % 16 != 0)
        dl2_error_set(&cuda->base.failure, DL2_ERR_ARGUMENT,
                      "a tensor does not begin at a multiple of 16 bytes");
    else
        library(cuda, dl2_conv_plan_run(&conv->choices[pass]->plan, cuda->cudnn, x, w, y,
                                        cuda->workspace.memory, &cuda->base.failure));
}

void dl2_cuda_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                           const float *bias, void *y)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise)
        launched(cuda, dl2_gpu_depthwise_forward(element, &conv->s, x, weights, y, cuda->stream),
                 NULL);
    else
        cuda_conv_run(conv, DL2_CONV_FORWARD, x, weights, y);
    if (bias && well(cuda))
        launched(cuda,
                 dl2_gpu_add_bias(element, bias, y, conv->out_pixels, conv->s.out_channels,
                                  cuda->stream),
                 NULL);
    cuda_conv_name(conv, DL2_CONV_FORWARD, was_well);
}

void dl2_cuda_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                 void *dx)
{
    struct cuda *cuda = conv->cuda;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise)
        launched(cuda,
                 dl2_gpu_depthwise_backward_data(cuda->base.element, &conv->s, dy, weights, dx,
                                                 cuda->stream),
                 NULL);
    else
        cuda_conv_run(conv, DL2_CONV_DATA, dx, weights, dy);
    cuda_conv_name(conv, DL2_CONV_DATA, was_well);
}

void dl2_cuda_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                    float *dweights, float *dbias, bool accumulate)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    float *partials = cuda->partials.memory;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise) {
        launched(cuda,
                 dl2_gpu_depthwise_backward_weights(element, &conv->s, x, dy, partials, dweights,
                                                    accumulate, cuda->stream),
                 NULL);
    } else if (element == DL2_ELEMENT_F32 && !accumulate) {
        cuda_conv_run(conv, DL2_CONV_WEIGHTS, x, dweights, dy);
    } else { /* cuDNN makes gradients of the element that it is given */
        cuda_conv_run(conv, DL2_CONV_WEIGHTS, x, cuda->gradient.memory, dy);
        if (well(cuda))
            launched(cuda,
                     dl2_gpu_widen(element, cuda->gradient.memory, dweights, conv->weights,
                                   accumulate, cuda->stream),
                     NULL);
    }
    if (dbias && well(cuda))
        launched(cuda,
                 dl2_gpu_column_sums(element, dy, conv->out_pixels, conv->s.out_channels, partials,
                                     dbias, accumulate, cuda->stream),
                 NULL);
    cuda_conv_name(conv, DL2_CONV_WEIGHTS, was_well);
}

/* -- checking -- */

/* Runs the first plan in float32 that does, but for `other`. False where there is none. */
static bool cuda_conv_run_reference(struct dl2_check *check, const struct dl2_conv_request *request,
                                    const char *other)
{
    struct cuda *cuda = check->cuda;
    struct dl2_error ignored = DL2_ERROR_INIT;
    struct dl2_conv_plans plans;
    bool good = false;
    if (dl2_conv_plans_find(request, cuda->cudnn, NULL, &plans, &ignored) < 0)
        return false;
    for (unsigned i = 0; i < plans.count && !good; i++) {
        struct dl2_conv_plan *plan = &plans.list[i];
        void *workspace = NULL;
        good = strcmp(plan->name, other) != 0 &&
               dl2_conv_plan_make(request, cuda->cudnn, NULL, plan) &&
               (!plan->workspace || cudaMalloc(&workspace, plan->workspace) == cudaSuccess) &&
               dl2_conv_plan_run(plan, cuda->cudnn, check->floats[0], check->floats[1],
                                 check->floats[2], workspace, &ignored) == DL2_OK &&
               cudaStreamSynchronize(cuda->stream) == cudaSuccess;
        cudaFree(workspace);
        cudaGetLastError();
    }
    dl2_conv_plans_free(&plans);
    return good;
}

static int cuda_conv_check_pass(struct dl2_conv *conv, const struct dl2_conv_request *request,
                                unsigned *checked, struct dl2_error *error)
{
    const struct dl2_conv_shape *s = &conv->s;
    const enum dl2_conv_pass pass = request->pass;
    const struct dl2_conv_choice *choice = conv->choices[pass];
    const bool floats = conv->cuda->base.element == DL2_ELEMENT_F32;
    const unsigned channels[] = {s->in_channels, s->in_channels / s->groups, s->out_channels};
    const double taps = (double)s->kernel_height * s->kernel_width;
    const double terms[] = {taps * channels[1], taps * s->out_channels / s->groups,
                            (double)conv->out_pixels};
    const int out = dl2_check_output(pass);
    struct dl2_check check;
    size_t counts[3];
    char what[256];
    int status = DL2_OK;
    dl2_conv_counts(s, counts);
    dl2_conv_request_text(request, what, sizeof what);
    if (dl2_check_open(&check, conv->cuda, pass, counts, channels[out], what)) {
        if (pass == DL2_CONV_FORWARD)
            dl2_cuda_conv_forward(conv, check.elements[0], check.elements[1], NULL,
                                  check.elements[2]);
        else if (pass == DL2_CONV_DATA)
            dl2_cuda_conv_backward_data(conv, check.elements[2], check.elements[1],
                                        check.elements[0]);
        else
            dl2_cuda_conv_backward_weights(conv, check.elements[0], check.elements[2], check.result,
                                           NULL, false);
        status = dl2_cuda_sync(&conv->cuda->base, error);
        if (status == DL2_OK &&
            cuda_conv_run_reference(&check, request, choice && floats ? choice->plan.name : "")) {
            status =
                dl2_check_compare(&check, counts[out] / channels[out], channels[out], terms[pass],
                                  what, choice ? choice->plan.name : "of our own kernels", error);
            ++*checked;
        }
    }
    dl2_check_close(&check);
    return status;
}

int dl2_cuda_conv_check(struct dl2_conv *conv, unsigned *checked, struct dl2_error *error)
{
    for (int pass = DL2_CONV_FORWARD; pass <= DL2_CONV_WEIGHTS; pass++) {
        const struct dl2_conv_request request = {.shape = conv->s,
                                                 .pass = (enum dl2_conv_pass)pass,
                                                 .precision = DL2_PRECISION_FP32,
                                                 .deterministic = true,
                                                 .workspace = conv->cuda->workspace_limit};
        struct dl2_conv_choice *choice = conv->choices[pass];
        if (choice && choice->checked)
            continue;
        DL2_TRY(cuda_conv_check_pass(conv, &request, checked, error));
        if (choice)
            choice->checked = true;
    }
    return DL2_OK;
}
