/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Convolutions of the device cuda: cuDNN's, and depthwise ones by our own kernels.
 *
 * How to do a convolution is measured once for each shape and pass, with the batch that comes
 * first; for other batches cuDNN's first choice that runs is taken. So it is where bits must repeat
 * from run to run: then the first that is deterministic. Our own kernels always give the same bits.
 */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/conv_plan.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <stdlib.h>

/* The choice for a shape and pass. */
struct choice {
    struct dl2_conv_request request;
    struct dl2_conv_plan plan;
    struct choice *next;
};

struct dl2_cuda_conv {
    struct cuda *cuda;
    struct dl2_conv_shape s;
    size_t out_pixels, weights;
    bool depthwise;                  /* by our own kernels */
    const struct choice *choices[3]; /* by pass */
};

/* But for the batch. */
static bool cuda_conv_alike(const struct dl2_conv_request *a, const struct dl2_conv_request *b)
{
    const struct dl2_conv_shape *s = &a->shape, *t = &b->shape;
    return a->pass == b->pass && s->in_height == t->in_height && s->in_width == t->in_width &&
           s->in_channels == t->in_channels && s->out_channels == t->out_channels &&
           s->kernel_height == t->kernel_height && s->kernel_width == t->kernel_width &&
           s->stride_height == t->stride_height && s->stride_width == t->stride_width &&
           s->pad_height == t->pad_height && s->pad_width == t->pad_width && s->groups == t->groups;
}

static size_t cuda_conv_input_count(const struct dl2_conv_shape *s)
{
    return (size_t)s->batch * s->in_height * s->in_width * s->in_channels;
}

static size_t cuda_conv_weight_count(const struct dl2_conv_shape *s)
{
    return (size_t)s->out_channels * s->kernel_height * s->kernel_width *
           (s->in_channels / s->groups);
}

static size_t cuda_conv_output_pixels(const struct dl2_conv_shape *s)
{
    return (size_t)s->batch *
           dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height) *
           dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width);
}

/* Milliseconds of a few runs; infinite where it fails. */
static float cuda_conv_time_plan(struct cuda *cuda, const struct dl2_conv_plan *plan,
                                 void *const memory[4], cudaEvent_t begin, cudaEvent_t end)
{
    enum { RUNS = 3 };
    struct dl2_error ignored = DL2_ERROR_INIT;
    float time = 0;
    bool good = true;
    for (int i = 0; i <= RUNS && good; i++) { /* the first warms up */
        if (i == 1)
            good = cudaEventRecord(begin, cuda->stream) == cudaSuccess;
        good = good && dl2_conv_plan_run(plan, cuda->cudnn, memory[0], memory[1], memory[2],
                                         memory[3], &ignored) == DL2_OK;
    }
    good = good && cudaEventRecord(end, cuda->stream) == cudaSuccess &&
           cudaEventSynchronize(end) == cudaSuccess &&
           cudaEventElapsedTime(&time, begin, end) == cudaSuccess;
    if (!good)
        cudaGetLastError();
    return good ? time : 1e30f;
}

/* The fastest of the plans, or the first that runs, on tensors of their own full of noise; the
 * first of all where these can't be had. */
static unsigned cuda_conv_measure(struct cuda *cuda, const struct dl2_conv_request *request,
                                  const struct dl2_conv_plan *plans, unsigned count, bool fastest)
{
    size_t size = dl2_element_size(cuda->base.element), workspace = 0;
    size_t counts[3] = {cuda_conv_input_count(&request->shape),
                        cuda_conv_weight_count(&request->shape),
                        cuda_conv_output_pixels(&request->shape) * request->shape.out_channels};
    void *memory[4] = {NULL};
    cudaEvent_t begin = NULL, end = NULL;
    unsigned best = 0;
    for (unsigned i = 0; i < count; i++)
        workspace = plans[i].workspace > workspace ? plans[i].workspace : workspace;
    bool good = cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess &&
                (!workspace || cudaMalloc(&memory[3], workspace) == cudaSuccess);
    for (int i = 0; i < 3 && good; i++)
        good = cudaMalloc(&memory[i], counts[i] * size) == cudaSuccess &&
               dl2_gpu_noise(cuda->base.element, memory[i], counts[i], cuda->stream) == cudaSuccess;
    float least = 1e30f;
    for (unsigned i = 0; i < count && good; i++) {
        float time = cuda_conv_time_plan(cuda, &plans[i], memory, begin, end);
        if (time < least) {
            least = time;
            best = i;
            if (!fastest)
                break;
        }
    }
    cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < 4; i++)
        cudaFree(memory[i]);
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    cudaGetLastError(); /* what matters comes up again when the plan runs */
    return best;
}

