/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation of the seam: gradients of the reference device against finite differences, then
 * each other device that is present, in each precision that it has, against the reference in
 * float32, over shapes that are no multiple of anything.
 *
 *     test_device [DEVICE [PRECISION]]     only that one: "cuda bf16"
 */
#include "common/memory.h"
#include "common/random.h"
#include "device/device.h"
#include "device/element.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

/* -- tensors: a host copy and a place on a device -- */

static struct dl2_random stream;

static float *fresh(size_t count)
{
    float *values = dl2_calloc(count, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(2 * dl2_random_uniform(&stream) - 1);
    return values;
}

static void ok(int status, const struct dl2_error *error)
{
    if (status)
        fail_msg("%s", error->message);
}

/* A place for `bytes` of a tensor; NULL for NULL. */
static void *place(struct dl2_device *device, const void *from, size_t bytes)
{
    struct dl2_error error = DL2_ERROR_INIT;
    void *memory = NULL;
    if (!from)
        return NULL;
    ok(device->ops->alloc(device, bytes, &memory, &error), &error);
    device->ops->upload(device, memory, from, bytes);
    device->ops->wait_uploads(device);
    return memory;
}

/* And back to `to` where not NULL; the place is freed. */
static void take(struct dl2_device *device, void *to, void *memory, size_t bytes)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (!memory)
        return;
    if (to)
        ok(device->ops->download(device, to, memory, bytes, &error), &error);
    device->ops->free(device, memory);
}

/* The same for floats here that are elements there. */
static void *place_elements(struct dl2_device *device, const float *from, size_t count)
{
    if (!from)
        return NULL;
    size_t bytes = count * dl2_element_size(device->element);
    void *elements = dl2_calloc(bytes, 1);
    assert_non_null(elements);
    dl2_elements_from_floats(device->element, from, elements, count);
    void *memory = place(device, elements, bytes);
    free(elements);
    return memory;
}

static void take_elements(struct dl2_device *device, float *to, void *memory, size_t count)
{
    size_t bytes = count * dl2_element_size(device->element);
    void *elements = dl2_calloc(bytes, 1);
    assert_non_null(elements);
    take(device, elements, memory, bytes);
    if (memory)
        dl2_elements_to_floats(device->element, elements, to, count);
    free(elements);
}

/* -- devices under test -- */

struct subject {
    const struct dl2_device_class *ops;
    enum dl2_precision precision;
    unsigned threads;
    char name[32];
};

enum { MOST_SUBJECTS = 16 };
static struct subject subjects[MOST_SUBJECTS];
static size_t subject_count;
static const struct subject reference = {NULL, DL2_PRECISION_FP32, 1, "ref"};

#define LOSS_SCALE 1024 /* where there is one */

static int try_open(const struct subject *subject, struct dl2_device **device,
                    struct dl2_error *error)
{
    const struct dl2_device_class *ops = subject->ops ? subject->ops : dl2_device_at(0);
    struct dl2_device_options options = {.threads = subject->threads,
                                         .precision = subject->precision,
                                         .loss_scale = LOSS_SCALE,
                                         .deterministic = true};
#ifdef __SANITIZE_THREAD__
    options.threads =
        1; /* GCC's OpenMP runtime is not instrumented: its barriers look like races */
#endif
    return ops->open(&options, device, error);
}

static struct dl2_device *opened(const struct subject *subject)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = NULL;
    ok(try_open(subject, &device, &error), &error);
    return device;
}

/* All that are wanted and can be opened here; says why others can't. */
static void find_subjects(const char *name, const char *precision, bool cpu_only)
{
    const struct dl2_device_class *ops;
    subject_count = 0;
    for (size_t i = 0; (ops = dl2_device_at(i)); i++) {
        const bool is_ref = ops == dl2_device_at(0);
        if ((name && strcmp(name, ops->name) != 0) || (cpu_only && !ops->rounds_by_threads))
            continue;
        for (int p = DL2_PRECISION_FP32; p <= DL2_PRECISION_FP16; p++) {
            if ((precision && strcmp(precision, dl2_precision_name(p)) != 0) ||
                (is_ref && p == DL2_PRECISION_FP32))
                continue;
            for (unsigned threads = 1; threads <= (ops->rounds_by_threads ? 3 : 1); threads += 2) {
                struct dl2_error error = DL2_ERROR_INIT;
                struct dl2_device *device;
                struct subject *subject = &subjects[subject_count];
                *subject = (struct subject){ops, (enum dl2_precision)p, threads, ""};
                snprintf(subject->name, sizeof subject->name, "%s, %s", ops->name,
                         dl2_precision_name(p));
                if (ops->present && !ops->present()) {
                    if (p == DL2_PRECISION_FP32)
                        printf("SKIP: device %s: there is none here\n", ops->name);
                    continue;
                }
                int status = try_open(subject, &device, &error);
                if (status == DL2_ERR_UNSUPPORTED && p != DL2_PRECISION_FP32)
                    continue;
                ok(status, &error);
                dl2_device_close(device);
                subject_count++;
                assert_true(subject_count < MOST_SUBJECTS);
            }
        }
    }
}

/* How near to the reference a device must come: `plain` on the processor in float32. */
static double tolerance_of(const struct subject *subject, double plain)
{
    static const double within[] = {[DL2_PRECISION_FP32] = 1e-4,
                                    [DL2_PRECISION_TF32] = 5e-3,
                                    [DL2_PRECISION_BF16] = 2e-2,
                                    [DL2_PRECISION_FP16] = 5e-3};
    double least = subject->ops->rounds_by_threads ? 0 : within[subject->precision];
    return least > plain ? least : plain;
}

static double loss_scale_of(struct dl2_device *device)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss_scale scale = {.scale = 1};
    if (device->ops->get_loss_scale)
        ok(device->ops->get_loss_scale(device, &scale, &error), &error);
    return scale.scale;
}

/*
 * One operation, forward and backward: `in` are its differentiable inputs, dy the gradient of its
 * output; run() fills y and the gradients. The rest of what it needs lies in `shape`.
 */
enum { INPUTS = 4 };

struct op {
    const char *name;
    void (*run)(const struct op *op, struct dl2_device *device);
    const void *shape;
    size_t counts[INPUTS], out_count;
    float *in[INPUTS], *gradient[INPUTS], *dy, *y;
    float *extra[2]; /* further outputs: running mean and variance */
    bool accumulate; /* run the backward pass of the weights twice */
    float kink;      /* of an activation, above 0; 0: none */
};

static void op_alloc(struct op *op)
{
    for (int i = 0; i < INPUTS; i++) {
        op->in[i] = op->counts[i] ? fresh(op->counts[i]) : NULL;
        op->gradient[i] = op->counts[i] ? fresh(op->counts[i]) : NULL;
    }
    op->dy = fresh(op->out_count);
    op->y = fresh(op->out_count);
}

static void op_free(struct op *op)
{
    for (int i = 0; i < INPUTS; i++) {
        free(op->in[i]);
        free(op->gradient[i]);
    }
    free(op->dy);
    free(op->y);
    free(op->extra[0]);
    free(op->extra[1]);
}

#define F sizeof(float)

/* What a layer of weights and biases reads and writes, on the device. */
struct layer {
    void *x, *w, *b, *dy, *y, *dx, *dw, *db;
};

static struct layer place_layer(const struct op *op, struct dl2_device *d)
{
    return (struct layer){.x = place_elements(d, op->in[0], op->counts[0]),
                          .w = place_elements(d, op->in[1], op->counts[1]),
                          .b = place(d, op->in[2], op->counts[2] * F),
                          .dy = place_elements(d, op->dy, op->out_count),
                          .y = place_elements(d, op->y, op->out_count),
                          .dx = place_elements(d, op->gradient[0], op->counts[0]),
                          .dw = place(d, op->gradient[1], op->counts[1] * F),
                          .db = place(d, op->gradient[2], op->counts[2] * F)};
}

static void take_layer(const struct op *op, struct dl2_device *d, const struct layer *t)
{
    take_elements(d, op->y, t->y, op->out_count);
    take_elements(d, op->gradient[0], t->dx, op->counts[0]);
    take(d, op->gradient[1], t->dw, op->counts[1] * F);
    take(d, op->gradient[2], t->db, op->counts[2] * F);
    take(d, NULL, t->x, 0);
    take(d, NULL, t->w, 0);
    take(d, NULL, t->b, 0);
    take(d, NULL, t->dy, 0);
}

static void run_conv(const struct op *op, struct dl2_device *d)
{
    const struct dl2_conv_shape *shape = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_conv *conv = NULL;
    ok(d->ops->conv_create(d, shape, &conv, &error), &error);
    struct layer t = place_layer(op, d);
    d->ops->conv_forward(conv, t.x, t.w, t.b, t.y);
    d->ops->conv_backward_weights(conv, t.x, t.dy, t.dw, t.db, false);
    if (op->accumulate)
        d->ops->conv_backward_weights(conv, t.x, t.dy, t.dw, t.db, true);
    d->ops->conv_backward_data(conv, t.dy, t.w, t.dx);
    take_layer(op, d, &t);
    d->ops->conv_free(conv);
}

static struct op conv_op(const struct dl2_conv_shape *s)
{
    unsigned h = dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height);
    unsigned w = dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width);
    struct op op = {.name = "convolution", .run = run_conv, .shape = s};
    op.counts[0] = (size_t)s->batch * s->in_height * s->in_width * s->in_channels;
    op.counts[1] =
        (size_t)s->out_channels * s->kernel_height * s->kernel_width * s->in_channels / s->groups;
    op.counts[2] = s->bias ? s->out_channels : 0;
    op.out_count = (size_t)s->batch * h * w * s->out_channels;
    op_alloc(&op);
    return op;
}

