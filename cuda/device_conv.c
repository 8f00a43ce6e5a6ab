/* SPDX-License-Identifier: BSD-2-Clause */
/* Convolutions of the device cuda: cuDNN's, and depthwise ones by our own kernels, which always
 * give the same bits. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/cudnn_choice.h"
#include "cuda/device_check.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <stdlib.h>
#include <string.h>

struct dl2_conv {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_conv_shape s;
    size_t out_pixels, weights;
    bool depthwise;                      /* by our own kernels */
    bool biased;                         /* choices[DL2_PASS_FORWARD] adds the bias */
    void *bias;                          /* for that, as an element; NULL: the caller's will do */
    struct dl2_cudnn_choice *choices[3]; /* by pass */
};

static void cuda_conv_free(void *plan)
{
    struct dl2_conv *conv = plan;
    dl2_cuda_release(conv->cuda, conv->bias);
    free(conv); /* what was chosen stays for others of its shape */
}

/* The forward pass, with the bias in the same call where cuDNN has a plan of that. */
static int cuda_conv_choose_forward(struct cuda *cuda, struct dl2_conv *conv,
                                    struct dl2_error *error)
{
    struct dl2_cudnn_request request = {.conv = conv->s, .pass = DL2_PASS_BIASED};
    struct dl2_cudnn_choice **choice = &conv->choices[DL2_PASS_FORWARD];
    if (conv->s.bias && conv->s.activation != DL2_ELU)
        DL2_TRY(dl2_cudnn_choose(cuda, &request, choice, error));
    conv->biased = *choice;
    request.pass = DL2_PASS_FORWARD;
    return conv->biased ? DL2_OK : dl2_cudnn_choose(cuda, &request, choice, error);
}

static int cuda_conv_plan(struct cuda *cuda, struct dl2_conv *conv, struct dl2_error *error)
{
    size_t size = dl2_element_size(cuda->base.element);
    conv->depthwise = dl2_gpu_depthwise(&conv->s);
    if (!conv->depthwise) {
        DL2_TRY(cuda_conv_choose_forward(cuda, conv, error));
        for (int pass = DL2_PASS_DATA; pass <= DL2_PASS_WEIGHTS; pass++) {
            const struct dl2_cudnn_request request = {.conv = conv->s,
                                                      .pass = (enum dl2_gpu_pass)pass};
            DL2_TRY(dl2_cudnn_choose(cuda, &request, &conv->choices[pass], error));
        }
        DL2_TRY(dl2_cuda_grow(cuda, &cuda->gradient, conv->weights * size, "gradients of weights",
                              error));
    }
    if (conv->biased && cuda->base.element != DL2_ELEMENT_F32)
        DL2_TRY(dl2_cuda_acquire(cuda, conv->s.out_channels * size, "a bias", &conv->bias, error));
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
    conv->plan.free = cuda_conv_free;
    conv->cuda = cuda;
    conv->s = *shape;
    dl2_conv_counts(shape, counts);
    conv->out_pixels = counts[2] / shape->out_channels;
    conv->weights = counts[1];
    int status = cuda_conv_plan(cuda, conv, error);
    if (status < 0) {
        cuda_conv_free(conv);
        return status;
    }
    *out = conv;
    return DL2_OK;
}

/* `bias`: of a forward pass with it. */
static void cuda_conv_run(struct dl2_conv *conv, enum dl2_gpu_pass pass, const void *x,
                          const void *w, const void *y, const void *bias)
{
    const void *const tensors[] = {x, w, y, [DL2_CONV_BIAS] = bias};
    dl2_cudnn_run(conv->cuda, conv->choices[pass], tensors);
}

void dl2_cuda_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                           const float *bias, void *y)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    if (conv->depthwise) {
        LAUNCH(cuda, "a convolution",
               dl2_gpu_depthwise_forward(element, &conv->s, x, weights, y, cuda->stream));
    } else if (conv->bias) {
        LAUNCH(
            cuda, "a convolution's bias",
            dl2_gpu_convert_weights(element, bias, conv->bias, conv->s.out_channels, cuda->stream));
        cuda_conv_run(conv, DL2_PASS_FORWARD, x, weights, y, conv->bias);
    } else {
        cuda_conv_run(conv, DL2_PASS_FORWARD, x, weights, y, bias);
    }
    if (bias && !conv->biased)
        LAUNCH(cuda, "a convolution",
               dl2_gpu_add_bias(element, bias, y, conv->out_pixels, conv->s.out_channels,
                                conv->s.activation, cuda->stream));
}

void dl2_cuda_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                 void *dx)
{
    struct cuda *cuda = conv->cuda;
    if (conv->depthwise)
        LAUNCH(cuda, "a convolution",
               dl2_gpu_depthwise_backward_data(cuda->base.element, &conv->s, dy, weights, dx,
                                               cuda->stream));
    else
        cuda_conv_run(conv, DL2_PASS_DATA, dx, weights, dy, NULL);
}

