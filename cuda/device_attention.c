/*
 * Attention of the device cuda: products by cublasLt, of one head in all samples of the batch at
 * once, and a softmax of our own between them.
 *
 * Scores lie as [batch][heads][tokens][step], step being the tokens rounded up to a multiple of 8,
 * so that every row begins at a multiple of 16 bytes. What is behind a row's tokens is no part of
 * any product.
 *
 * Scores and the gradients of the softmax are float32 whatever the precision: exp() turns what 16
 * bits lack of a large score into an error of the softmax that is as many times larger, and a
 * gradient less its mean has cancelled digits. They are the device's scratch. The softmax itself,
 * kept for backward, and the gradients of the scores have the device's element.
 *
 * Why not cuDNN's fused attention, which never writes scores: it takes 16-bit elements alone, so
 * that all this would be needed beside it, and could not be tried, as no card was at hand. It is
 * the next step where there is one.
 */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"
#include "cuda/product.h"
#include "train/element.h"

#include <math.h>
#include <stdlib.h>

/* Products of a head. Backward has the gradients of what forward has. */
enum { SCORES, OUTPUT, DVALUES, DSOFTMAX, DQUERIES, DKEYS, PRODUCTS };

struct dl2_attention {
    struct cuda *cuda;
    struct dl2_attention_shape s;
    unsigned size, step; /* of a head's token, and from row to row of the scores: elements */
    size_t rows;         /* of scores, of all heads and samples */
    void *softmax;       /* [rows][step] */
    size_t softmax_bytes;
    struct dl2_product *products[PRODUCTS];
};

void dl2_cuda_attention_free(struct dl2_attention *attention)
{
    if (!attention)
        return;
    struct cuda *cuda = attention->cuda;
    for (int i = 0; i < PRODUCTS; i++)
        dl2_product_free(attention->products[i]);
    if (attention->softmax)
        cuda->allocated -= attention->softmax_bytes;
    dl2_cuda_give(cuda, attention->softmax);
    free(attention);
}

/* The largest power of two, 16 at most, that divides it. */
static uint32_t alignment_of(size_t bytes)
{
    return (uint32_t)(bytes % 16 ? bytes & -bytes : 16);
}

static int plan_products(struct dl2_attention *attention, struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    const struct dl2_attention_shape *s = &attention->s;
    const unsigned tokens = s->tokens, size = attention->size;
    const size_t channels = s->channels, step = attention->step;
    /* Heads begin at multiples of their size, which decides how they are aligned. */
    const uint32_t alignment = alignment_of(size * dl2_element_size(cuda->base.element));
    const struct dl2_product_matrix inputs = {3 * channels, tokens * 3 * channels, alignment};
    const struct dl2_product_matrix outputs = {channels, tokens * channels, alignment};
    const struct dl2_product_matrix scores = {step, s->heads * tokens * step, 16};
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
        shapes[i].precision = cuda->precision;
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

static int plan_attention(struct dl2_attention *attention, struct dl2_error *error)
{
    struct cuda *cuda = attention->cuda;
    const size_t count = attention->rows * attention->step;
    const size_t element = dl2_element_size(cuda->base.element);
    /* Gradients of scores take the place of the softmax's where they are as large. */
    const size_t scratch = count * (sizeof(float) + (element < sizeof(float) ? element : 0));
    DL2_TRY(plan_products(attention, error));
    DL2_TRY(dl2_cuda_grow(cuda, &cuda->scores, scratch, "attention's scores", error));
    DL2_TRY(
        dl2_cuda_take(cuda, count * element, "attention's softmax", &attention->softmax, error));
    attention->softmax_bytes = count * element;
    cuda->allocated += attention->softmax_bytes;
    return DL2_OK;
}

int dl2_cuda_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                              struct dl2_attention **out, struct dl2_error *error)
{
    size_t scores;
    DL2_TRY(dl2_attention_shape_check(shape, &scores, error));
    struct dl2_attention *attention = dl2_calloc(1, sizeof *attention);
    if (!attention)
        return dl2_cuda_out_of_memory(error, "attention");
    attention->cuda = (struct cuda *)device;
    attention->s = *shape;
    attention->size = shape->channels / shape->heads;
    attention->step = (shape->tokens + 7) / 8 * 8;
    attention->rows = (size_t)shape->batch * shape->heads * shape->tokens;
    int status = plan_attention(attention, error);
    if (status < 0) {
        dl2_cuda_attention_free(attention);
        return status;
    }
    *out = attention;
    return DL2_OK;
}