static void run_linear(const struct op *op, struct dl2_device *d)
{
    const struct dl2_linear_shape *shape = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_linear *linear = NULL;
    ok(d->ops->linear_create(d, shape, &linear, &error), &error);
    struct layer t = place_layer(op, d);
    d->ops->linear_forward(linear, t.x, t.w, t.b, t.y);
    d->ops->linear_backward_weights(linear, t.x, t.dy, t.dw, t.db, false);
    if (op->accumulate)
        d->ops->linear_backward_weights(linear, t.x, t.dy, t.dw, t.db, true);
    d->ops->linear_backward_data(linear, t.dy, t.w, t.dx);
    take_layer(op, d, &t);
    d->ops->linear_free(linear);
}

static struct op linear_op(const struct dl2_linear_shape *s)
{
    struct op op = {.name = "linear", .run = run_linear, .shape = s};
    op.counts[0] = (size_t)s->batch * s->in;
    op.counts[1] = (size_t)s->out * s->in;
    op.counts[2] = s->bias ? s->out : 0;
    op.out_count = (size_t)s->batch * s->out;
    op_alloc(&op);
    return op;
}

static void run_pool(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_pool *pool = NULL;
    ok(d->ops->pool_create(d, op->shape, &pool, &error), &error);
    void *x = place_elements(d, op->in[0], op->counts[0]),
         *dy = place_elements(d, op->dy, op->out_count);
    void *y = place_elements(d, op->y, op->out_count);
    void *dx = place_elements(d, op->gradient[0], op->counts[0]);
    d->ops->pool_forward(pool, x, y);
    d->ops->pool_backward(pool, dy, dx);
    take_elements(d, op->y, y, op->out_count);
    take_elements(d, op->gradient[0], dx, op->counts[0]);
    take(d, NULL, x, 0);
    take(d, NULL, dy, 0);
    d->ops->pool_free(pool);
}

static struct op pool_op(const struct dl2_pool_shape *s)
{
    struct op op = {.name = s->kind == DL2_POOL_MAX ? "max pooling" : "average pooling",
                    .run = run_pool,
                    .shape = s};
    op.counts[0] = (size_t)s->batch * s->in_height * s->in_width * s->channels;
    op.out_count = (size_t)s->batch * s->out_height * s->out_width * s->channels;
    op_alloc(&op);
    return op;
}

/* in: x, gamma, beta, residual. Where `two_gradients`, dy comes as the sum of two. */
struct norm_case {
    struct dl2_norm_shape shape;
    bool two_gradients, in_place;
};

static void run_norm(const struct op *op, struct dl2_device *d)
{
    const struct norm_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_norm *norm = NULL;
    size_t count = op->counts[0], channels = op->counts[1];
    ok(d->ops->norm_create(d, &test->shape, &norm, &error), &error);
    void *x = place_elements(d, op->in[0], count), *gamma = place(d, op->in[1], channels * F);
    void *beta = place(d, op->in[2], channels * F), *more = place_elements(d, op->in[3], count);
    void *mean = place(d, op->in[1], channels * F), *var = place(d, op->in[2], channels * F);
    void *y = place_elements(d, op->y, count);
    void *dx = place_elements(d, op->gradient[0], count),
         *dmore = place_elements(d, op->gradient[3], count);
    void *dgamma = place(d, op->gradient[1], channels * F);
    void *dbeta = place(d, op->gradient[2], channels * F);
    void *dy = place_elements(d, op->dy, count), *dy2 = NULL;
    if (test->two_gradients) {
        float *split = dl2_calloc(2 * count, sizeof *split);
        assert_non_null(split);
        for (size_t i = 0; i < count; i++) {
            split[i] = 0.25f * op->dy[i];
            split[count + i] = op->dy[i] - split[i];
        }
        d->ops->free(d, dy);
        dy = place_elements(d, split, count);
        dy2 = place_elements(d, split + count, count);
        free(split);
    }
    d->ops->norm_train(norm, x, more, gamma, beta, mean, var, y);
    if (op->accumulate) /* leaves gradients to add to; these are of the same size as the wanted ones
                         */
        d->ops->norm_backward(norm, x, y, dy, dy2, gamma, beta, dx, dmore, dgamma, dbeta, false);
    if (test->in_place)
        d->ops->norm_backward(norm, x, y, dy, dy2, gamma, beta,
                              more && dy2 ? dy2
                              : dmore     ? dx
                                          : dy,
                              more ? dy : NULL, dgamma, dbeta, op->accumulate);
    else
        d->ops->norm_backward(norm, x, y, dy, dy2, gamma, beta, dx, dmore, dgamma, dbeta,
                              op->accumulate);
    if (test->in_place) {
        size_t bytes = count * dl2_element_size(d->element);
        d->ops->copy(d, dx, more && dy2 ? dy2 : dmore ? dx : dy, more && !dy2 ? 0 : bytes);
        if (dmore)
            d->ops->copy(d, dmore, dy, bytes);
    }
    take_elements(d, op->y, y, count);
    take_elements(d, op->gradient[0], dx, count);
    take(d, op->gradient[1], dgamma, channels * F);
    take(d, op->gradient[2], dbeta, channels * F);
    take_elements(d, op->gradient[3], dmore, count);
    take(d, op->extra[0], mean, channels * F);
    take(d, op->extra[1], var, channels * F);
    take(d, NULL, x, 0);
    take(d, NULL, gamma, 0);
    take(d, NULL, beta, 0);
    take(d, NULL, more, 0);
    take(d, NULL, dy, 0);
    take(d, NULL, dy2, 0);
    d->ops->norm_free(norm);
}

static struct op norm_op(const struct norm_case *test)
{
    struct op op = {.name = "batch norm", .run = run_norm, .shape = test};
    size_t channels = test->shape.channels, count = test->shape.rows * channels;
    op.counts[0] = op.out_count = count;
    op.counts[1] = op.counts[2] = channels;
    op.counts[3] = test->shape.residual ? count : 0;
    op_alloc(&op);
    op.extra[0] = fresh(channels);
    op.extra[1] = fresh(channels);
    /* Means that are not near zero, as they are in a network. */
    for (size_t i = 0; i < count; i++)
        op.in[0][i] = 2 * op.in[0][i] + 3 * (float)(i % channels % 5);
    if (test->shape.activation == DL2_RELU6) {
        op.kink = 6;
        for (size_t c = 0; c < channels; c++)
            op.in[1][c] *= 9; /* so that some reach it */
    }
    return op;
}

struct loss_case {
    struct dl2_loss_shape shape;
    const int32_t *labels;
    const uint32_t *partner;
    float lambda, scale;
};

/* y: [batch] losses, then their sum, the count, top-1 and top-5. dy is not used: it is `scale` /
 * counted. */
static void run_loss(const struct op *op, struct dl2_device *d)
{
    const struct loss_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss *loss = NULL;
    struct dl2_loss_sums sums = {1, 2, 3, 4};
    size_t batch = test->shape.batch;
    ok(d->ops->loss_create(d, &test->shape, &loss, &error), &error);
    void *logits = place_elements(d, op->in[0], op->counts[0]);
    void *dlogits = place_elements(d, op->gradient[0], op->counts[0]);
    float *losses = place(d, op->y, batch * F);
    int32_t *labels = place(d, test->labels, batch * sizeof *labels);
    uint32_t *partner = place(d, test->partner, batch * sizeof *partner);
    struct dl2_loss_sums *total = place(d, &sums, sizeof sums);
    const struct dl2_step_numbers numbers = {.lambda = test->lambda, .scale = test->scale};
    d->ops->set_numbers(d, &numbers);
    d->ops->loss_run(loss, logits, labels, partner, losses, dlogits, total);
    d->ops->loss_run(loss, logits, labels, partner, NULL, NULL, total);
    take(d, op->y, losses, batch * F);
    take_elements(d, op->gradient[0], dlogits, op->counts[0]);
    take(d, &sums, total, sizeof sums);
    take(d, NULL, logits, 0);
    take(d, NULL, labels, 0);
    take(d, NULL, partner, 0);
    for (size_t i = 0; i < op->counts[0]; i++)
        op->gradient[0][i] /= (float)loss_scale_of(d);
    op->y[batch] = (float)((sums.loss - 1) / 2);
    op->y[batch + 1] = (float)(sums.counted - 2) / 2;
    op->y[batch + 2] = (float)(sums.top1 - 3) / 2;
    op->y[batch + 3] = (float)(sums.top5 - 4) / 2;
    d->ops->loss_free(loss);
}

static struct op loss_op(const struct loss_case *test)
{
    struct op op = {.name = "loss", .run = run_loss, .shape = test};
    op.counts[0] = (size_t)test->shape.batch * test->shape.classes;
    op.out_count = test->shape.batch + 4;
    op_alloc(&op);
    for (size_t i = 0; i < op.counts[0]; i++)
        op.in[0][i] *= 4;
    return op;
}

static void run_activation(const struct op *op, struct dl2_device *d)
{
    const enum dl2_activation activation = *(const enum dl2_activation *)op->shape;
    size_t count = op->out_count;
    void *x = place_elements(d, op->in[0], count), *y = place_elements(d, op->y, count);
    void *dy = place_elements(d, op->dy, count), *dx = place_elements(d, op->gradient[0], count);
    void *sum = place_elements(d, op->gradient[1], count);
    d->ops->activate(d, activation, x, y, count);
    d->ops->activate_backward(d, activation, y, dy, dx, count);
    d->ops->activate_backward(d, activation, y, dy, dy, count); /* in place */
    d->ops->add(d, dy, y, sum, count);
    d->ops->activate(d, activation, x, x, count);
    d->ops->add(d, x, dy, x, count);
    take_elements(d, op->y, y, count);
    take_elements(d, op->gradient[0], dx, count);
    take_elements(d, op->gradient[1], sum, count);
    take_elements(d, op->gradient[2], x, count); /* the same again */
    take(d, NULL, dy, 0);
}

