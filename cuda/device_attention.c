/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attention of the device cuda. Of 16-bit elements cuDNN computes it in one go where it has a plan
 * (attention_graph.c): scores and softmax are in no memory, and forward leaves a number for each
 * row. In float32, and where cuDNN has no plan, cublasLt does its products, each of one head in all
 * samples of the batch, with a softmax of our own between them. One head after the other, so that
 * its scores are likely to lie in the card's cache still when they are read.
 *
 * Scores of a head lie as [batch][tokens][step], step being the tokens rounded up to a multiple of
 * 8, so that every row begins at a multiple of 16 bytes. What is behind a row's tokens is no part
 * of any product.
 *
 * Scores and the gradients of the softmax are float32 whatever the precision: exp() turns what 16
 * bits lack of a large score into an error of the softmax that is as many times larger, and a
 * gradient less its mean has canceled digits. They are the device's scratch. The softmax itself,
 * kept for backward, and the gradients of the scores have the device's element.
 */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/cudnn_choice.h"
#include "cuda/device_check.h"
#include "cuda/kernels.h"
#include "cuda/matmul.h"
#include "device/element.h"

#include <math.h>
#include <stdlib.h>

/* Products of a head. Backward has the gradients of what forward has. */
enum { SCORES, OUTPUT, DVALUES, DSOFTMAX, DQUERIES, DKEYS, PRODUCTS };

struct dl2_attention {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_attention_shape s;
    enum dl2_precision precision;
    enum dl2_element element;
    struct dl2_cudnn_choice *forward, *gradient; /* cuDNN's; NULL: products are multiplied */
    void *kept; /* for backward: cuDNN's statistics, or softmax, [heads][scores] */
    size_t kept_bytes;
    /* of products */
    unsigned size, step; /* of a head's token, and from row to row of the scores: elements */
    size_t rows, scores; /* of a head in all samples */
    struct dl2_product *products[PRODUCTS];
};

static void cuda_attention_free(void *plan)
{
    struct dl2_attention *attention = plan;
    struct cuda *cuda = attention->cuda;
    for (int i = 0; i < PRODUCTS; i++)
        dl2_product_free(attention->products[i]);
    cuda->allocated -= attention->kept_bytes;
    dl2_cuda_release(cuda, attention->kept);
    free(attention);
}

/* The largest power of two, 16 at most, that divides it. */
static uint32_t cuda_alignment_of(size_t bytes)
{
    return (uint32_t)(bytes % 16 ? bytes & -bytes : 16);
}

static int cuda_attention_plan_products(struct dl2_attention *attention, struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    const struct dl2_attention_shape *s = &attention->s;
    const unsigned tokens = s->tokens, size = attention->size;
    const size_t channels = s->channels, step = attention->step;
    /* Heads begin at multiples of their size, which decides how they are aligned. */
    const uint32_t alignment = cuda_alignment_of(size * dl2_element_size(attention->element));
    const struct dl2_product_matrix inputs = {3 * channels, tokens * 3 * channels, alignment};
    const struct dl2_product_matrix outputs = {channels, tokens * channels, alignment};
    const struct dl2_product_matrix scores = {step, tokens * step, 16};
    struct dl2_product_shape shapes[PRODUCTS] = {
        [SCORES] = {.rows = tokens,
                    .columns = tokens,
                    .inner = size,
                    .a = inputs,
                    .b = inputs,
                    .d = scores,
                    .b_transposed = true,
                    .float_result = true,
                    .factor = (float)(1 / sqrt(size)),
                    .what = "scores of attention"},
        [OUTPUT] = {.rows = tokens,
                    .columns = size,
                    .inner = tokens,
                    .a = scores,
                    .b = inputs,
                    .d = outputs,
                    .what = "output of attention"},
        [DVALUES] = {.rows = tokens,
                     .columns = size,
                     .inner = tokens,
                     .a = scores,
                     .b = outputs,
                     .d = inputs,
                     .a_transposed = true,
                     .what = "gradient of attention's values"},
        [DSOFTMAX] = {.rows = tokens,
                      .columns = tokens,
                      .inner = size,
                      .a = outputs,
                      .b = inputs,
                      .d = scores,
                      .b_transposed = true,
                      .float_result = true,
                      .what = "gradient of attention's softmax"},
        [DQUERIES] = {.rows = tokens,
                      .columns = size,
                      .inner = tokens,
                      .a = scores,
                      .b = inputs,
                      .d = inputs,
                      .what = "gradient of attention's queries"},
        [DKEYS] = {.rows = tokens,
                   .columns = size,
                   .inner = tokens,
                   .a = scores,
                   .b = inputs,
                   .d = inputs,
                   .a_transposed = true,
                   .what = "gradient of attention's keys"},
    };
    for (int i = 0; i < PRODUCTS; i++) {
        shapes[i].batch = s->batch;
        shapes[i].precision = attention->precision;
        const int status = dl2_product_create(cuda->blas, &shapes[i], cuda->workspace_limit,
                                              &attention->products[i], error);
        if (status < 0) {
            if (alignment < 16)
                dl2_error_prefix(error, "heads of %u channels, which don't fill 16 bytes", size);
            dl2_error_prefix(error, "device cuda");
            return status;
        }
        DL2_TRY(dl2_cuda_grow(cuda, &cuda->workspace, dl2_product_workspace(attention->products[i]),
                              "a workspace", error));
    }
    return DL2_OK;
}