static int cuda_conv_choose(struct cuda *cuda, const struct dl2_conv_shape *shape,
                            enum dl2_conv_pass pass, const struct choice **out,
                            struct dl2_error *error)
{
    enum { TRIALS = 10 };
    struct dl2_conv_request request = {.shape = *shape,
                                       .pass = pass,
                                       .precision = cuda->precision,
                                       .deterministic = cuda->deterministic,
                                       .workspace = cuda->workspace_limit};
    bool fastest = !cuda->deterministic;
    for (const struct choice *c = cuda->choices; c; c = c->next)
        if (cuda_conv_alike(&c->request, &request)) {
            *out = c;
            if (c->request.shape.batch == shape->batch)
                return DL2_OK;
            fastest = false; /* an epoch's last batch: not worth seconds */
        }
    struct choice *choice = dl2_calloc(1, sizeof *choice);
    if (!choice)
        return dl2_cuda_out_of_memory(error, "a convolution");
    struct dl2_conv_plan plans[TRIALS];
    unsigned count = 0, best = 0;
    int status = dl2_conv_plans_find(&request, cuda->cudnn, NULL, plans, TRIALS, &count, error);
    if (status == DL2_OK) {
        if (count > 1)
            best = cuda_conv_measure(cuda, &request, plans, count, fastest);
        choice->plan = plans[best];
        for (unsigned i = 0; i < count; i++)
            if (i != best)
                dl2_conv_plan_free(&plans[i]);
        choice->request = request;
        choice->next = cuda->choices;
        cuda->choices = choice;
        status =
            dl2_cuda_grow(cuda, &cuda->workspace, choice->plan.workspace, "a workspace", error);
        *out = choice;
    } else {
        free(choice);
    }
    return status;
}

void dl2_cuda_forget_choices(struct cuda *cuda)
{
    while (cuda->choices) {
        struct choice *next = cuda->choices->next;
        dl2_conv_plan_free(&cuda->choices->plan);
        free(cuda->choices);
        cuda->choices = next;
    }
}

void dl2_cuda_conv_free(struct dl2_conv *plan)
{
    struct dl2_cuda_conv *conv = (struct dl2_cuda_conv *)plan;
    free(conv); /* what was chosen stays for others of its shape */
}

static int cuda_conv_plan(struct cuda *cuda, struct dl2_cuda_conv *conv, struct dl2_error *error)
{
    size_t size = dl2_element_size(cuda->base.element);
    conv->depthwise = dl2_gpu_depthwise(&conv->s);
    if (!conv->depthwise) {
        for (int pass = DL2_CONV_FORWARD; pass <= DL2_CONV_WEIGHTS; pass++)
            DL2_TRY(cuda_conv_choose(cuda, &conv->s, (enum dl2_conv_pass)pass, &conv->choices[pass],
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
    struct dl2_cuda_conv *conv = dl2_calloc(1, sizeof *conv);
    if (!conv)
        return dl2_cuda_out_of_memory(error, "a convolution");
    conv->cuda = cuda;
    conv->s = *shape;
    conv->out_pixels = cuda_conv_output_pixels(shape);
    conv->weights = cuda_conv_weight_count(shape);
    int status = cuda_conv_plan(cuda, conv, error);
    if (status < 0) {
        dl2_cuda_conv_free((struct dl2_conv *)conv);
        return status;
    }
    *out = (struct dl2_conv *)conv;
    return DL2_OK;
}

/* Names the layer in a failure that has just come up. */
static void cuda_conv_name(struct dl2_cuda_conv *conv, enum dl2_conv_pass pass, bool was_well)
{
    if (!was_well || well(conv->cuda))
        return;
    char text[256];
    const struct dl2_conv_request request = {.shape = conv->s, .pass = pass};
    dl2_conv_request_text(&request, text, sizeof text);
    dl2_error_prefix(&conv->cuda->base.failure, "%s", text);
}

static void cuda_conv_run(struct dl2_cuda_conv *conv, enum dl2_conv_pass pass, const void *x,
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

void dl2_cuda_conv_forward(struct dl2_conv *plan, const void *x, const void *weights,
                           const float *bias, void *y)
{
    struct dl2_cuda_conv *conv = (struct dl2_cuda_conv *)plan;
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

void dl2_cuda_conv_backward_data(struct dl2_conv *plan, const void *dy, const void *weights,
                                 void *dx)
{
    struct dl2_cuda_conv *conv = (struct dl2_cuda_conv *)plan;
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

void dl2_cuda_conv_backward_weights(struct dl2_conv *plan, const void *x, const void *dy,
                                    float *dweights, float *dbias, bool accumulate)
{
    struct dl2_cuda_conv *conv = (struct dl2_cuda_conv *)plan;
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