static void run_gelu(const struct op *op, struct dl2_device *d)
{
    size_t count = op->out_count;
    void *x = place_elements(d, op->in[0], count), *y = place_elements(d, op->y, count);
    void *dy = place_elements(d, op->dy, count), *dx = place_elements(d, op->gradient[0], count);
    d->ops->gelu(d, x, y, count);
    d->ops->gelu_backward(d, x, dy, dx, count);
    if (op->accumulate) { /* in place, rather */
        d->ops->gelu_backward(d, x, dy, dy, count);
        d->ops->gelu(d, x, x, count);
    }
    take_elements(d, op->y, op->accumulate ? x : y, count);
    take_elements(d, op->gradient[0], op->accumulate ? dy : dx, count);
    void *const used[] = {op->accumulate ? y : x, op->accumulate ? dx : dy};
    take(d, NULL, used[0], 0);
    take(d, NULL, used[1], 0);
}

static void run_layer_norm(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_layer_norm *norm = NULL;
    ok(d->ops->layer_norm_create(d, op->shape, &norm, &error), &error);
    void *x = place_elements(d, op->in[0], op->counts[0]);
    float *gamma = place(d, op->in[1], op->counts[1] * F);
    float *beta = place(d, op->in[2], op->counts[2] * F);
    void *y = place_elements(d, op->y, op->out_count);
    void *dy = place_elements(d, op->dy, op->out_count);
    void *dx = place_elements(d, op->gradient[0], op->counts[0]);
    float *dgamma = place(d, op->gradient[1], op->counts[1] * F);
    float *dbeta = place(d, op->gradient[2], op->counts[2] * F);
    d->ops->layer_norm_forward(norm, x, gamma, beta, y);
    d->ops->layer_norm_backward(norm, x, dy, gamma, dx, dgamma, dbeta, false);
    if (op->accumulate) { /* and in place */
        d->ops->layer_norm_backward(norm, x, dy, gamma, dy, dgamma, dbeta, true);
        void *other = dx;
        dx = dy;
        dy = other;
    }
    take_elements(d, op->y, y, op->out_count);
    take_elements(d, op->gradient[0], dx, op->counts[0]);
    take(d, op->gradient[1], dgamma, op->counts[1] * F);
    take(d, op->gradient[2], dbeta, op->counts[2] * F);
    void *const used[] = {x, gamma, beta, dy};
    for (int i = 0; i < 4; i++)
        take(d, NULL, used[i], 0);
    d->ops->layer_norm_free(norm);
}

static struct op layer_norm_op(const struct dl2_layer_norm_shape *s)
{
    struct op op = {.name = "layer norm", .run = run_layer_norm, .shape = s};
    op.counts[0] = op.out_count = s->rows * s->channels;
    op.counts[1] = op.counts[2] = s->channels;
    op_alloc(&op);
    return op;
}

static void run_attention(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_attention *attention = NULL;
    ok(d->ops->attention_create(d, op->shape, &attention, &error), &error);
    void *qkv = place_elements(d, op->in[0], op->counts[0]);
    void *y = place_elements(d, op->y, op->out_count);
    void *dy = place_elements(d, op->dy, op->out_count);
    void *dqkv = place_elements(d, op->gradient[0], op->counts[0]);
    d->ops->attention_forward(attention, qkv, y);
    d->ops->attention_backward(attention, qkv, dy, dqkv);
    take_elements(d, op->y, y, op->out_count);
    take_elements(d, op->gradient[0], dqkv, op->counts[0]);
    take(d, NULL, qkv, 0);
    take(d, NULL, dy, 0);
    d->ops->attention_free(attention);
}

static struct op attention_op(const struct dl2_attention_shape *s, float spread)
{
    struct op op = {.name = "attention", .run = run_attention, .shape = s};
    op.out_count = (size_t)s->batch * s->tokens * s->channels;
    op.counts[0] = 3 * op.out_count;
    op_alloc(&op);
    for (size_t i = 0; i < op.counts[0]; i++)
        op.in[0][i] *= spread;
    return op;
}

static void run_tokens(const struct op *op, struct dl2_device *d)
{
    const struct dl2_tokens_shape *shape = op->shape;
    void *x = place_elements(d, op->in[0], op->counts[0]);
    float *class_token = place(d, op->in[1], op->counts[1] * F);
    float *positions = place(d, op->in[2], op->counts[2] * F);
    void *y = place_elements(d, op->y, op->out_count);
    void *dy = place_elements(d, op->dy, op->out_count);
    void *dx = place_elements(d, op->gradient[0], op->counts[0]);
    float *dclass_token = place(d, op->gradient[1], op->counts[1] * F);
    float *dpositions = place(d, op->gradient[2], op->counts[2] * F);
    d->ops->tokens_forward(d, shape, x, class_token, positions, y);
    d->ops->tokens_backward(d, shape, dy, dx, dclass_token, dpositions, false);
    if (op->accumulate)
        d->ops->tokens_backward(d, shape, dy, dx, dclass_token, dpositions, true);
    take_elements(d, op->y, y, op->out_count);
    take_elements(d, op->gradient[0], dx, op->counts[0]);
    take(d, op->gradient[1], dclass_token, op->counts[1] * F);
    take(d, op->gradient[2], dpositions, op->counts[2] * F);
    void *const used[] = {x, class_token, positions, dy};
    for (int i = 0; i < 4; i++)
        take(d, NULL, used[i], 0);
}

static struct op tokens_op(const struct dl2_tokens_shape *s)
{
    struct op op = {.name = "tokens", .run = run_tokens, .shape = s};
    op.counts[1] = s->channels;
    op.counts[2] = (size_t)s->tokens * s->channels;
    op.out_count = s->batch * op.counts[2];
    op.counts[0] = op.out_count - (size_t)s->batch * s->channels;
    op_alloc(&op);
    return op;
}

/* -- comparing -- */

static void near(const char *what, const char *part, const float *want, const float *got,
                 size_t count, double tolerance)
{
    double largest = 1e-6;
    for (size_t i = 0; i < count; i++)
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)want[i] - got[i]) <= tolerance * largest))
            fail_msg("%s, %s, element %zu of %zu: %.9g, not %.9g (largest %.3g)", what, part, i,
                     count, got[i], want[i], largest);
}

/* Does d(dy . y)/d(in[i]) equal the gradient, for every element? */
static void against_differences(struct op *op, double step, double tolerance)
{
    static const char *const parts[INPUTS] = {"dx", "input 1", "input 2", "input 3"};
    struct dl2_device *ref = opened(&reference);
    for (int i = 0; i < INPUTS; i++) {
        if (!op->counts[i])
            continue;
        op->run(op, ref);
        float *numeric = fresh(op->counts[i]), *gradient = fresh(op->counts[i]);
        memcpy(gradient, op->gradient[i], op->counts[i] * F);
        for (size_t k = 0; k < op->counts[i]; k++) {
            float old = op->in[i][k];
            double sum = 0, width = 0;
            for (int side = -1; side <= 1; side += 2) {
                op->in[i][k] = (float)(old + side * step);
                width += side * (double)op->in[i][k];
                op->run(op, ref);
                for (size_t o = 0; o < op->out_count; o++)
                    sum += side * (double)op->dy[o] * op->y[o];
            }
            op->in[i][k] = old;
            numeric[k] = (float)(sum / width);
        }
        near(op->name, parts[i], numeric, gradient, op->counts[i], tolerance);
        free(numeric);
        free(gradient);
    }
    dl2_device_close(ref);
}

/* As the subject would see them. */
static void round_to(const struct subject *subject, float *values, size_t count)
{
    struct dl2_device *device = opened(subject);
    if (count && device->element != DL2_ELEMENT_F32) {
        void *memory = place_elements(device, values, count);
        take_elements(device, values, memory, count);
    }
    dl2_device_close(device);
}

/* Does every subject give what the reference gives? Leaves what the last one gave. */
static void against_reference(struct op *op, double tolerance)
{
    static const char *const parts[INPUTS + 3] = {
        "gradient 0", "gradient 1", "gradient 2", "gradient 3", "output", "mean", "variance"};
    float *have[INPUTS + 3] = {op->gradient[0], op->gradient[1], op->gradient[2], op->gradient[3],
                               op->y,           op->extra[0],    op->extra[1]};
    size_t channels = op->extra[0] ? op->counts[1] : 0;
    size_t counts[INPUTS + 3] = {op->counts[0], op->counts[1], op->counts[2], op->counts[3],
                                 op->out_count, channels,      channels};
    for (size_t k = 0; k < subject_count; k++) {
        const struct subject *subject = &subjects[k];
        float *want[INPUTS + 3];
        for (int i = 0; i < INPUTS; i++)
            round_to(subject, op->in[i], op->counts[i]);
        round_to(subject, op->dy, op->out_count);
        struct dl2_device *ref = opened(&reference);
        op->run(op, ref);
        if (op->kink > 0) { /* on which side of it an output lies may be a matter of rounding */
            for (size_t i = 0; i < op->out_count; i++)
                if (op->y[i] < op->kink && op->kink - op->y[i] < 0.1f)
                    op->dy[i] = 0;
            op->run(op, ref);
        }
        dl2_device_close(ref);
        for (int i = 0; i < INPUTS + 3; i++) {
            want[i] = fresh(counts[i]);
            if (counts[i])
                memcpy(want[i], have[i], counts[i] * F);
        }
        struct dl2_device *device = opened(subject);
        op->run(op, device);
        dl2_device_close(device);
        for (int i = 0; i < INPUTS + 3; i++) {
            char what[96];
            snprintf(what, sizeof what, "%s, %s", subject->name, op->name);
            near(what, parts[i], want[i], have[i], counts[i], tolerance_of(subject, tolerance));
            free(want[i]);
        }
    }
}