void dl2_cuda_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                    float *dweights, float *dbias, bool accumulate)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    float *partials = cuda->partials.memory;
    if (conv->depthwise) {
        LAUNCH(cuda, "a convolution",
               dl2_gpu_depthwise_backward_weights(element, &conv->s, x, dy, partials, dweights,
                                                  accumulate, cuda->stream));
    } else if (element == DL2_ELEMENT_F32 && !accumulate) {
        cuda_conv_run(conv, DL2_PASS_WEIGHTS, x, dweights, dy, NULL);
    } else { /* cuDNN makes gradients of the element that it is given */
        cuda_conv_run(conv, DL2_PASS_WEIGHTS, x, cuda->gradient.memory, dy, NULL);
        LAUNCH(cuda, "a convolution",
               dl2_gpu_widen(element, cuda->gradient.memory, dweights, conv->weights, accumulate,
                             cuda->stream));
    }
    if (dbias)
        LAUNCH(cuda, "a convolution",
               dl2_gpu_column_sums(element, dy, conv->out_pixels, conv->s.out_channels, partials,
                                   dbias, accumulate, cuda->stream));
}

/* -- checking -- */

/* Runs the first plan in float32 that does, but for `other`. False where there is none. */
static bool cuda_conv_run_reference(struct dl2_check *check,
                                    const struct dl2_cudnn_request *request, const char *other)
{
    struct cuda *cuda = check->cuda;
    struct dl2_error ignored = DL2_ERROR_INIT;
    struct dl2_cudnn_plans plans;
    bool good = false;
    if (dl2_cudnn_plans_find(request, cuda->cudnn, NULL, &plans, &ignored) < 0)
        return false;
    for (unsigned i = 0; i < plans.count && !good; i++) {
        struct dl2_cudnn_plan *plan = &plans.list[i];
        void *workspace = NULL;
        good = strcmp(plan->name, other) != 0 &&
               dl2_cudnn_plan_make(request, cuda->cudnn, NULL, plan, NULL) == DL2_OK &&
               (!plan->workspace || cudaMalloc(&workspace, plan->workspace) == cudaSuccess) &&
               dl2_cudnn_plan_run(plan, cuda->cudnn, (const void *const *)check->floats, workspace,
                                  &ignored) == DL2_OK &&
               cudaStreamSynchronize(cuda->stream) == cudaSuccess;
        cudaFree(workspace);
        cudaGetLastError();
    }
    dl2_cudnn_plans_free(&plans);
    return good;
}

static int cuda_conv_check_pass(struct dl2_conv *conv, const struct dl2_cudnn_request *request,
                                unsigned *checked, struct dl2_error *error)
{
    const struct dl2_conv_shape *s = &conv->s;
    const enum dl2_gpu_pass pass = request->pass;
    const struct dl2_cudnn_choice *choice = conv->choices[pass];
    const bool floats = conv->cuda->base.element == DL2_ELEMENT_F32;
    const unsigned channels[] = {s->in_channels, s->in_channels / s->groups, s->out_channels};
    const double taps = (double)dl2_sides_count(s->kernel);
    const double terms[] = {taps * channels[1], taps * s->out_channels / s->groups,
                            (double)conv->out_pixels};
    const int out = dl2_check_output(pass);
    struct dl2_check check;
    size_t counts[3];
    char what[256];
    int status = DL2_OK;
    dl2_conv_counts(s, counts);
    /* Any numbers do for a bias. */
    const bool biased = pass == DL2_PASS_FORWARD && conv->biased;
    dl2_cudnn_request_text(biased ? &choice->request : request, what, sizeof what);
    if (dl2_check_open_pass(&check, conv->cuda, pass, counts, channels[out], what)) {
        if (pass == DL2_PASS_FORWARD)
            dl2_cuda_conv_forward(conv, check.elements[0], check.elements[1],
                                  biased ? check.floats[1] : NULL, check.elements[2]);
        else if (pass == DL2_PASS_DATA)
            dl2_cuda_conv_backward_data(conv, check.elements[2], check.elements[1],
                                        check.elements[0]);
        else
            dl2_cuda_conv_backward_weights(conv, check.elements[0], check.elements[2],
                                           check.elements[1], NULL, false);
        status = dl2_cuda_sync(&conv->cuda->base, error);
        if (status == DL2_OK &&
            cuda_conv_run_reference(&check, request, choice && floats ? choice->plan.name : "")) {
            if (biased)
                LAUNCH(conv->cuda, "a convolution",
                       dl2_gpu_add_bias(DL2_ELEMENT_F32, check.floats[1], check.floats[2],
                                        conv->out_pixels, s->out_channels, s->activation,
                                        conv->cuda->stream));
            status = dl2_check_compare(&check, out, counts[out] / channels[out], channels[out],
                                       terms[pass], biased ? 2 : 1, what,
                                       choice ? choice->plan.name : "of our own kernels", error);
            ++*checked;
        }
    }
    dl2_check_close(&check);
    return status;
}

int dl2_cuda_conv_check(struct dl2_conv *conv, unsigned *checked, struct dl2_error *error)
{
    for (int pass = DL2_PASS_FORWARD; pass <= DL2_PASS_WEIGHTS; pass++) {
        const struct dl2_cudnn_request request = {.conv = conv->s,
                                                  .pass = (enum dl2_gpu_pass)pass,
                                                  .precision = DL2_PRECISION_FP32,
                                                  .deterministic = true,
                                                  .workspace = conv->cuda->workspace_limit};
        struct dl2_cudnn_choice *choice = conv->choices[pass];
        if (choice && choice->checked)
            continue;
        DL2_TRY(cuda_conv_check_pass(conv, &request, checked, error));
        if (choice)
            choice->checked = true;
    }
    return DL2_OK;
}