/* For the scores of a head; behind these for their gradients, which take the place of the
 * softmax's where they are as large. */
static size_t cuda_attention_scratch_size(const struct dl2_attention *attention)
{
    const size_t element = dl2_element_size(attention->element);
    return attention->scores * (sizeof(float) + (element < sizeof(float) ? element : 0));
}

static int cuda_attention_keep(struct dl2_attention *attention, size_t bytes, const char *what,
                               struct dl2_error *error)
{
    DL2_TRY(dl2_cuda_acquire(attention->cuda, bytes, what, &attention->kept, error));
    attention->kept_bytes = bytes;
    attention->cuda->allocated += bytes;
    return DL2_OK;
}

/* cuDNN's way; `gradient` stays NULL where it has none. */
static int cuda_attention_plan_fused(struct dl2_attention *attention, struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    struct dl2_cudnn_request request = {.attention = attention->s, .pass = DL2_PASS_ATTENTION};
    size_t bytes[DL2_CUDNN_TENSORS];
    /* Heads must begin at multiples of 16 bytes. Up to 9.15 gradients need a mask of padding where
     * tokens are no multiple of 128 (cudnn-frontend works around it in the same versions). */
    if (attention->element == DL2_ELEMENT_F32 || attention->size % 8 || attention->s.tokens < 2 ||
        cudnnGetVersion() <= 91500)
        return DL2_OK;
    DL2_TRY(dl2_cudnn_choose(cuda, &request, &attention->forward, error));
    request.pass = DL2_PASS_ATTENTION_GRADIENT;
    if (attention->forward)
        DL2_TRY(dl2_cudnn_choose(cuda, &request, &attention->gradient, error));
    if (!attention->gradient)
        return DL2_OK;
    dl2_cudnn_request_bytes(&attention->gradient->request, bytes);
    DL2_TRY(dl2_cuda_grow(cuda, &cuda->scores, bytes[DL2_ATTENTION_SCRATCH],
                          "gradients of attention", error));
    return cuda_attention_keep(attention, bytes[DL2_ATTENTION_STATS], "attention's statistics",
                               error);
}

static int cuda_attention_plan(struct dl2_attention *attention, struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    DL2_TRY(cuda_attention_plan_fused(attention, error));
    if (attention->gradient)
        return DL2_OK;
    attention->forward = NULL;
    DL2_TRY(cuda_attention_plan_products(attention, error));
    DL2_TRY(dl2_cuda_grow(cuda, &cuda->scores, cuda_attention_scratch_size(attention),
                          "attention's scores", error));
    return cuda_attention_keep(
        attention, attention->s.heads * attention->scores * dl2_element_size(attention->element),
        "attention's softmax", error);
}