/* -- the tests -- */

/* batch, height, width, in; out, kernel, stride, pad; groups, bias */
static const struct dl2_conv_shape convs[] = {
    {2, 5, 4, 3, 4, 3, 3, 1, 1, 1, 1, 1, true},
    {1, 7, 6, 2, 3, 3, 2, 2, 1, 1, 0, 1, false},
    {3, 4, 4, 1, 2, 1, 1, 1, 1, 0, 0, 1, true},
    {1, 9, 8, 2, 2, 5, 5, 3, 2, 2, 1, 1, false},
    {2, 3, 3, 5, 7, 1, 1, 2, 2, 0, 0, 1, false},
    {1, 2, 2, 1, 1, 3, 3, 1, 1, 1, 1, 1, true},
    {2, 4, 5, 4, 6, 3, 3, 1, 1, 1, 1, 2, true},
    {1, 5, 5, 3, 3, 3, 3, 2, 2, 1, 1, 3, false},
    /* from here on too large for differences */
    {2, 17, 15, 3, 19, 7, 7, 2, 2, 3, 3, 1, false},
    {3, 13, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, true},
    {2, 14, 14, 16, 32, 3, 3, 2, 2, 1, 1, 1, false},
    {2, 9, 9, 64, 48, 1, 1, 1, 1, 0, 0, 1, false},
    {1, 23, 21, 1, 8, 11, 11, 4, 4, 2, 2, 1, true},
    {5, 8, 8, 32, 32, 3, 3, 1, 1, 1, 1, 1, false},
    {3, 9, 7, 24, 24, 3, 3, 1, 1, 1, 1, 24, false},
    {2, 13, 13, 96, 96, 3, 3, 2, 2, 1, 1, 96, false},
    {1, 11, 12, 33, 33, 5, 5, 1, 1, 2, 2, 33, true},
    {2, 8, 8, 48, 96, 3, 3, 1, 1, 1, 1, 4, false},
    {7, 6, 6, 32, 16, 1, 1, 1, 1, 0, 0, 8, true},
};
enum { SMALL_CONVS = 8, CONVS = sizeof convs / sizeof convs[0] };

static void conv_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_CONVS; i++) {
        struct op op = conv_op(&convs[i]);
        against_differences(&op, 1, 2e-5); /* linear in each input: any step is exact */
        op_free(&op);
    }
}

static void conv_devices(void **state)
{
    (void)state;
    for (int i = 0; i < CONVS; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            struct op op = conv_op(&convs[i]);
            op.accumulate = accumulate;
            against_reference(&op, 2e-6);
            op_free(&op);
        }
}

static const struct dl2_linear_shape linears[] = {
    {1, 1, 1, true}, {3, 5, 4, true}, {2, 7, 3, false}, {33, 129, 17, true}, {5, 64, 1000, true}};

static void linear_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct op op = linear_op(&linears[i]);
        against_differences(&op, 1, 2e-5);
        op_free(&op);
    }
}

static void linear_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof linears / sizeof linears[0]; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            struct op op = linear_op(&linears[i]);
            op.accumulate = accumulate;
            against_reference(&op, 2e-6);
            op_free(&op);
        }
}

static const struct dl2_pool_shape pools[] = {
    {DL2_POOL_MAX, 2, 5, 4, 3, 2, 2, 2, 2, 2, 2, 0, 0},
    {DL2_POOL_MAX, 1, 7, 5, 2, 4, 3, 3, 3, 2, 2, 1, 1},
    {DL2_POOL_ADAPTIVE_AVERAGE, 2, 5, 3, 3, 1, 1, 0, 0, 0, 0, 0, 0},
    {DL2_POOL_ADAPTIVE_AVERAGE, 1, 5, 7, 2, 3, 4, 0, 0, 0, 0, 0, 0},
    {DL2_POOL_ADAPTIVE_AVERAGE, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0},
    {DL2_POOL_MAX, 3, 31, 29, 17, 15, 14, 3, 3, 2, 2, 0, 0},
    {DL2_POOL_MAX, 2, 16, 16, 32, 8, 8, 3, 3, 2, 2, 1, 1},
    {DL2_POOL_ADAPTIVE_AVERAGE, 7, 8, 8, 65, 1, 1, 0, 0, 0, 0, 0, 0},
};

static void pool_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct op op = pool_op(&pools[i]);
        /* Distinct values, a step apart from each other, so that no maximum changes hands. */
        for (size_t k = 0; k < op.counts[0]; k++)
            op.in[0][k] = (float)((k * 37 + 11) % op.counts[0]);
        against_differences(&op, 0.25, 1e-4);
        op_free(&op);
    }
}

static void pool_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        for (int ties = 0; ties < 2; ties++) {
            struct op op = pool_op(&pools[i]);
            for (size_t k = 0; ties && k < op.counts[0]; k++)
                op.in[0][k] = op.in[0][k] > 0.5f ? 1 : 0;
            against_reference(&op, 1e-6);
            op_free(&op);
        }
}

static const struct norm_case norms[] = {
    {{10, 3, 1e-5f, 0.1f, DL2_IDENTITY, false, false}, false, false},
    {{9, 2, 1e-5f, 0.1f, DL2_RELU, false, false}, false, true},
    {{8, 3, 1e-5f, 0.1f, DL2_RELU, true, false}, false, false},
    {{8, 3, 1e-5f, 0.1f, DL2_RELU, true, false}, true, true},
    {{7, 2, 1e-3f, 0.3f, DL2_IDENTITY, true, false}, true, false},
    {{8, 4, 1e-5f, 0.1f, DL2_RELU, false, false}, true, true},
    {{2531, 16, 1e-5f, 0.1f, DL2_RELU, false, false}, false, true},
    {{4099, 5, 1e-5f, 0.1f, DL2_RELU, true, false}, true, true},
    {{77, 300, 1e-5f, 0.1f, DL2_RELU, true, false}, false, true},
    {{1333, 64, 1e-5f, 0.1f, DL2_IDENTITY, false, false}, false, true},
    {{5, 2048, 1e-5f, 0.1f, DL2_RELU, false, false}, true, false},
    {{9, 3, 1e-5f, 0.1f, DL2_RELU6, false, false}, false, true},
    {{1001, 24, 1e-5f, 0.1f, DL2_RELU6, false, false}, false, false},
    {{333, 96, 1e-5f, 0.1f, DL2_RELU6, true, false}, true, true},
};

static void norm_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct op op = norm_op(&norms[i]);
        against_differences(&op, 4e-3, 4e-3);
        op_free(&op);
    }
}

static void norm_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            /* In place and once more would read what the first call overwrote. */
            struct norm_case test = norms[i];
            test.in_place = test.in_place && !accumulate;
            struct op op = norm_op(&test);
            op.accumulate = accumulate;
            against_reference(&op, 2e-5);
            op_free(&op);
        }
}

static void norm_one_row(void **state)
{
    (void)state;
    const struct norm_case test = {{1, 3, 1e-5f, 0.1f, DL2_RELU, false, false}, false, false};
    struct op op = norm_op(&test);
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *device = opened(&subjects[k]);
        double within = tolerance_of(&subjects[k], 1e-5);
        op.run(&op, device);
        for (int c = 0; c < 3; c++) { /* x - mean is 0 */
            float beta = op.in[2][c] > 0 ? op.in[2][c] : 0;
            assert_true(fabs((double)op.y[c] - beta) < within);
            assert_true(fabs((double)op.gradient[0][c]) < 10 * within);
        }
        dl2_device_close(device);
    }
    op_free(&op);
}

static void norm_eval(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, 4}, more[] = {0, -9, 1, 1}, gamma[] = {2, -1}, beta[] = {0.5f, 1};
    const float mean[] = {1, 3}, var[] = {4, 0.25f};
    const struct dl2_norm_shape shape = {2, 2, 1e-5f, 0.1f, DL2_RELU, true, false};
    const float want[] = {0.5f, 0, 3.5f, 0};
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *d = opened(&subjects[k]);
        struct dl2_norm *norm = NULL;
        float y[4] = {0};
        ok(d->ops->norm_create(d, &shape, &norm, &error), &error);
        void *dx = place_elements(d, x, 4), *dm = place_elements(d, more, 4);
        void *dg = place(d, gamma, sizeof gamma), *db = place(d, beta, sizeof beta);
        void *dmean = place(d, mean, sizeof mean), *dvar = place(d, var, sizeof var);
        void *dy = place_elements(d, y, 4);
        d->ops->norm_eval(norm, dx, dm, dg, db, dmean, dvar, dy);
        take_elements(d, y, dy, 4);
        near(subjects[k].name, "batch norm, evaluation", want, y, 4,
             tolerance_of(&subjects[k], 3e-5));
        void *const used[] = {dx, dm, dg, db, dmean, dvar};
        for (int i = 0; i < 6; i++)
            take(d, NULL, used[i], 0);
        d->ops->norm_free(norm);
        dl2_device_close(d);
    }
}