/* Where a matrix of the first head begins, and how far on the next one's does: bytes. */
struct operand {
    char *first;
    size_t distance;
};

/* Tokens of heads side by side: in outputs, or as part `part` of an input. */
static struct operand tokens_of(const struct dl2_attention *attention, const void *tensor,
                                unsigned part)
{
    const size_t element = dl2_element_size(attention->cuda->base.element);
    return (struct operand){(char *)(uintptr_t)tensor + part * attention->s.channels * element,
                            attention->size * element};
}

static struct operand scores_of(const struct dl2_attention *attention, void *first, size_t element)
{
    return (struct operand){first, (size_t)attention->s.tokens * attention->step * element};
}

/* d = a * b, of all heads. */
static void multiply(struct dl2_attention *attention, int product, struct operand a,
                     struct operand b, struct operand d)
{
    struct cuda *cuda = attention->cuda;
    for (size_t h = 0; h < attention->s.heads && well(cuda); h++)
        library(cuda,
                dl2_product_run(attention->products[product], cuda->blas, a.first + h * a.distance,
                                b.first + h * b.distance, NULL, d.first + h * d.distance, false,
                                cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

void dl2_cuda_attention_forward(struct dl2_attention *attention, const void *qkv, void *y)
{
    struct cuda *cuda = attention->cuda;
    const enum dl2_element element = cuda->base.element;
    const struct operand q = tokens_of(attention, qkv, 0), k = tokens_of(attention, qkv, 1);
    const struct operand v = tokens_of(attention, qkv, 2);
    const struct operand p = scores_of(attention, attention->softmax, dl2_element_size(element));
    float *scores = cuda->scores.memory;
    multiply(attention, SCORES, q, k, scores_of(attention, scores, sizeof *scores));
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_softmax(element, scores, attention->rows, attention->s.tokens,
                                 attention->step, attention->softmax, cuda->stream),
                 "attention");
    multiply(attention, OUTPUT, p, v, tokens_of(attention, y, 0));
}

void dl2_cuda_attention_backward(struct dl2_attention *attention, const void *qkv, const void *dy,
                                 void *dqkv)
{
    struct cuda *cuda = attention->cuda;
    const enum dl2_element element = cuda->base.element;
    const size_t size = dl2_element_size(element);
    const struct operand q = tokens_of(attention, qkv, 0), k = tokens_of(attention, qkv, 1);
    const struct operand v = tokens_of(attention, qkv, 2), g = tokens_of(attention, dy, 0);
    const struct operand p = scores_of(attention, attention->softmax, size);
    float *dsoftmax = cuda->scores.memory;
    void *dscores = element == DL2_ELEMENT_F32
                        ? dsoftmax
                        : (void *)(dsoftmax + attention->rows * attention->step);
    const struct operand ds = scores_of(attention, dscores, size);
    multiply(attention, DVALUES, p, g, tokens_of(attention, dqkv, 2));
    multiply(attention, DSOFTMAX, g, v, scores_of(attention, dsoftmax, sizeof *dsoftmax));
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_softmax_backward(
                     element, attention->softmax, dsoftmax, attention->rows, attention->s.tokens,
                     attention->step, (float)(1 / sqrt(attention->size)), dscores, cuda->stream),
                 "gradient of attention");
    multiply(attention, DQUERIES, ds, k, tokens_of(attention, dqkv, 0));
    multiply(attention, DKEYS, ds, q, tokens_of(attention, dqkv, 1));
}