static int cuda_attention_create(struct cuda *cuda, const struct dl2_attention_shape *shape,
                                 enum dl2_precision precision, struct dl2_attention **out,
                                 struct dl2_error *error)
{
    size_t scores;
    DL2_TRY(dl2_attention_shape_check(shape, &scores, error));
    struct dl2_attention *attention = dl2_calloc(1, sizeof *attention);
    if (!attention)
        return dl2_cuda_out_of_memory(error, "attention");
    attention->plan.free = cuda_attention_free;
    attention->cuda = cuda;
    attention->s = *shape;
    attention->precision = precision;
    attention->element = precision == DL2_PRECISION_FP32 ? DL2_ELEMENT_F32 : cuda->base.element;
    attention->size = shape->channels / shape->heads;
    attention->step = (shape->tokens + 7) / 8 * 8;
    attention->rows = (size_t)shape->batch * shape->tokens;
    attention->scores = attention->rows * attention->step;
    int status = cuda_attention_plan(attention, error);
    if (status < 0) {
        cuda_attention_free(attention);
        return status;
    }
    *out = attention;
    return DL2_OK;
}

int dl2_cuda_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                              struct dl2_attention **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    return cuda_attention_create(cuda, shape, cuda->precision, out, error);
}

/* Tokens of a head, of outputs or of part `part` of inputs. */
static char *cuda_attention_tokens_of(const struct dl2_attention *attention, const void *tensor,
                                      unsigned part, unsigned head)
{
    const size_t at = (size_t)part * attention->s.channels + (size_t)head * attention->size;
    return (char *)(uintptr_t)tensor + at * dl2_element_size(attention->element);
}

static char *cuda_attention_softmax_of(const struct dl2_attention *attention, unsigned head)
{
    return (char *)attention->kept +
           head * attention->scores * dl2_element_size(attention->element);
}