static void activation_devices(void **state)
{
    (void)state;
    static const enum dl2_activation activations[] = {DL2_IDENTITY, DL2_RELU, DL2_RELU6};
    for (int a = 0; a < 3; a++) {
        struct op op = {.name = "activation", .run = run_activation, .out_count = 50021};
        op.shape = &activations[a];
        op.counts[0] = op.counts[1] = op.counts[2] = op.out_count;
        op_alloc(&op);
        for (size_t i = 0; i < op.out_count; i++)
            op.in[0][i] = i % 100 == 0 ? 6 : i % 100 == 1 ? 0 : 9 * op.in[0][i];
        against_reference(&op, 0);
        struct dl2_device *ref = opened(&reference);
        op.run(&op, ref);
        dl2_device_close(ref);
        for (size_t i = 0; i < op.out_count; i++) {
            float x = op.in[0][i], low = a && x < 0 ? 0 : x, y = a == 2 && low > 6 ? 6 : low;
            bool passes = !a || (y > 0 && !(a == 2 && y == 6));
            assert_true(op.y[i] == y);
            assert_true(op.gradient[0][i] == (passes ? op.dy[i] : 0));
            assert_true(op.gradient[1][i] == op.gradient[0][i] + op.y[i]);
            assert_true(op.gradient[2][i] == op.gradient[1][i]);
        }
        op_free(&op);
    }
}

static void gelu_gradients(void **state)
{
    (void)state;
    struct op op = {.name = "gelu", .run = run_gelu, .out_count = 100, .counts = {100}};
    op_alloc(&op);
    for (size_t i = 0; i < op.out_count; i++)
        op.in[0][i] *= 4;
    against_differences(&op, 1e-3, 1e-3);
    op_free(&op);
}

static void gelu_devices(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        struct op op = {.name = "gelu", .run = run_gelu, .out_count = 50021, .counts = {50021}};
        op.accumulate = in_place;
        op_alloc(&op);
        for (size_t i = 0; i < op.out_count; i++) /* far out, too: 0 and x */
            op.in[0][i] *= i % 100 == 0 ? 1000 : 6;
        op.in[0][0] = 0;
        op.in[0][1] = -60000;
        op.dy[1] = 0;
        against_reference(&op, 1e-6);
        op_free(&op);
    }
}

/* Against libm, with a relative error where that is small, too: far below zero. */
static void gelu_near_and_far(void **state)
{
    (void)state;
    struct op op = {.name = "gelu", .run = run_gelu, .out_count = 36001, .counts = {36001}};
    op_alloc(&op);
    for (size_t i = 0; i < op.out_count; i++) {
        op.in[0][i] = (float)i / 2000 - 9;
        op.dy[i] = 1;
    }
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *device = opened(&subjects[k]);
        const double more = tolerance_of(&subjects[k], 0);
        round_to(&subjects[k], op.in[0], op.out_count);
        op.run(&op, device);
        for (size_t i = 0; i < op.out_count; i++) {
            const double x = op.in[0][i], share = erfc(-x / sqrt(2)) / 2;
            const double slope = share + x * exp(-x * x / 2) / sqrt(2 * M_PI);
            assert_true(fabs(op.y[i] - x * share) <= (4e-6 + more) * fabs(x * share) + more);
            assert_true(fabs(op.gradient[0][i] - slope) <= 5e-7 + 2 * more);
        }
        dl2_device_close(device);
    }
    op_free(&op);
}

static const struct dl2_layer_norm_shape layer_norms[] = {
    {3, 5, 1e-6f},    {4, 8, 0.5f},     {197, 192, 1e-6f}, {5, 33, 1e-6f},
    {64, 768, 1e-6f}, {1, 3072, 1e-5f}, {2, 1001, 1e-6f},  {1000, 7, 1e-6f}};

static void layer_norm_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct op op = layer_norm_op(&layer_norms[i]);
        against_differences(&op, 1e-3, 2e-3);
        op_free(&op);
    }
}

static void layer_norm_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layer_norms / sizeof layer_norms[0]; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            struct op op = layer_norm_op(&layer_norms[i]);
            op.accumulate = accumulate;
            against_reference(&op, 1e-5);
            op_free(&op);
        }
}

/* Rows without any spread: beta, and no gradient for x. */
static void layer_norm_constant_rows(void **state)
{
    (void)state;
    const struct dl2_layer_norm_shape constant[] = {{3, 1, 1e-6f}, {2, 40, 1e-6f}};
    for (int i = 0; i < 2; i++) {
        struct op op = layer_norm_op(&constant[i]);
        for (size_t k = 0; k < op.counts[0]; k++) {
            op.in[0][k] = 1 + (float)(k / constant[i].channels);
            op.dy[k] = 1;
            op.in[1][k % constant[i].channels] = 2;
        }
        against_reference(&op, 1e-6);
        for (size_t k = 0; subject_count && k < op.counts[0]; k++)
            assert_true(fabsf(op.gradient[0][k]) < 1e-3f);
        op_free(&op);
    }
}

/* batch, tokens, channels, heads */
static const struct dl2_attention_shape attentions[] = {
    {1, 1, 1, 1},   {2, 3, 4, 2},    {1, 5, 6, 1},     {3, 5, 24, 3},
    {2, 17, 64, 2}, {1, 65, 192, 3}, {2, 197, 128, 2}, {5, 2, 20, 5}};

static void attention_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct op op = attention_op(&attentions[i], 2);
        against_differences(&op, 1e-3, 2e-3);
        op_free(&op);
    }
}

static void attention_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof attentions / sizeof attentions[0]; i++) {
        struct op op = attention_op(&attentions[i], 2);
        against_reference(&op, 5e-6);
        op_free(&op);
    }
}

/* Scores that are the same give the mean of the values, whatever exp() of them would be. */
static void attention_to_all_alike(void **state)
{
    (void)state;
    const struct dl2_attention_shape s = {2, 9, 128, 2};
    struct op op = attention_op(&s, 1);
    for (size_t row = 0; row < (size_t)s.batch * s.tokens; row++)
        for (size_t c = 0; c < 2u * s.channels; c++)
            op.in[0][row * 3 * s.channels + c] = row % 2 || c >= s.channels ? 8 : -8;
    against_reference(&op, 5e-6);
    for (size_t i = 0; subject_count && i < op.out_count; i++) {
        double mean = 0;
        size_t sample = i / s.channels / s.tokens * s.tokens;
        for (size_t t = 0; t < s.tokens; t++)
            mean += op.in[0][(sample + t) * 3 * s.channels + 2 * s.channels + i % s.channels];
        assert_true(fabs(mean / s.tokens - op.y[i]) < 1e-2);
    }
    op_free(&op);
}

/* Scores that are exact in floats, from 0 down to -95, and values that show their softmax. */
static void attention_is_exponential(void **state)
{
    (void)state;
    enum { TOKENS = 64 };
    const struct dl2_attention_shape s = {32, TOKENS, TOKENS, 1};
    struct op op = attention_op(&s, 0);
    double softmax[TOKENS];
    for (size_t row = 0; row < (size_t)s.batch * TOKENS; row++) {
        float *q = op.in[0] + row * 3 * TOKENS;
        size_t sample = row / TOKENS, token = row % TOKENS;
        q[0] = 8; /* sqrt(TOKENS) */
        q[TOKENS] = token ? -1.5f * (float)token - (float)sample / 64 : 0;
        q[(size_t)2 * TOKENS + token] = 1;
    }
    for (size_t k = 0; k < subject_count; k++) {
        if (subjects[k].precision != DL2_PRECISION_FP32)
            continue;
        struct dl2_device *device = opened(&subjects[k]);
        const double within = tolerance_of(&subjects[k], 5e-7);
        op.run(&op, device);
        for (size_t row = 0; row < (size_t)s.batch * TOKENS; row++) {
            const float *keys = op.in[0] + row / TOKENS * TOKENS * 3 * TOKENS + TOKENS;
            double sum = 0;
            for (size_t i = 0; i < TOKENS; i++)
                sum += softmax[i] = exp(keys[i * 3 * TOKENS]);
            for (size_t i = 0; i < TOKENS; i++)
                assert_true(fabs(op.y[row * TOKENS + i] - softmax[i] / sum) <=
                            within * softmax[i] / sum + 2e-38);
        }
        dl2_device_close(device);
    }
    op_free(&op);
}

/* What has become of training that diverged must be seen. */
static void no_number_stays_none(void **state)
{
    (void)state;
    struct op gelu = {.name = "gelu", .run = run_gelu, .out_count = 3, .counts = {3}};
    op_alloc(&gelu);
    struct op some[] = {gelu, attention_op(&attentions[3], 2), layer_norm_op(&layer_norms[3])};
    const size_t places[] = {1, attentions[3].channels + 1, 1}; /* a key: one score of many */
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        some[i].in[0][places[i]] = NAN;
        for (size_t k = 0; k < subject_count; k++) {
            struct dl2_device *device = opened(&subjects[k]);
            some[i].run(&some[i], device);
            assert_true(isnan(some[i].y[1]) && isnan(some[i].gradient[0][1]));
            dl2_device_close(device);
        }
        op_free(&some[i]);
    }
}

/* However many threads there are. */
static void twice_the_same_bits(void **state)
{
    (void)state;
    const struct dl2_attention_shape heads = {3, 65, 192, 3};
    const struct dl2_layer_norm_shape rows = {2001, 96, 1e-6f};
    const struct dl2_tokens_shape images = {33, 65, 96};
    struct op some[] = {attention_op(&heads, 2), layer_norm_op(&rows), tokens_op(&images)};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct op *op = &some[i];
        for (size_t k = 0; k < subject_count; k++) {
            float *first[INPUTS];
            struct dl2_device *device = opened(&subjects[k]);
            op->run(op, device);
            for (int n = 0; n < INPUTS; n++) {
                first[n] = fresh(op->counts[n]);
                if (op->counts[n])
                    memcpy(first[n], op->gradient[n], op->counts[n] * F);
            }
            op->run(op, device);
            for (int n = 0; n < INPUTS; n++) {
                if (op->counts[n])
                    assert_memory_equal(first[n], op->gradient[n], op->counts[n] * F);
                free(first[n]);
            }
            dl2_device_close(device);
        }
        op_free(op);
    }
}

static const struct dl2_tokens_shape tokens[] = {
    {1, 2, 1}, {3, 5, 7}, {7, 17, 64}, {2, 65, 192}, {33, 10, 24}};

static void tokens_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct op op = tokens_op(&tokens[i]);
        against_differences(&op, 1, 2e-5);
        op_free(&op);
    }
}

static void tokens_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            struct op op = tokens_op(&tokens[i]);
            op.accumulate = accumulate;
            against_reference(&op, 2e-6);
            op_free(&op);
        }
}

static const int32_t some_labels[] = {2, 0, -1, 3, 1, 2, 0};
static const uint32_t some_partners[] = {1, 4, 3, 2, 0, 5, 6};
static const struct loss_case losses[] = {
    {{7, 4, 0}, some_labels, NULL, 1, 1},
    {{7, 4, 0.1f}, some_labels, NULL, 1, 0.5f},
    {{7, 4, 0.1f}, some_labels, some_partners, 0.3f, 2},
    {{3, 1000, 0.1f}, some_labels, NULL, 1, 1},
};

static void loss_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct loss_case *test = &losses[i];
        struct op op = loss_op(test);
        unsigned counted = 0;
        for (unsigned n = 0; n < test->shape.batch; n++)
            counted +=
                test->labels[n] >= 0 && (!test->partner || test->labels[test->partner[n]] >= 0);
        for (size_t o = 0; o < op.out_count; o++)
            op.dy[o] = o < test->shape.batch ? test->scale / (float)counted : 0;
        against_differences(&op, 0.02, 2e-3);
        assert_true(op.y[2] == 0 && op.gradient[0][2 * 4] == 0);
        op_free(&op);
    }
}

static void loss_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        struct op op = loss_op(&losses[i]);
        against_reference(&op, 1e-6);
        op_free(&op);
    }
}

/* Figures that can be checked by hand: logits 0 give log(classes); ties rank by class number. */
static void loss_by_hand(void **state)
{
    (void)state;
    static const int32_t labels[] = {0, 4, 5, 7};
    const struct loss_case test = {{4, 8, 0}, labels, NULL, 1, 1};
    struct op op = loss_op(&test);
    memset(op.in[0], 0, op.counts[0] * F);
    against_reference(&op, 1e-6);
    for (int n = 0; n < 4; n++)
        assert_true(fabs(op.y[n] - log(8)) < 1e-6);
    assert_true(op.y[5] == 4 && op.y[6] == 1 && op.y[7] == 2);
    op_free(&op);
}

static void all_labels_missing(void **state)
{
    (void)state;
    static const int32_t labels[] = {-1, -1};
    const struct loss_case test = {{2, 3, 0.1f}, labels, NULL, 1, 1};
    struct op op = loss_op(&test);
    against_reference(&op, 0);
    for (size_t i = 0; i < op.counts[0]; i++)
        assert_true(op.gradient[0][i] == 0);
    assert_true(op.y[2] == 0 && op.y[3] == 0);
    op_free(&op);
}

static void dropout_is_the_same_everywhere(void **state)
{
    (void)state;
    const size_t count = 3 * 4096 + 77;
    float *x = fresh(count), *want = fresh(count), *got = fresh(count);
    for (size_t k = 0; k <= subject_count; k++) {
        const struct subject *subject = k ? &subjects[k - 1] : &reference;
        struct dl2_device *d = opened(subject);
        void *from = place_elements(d, x, count), *to = place_elements(d, x, count);
        d->ops->set_numbers(d, &(struct dl2_step_numbers){.step = 11});
        d->ops->dropout(d, from, to, count, 0.25f, 7, 1);
        take_elements(d, k ? got : want, to, count);
        take(d, NULL, from, 0);
        bool exact = d->element == DL2_ELEMENT_F32;
        dl2_device_close(d);
        if (k && exact)
            assert_memory_equal(want, got, count * F);
        else if (k)
            near(subject->name, "dropout", want, got, count, tolerance_of(subject, 0));
        for (size_t i = 0; k && i < count; i++)
            assert_true((want[i] == 0) == (got[i] == 0));
    }
    size_t dropped = 0;
    for (size_t i = 0; i < count; i++) {
        dropped += want[i] == 0;
        assert_true(want[i] == 0 || fabsf(want[i] - x[i] / 0.75f) < 1e-6f);
    }
    assert_true(fabs((double)dropped / (double)count - 0.25) < 0.02);
    free(x);
    free(want);
    free(got);
}

static void ingest_devices(void **state)
{
    (void)state;
    static const uint32_t partner[] = {2, 0, 1};
    for (unsigned channels = 1; channels <= 3; channels += 2)
        for (int mixed = 0; mixed < 2; mixed++) {
            struct dl2_ingest_shape shape = {3, 7, 9, channels, {122, 116, 104}, {59, 58, 60}};
            size_t size = 7u * 9u * channels, count = 3 * size;
            uint8_t *images = dl2_calloc(count, 1);
            float *want = fresh(count), *got = fresh(count);
            assert_non_null(images);
            for (size_t i = 0; i < count; i++)
                images[i] = (uint8_t)dl2_random_below(&stream, 256);
            for (size_t i = 0; i < count; i++) {
                double v = images[i], other = images[partner[i / size] * size + i % size];
                v = mixed ? 0.7 * v + 0.3 * other : v;
                want[i] = (float)((v - shape.mean[i % channels]) / shape.std[i % channels]);
            }
            for (size_t k = 0; k < subject_count; k++) {
                struct dl2_error error = DL2_ERROR_INIT;
                struct dl2_device *d = opened(&subjects[k]);
                struct dl2_ingest *ingest = NULL;
                ok(d->ops->ingest_create(d, &shape, &ingest, &error), &error);
                uint8_t *from = place(d, images, count);
                uint32_t *with = mixed ? place(d, partner, sizeof partner) : NULL;
                void *to = place_elements(d, got, count);
                d->ops->set_numbers(d, &(struct dl2_step_numbers){.lambda = 0.7f});
                d->ops->ingest_run(ingest, from, with, to);
                take_elements(d, got, to, count);
                near(subjects[k].name, "ingest", want, got, count,
                     tolerance_of(&subjects[k], 1e-6));
                take(d, NULL, from, 0);
                take(d, NULL, with, 0);
                d->ops->ingest_free(ingest);
                dl2_device_close(d);
            }
            free(images);
            free(want);
            free(got);
        }
}

enum optimiser { SGD, NESTEROV, ADAMW, OPTIMISERS };

/* A step over `count` of the parameters, from `first` on. */
static void step(struct dl2_device *d, enum optimiser optimiser, size_t first, size_t count,
                 bool decays, float *w, void *lowered, const float *g, float *m, float *v)
{
    char *image = lowered;
    if (image)
        image += first * dl2_element_size(d->element);
    if (optimiser == ADAMW)
        d->ops->adamw_step(d, w + first, image, g + first, m + first, v + first, count, decays);
    else
        d->ops->sgd_step(d, w + first, image, g + first, m + first, count, decays,
                         optimiser == NESTEROV);
}

/* Three updates; weights, then the optimiser's state, into `out`. */
static void run_optimiser(const struct subject *subject, enum optimiser optimiser,
                          const float *start, const float *gradient, size_t count, float *out)
{
    const size_t decayed = 12345; /* no more than the first part of them */
    struct dl2_device *d = opened(subject);
    const struct dl2_device_class *ops = d->ops;
    size_t size = dl2_element_size(d->element);
    float *scaled = fresh(count);
    for (size_t i = 0; i < count; i++)
        scaled[i] = gradient[i] * (float)loss_scale_of(d);
    float *w = place(d, start, count * F), *g = place(d, scaled, count * F);
    float *m = place(d, start, count * F), *v = place(d, start, count * F);
    char *lowered = d->element == DL2_ELEMENT_F32 ? NULL : place_elements(d, start, count);
    ops->zero(d, m, count * F);
    ops->zero(d, v, count * F);
    if (lowered) {
        ops->zero(d, lowered, count * size);
        ops->lower(d, w, lowered, count);
    }
    for (int update = 1; update <= 3; update++) {
        const struct dl2_step_numbers numbers = {.rate = 0.1f / (float)update,
                                                 .momentum = 0.875f,
                                                 .weight_decay = 1e-2f,
                                                 .beta2 = 0.75f,
                                                 .epsilon = 1e-4f,
                                                 .update = (uint64_t)update};
        ops->set_numbers(d, &numbers);
        if (ops->check_gradients)
            ops->check_gradients(d, g, count);
        step(d, optimiser, 0, decayed, true, w, lowered, g, m, v);
        step(d, optimiser, decayed, count - decayed, false, w, lowered, g, m, v);
        if (ops->end_update)
            ops->end_update(d);
    }
    take(d, out, w, count * F);
    take(d, out + count, m, count * F);
    take(d, out + 2 * count, v, count * F);
    take(d, NULL, g, 0);
    if (lowered) { /* the image of the weights is theirs, bit for bit */
        float *image = fresh(count), *own = fresh(count);
        memcpy(own, out, count * F);
        round_to(subject, own, count);
        take_elements(d, image, lowered, count);
        assert_memory_equal(own, image, count * F);
        free(image);
        free(own);
    }
    free(scaled);
    dl2_device_close(d);
}