/* d = a * b, of a head. */
static void cuda_attention_multiply(struct dl2_attention *attention, int product, const void *a,
                                    const void *b, void *d)
{
    struct cuda *cuda = attention->cuda;
    if (has_not_failed(cuda))
        library(cuda,
                dl2_product_run(attention->products[product], cuda->blas, a, b, NULL, d, false,
                                cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

void dl2_cuda_attention_forward(struct dl2_attention *attention, const void *qkv, void *y)
{
    struct cuda *cuda = attention->cuda;
    float *scores = cuda->scores.memory;
    if (attention->forward) {
        const void *const tensors[] = {[DL2_ATTENTION_QKV] = qkv,
                                       [DL2_ATTENTION_Y] = y,
                                       [DL2_ATTENTION_STATS] = attention->kept};
        dl2_cudnn_run(cuda, attention->forward, tensors);
        return;
    }
    for (unsigned h = 0; h < attention->s.heads; h++) {
        void *softmax = cuda_attention_softmax_of(attention, h);
        cuda_attention_multiply(attention, SCORES, cuda_attention_tokens_of(attention, qkv, 0, h),
                                cuda_attention_tokens_of(attention, qkv, 1, h), scores);
        LAUNCH(cuda, "attention",
               dl2_gpu_softmax(attention->element, scores, attention->rows, attention->s.tokens,
                               attention->step, softmax, cuda->stream));
        cuda_attention_multiply(attention, OUTPUT, softmax,
                                cuda_attention_tokens_of(attention, qkv, 2, h),
                                cuda_attention_tokens_of(attention, y, 0, h));
    }
}

void dl2_cuda_attention_backward(struct dl2_attention *attention, const void *qkv, const void *y,
                                 const void *dy, void *dqkv)
{
    struct cuda *cuda = attention->cuda;
    const enum dl2_element element = attention->element;
    const float scale = (float)(1 / sqrt(attention->size));
    float *dsoftmax = cuda->scores.memory;
    /* See cuda_attention_scratch_size(). */
    void *dscores = element == DL2_ELEMENT_F32 ? dsoftmax : dsoftmax + attention->scores;
    if (attention->gradient) {
        const void *const tensors[] = {[DL2_ATTENTION_QKV] = qkv,
                                       [DL2_ATTENTION_Y] = y,
                                       [DL2_ATTENTION_STATS] = attention->kept,
                                       [DL2_ATTENTION_DY] = dy,
                                       [DL2_ATTENTION_DQKV] = dqkv,
                                       [DL2_ATTENTION_SCRATCH] = cuda->scores.memory};
        dl2_cudnn_run(cuda, attention->gradient, tensors);
        return;
    }
    for (unsigned h = 0; h < attention->s.heads; h++) {
        const void *softmax = cuda_attention_softmax_of(attention, h),
                   *g = cuda_attention_tokens_of(attention, dy, 0, h);
        cuda_attention_multiply(attention, DVALUES, softmax, g,
                                cuda_attention_tokens_of(attention, dqkv, 2, h));
        cuda_attention_multiply(attention, DSOFTMAX, g,
                                cuda_attention_tokens_of(attention, qkv, 2, h), dsoftmax);
        LAUNCH(cuda, "gradient of attention",
               dl2_gpu_softmax_backward(element, softmax, dsoftmax, attention->rows,
                                        attention->s.tokens, attention->step, scale, dscores,
                                        cuda->stream));
        cuda_attention_multiply(attention, DQUERIES, dscores,
                                cuda_attention_tokens_of(attention, qkv, 1, h),
                                cuda_attention_tokens_of(attention, dqkv, 0, h));
        cuda_attention_multiply(attention, DKEYS, dscores,
                                cuda_attention_tokens_of(attention, qkv, 0, h),
                                cuda_attention_tokens_of(attention, dqkv, 1, h));
    }
}

/* -- checking -- */

enum { QKV, DY, Y, DQKV };

/* Both passes, into `of` or the check's `floats`. */
static void cuda_attention_run(struct dl2_attention *attention, void *const *of)
{
    dl2_cuda_attention_forward(attention, of[QKV], of[Y]);
    dl2_cuda_attention_backward(attention, of[QKV], of[Y], of[DY], of[DQKV]);
}

static int cuda_attention_compare(struct dl2_attention *attention, struct dl2_check *check,
                                  unsigned *checked, struct dl2_error *error)
{
    const unsigned channels = attention->s.channels, tokens = attention->s.tokens;
    struct dl2_cudnn_request request = {.attention = attention->s};
    char what[256];
    for (int backward = 0; backward < 2; backward++) {
        const struct dl2_cudnn_choice *choice = backward ? attention->gradient : attention->forward;
        request.pass = backward ? DL2_PASS_ATTENTION_GRADIENT : DL2_PASS_ATTENTION;
        dl2_cudnn_request_text(&request, what, sizeof what);
        DL2_TRY(dl2_check_compare(check, backward ? DQKV : Y, attention->rows,
                                  backward ? 3 * channels : channels, tokens, backward ? 3 : 2,
                                  what, choice ? choice->plan.name : "of cublasLt", error));
        ++*checked;
    }
    return DL2_OK;
}

/* Against products in float32. In float32 there is only one way. */
int dl2_cuda_attention_check(struct dl2_attention *attention, unsigned *checked,
                             struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    const size_t count = attention->rows * attention->s.channels;
    const struct dl2_check_tensor tensors[DL2_CHECK_TENSORS] = {
        [QKV] = {3 * count, DL2_CHECK_INPUT},
        [DY] = {count, DL2_CHECK_INPUT},
        [Y] = {count, DL2_CHECK_OUTPUT},
        [DQKV] = {3 * count, DL2_CHECK_OUTPUT},
    };
    struct dl2_attention *reference = NULL;
    struct dl2_check check;
    int status = DL2_OK;
    if (attention->precision == DL2_PRECISION_FP32 ||
        (attention->gradient && attention->gradient->checked))
        return DL2_OK;
    if (dl2_check_open(&check, cuda, tensors, 3 * attention->s.channels, "attention")) {
        status = cuda_attention_create(cuda, &attention->s, DL2_PRECISION_FP32, &reference, error);
        if (status == DL2_OK) {
            cuda_attention_run(attention, check.elements);
            cuda_attention_run(reference, check.floats);
            status = dl2_cuda_sync(&cuda->base, error);
        }
        if (status == DL2_OK)
            status = cuda_attention_compare(attention, &check, checked, error);
        if (attention->gradient)
            attention->gradient->checked = true;
        dl2_device_plan_free(reference);
    }
    dl2_check_close(&check);
    return status;
}