static void optimiser_devices(void **state)
{
    (void)state;
    static const char *const names[] = {"sgd", "nesterov", "adamw"};
    const size_t count = 20011;
    float *start = fresh(count), *gradient = fresh(count);
    float *want = fresh(3 * count), *got = fresh(3 * count);
    for (int o = SGD; o < OPTIMISERS; o++) {
        run_optimiser(&reference, (enum optimiser)o, start, gradient, count, want);
        for (size_t k = 0; k < subject_count; k++) {
            run_optimiser(&subjects[k], (enum optimiser)o, start, gradient, count, got);
            near(subjects[k].name, names[o], want, got, 3 * count, 1e-6);
        }
    }
    free(start);
    free(gradient);
    free(want);
    free(got);
}

/* One number by hand, over two updates: torch.optim.AdamW's. */
static void adamw_by_hand(void **state)
{
    (void)state;
    for (size_t k = 0; k <= subject_count; k++) {
        const struct subject *subject = k ? &subjects[k - 1] : &reference;
        struct dl2_device *d = opened(subject);
        const float start = 1, gradients[] = {0.5f, -0.25f};
        float *w = place(d, &start, F), *g = place(d, &start, F), *m = place(d, &start, F);
        float *v = place(d, &start, F), got[3];
        void *lowered = d->element == DL2_ELEMENT_F32 ? NULL : place_elements(d, &start, 1);
        d->ops->zero(d, m, F);
        d->ops->zero(d, v, F);
        double weight = 1, first = 0, second = 0;
        for (int t = 1; t <= 2; t++) {
            struct dl2_error error = DL2_ERROR_INIT;
            float scaled = gradients[t - 1] * (float)loss_scale_of(d);
            ok(d->ops->sync(d, &error), &error);
            d->ops->upload(d, g, &scaled, F);
            d->ops->wait_uploads(d);
            d->ops->set_numbers(d, &(struct dl2_step_numbers){.rate = 0.1f,
                                                              .momentum = 0.9f,
                                                              .weight_decay = 0.1f,
                                                              .beta2 = 0.99f,
                                                              .epsilon = 1e-8f,
                                                              .update = (uint64_t)t});
            d->ops->adamw_step(d, w, lowered, g, m, v, 1, true);
            weight *= 1 - 0.1 * 0.1;
            first = 0.9 * first + 0.1 * gradients[t - 1];
            second = 0.99 * second + 0.01 * gradients[t - 1] * gradients[t - 1];
            weight -= 0.1 * (first / (t == 1 ? 0.1 : 0.19)) /
                      (sqrt(second / (t == 1 ? 0.01 : 0.0199)) + 1e-8);
        }
        take(d, &got[0], w, F);
        take(d, &got[1], m, F);
        take(d, &got[2], v, F);
        take(d, NULL, g, 0);
        take(d, NULL, lowered, 0);
        dl2_device_close(d);
        assert_true(fabs(got[0] - weight) < 1e-6 && fabs(got[1] - first) < 1e-6 &&
                    fabs(got[2] - second) < 1e-7);
    }
}

/* Three moves of an average, of a decay each; the first takes the values over, bit for bit. */
static void averages_devices(void **state)
{
    (void)state;
    const size_t count = 20011;
    const float decays[] = {0, 0.1f, 0.999f};
    float *values = fresh(count), *want = fresh(count), *got = fresh(count);
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = opened(&subjects[k]);
        const struct dl2_device_class *ops = d->ops;
        float *v = place(d, values, count * F), *average = place(d, values, count * F);
        ops->zero(d, average, count * F);
        for (int step = 0; step < 3; step++) {
            struct dl2_error error = DL2_ERROR_INIT;
            for (size_t i = 0; i < count; i++) {
                got[i] = values[i] * (float)(1 + step);
                want[i] = (step ? decays[step] * want[i] : 0) + (1 - decays[step]) * got[i];
            }
            ok(ops->sync(d, &error), &error);
            ops->upload(d, v, got, count * F);
            ops->set_numbers(d, &(struct dl2_step_numbers){.average_decay = decays[step]});
            ops->move_average(d, average, v, count);
            ok(ops->download(d, got, average, count * F, &error), &error);
            near(subjects[k].name, "average", want, got, count, 1e-6);
            if (step == 0)
                assert_memory_equal(got, values, count * F);
        }
        take(d, NULL, v, 0);
        take(d, NULL, average, 0);
        dl2_device_close(d);
    }
    free(values);
    free(want);
    free(got);
}

/* Gradients that aren't finite leave weights and momenta alone, and a dynamic scale falls. */
static void loss_scale_devices(void **state)
{
    (void)state;
    const float bad[][3] = {{1, INFINITY, 1}, {1, 1, NAN}, {1, 1, 1}};
    const float start[] = {1, 2, 3}, zeros[3] = {0};
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_loss_scale scale = {0};
        struct dl2_device *d;
        if (subjects[k].precision != DL2_PRECISION_FP16)
            continue;
        const struct dl2_device_class *ops = subjects[k].ops;
        const struct dl2_device_options dynamic = {.precision = DL2_PRECISION_FP16};
        ok(ops->open(&dynamic, &d, &error), &error);
        const struct dl2_loss_scale before = {8, 1999, 7};
        ok(ops->set_loss_scale(d, &before, &error), &error);
        float *w = place(d, start, sizeof start), *m = place(d, zeros, sizeof zeros);
        void *lowered = place_elements(d, start, 3);
        const struct dl2_step_numbers numbers = {.rate = 1, .momentum = 0.5f};
        ops->set_numbers(d, &numbers);
        for (int i = 0; i < 3; i++) {
            float *g = place(d, bad[i], sizeof bad[i]), w_now[3];
            ops->check_gradients(d, g, 3);
            ops->sgd_step(d, w, lowered, g, m, 2, true, false); /* whose own may be finite */
            ops->sgd_step(d, w + 2, (char *)lowered + 4, g + 2, m + 2, 1, false, false);
            ops->end_update(d);
            ok(ops->download(d, w_now, w, sizeof w_now, &error), &error);
            ok(ops->get_loss_scale(d, &scale, &error), &error);
            for (int n = 0; n < 3; n++) /* at last, by 1 / the scale */
                assert_true(w_now[n] == (i < 2 ? start[n] : start[n] - 0.5f));
            assert_true(scale.scale == (i == 0 ? 4 : 2) && scale.good == (i == 2));
            assert_int_equal(scale.skipped, i < 2 ? 8 + i : 9);
            take(d, NULL, g, 0);
        }
        /* AdamW's state stays, too, and what was skipped doesn't count: m / (1 - beta1) is g. */
        ok(ops->set_loss_scale(d, &(struct dl2_loss_scale){.scale = 2}, &error), &error);
        float *v = place(d, zeros, sizeof zeros);
        ops->zero(d, m, sizeof zeros);
        for (int i = 1; i < 3; i++) {
            float *g = place(d, bad[i], sizeof bad[i]), now[3];
            ops->upload(d, w, start, sizeof start);
            ops->set_numbers(
                d, &(struct dl2_step_numbers){
                       .rate = 1, .momentum = 0.5f, .beta2 = 0.75f, .update = (uint64_t)i});
            ops->check_gradients(d, g, 3);
            ops->adamw_step(d, w, lowered, g, m, v, 3, true);
            ops->end_update(d);
            ok(ops->download(d, now, w, sizeof now, &error), &error);
            for (int n = 0; n < 3; n++)
                assert_true(fabsf(now[n] - (i == 1 ? start[n] : start[n] - 1)) < 1e-6f);
            ok(ops->download(d, now, v, sizeof now, &error), &error);
            for (int n = 0; n < 3; n++) /* (1 / the scale of then, 1)^2 / 4 */
                assert_true(now[n] == (i == 1 ? 0 : 0.25f));
            take(d, NULL, g, 0);
        }
        take(d, NULL, v, 0);
        ops->zero(d, m, sizeof zeros);
        /* The 2000th good one doubles it. */
        ok(ops->set_loss_scale(d, &before, &error), &error);
        ops->check_gradients(d, m, 3);
        ops->end_update(d);
        ok(ops->get_loss_scale(d, &scale, &error), &error);
        assert_true(scale.scale == 16 && scale.good == 0 && scale.skipped == 7);
        take(d, NULL, w, 0);
        take(d, NULL, m, 0);
        take(d, NULL, lowered, 0);
        dl2_device_close(d);
    }
}

/* What was recorded runs again on what lies there now, with the numbers set now. */
static void recordings(void **state)
{
    (void)state;
    const struct dl2_conv_shape shape = {3, 9, 7, 8, 16, 3, 3, 1, 1, 1, 1, 1, false};
    const size_t ins = 3u * 9 * 7 * 8, outs = 3u * 9 * 7 * 16, weights = 16u * 9 * 8;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *d = opened(&subjects[k]);
        const struct dl2_device_class *ops = d->ops;
        if (!ops->record_begin) {
            dl2_device_close(d);
            continue;
        }
        float *first = fresh(ins), *second = fresh(ins), *matrix = fresh(weights);
        float *direct = fresh(outs), *replayed = fresh(outs);
        struct dl2_conv *conv = NULL;
        struct dl2_recording *recording = NULL;
        ok(ops->conv_create(d, &shape, &conv, &error), &error);
        void *x = place_elements(d, first, ins), *x2 = place_elements(d, second, ins);
        void *w = place_elements(d, matrix, weights), *y = place_elements(d, direct, outs);
        for (int step = 0; step < 4; step++) {
            ops->set_numbers(d, &(struct dl2_step_numbers){.step = (uint64_t)step});
            if (step == 3)
                ops->copy(d, x, x2, ins * dl2_element_size(d->element));
            if (step == 1)
                ops->record_begin(d);
            if (recording) {
                ops->replay(recording);
            } else {
                ops->conv_forward(conv, x, w, NULL, y);
                ops->dropout(d, y, y, outs, 0.5f, 1, 0);
            }
            if (step == 1) {
                recording = ops->record_end(d);
                assert_non_null(recording);
            }
        }
        take_elements(d, replayed, y, outs);
        y = place_elements(d, direct, outs);
        ops->conv_forward(conv, x2, w, NULL, y);
        ops->dropout(d, y, y, outs, 0.5f, 1, 0);
        take_elements(d, direct, y, outs);
        near(subjects[k].name, "a replay", direct, replayed, outs, 0);
        ops->recording_free(recording);
        ops->conv_free(conv);
        take(d, NULL, x, 0);
        take(d, NULL, x2, 0);
        take(d, NULL, w, 0);
        free(first);
        free(second);
        free(matrix);
        free(direct);
        free(replayed);
        dl2_device_close(d);
    }
}

static void shapes_that_make_no_sense(void **state)
{
    (void)state;
    const struct dl2_conv_shape large = {1, 2, 2, 3, 4, 5, 5, 1, 1, 1, 1, 1, false};
    const struct dl2_conv_shape empty = {0, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 1, false};
    const struct dl2_conv_shape huge = {1u << 16, 1u << 10, 1u << 10, 3, 4, 3,    3,
                                        1,        1,        1,        1, 1, false};
    const struct dl2_conv_shape stuck = {1, 8, 8, 3, 4, 3, 3, 0, 0, 1, 1, 1, false};
    const struct dl2_conv_shape uneven = {1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 3, false};
    const struct dl2_conv_shape none_at_all = {1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 0, false};
    const struct dl2_conv_shape *bad[] = {&large, &empty, &huge, &stuck, &uneven, &none_at_all};
    const struct dl2_pool_shape pool = {DL2_POOL_MAX, 1, 4, 4, 1, 3, 3, 2, 2, 2, 2, 2, 2};
    const struct dl2_attention_shape odd[] = {
        {1, 4, 6, 4}, {1, 4, 6, 0}, {1, 0, 6, 3}, {1, 1u << 20, 1, 1}};
    const struct dl2_device_class *ops;
    for (size_t k = 0; k <= subject_count; k++) {
        struct dl2_device *d = opened(k ? &subjects[k - 1] : &reference);
        ops = d->ops;
        for (int i = 0; i < 6; i++) {
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_conv *conv = NULL;
            assert_int_equal(ops->conv_create(d, bad[i], &conv, &error), DL2_ERR_ARGUMENT);
            assert_true(error.message[0]);
        }
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_pool *made = NULL;
        assert_int_equal(ops->pool_create(d, &pool, &made, &error), DL2_ERR_ARGUMENT);
        for (int i = 0; i < 4; i++) {
            struct dl2_attention *attention = NULL;
            dl2_error_clear(&error);
            assert_int_equal(ops->attention_create(d, &odd[i], &attention, &error),
                             DL2_ERR_ARGUMENT);
            assert_non_null(strstr(error.message, "heads"));
        }
        dl2_device_close(d);
    }
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *none = NULL;
    assert_int_equal(dl2_device_open("abacus", NULL, &none, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "ref"));
    dl2_error_clear(&error);
    assert_int_equal(dl2_device_open("ref:1", NULL, &none, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    const struct dl2_device_options tensor_cores = {.precision = DL2_PRECISION_TF32};
    assert_int_equal(dl2_device_open("ref", &tensor_cores, &none, &error), DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cuda"));
    dl2_error_clear(&error);
    static const char *const wrong[] = {"ref:", "ref:x", "ref:1x", "ref:99999", "re", ""};
    for (int i = 0; i < 6; i++) {
        struct dl2_device_name name;
        assert_int_equal(dl2_device_parse(wrong[i], &name, &error), DL2_ERR_ARGUMENT);
        dl2_error_clear(&error);
    }
    struct dl2_device_name name;
    assert_int_equal(dl2_device_parse("ref:12", &name, &error), DL2_OK);
    assert_true(name.numbered && name.number == 12 && !name.automatic);
    assert_ptr_equal(dl2_device_named(&name), dl2_device_at(0));
    assert_int_equal(dl2_device_parse(NULL, &name, &error), DL2_OK);
    assert_true(name.automatic && dl2_device_named(&name) == dl2_device_default());
}

/* binary16 and bfloat16 by hand, and every value of theirs there and back. */
static void elements(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t half, bfloat;
    } known[] = {
        {0, 0, 0},
        {1, 0x3c00, 0x3f80},
        {-2, 0xc000, 0xc000},
        {65504, 0x7bff, 0x4780},
        {65520, 0x7c00, 0x4780},
        {0x1p-24f, 0x0001, 0x3380},
        {0x1p-25f, 0x0000, 0x3300},
        {0x1.8p-24f, 0x0002, 0x33c0},
        {0x1.ff8p-15f, 0x03ff, 0x3880},
        {0x1.ffcp-15f, 0x0400, 0x3880},
        {1 + 0x1p-11f, 0x3c00, 0x3f80},
        {1 + 0x1.8p-11f, 0x3c01, 0x3f80},
        {1 + 0x1p-8f, 0x3c04, 0x3f80},
        {1 + 0x1.8p-8f, 0x3c06, 0x3f81},
        {INFINITY, 0x7c00, 0x7f80},
        {-1e30f, 0xfc00, 0xf14a},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint16_t half, bfloat;
        dl2_elements_from_floats(DL2_ELEMENT_F16, &known[i].value, &half, 1);
        dl2_elements_from_floats(DL2_ELEMENT_BF16, &known[i].value, &bfloat, 1);
        assert_int_equal(half, known[i].half);
        assert_int_equal(bfloat, known[i].bfloat);
    }
    for (unsigned bits = 0; bits < 65536; bits++)
        for (int e = DL2_ELEMENT_BF16; e <= DL2_ELEMENT_F16; e++) {
            uint16_t from = (uint16_t)bits, to;
            float value;
            dl2_elements_to_floats((enum dl2_element)e, &from, &value, 1);
            dl2_elements_from_floats((enum dl2_element)e, &value, &to, 1);
            assert_true(isnan(value) ? (to & 0x7fff) > (e == DL2_ELEMENT_F16 ? 0x7c00 : 0x7f80)
                                     : to == from);
        }
}

static int seed(void **state)
{
    (void)state;
    dl2_random_init(&stream, 1, DL2_RANDOM_TEST, 0, 0);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL, *precision = argc > 2 ? argv[2] : NULL;
    const struct CMUnitTest gradients[] = {
        cmocka_unit_test_setup(conv_gradients, seed),
        cmocka_unit_test_setup(linear_gradients, seed),
        cmocka_unit_test_setup(pool_gradients, seed),
        cmocka_unit_test_setup(norm_gradients, seed),
        cmocka_unit_test_setup(gelu_gradients, seed),
        cmocka_unit_test_setup(layer_norm_gradients, seed),
        cmocka_unit_test_setup(attention_gradients, seed),
        cmocka_unit_test_setup(tokens_gradients, seed),
        cmocka_unit_test_setup(loss_gradients, seed),
        cmocka_unit_test_setup(elements, seed),
    };
    const struct CMUnitTest devices[] = {
        cmocka_unit_test_setup(conv_devices, seed),
        cmocka_unit_test_setup(linear_devices, seed),
        cmocka_unit_test_setup(pool_devices, seed),
        cmocka_unit_test_setup(norm_devices, seed),
        cmocka_unit_test_setup(norm_one_row, seed),
        cmocka_unit_test_setup(norm_eval, seed),
        cmocka_unit_test_setup(activation_devices, seed),
        cmocka_unit_test_setup(gelu_devices, seed),
        cmocka_unit_test_setup(gelu_near_and_far, seed),
        cmocka_unit_test_setup(layer_norm_devices, seed),
        cmocka_unit_test_setup(layer_norm_constant_rows, seed),
        cmocka_unit_test_setup(attention_devices, seed),
        cmocka_unit_test_setup(attention_to_all_alike, seed),
        cmocka_unit_test_setup(attention_is_exponential, seed),
        cmocka_unit_test_setup(no_number_stays_none, seed),
        cmocka_unit_test_setup(twice_the_same_bits, seed),
        cmocka_unit_test_setup(tokens_devices, seed),
        cmocka_unit_test_setup(loss_devices, seed),
        cmocka_unit_test_setup(loss_by_hand, seed),
        cmocka_unit_test_setup(all_labels_missing, seed),
        cmocka_unit_test_setup(dropout_is_the_same_everywhere, seed),
        cmocka_unit_test_setup(ingest_devices, seed),
        cmocka_unit_test_setup(optimiser_devices, seed),
        cmocka_unit_test_setup(adamw_by_hand, seed),
        cmocka_unit_test_setup(averages_devices, seed),
        cmocka_unit_test_setup(loss_scale_devices, seed),
        cmocka_unit_test_setup(recordings, seed),
        cmocka_unit_test_setup(shapes_that_make_no_sense, seed),
    };
    find_subjects(name, precision, false);
    if (name && !subject_count) {
        printf("SKIP: there is no device %s%s%s here\n", name, precision ? " with " : "",
               precision ? precision : "");
        return 77;
    }
    int failed = cmocka_run_group_tests(gradients, NULL, NULL);
    /* The processor's once more for each SIMD level; the one it lacks repeats the best below. */
    static const char *const levels[] = {"c", "avx2", "avx512"};
    for (int i = 0; i < 3; i++) {
        setenv("DL2_SIMD", levels[i], 1);
        find_subjects(name, precision, i > 0);
        if (subject_count)
            failed += cmocka_run_group_tests_name(levels[i], devices, NULL, NULL);
    }
    return failed;
}
