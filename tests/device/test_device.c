/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation of the seam: gradients of the reference device against finite differences, then
 * each other device that is present, in each precision that it has, against the reference in
 * float32, over shapes that are no multiple of anything.
 *
 *     test_device [DEVICE [PRECISION [OPERATION]]]     only these: "cuda bf16 convolution"
 *     test_device --list                               the operations, simplest first
 */
#include "common/memory.h"
#include "common/random.h"
#include "device/device.h"
#include "device/element.h"

#include <float.h>
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

/* What hold() put on a device, until finish(). */
static struct held {
    void *memory, *to;
    size_t count;
    bool lowered;
} held[24];
static size_t held_count;

/* What is copied: elements of the device, which are floats on the host; or bytes as they are. */
enum kind { ELEMENTS, BYTES };

/* Copies `from` to the device, for finish() to copy back to `to` where that is not NULL. The
 * address on the device; NULL for NULL. */
static void *hold(struct dl2_device *d, enum kind kind, const void *from, void *to, size_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct held *h = &held[held_count];
    if (!from)
        return NULL;
    assert_true(held_count < sizeof held / sizeof held[0]);
    *h = (struct held){.to = to, .count = count, .lowered = kind == ELEMENTS};
    const size_t bytes = count * (h->lowered ? dl2_element_size(d->element) : 1);
    void *elements = h->lowered ? dl2_calloc(bytes, 1) : NULL;
    if (elements)
        dl2_elements_from_floats(d->element, from, elements, count);
    ok(d->ops->alloc(d, bytes, &h->memory, &error), &error);
    held_count++;
    d->ops->upload(d, h->memory, elements ? elements : from, bytes);
    d->ops->wait_uploads(d);
    free(elements);
    return h->memory;
}

/* Copies back what is wanted and frees all places. */
static void finish(struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    for (size_t i = 0; i < held_count; i++) {
        const struct held *h = &held[i];
        const size_t bytes = h->count * (h->lowered ? dl2_element_size(d->element) : 1);
        void *elements = h->lowered && h->to ? dl2_calloc(bytes, 1) : NULL;
        if (h->to)
            ok(d->ops->download(d, elements ? elements : h->to, h->memory, bytes, &error), &error);
        if (elements)
            dl2_elements_to_floats(d->element, elements, h->to, h->count);
        free(elements);
        d->ops->free(d, h->memory);
    }
    held_count = 0;
}

#define F sizeof(float)

/* -- devices under test -- */

static struct subject {
    const struct dl2_device_class *ops;
    enum dl2_precision precision;
    unsigned threads;
    char name[32];
    struct dl2_device *device;
} subjects[16]; /* [0]: the reference, in float32 */
static size_t subject_count;

#define LOSS_SCALE 1024 /* where there is one */

/* What the device did in another way: device.py looks for it. */
static void say_note(void *context, const char *text)
{
    (void)context;
    printf("note: %s\n", text);
}

/* Opens a device for all tests to come. DL2_ERR_UNSUPPORTED: it lacks that precision. */
static int add_subject(const struct dl2_device_class *ops, enum dl2_precision precision,
                       unsigned threads)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct subject *subject = &subjects[subject_count];
    assert_true(subject_count < sizeof subjects / sizeof subjects[0]);
    *subject = (struct subject){.ops = ops, .precision = precision, .threads = threads};
    snprintf(subject->name, sizeof subject->name, "%s, %s", ops->name,
             dl2_precision_name(precision));
    const struct dl2_device_options options = {
#ifdef __SANITIZE_THREAD__
        .threads = 1, /* GCC's OpenMP runtime is not instrumented: its barriers look like races */
#else
        .threads = threads,
#endif
        .precision = precision,
        .loss_scale = LOSS_SCALE,
        .deterministic = true,
        .note = say_note};
    int status = ops->open(&options, &subject->device, &error);
    if (status == DL2_ERR_UNSUPPORTED && precision != DL2_PRECISION_FP32)
        return status;
    ok(status, &error);
    subject_count++;
    return DL2_OK;
}

static void close_subjects(void)
{
    while (subject_count)
        dl2_device_close(subjects[--subject_count].device);
}

/* The reference, and all that are wanted and can be opened here; says why others can't. */
static void find_subjects(const char *name, const char *precision, bool cpu_only)
{
    const struct dl2_device_class *ops, *const ref = dl2_device_at(0);
    close_subjects();
    add_subject(ref, DL2_PRECISION_FP32, 1);
    for (size_t i = 0; (ops = dl2_device_at(i)); i++) {
        if ((name && strcmp(name, ops->name) != 0) || (cpu_only && !ops->rounds_by_threads))
            continue;
        if (ops->present && !ops->present()) {
            printf("SKIP: device %s: there is none here\n", ops->name);
            continue;
        }
        for (int p = DL2_PRECISION_FP32; p <= DL2_PRECISION_FP16; p++)
            for (unsigned threads = 1; threads <= (ops->rounds_by_threads ? 3 : 1); threads += 2)
                if ((!precision || !strcmp(precision, dl2_precision_name(p))) &&
                    (ops != ref || p != DL2_PRECISION_FP32))
                    add_subject(ops, (enum dl2_precision)p, threads);
    }
}

/* How near to the reference a device must come: `plain` on the processor in float32. */
static double tolerance_of(const struct subject *subject, double plain)
{
    static const double within[] = {[DL2_PRECISION_FP32] = 1e-4,
                                    [DL2_PRECISION_TF32] = 5e-3,
                                    [DL2_PRECISION_BF16] = 2e-2,
                                    [DL2_PRECISION_FP16] = 5e-3};
    const bool is_plain = subject == &subjects[0] || subject->ops->rounds_by_threads;
    double least = is_plain ? 0 : within[subject->precision];
    return least > plain ? least : plain;
}

/* As the subject sees them. */
static void round_to(const struct subject *subject, float *values, size_t count)
{
    const enum dl2_element element = subject->device->element;
    if (!count || element == DL2_ELEMENT_F32)
        return;
    void *elements = dl2_calloc(count, dl2_element_size(element));
    assert_non_null(elements);
    dl2_elements_from_floats(element, values, elements, count);
    dl2_elements_to_floats(element, elements, values, count);
    free(elements);
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
    bool again;      /* run backward twice, adding up gradients of weights; or work in place */
    float kink;      /* of an activation, above 0; 0: none */
};

/* `op` with its tensors. */
static struct op op_of(struct op op)
{
    for (int i = 0; i < INPUTS; i++) {
        op.in[i] = op.counts[i] ? fresh(op.counts[i]) : NULL;
        op.gradient[i] = op.counts[i] ? fresh(op.counts[i]) : NULL;
    }
    op.dy = fresh(op.out_count);
    op.y = fresh(op.out_count);
    return op;
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

/* Input i and its gradient, as elements or as floats. */
static void *hold_in(const struct op *op, struct dl2_device *d, enum kind kind, int i)
{
    return hold(d, kind, op->in[i], NULL, op->counts[i] * (kind == BYTES ? F : 1));
}

static void *hold_gradient(const struct op *op, struct dl2_device *d, enum kind kind, int i)
{
    return hold(d, kind, op->gradient[i], op->gradient[i], op->counts[i] * (kind == BYTES ? F : 1));
}

/* What a layer of weights and biases reads and writes, on the device. In other operations w and b
 * are other parameters, in float32. */
struct layer {
    void *x, *w, *b, *dy, *y, *dx, *dw, *db;
};

static struct layer hold_layer(const struct op *op, struct dl2_device *d, enum kind weights)
{
    return (struct layer){.x = hold_in(op, d, ELEMENTS, 0),
                          .w = hold_in(op, d, weights, 1),
                          .b = hold_in(op, d, BYTES, 2),
                          .dy = hold(d, ELEMENTS, op->dy, NULL, op->out_count),
                          .y = hold(d, ELEMENTS, op->y, op->y, op->out_count),
                          .dx = hold_gradient(op, d, ELEMENTS, 0),
                          .dw = hold_gradient(op, d, BYTES, 1),
                          .db = hold_gradient(op, d, BYTES, 2)};
}

static void run_conv(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_conv *conv = NULL;
    ok(d->ops->conv_create(d, op->shape, &conv, &error), &error);
    const struct layer t = hold_layer(op, d, ELEMENTS);
    d->ops->conv_forward(conv, t.x, t.w, t.b, t.y);
    d->ops->conv_backward_weights(conv, t.x, t.dy, t.dw, t.db, false);
    if (op->again)
        d->ops->conv_backward_weights(conv, t.x, t.dy, t.dw, t.db, true);
    d->ops->conv_backward_data(conv, t.dy, t.w, t.dx);
    finish(d);
    d->ops->conv_free(conv);
}

static struct op conv_op(const void *shape)
{
    const struct dl2_conv_shape *s = shape;
    size_t h = dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height);
    size_t w = dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width);
    size_t window = (size_t)s->kernel_height * s->kernel_width * s->in_channels / s->groups;
    return op_of(
        (struct op){.name = "convolution",
                    .run = run_conv,
                    .shape = s,
                    .counts = {(size_t)s->batch * s->in_height * s->in_width * s->in_channels,
                               s->out_channels * window, s->bias ? s->out_channels : 0},
                    .out_count = s->batch * h * w * s->out_channels});
}

static void run_linear(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_linear *linear = NULL;
    ok(d->ops->linear_create(d, op->shape, &linear, &error), &error);
    const struct layer t = hold_layer(op, d, ELEMENTS);
    d->ops->linear_forward(linear, t.x, t.w, t.b, t.y);
    d->ops->linear_backward_weights(linear, t.x, t.dy, t.dw, t.db, false);
    if (op->again)
        d->ops->linear_backward_weights(linear, t.x, t.dy, t.dw, t.db, true);
    d->ops->linear_backward_data(linear, t.dy, t.w, t.dx);
    finish(d);
    d->ops->linear_free(linear);
}

static struct op linear_op(const void *shape)
{
    const struct dl2_linear_shape *s = shape;
    return op_of((struct op){
        .name = "linear",
        .run = run_linear,
        .shape = s,
        .counts = {(size_t)s->batch * s->in, (size_t)s->out * s->in, s->bias ? s->out : 0},
        .out_count = (size_t)s->batch * s->out});
}

static void run_pool(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_pool *pool = NULL;
    ok(d->ops->pool_create(d, op->shape, &pool, &error), &error);
    const struct layer t = hold_layer(op, d, BYTES);
    d->ops->pool_forward(pool, t.x, t.y);
    d->ops->pool_backward(pool, t.dy, t.dx);
    finish(d);
    d->ops->pool_free(pool);
}

static struct op pool_op(const void *shape)
{
    const struct dl2_pool_shape *s = shape;
    return op_of(
        (struct op){.name = s->kind == DL2_POOL_MAX ? "max pooling" : "average pooling",
                    .run = run_pool,
                    .shape = s,
                    .counts = {(size_t)s->batch * s->in_height * s->in_width * s->channels},
                    .out_count = (size_t)s->batch * s->out_height * s->out_width * s->channels});
}

/* in: x, gamma, beta, residual. Where `two_gradients`, dy comes as the sum of two. Backward is not
 * in place where it runs twice: the second call would read what the first has overwritten. */
struct norm_case {
    struct dl2_norm_shape shape;
    bool two_gradients, in_place;
};

static void run_norm(const struct op *op, struct dl2_device *d)
{
    const struct norm_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_norm *norm = NULL;
    const size_t count = op->counts[0], channels = op->counts[1];
    ok(d->ops->norm_create(d, &test->shape, &norm, &error), &error);
    struct layer t = hold_layer(op, d, BYTES);
    void *more = hold_in(op, d, ELEMENTS, 3), *dmore = hold_gradient(op, d, ELEMENTS, 3);
    void *mean = hold(d, BYTES, op->in[1], op->extra[0], channels * F);
    void *var = hold(d, BYTES, op->in[2], op->extra[1], channels * F), *dy2 = NULL;
    if (test->two_gradients) {
        float *split = dl2_calloc(2 * count, sizeof *split);
        assert_non_null(split);
        for (size_t i = 0; i < count; i++) {
            split[i] = 0.25f * op->dy[i];
            split[count + i] = op->dy[i] - split[i];
        }
        t.dy = hold(d, ELEMENTS, split, NULL, count);
        dy2 = hold(d, ELEMENTS, split + count, NULL, count);
        free(split);
    }
    d->ops->norm_train(norm, t.x, more, t.w, t.b, mean, var, t.y);
    if (op->again) /* leaves gradients to add to, of the size of those that are wanted */
        d->ops->norm_backward(norm, t.x, t.y, t.dy, dy2, t.w, t.b, t.dx, dmore, t.dw, t.db, false);
    void *dx = t.dx, *dresidual = dmore;
    if (test->in_place && !op->again) {
        dx = more && dy2 ? dy2 : more ? dx : t.dy;
        dresidual = more ? t.dy : NULL;
    }
    d->ops->norm_backward(norm, t.x, t.y, t.dy, dy2, t.w, t.b, dx, dresidual, t.dw, t.db,
                          op->again);
    if (dx != t.dx)
        d->ops->copy(d, t.dx, dx, count * dl2_element_size(d->element));
    if (dresidual != dmore)
        d->ops->copy(d, dmore, dresidual, count * dl2_element_size(d->element));
    finish(d);
    d->ops->norm_free(norm);
}

static struct op norm_op(const void *shape)
{
    const struct norm_case *test = shape;
    const size_t channels = test->shape.channels, count = test->shape.rows * channels;
    struct op op =
        op_of((struct op){.name = "batch norm",
                          .run = run_norm,
                          .shape = test,
                          .counts = {count, channels, channels, test->shape.residual ? count : 0},
                          .out_count = count});
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

static bool is_counted(const struct loss_case *test, unsigned n)
{
    return test->labels[n] >= 0 && (!test->partner || test->labels[test->partner[n]] >= 0);
}

static unsigned counted(const struct loss_case *test)
{
    unsigned count = 0;
    for (unsigned n = 0; n < test->shape.batch; n++)
        count += is_counted(test, n);
    return count;
}

/* y: [batch] losses, then their sum, the count, top-1 and top-5. dy is not used: it is `scale` /
 * counted. */
static void run_loss(const struct op *op, struct dl2_device *d)
{
    const struct loss_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss *loss = NULL;
    struct dl2_loss_sums sums = {1, 2, 3, 4};
    const size_t batch = test->shape.batch, classes = test->shape.classes;
    ok(d->ops->loss_create(d, &test->shape, &loss, &error), &error);
    void *logits = hold_in(op, d, ELEMENTS, 0), *dlogits = hold_gradient(op, d, ELEMENTS, 0);
    float *losses = hold(d, BYTES, op->y, op->y, batch * F);
    int32_t *labels = hold(d, BYTES, test->labels, NULL, batch * sizeof *labels);
    uint32_t *partner = hold(d, BYTES, test->partner, NULL, batch * sizeof *partner);
    struct dl2_loss_sums *total = hold(d, BYTES, &sums, &sums, sizeof sums);
    const struct dl2_step_numbers numbers = {.lambda = test->lambda, .scale = test->scale};
    d->ops->set_numbers(d, &numbers);
    d->ops->loss_run(loss, logits, labels, partner, losses, dlogits, total);
    d->ops->loss_run(loss, logits, labels, partner, NULL, NULL, total);
    finish(d);
    for (size_t i = 0; i < op->counts[0]; i++) {
        op->gradient[0][i] /= (float)loss_scale_of(d);
        if (!is_counted(test, (unsigned)(i / classes)))
            assert_true(op->gradient[0][i] == 0 && op->y[i / classes] == 0);
    }
    op->y[batch] = (float)((sums.loss - 1) / 2);
    op->y[batch + 1] = (float)(sums.counted - 2) / 2;
    op->y[batch + 2] = (float)(sums.top1 - 3) / 2;
    op->y[batch + 3] = (float)(sums.top5 - 4) / 2;
    assert_true(op->y[batch + 1] == counted(test) && (counted(test) || op->y[batch] == 0));
    d->ops->loss_free(loss);
}

static struct op loss_op(const void *shape)
{
    const struct loss_case *test = shape;
    struct op op = op_of((struct op){.name = "loss",
                                     .run = run_loss,
                                     .shape = test,
                                     .counts = {(size_t)test->shape.batch * test->shape.classes},
                                     .out_count = test->shape.batch + 4});
    for (size_t i = 0; i < op.counts[0]; i++)
        op.in[0][i] *= 4;
    return op;
}

/* The gradient of an activation whose output is in[0]; y = that + 2 * the gradient. */
static void run_activation(const struct op *op, struct dl2_device *d)
{
    const enum dl2_activation activation = *(const enum dl2_activation *)op->shape;
    const size_t count = op->out_count;
    void *y = hold_in(op, d, ELEMENTS, 0), *dx = hold_gradient(op, d, ELEMENTS, 0);
    void *dy = hold(d, ELEMENTS, op->dy, NULL, count),
         *sum = hold(d, ELEMENTS, op->y, op->y, count);
    d->ops->activate_backward(d, activation, y, dy, dx, count);
    d->ops->activate_backward(d, activation, y, dy, dy, count); /* in place */
    d->ops->add(d, dy, y, sum, count);
    d->ops->add(d, sum, dy, sum, count);
    finish(d);
}

static struct op activation_op(const void *shape)
{
    const enum dl2_activation activation = *(const enum dl2_activation *)shape;
    const size_t count = 50021;
    struct op op = op_of((struct op){.name = "activation",
                                     .run = run_activation,
                                     .shape = shape,
                                     .counts = {count},
                                     .out_count = count});
    for (size_t i = 0; i < count; i++) {
        const float x = i % 100 == 0 ? 6 : i % 100 == 1 ? 0 : 9 * op.in[0][i];
        const float low = activation && x < 0 ? 0 : x;
        op.in[0][i] = activation == DL2_RELU6 && low > 6 ? 6 : low;
    }
    return op;
}

static void run_gelu(const struct op *op, struct dl2_device *d)
{
    const bool in_place = op->again;
    const size_t count = op->out_count;
    void *x = hold(d, ELEMENTS, op->in[0], in_place ? op->y : NULL, count);
    void *dy = hold(d, ELEMENTS, op->dy, in_place ? op->gradient[0] : NULL, count);
    void *y = in_place ? x : hold(d, ELEMENTS, op->y, op->y, count);
    d->ops->gelu_backward(d, x, dy, in_place ? dy : hold_gradient(op, d, ELEMENTS, 0), count);
    d->ops->gelu(d, x, y, count);
    finish(d);
}

static struct op gelu_op(const void *shape)
{
    const size_t count = *(const size_t *)shape;
    return op_of((struct op){
        .name = "gelu", .run = run_gelu, .shape = shape, .counts = {count}, .out_count = count});
}

static void run_layer_norm(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_layer_norm *norm = NULL;
    ok(d->ops->layer_norm_create(d, op->shape, &norm, &error), &error);
    const struct layer t = hold_layer(op, d, BYTES);
    d->ops->layer_norm_forward(norm, t.x, t.w, t.b, t.y);
    d->ops->layer_norm_backward(norm, t.x, t.dy, t.w, t.dx, t.dw, t.db, false);
    if (op->again) { /* and in place */
        d->ops->layer_norm_backward(norm, t.x, t.dy, t.w, t.dy, t.dw, t.db, true);
        d->ops->copy(d, t.dx, t.dy, op->out_count * dl2_element_size(d->element));
    }
    finish(d);
    d->ops->layer_norm_free(norm);
}

static struct op layer_norm_op(const void *shape)
{
    const struct dl2_layer_norm_shape *s = shape;
    const size_t count = s->rows * s->channels;
    return op_of((struct op){.name = "layer norm",
                             .run = run_layer_norm,
                             .shape = s,
                             .counts = {count, s->channels, s->channels},
                             .out_count = count});
}

static void run_attention(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_attention *attention = NULL;
    ok(d->ops->attention_create(d, op->shape, &attention, &error), &error);
    const struct layer t = hold_layer(op, d, BYTES);
    d->ops->attention_forward(attention, t.x, t.y);
    d->ops->attention_backward(attention, t.x, t.y, t.dy, t.dx);
    finish(d);
    d->ops->attention_free(attention);
}

static struct op attention_op(const void *shape)
{
    const struct dl2_attention_shape *s = shape;
    const size_t count = (size_t)s->batch * s->tokens * s->channels;
    struct op op = op_of((struct op){.name = "attention",
                                     .run = run_attention,
                                     .shape = s,
                                     .counts = {3 * count},
                                     .out_count = count});
    for (size_t i = 0; i < op.counts[0]; i++)
        op.in[0][i] *= 2;
    return op;
}

static void run_tokens(const struct op *op, struct dl2_device *d)
{
    const struct layer t = hold_layer(op, d, BYTES);
    d->ops->tokens_forward(d, op->shape, t.x, t.w, t.b, t.y);
    d->ops->tokens_backward(d, op->shape, t.dy, t.dx, t.dw, t.db, false);
    if (op->again)
        d->ops->tokens_backward(d, op->shape, t.dy, t.dx, t.dw, t.db, true);
    finish(d);
}

static struct op tokens_op(const void *shape)
{
    const struct dl2_tokens_shape *s = shape;
    const size_t sample = (size_t)s->tokens * s->channels, count = s->batch * sample;
    return op_of(
        (struct op){.name = "tokens",
                    .run = run_tokens,
                    .shape = s,
                    .counts = {count - (size_t)s->batch * s->channels, s->channels, sample},
                    .out_count = count});
}

/* -- comparing -- */

/* How near by the largest value, and beyond that by `rounding`. */
static void near_sums(const char *what, const char *part, const float *want, const float *got,
                      size_t count, double tolerance, double rounding)
{
    double largest = 1e-6;
    for (size_t i = 0; i < count; i++)
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)want[i] - got[i]) <= tolerance * largest + rounding))
            fail_msg("%s, %s, element %zu of %zu: %.9g, not %.9g (largest %.3g)", what, part, i,
                     count, got[i], want[i], largest);
}

static void near(const char *what, const char *part, const float *want, const float *got,
                 size_t count, double tolerance)
{
    near_sums(what, part, want, got, count, tolerance, 0);
}

/* Does d(dy . y)/d(in[i]) equal the gradient, for every element? */
static void against_differences(struct op *op, double step, double tolerance)
{
    static const char *const parts[INPUTS] = {"dx", "input 1", "input 2", "input 3"};
    struct dl2_device *ref = subjects[0].device;
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
}

/* The outputs of an operation: gradients, y, and the extra ones. */
enum { OUTPUTS = INPUTS + 3 };

static void keep(float *const *have, const size_t *counts, float **copies)
{
    for (int i = 0; i < OUTPUTS; i++) {
        copies[i] = fresh(counts[i]);
        if (counts[i])
            memcpy(copies[i], have[i], counts[i] * F);
    }
}

/* Does every subject give what the reference gives, all of it, and the same bits twice? Leaves what
 * the last one gave. */
static void against_reference(struct op *op, double tolerance)
{
    static const char *const parts[OUTPUTS] = {
        "gradient 0", "gradient 1", "gradient 2", "gradient 3", "output", "mean", "variance"};
    float *const have[OUTPUTS] = {op->gradient[0], op->gradient[1], op->gradient[2],
                                  op->gradient[3], op->y,           op->extra[0],
                                  op->extra[1]};
    const size_t channels = op->extra[0] ? op->counts[1] : 0;
    const size_t counts[OUTPUTS] = {op->counts[0], op->counts[1], op->counts[2], op->counts[3],
                                    op->out_count, channels,      channels};
    for (size_t k = 1; k < subject_count; k++) {
        const struct subject *subject = &subjects[k];
        float *want[OUTPUTS], *first[OUTPUTS];
        for (int i = 0; i < INPUTS; i++)
            round_to(subject, op->in[i], op->counts[i]);
        round_to(subject, op->dy, op->out_count);
        op->run(op, subjects[0].device);
        if (op->kink > 0) { /* on which side of it an output lies may be a matter of rounding */
            for (size_t i = 0; i < op->out_count; i++)
                if (op->y[i] < op->kink && op->kink - op->y[i] < 0.1f)
                    op->dy[i] = 0;
            op->run(op, subjects[0].device);
        }
        keep(have, counts, want);
        for (int i = 0; i < OUTPUTS; i++) /* NaN, for what isn't written to show */
            if (counts[i])
                memset(have[i], 0xff, counts[i] * F);
        op->run(op, subject->device);
        keep(have, counts, first);
        op->run(op, subject->device);
        for (int i = 0; i < OUTPUTS; i++) {
            char what[96];
            snprintf(what, sizeof what, "%s, %s", subject->name, op->name);
            /* Terms of about 1 may add up to next to nothing, but for how they were rounded. */
            near_sums(what, parts[i], want[i], first[i], counts[i],
                      tolerance_of(subject, tolerance), tolerance > 0 ? FLT_EPSILON : 0);
            if (counts[i] && memcmp(first[i], have[i], counts[i] * F) != 0)
                fail_msg("%s, %s: other bits the second time", what, parts[i]);
            free(want[i]);
            free(first[i]);
        }
    }
}

/* -- operations that are tested alike -- */

/* What inputs are made for: finite differences; devices; devices once more, with op.again set. */
enum purpose { DIFFERENCES, ONCE, AGAIN };

struct operation {
    const char *name;
    struct op (*make)(const void *shape);
    const void *shapes;
    size_t count, size; /* of the shapes */
    size_t small;       /* so many, the first, are small enough for differences */
    double step, slope; /* of differences: their width, and how near they come */
    double plain;       /* how near to the reference a processor comes */
    /* Makes inputs special: for differences, and for each of the two runs on devices. Optional. */
    void (*prepare)(struct op *op, enum purpose purpose);
};
/* batch, height, width, in; out, kernel, stride, pad; groups, bias, ReLU */
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
    {3, 13, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, true, true},
    {1, 23, 21, 1, 8, 11, 11, 4, 4, 2, 2, 1, true, true},
    {1, 11, 12, 33, 33, 5, 5, 1, 1, 2, 2, 33, true, true},
};

static const struct dl2_linear_shape linears[] = {{1, 1, 1, true},     {3, 5, 4, true},
                                                  {2, 7, 3, false},    {33, 129, 17, true},
                                                  {5, 64, 1000, true}, {33, 129, 17, true, true}};

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

static void prepare_pool(struct op *op, enum purpose purpose)
{
    /* Distinct values, a step apart from each other, so that no maximum changes hands; or ties. */
    for (size_t k = 0; k < op->counts[0]; k++)
        if (purpose == DIFFERENCES)
            op->in[0][k] = (float)((k * 37 + 11) % op->counts[0]);
        else if (purpose == AGAIN)
            op->in[0][k] = op->in[0][k] > 0.5f ? 1 : 0;
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

static const size_t gelus[] = {100, 50021};

static void prepare_gelu(struct op *op, enum purpose purpose)
{
    for (size_t i = 0; i < op->out_count; i++) /* far out, too: 0 and x */
        op->in[0][i] *= purpose == DIFFERENCES ? 4 : i % 100 == 0 ? 1000 : 6;
    if (purpose == DIFFERENCES)
        return;
    op->in[0][0] = 0;
    op->in[0][1] = -60000;
    op->dy[1] = 0;
}

static const struct dl2_layer_norm_shape layer_norms[] = {
    {3, 5, 1e-6f},    {4, 8, 0.5f},     {197, 192, 1e-6f}, {5, 33, 1e-6f},   {64, 768, 1e-6f},
    {1, 3072, 1e-5f}, {2, 1001, 1e-6f}, {1000, 7, 1e-6f},  {2001, 96, 1e-6f}};

/* batch, tokens, channels, heads */
static const struct dl2_attention_shape attentions[] = {
    {1, 1, 1, 1},   {2, 3, 4, 2},    {1, 5, 6, 1},     {3, 5, 24, 3},
    {2, 17, 64, 2}, {3, 65, 192, 3}, {2, 197, 128, 2}, {5, 2, 20, 5}};

static const struct dl2_tokens_shape token_shapes[] = {
    {1, 2, 1}, {3, 5, 7}, {7, 17, 64}, {33, 65, 96}, {33, 10, 24}};

static const int32_t some_labels[] = {2, 0, -1, 3, 1, 2, 0}, no_labels[] = {-1, -1};
static const uint32_t some_partners[] = {1, 4, 3, 2, 0, 5, 6};
static const struct loss_case losses[] = {
    {{7, 4, 0}, some_labels, NULL, 1, 1},
    {{7, 4, 0.1f}, some_labels, NULL, 1, 0.5f},
    {{7, 4, 0.1f}, some_labels, some_partners, 0.3f, 2},
    {{3, 1000, 0.1f}, some_labels, NULL, 1, 1},
    {{2, 3, 0.1f}, no_labels, NULL, 1, 1},
};

static void prepare_loss(struct op *op, enum purpose purpose)
{
    const struct loss_case *test = op->shape;
    for (size_t o = 0; purpose == DIFFERENCES && o < op->out_count; o++)
        op->dy[o] = o < test->shape.batch ? test->scale / (float)counted(test) : 0;
}

#define SHAPES(table) table, sizeof table / sizeof table[0], sizeof table[0]

/* Any step is exact where an operation is linear in each of its inputs. */
static const struct operation convolution = {"convolution", conv_op, SHAPES(convs), 8, 1,
                                             2e-5,          2e-6,    NULL};
static const struct operation linear = {"linear", linear_op, SHAPES(linears), 3, 1, 2e-5,
                                        2e-6,     NULL};
static const struct operation pooling = {"pooling", pool_op, SHAPES(pools), 5,
                                         0.25,      1e-4,    1e-6,          prepare_pool};
static const struct operation batch_norm = {"batch_norm", norm_op, SHAPES(norms), 6,
                                            4e-3,         4e-3,    2e-5,          NULL};
static const struct operation gelu = {"gelu", gelu_op, SHAPES(gelus), 1,
                                      1e-3,   1e-3,    1e-6,          prepare_gelu};
static const struct operation layer_norm = {
    "layer_norm", layer_norm_op, SHAPES(layer_norms), 2, 1e-3, 2e-3, 1e-5, NULL};
static const struct operation attention = {
    "attention", attention_op, SHAPES(attentions), 3, 1e-3, 2e-3, 5e-6, NULL};
static const struct operation tokens = {"tokens", tokens_op, SHAPES(token_shapes), 2, 1, 2e-5,
                                        2e-6,     NULL};
static const struct operation loss = {"loss", loss_op, SHAPES(losses), 3,
                                      0.02,   2e-3,    1e-6,           prepare_loss};

static struct op nth_op(const struct operation *operation, size_t i, enum purpose purpose)
{
    struct op op = operation->make((const char *)operation->shapes + i * operation->size);
    op.again = purpose == AGAIN;
    if (operation->prepare)
        operation->prepare(&op, purpose);
    return op;
}

static void gradients(void **state)
{
    const struct operation *operation = *state;
    for (size_t i = 0; i < operation->small; i++) {
        struct op op = nth_op(operation, i, DIFFERENCES);
        against_differences(&op, operation->step, operation->slope);
        op_free(&op);
    }
}

static void devices(void **state)
{
    const struct operation *operation = *state;
    for (size_t i = 0; i < operation->count; i++)
        for (int purpose = ONCE; purpose <= AGAIN; purpose++) {
            struct op op = nth_op(operation, i, (enum purpose)purpose);
            against_reference(&op, operation->plain);
            op_free(&op);
        }
}

/* -- operations and cases that are tested by themselves -- */

static void norm_one_row(void **state)
{
    (void)state;
    const struct norm_case test = {{1, 3, 1e-5f, 0.1f, DL2_RELU, false, false}, false, false};
    struct op op = norm_op(&test);
    for (size_t k = 1; k < subject_count; k++) {
        double within = tolerance_of(&subjects[k], 1e-5);
        op.run(&op, subjects[k].device);
        for (int c = 0; c < 3; c++) { /* x - mean is 0 */
            float beta = op.in[2][c] > 0 ? op.in[2][c] : 0;
            assert_true(fabs((double)op.y[c] - beta) < within);
            assert_true(fabs((double)op.gradient[0][c]) < 10 * within);
        }
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
        struct dl2_device *d = subjects[k].device;
        struct dl2_norm *norm = NULL;
        float y[4] = {0};
        ok(d->ops->norm_create(d, &shape, &norm, &error), &error);
        d->ops->norm_eval(norm, hold(d, ELEMENTS, x, NULL, 4), hold(d, ELEMENTS, more, NULL, 4),
                          hold(d, BYTES, gamma, NULL, sizeof gamma),
                          hold(d, BYTES, beta, NULL, sizeof beta),
                          hold(d, BYTES, mean, NULL, sizeof mean),
                          hold(d, BYTES, var, NULL, sizeof var), hold(d, ELEMENTS, y, y, 4));
        finish(d);
        near(subjects[k].name, "batch norm, evaluation", want, y, 4,
             tolerance_of(&subjects[k], 3e-5));
        d->ops->norm_free(norm);
    }
}

static void activations(void **state)
{
    (void)state;
    static const enum dl2_activation all[] = {DL2_IDENTITY, DL2_RELU, DL2_RELU6};
    for (int a = 0; a < 3; a++) {
        struct op op = activation_op(&all[a]);
        against_reference(&op, 0);
        op.run(&op, subjects[0].device);
        for (size_t i = 0; i < op.out_count; i++) {
            const float y = op.in[0][i];
            const float gradient = !a || (y > 0 && !(a == 2 && y == 6)) ? op.dy[i] : 0;
            assert_true(op.gradient[0][i] == gradient);
            assert_true(op.y[i] == gradient + y + gradient);
        }
        op_free(&op);
    }
}

/* Against libm, with a relative error where that is small, too: far below zero. */
static void gelu_near_and_far(void **state)
{
    (void)state;
    static const size_t count = 36001;
    struct op op = gelu_op(&count);
    for (size_t i = 0; i < count; i++) {
        op.in[0][i] = (float)i / 2000 - 9;
        op.dy[i] = 1;
    }
    for (size_t k = 1; k < subject_count; k++) {
        const double more = tolerance_of(&subjects[k], 0);
        round_to(&subjects[k], op.in[0], count);
        op.run(&op, subjects[k].device);
        for (size_t i = 0; i < count; i++) {
            const double x = op.in[0][i], share = erfc(-x / sqrt(2)) / 2;
            const double slope = share + x * exp(-x * x / 2) / sqrt(2 * M_PI);
            assert_true(fabs(op.y[i] - x * share) <= (4e-6 + more) * fabs(x * share) + more);
            assert_true(fabs(op.gradient[0][i] - slope) <= 5e-7 + 2 * more);
        }
    }
    op_free(&op);
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
        for (size_t k = 0; k < op.counts[0]; k++)
            assert_true(fabsf(op.gradient[0][k]) < 1e-3f);
        op_free(&op);
    }
}

/* Scores that are the same give the mean of the values, whatever exp() of them would be. */
static void attention_to_all_alike(void **state)
{
    (void)state;
    const struct dl2_attention_shape s = {2, 9, 128, 2};
    struct op op = attention_op(&s);
    for (size_t row = 0; row < (size_t)s.batch * s.tokens; row++)
        for (size_t c = 0; c < 2u * s.channels; c++)
            op.in[0][row * 3 * s.channels + c] = row % 2 || c >= s.channels ? 8 : -8;
    against_reference(&op, 5e-6);
    for (size_t i = 0; i < op.out_count; i++) {
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
    struct op op = attention_op(&s);
    double softmax[TOKENS];
    memset(op.in[0], 0, op.counts[0] * F);
    for (size_t row = 0; row < (size_t)s.batch * TOKENS; row++) {
        float *q = op.in[0] + row * 3 * TOKENS;
        size_t sample = row / TOKENS, token = row % TOKENS;
        q[0] = 8; /* sqrt(TOKENS) */
        q[TOKENS] = token ? -1.5f * (float)token - (float)sample / 64 : 0;
        q[(size_t)2 * TOKENS + token] = 1;
    }
    for (size_t k = 1; k < subject_count; k++) {
        if (subjects[k].precision != DL2_PRECISION_FP32)
            continue;
        const double within = tolerance_of(&subjects[k], 5e-7);
        op.run(&op, subjects[k].device);
        for (size_t row = 0; row < (size_t)s.batch * TOKENS; row++) {
            const float *keys = op.in[0] + row / TOKENS * TOKENS * 3 * TOKENS + TOKENS;
            double sum = 0;
            for (size_t i = 0; i < TOKENS; i++)
                sum += softmax[i] = exp(keys[i * 3 * TOKENS]);
            for (size_t i = 0; i < TOKENS; i++)
                assert_true(fabs(op.y[row * TOKENS + i] - softmax[i] / sum) <=
                            within * softmax[i] / sum + 2e-38);
        }
    }
    op_free(&op);
}

/* What has become of training that diverged must be seen: y and dx have NaN where x has. */
static void not_a_number(void **state)
{
    const struct operation *operation = *state;
    struct op op = nth_op(operation, operation == &gelu ? 0 : 3, ONCE);
    /* Of attention, a key: one score of many. */
    op.in[0][operation == &attention ? attentions[3].channels + 1 : 1] = NAN;
    for (size_t k = 1; k < subject_count; k++) {
        op.run(&op, subjects[k].device);
        assert_true(isnan(op.y[1]) && isnan(op.gradient[0][1]));
    }
    op_free(&op);
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

/* A sample with a NAN is neither in top1 nor in top5, be it its own logit or another. */
static void loss_of_no_number(void **state)
{
    (void)state;
    static const int32_t labels[] = {1, 1, 0, 1};
    const struct loss_case test = {{4, 3, 0}, labels, NULL, 1, 1};
    struct op op = loss_op(&test);
    for (size_t k = 0; k < subject_count; k++) {
        const float logits[] = {0, NAN, 0, NAN, 1, 0, 1, 0, NAN, 0, 1, 0};
        memcpy(op.in[0], logits, sizeof logits);
        op.run(&op, subjects[k].device);
        for (int n = 0; n < 4; n++)
            assert_true(isnan(op.y[n]) == (n < 3));
        assert_true(op.y[5] == 4 && op.y[6] == 1 && op.y[7] == 1);
    }
    op_free(&op);
}

static void dropout_is_the_same_everywhere(void **state)
{
    (void)state;
    const size_t count = 3 * 4096 + 77;
    float *x = fresh(count), *want = fresh(count), *got = fresh(count);
    size_t dropped = 0;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        void *from = hold(d, ELEMENTS, x, NULL, count);
        void *to = hold(d, ELEMENTS, x, k ? got : want, count);
        d->ops->set_numbers(d, &(struct dl2_step_numbers){.step = 11});
        d->ops->dropout(d, from, to, count, 0.25f, 7, 1);
        finish(d);
        if (k && d->element == DL2_ELEMENT_F32)
            assert_memory_equal(want, got, count * F);
        else if (k)
            near(subjects[k].name, "dropout", want, got, count, tolerance_of(&subjects[k], 0));
        for (size_t i = 0; k && i < count; i++)
            assert_true((want[i] == 0) == (got[i] == 0));
    }
    for (size_t i = 0; i < count; i++) {
        dropped += want[i] == 0;
        assert_true(want[i] == 0 || fabsf(want[i] - x[i] / 0.75f) < 1e-6f);
    }
    assert_true(fabs((double)dropped / (double)count - 0.25) < 0.02);
    free(x);
    free(want);
    free(got);
}

static void ingest(void **state)
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
                struct dl2_device *d = subjects[k].device;
                struct dl2_ingest *ingest = NULL;
                ok(d->ops->ingest_create(d, &shape, &ingest, &error), &error);
                d->ops->set_numbers(d, &(struct dl2_step_numbers){.lambda = 0.7f});
                d->ops->ingest_run(ingest, hold(d, BYTES, images, NULL, count),
                                   mixed ? hold(d, BYTES, partner, NULL, sizeof partner) : NULL,
                                   hold(d, ELEMENTS, got, got, count));
                finish(d);
                near(subjects[k].name, "ingest", want, got, count,
                     tolerance_of(&subjects[k], 1e-6));
                d->ops->ingest_free(ingest);
            }
            free(images);
            free(want);
            free(got);
        }
}

enum optimiser { SGD, NESTEROV, ADAMW, RMSPROP, OPTIMISERS };

/* A step over `count` of the parameters, from `first` on. */
static void step(struct dl2_device *d, enum optimiser optimiser, size_t first, size_t count,
                 bool decays, float *w, void *lowered, const float *g, float *m, float *v)
{
    char *image = lowered;
    if (image)
        image += first * dl2_element_size(d->element);
    if (optimiser == ADAMW)
        d->ops->adamw_step(d, w + first, image, g + first, m + first, v + first, count, decays);
    else if (optimiser == RMSPROP)
        d->ops->rmsprop_step(d, w + first, image, g + first, m + first, v + first, count, decays);
    else
        d->ops->sgd_step(d, w + first, image, g + first, m + first, count, decays,
                         optimiser == NESTEROV);
}

/* Three updates; weights, then the optimiser's state, into `out`. */
static void run_optimiser(const struct subject *subject, enum optimiser optimiser,
                          const float *start, const float *gradient, size_t count, float *out)
{
    const size_t decayed = 12345; /* no more than the first part of them */
    struct dl2_device *d = subject->device;
    const struct dl2_device_class *ops = d->ops;
    const bool lowers = d->element != DL2_ELEMENT_F32;
    float *scaled = fresh(count), *image = fresh(count);
    for (size_t i = 0; i < count; i++)
        scaled[i] = gradient[i] * (float)loss_scale_of(d);
    float *w = hold(d, BYTES, start, out, count * F), *g = hold(d, BYTES, scaled, NULL, count * F);
    float *m = hold(d, BYTES, start, out + count, count * F);
    float *v = hold(d, BYTES, start, out + 2 * count, count * F);
    void *lowered = lowers ? hold(d, ELEMENTS, scaled, image, count) : NULL;
    ops->zero(d, m, count * F);
    ops->zero(d, v, count * F);
    if (lowers)
        ops->lower(d, w, lowered, count);
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
    finish(d);
    memcpy(scaled, out, count * F);
    round_to(subject, scaled, count); /* the image of the weights is theirs, bit for bit */
    if (lowers)
        assert_memory_equal(scaled, image, count * F);
    free(image);
    free(scaled);
}

static void optimisers(void **state)
{
    (void)state;
    static const char *const names[] = {"sgd", "nesterov", "adamw", "rmsprop"};
    const size_t count = 20011;
    float *start = fresh(count), *gradient = fresh(count);
    float *want = fresh(3 * count), *got = fresh(3 * count);
    for (int o = SGD; o < OPTIMISERS; o++)
        for (size_t k = 0; k < subject_count; k++) {
            run_optimiser(&subjects[k], (enum optimiser)o, start, gradient, count, k ? got : want);
            near(subjects[k].name, names[o], want, k ? got : want, 3 * count, 1e-6);
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
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const float start = 1, gradients[] = {0.5f, -0.25f};
        float got[3];
        float *w = hold(d, BYTES, &start, &got[0], F), *g = hold(d, BYTES, &start, NULL, F);
        float *m = hold(d, BYTES, &start, &got[1], F), *v = hold(d, BYTES, &start, &got[2], F);
        void *lowered = d->element == DL2_ELEMENT_F32 ? NULL : hold(d, ELEMENTS, &start, NULL, 1);
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
        finish(d);
        assert_true(fabs(got[0] - weight) < 1e-6 && fabs(got[1] - first) < 1e-6 &&
                    fabs(got[2] - second) < 1e-7);
    }
}

/* Gradients of norm 5 (3 and -4, the others zero; times the loss scale) against three limits. */
static void clipping(void **state)
{
    (void)state;
    static const struct {
        float limit;
        double factor;
    } cases[] = {{2, 2 / (5 + 1e-6)}, {5.1f, 1}, {1e-3f, 1e-3 / (5 + 1e-6)}};
    const size_t count = 20011;
    float *gradient = fresh(count), *want = fresh(count), *got = fresh(count);
    for (size_t k = 0; k < subject_count; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct dl2_device *d = subjects[k].device;
            memset(gradient, 0, count * F);
            gradient[7] = 3 * (float)loss_scale_of(d);
            gradient[count - 2] = -4 * (float)loss_scale_of(d);
            for (size_t n = 0; n < count; n++)
                want[n] = (float)(gradient[n] * cases[i].factor);
            float *g = hold(d, BYTES, gradient, got, count * F);
            d->ops->clip_gradients(d, g, count, cases[i].limit);
            finish(d);
            near(subjects[k].name, "clipped gradient", want, got, count, 1e-6);
            if (cases[i].factor == 1)
                assert_memory_equal(got, gradient, count * F);
        }
    /* Many of them, over all threads. */
    for (size_t n = 0; n < count; n++)
        gradient[n] = (float)(n % 3);
    double squares = 0;
    for (size_t n = 0; n < count; n++)
        squares += (double)gradient[n] * gradient[n];
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const double factor = 1 / (sqrt(squares) / loss_scale_of(d) + 1e-6);
        for (size_t n = 0; n < count; n++)
            want[n] = (float)(gradient[n] * (factor < 1 ? factor : 1));
        float *g = hold(d, BYTES, gradient, got, count * F);
        d->ops->clip_gradients(d, g, count, 1);
        finish(d);
        near(subjects[k].name, "clipped gradients", want, got, count, 1e-6);
    }
    free(gradient);
    free(want);
    free(got);
}

/* Three moves of an average, of a decay each; the first takes the values over, bit for bit. */
static void averages(void **state)
{
    (void)state;
    const size_t count = 20011;
    const float decays[] = {0, 0.1f, 0.999f};
    float *values = fresh(count), *want = fresh(count), *got = fresh(count);
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const struct dl2_device_class *ops = d->ops;
        float *v = hold(d, BYTES, values, NULL, count * F);
        float *average = hold(d, BYTES, values, NULL, count * F);
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
        finish(d);
    }
    free(values);
    free(want);
    free(got);
}

/* Gradients that aren't finite leave weights and momenta alone, and a dynamic scale falls. */
static void loss_scale(void **state)
{
    (void)state;
    const float bad[][3] = {{1, INFINITY, 1}, {1, 1, NAN}, {1, 1, 1}};
    const float start[] = {1, 2, 3}, zeros[3] = {0};
    for (size_t k = 1; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_loss_scale scale = {0};
        struct dl2_device *d;
        if (subjects[k].precision != DL2_PRECISION_FP16)
            continue;
        const struct dl2_device_class *ops = subjects[k].device->ops;
        const struct dl2_device_options dynamic = {.precision = DL2_PRECISION_FP16};
        ok(ops->open(&dynamic, &d, &error), &error);
        const struct dl2_loss_scale before = {8, 1999, 7};
        ok(ops->set_loss_scale(d, &before, &error), &error);
        float *w = hold(d, BYTES, start, NULL, sizeof start);
        float *m = hold(d, BYTES, zeros, NULL, sizeof zeros);
        float *v = hold(d, BYTES, zeros, NULL, sizeof zeros);
        void *lowered = hold(d, ELEMENTS, start, NULL, 3);
        const struct dl2_step_numbers numbers = {.rate = 1, .momentum = 0.5f};
        ops->set_numbers(d, &numbers);
        for (int i = 0; i < 3; i++) {
            float *g = hold(d, BYTES, bad[i], NULL, sizeof bad[i]), w_now[3];
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
        }
        /* AdamW's state stays, too, and what was skipped doesn't count: m / (1 - beta1) is g. */
        ok(ops->set_loss_scale(d, &(struct dl2_loss_scale){.scale = 2}, &error), &error);
        ops->zero(d, m, sizeof zeros);
        for (int i = 1; i < 3; i++) {
            float *g = hold(d, BYTES, bad[i], NULL, sizeof bad[i]), now[3];
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
        }
        ops->zero(d, m, sizeof zeros);
        /* The 2000th good one doubles it. */
        ok(ops->set_loss_scale(d, &before, &error), &error);
        ops->check_gradients(d, m, 3);
        ops->end_update(d);
        ok(ops->get_loss_scale(d, &scale, &error), &error);
        assert_true(scale.scale == 16 && scale.good == 0 && scale.skipped == 7);
        finish(d);
        dl2_device_close(d);
    }
}

/* What was recorded runs again on what lies there now, with the numbers set now. */
static void recordings(void **state)
{
    (void)state;
    const struct dl2_conv_shape shape = {3, 9, 7, 8, 16, 3, 3, 1, 1, 1, 1, 1, false};
    const size_t ins = 3u * 9 * 7 * 8, outs = 3u * 9 * 7 * 16, weights = 16u * 9 * 8;
    float *first = fresh(ins), *second = fresh(ins), *matrix = fresh(weights);
    float *direct = fresh(outs), *replayed = fresh(outs);
    for (size_t k = 1; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *d = subjects[k].device;
        const struct dl2_device_class *ops = d->ops;
        if (!ops->record_begin)
            continue;
        struct dl2_conv *conv = NULL;
        struct dl2_recording *recording = NULL;
        ok(ops->conv_create(d, &shape, &conv, &error), &error);
        void *x = hold(d, ELEMENTS, first, NULL, ins), *x2 = hold(d, ELEMENTS, second, NULL, ins);
        void *w = hold(d, ELEMENTS, matrix, NULL, weights);
        void *y = hold(d, ELEMENTS, direct, replayed, outs);
        void *again = hold(d, ELEMENTS, direct, direct, outs);
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
        ops->conv_forward(conv, x2, w, NULL, again);
        ops->dropout(d, again, again, outs, 0.5f, 1, 0);
        finish(d);
        near(subjects[k].name, "a replay", direct, replayed, outs, 0);
        ops->recording_free(recording);
        ops->conv_free(conv);
    }
    free(first);
    free(second);
    free(matrix);
    free(direct);
    free(replayed);
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
    const struct dl2_conv_shape unbiased = {1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 1, false, true};
    const struct dl2_conv_shape *bad[] = {&large,  &empty,       &huge,    &stuck,
                                          &uneven, &none_at_all, &unbiased};
    const struct dl2_pool_shape pool = {DL2_POOL_MAX, 1, 4, 4, 1, 3, 3, 2, 2, 2, 2, 2, 2};
    const struct dl2_attention_shape odd[] = {
        {1, 4, 6, 4}, {1, 4, 6, 0}, {1, 0, 6, 3}, {1, 1u << 20, 1, 1}};
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const struct dl2_device_class *ops = d->ops;
        for (int i = 0; i < 7; i++) {
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_conv *conv = NULL;
            assert_int_equal(ops->conv_create(d, bad[i], &conv, &error), DL2_ERR_ARGUMENT);
            assert_true(error.message[0]);
        }
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_pool *made = NULL;
        assert_int_equal(ops->pool_create(d, &pool, &made, &error), DL2_ERR_ARGUMENT);
        for (int i = 0; i < 4; i++) {
            struct dl2_attention *heads = NULL;
            dl2_error_clear(&error);
            assert_int_equal(ops->attention_create(d, &odd[i], &heads, &error), DL2_ERR_ARGUMENT);
            assert_non_null(strstr(error.message, "heads"));
        }
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
    held_count = 0;
    return 0;
}

/* The tests of devices. Those of one operation stand together. The simplest operations come first,
 * because the first that fails on a card says most. */
static const struct test {
    const char *operation, *name;
    CMUnitTestFunction function;
    const struct operation *of;
} tests[] = {
    {"activation", "activations", activations, NULL},
    {"gelu", "gelu", devices, &gelu},
    {"gelu", "gelu_near_and_far", gelu_near_and_far, NULL},
    {"gelu", "gelu_of_no_number", not_a_number, &gelu},
    {"ingest", "ingest", ingest, NULL},
    {"dropout", "dropout_is_the_same_everywhere", dropout_is_the_same_everywhere, NULL},
    {"linear", "linear", devices, &linear},
    {"convolution", "convolution", devices, &convolution},
    {"batch_norm", "batch_norm", devices, &batch_norm},
    {"batch_norm", "norm_one_row", norm_one_row, NULL},
    {"batch_norm", "norm_eval", norm_eval, NULL},
    {"pooling", "pooling", devices, &pooling},
    {"loss", "loss", devices, &loss},
    {"loss", "loss_by_hand", loss_by_hand, NULL},
    {"loss", "loss_of_no_number", loss_of_no_number, NULL},
    {"optimiser", "optimisers", optimisers, NULL},
    {"optimiser", "clipping", clipping, NULL},
    {"optimiser", "adamw_by_hand", adamw_by_hand, NULL},
    {"optimiser", "averages", averages, NULL},
    {"loss_scale", "loss_scale", loss_scale, NULL},
    {"recording", "recordings", recordings, NULL},
    {"layer_norm", "layer_norm", devices, &layer_norm},
    {"layer_norm", "layer_norm_constant_rows", layer_norm_constant_rows, NULL},
    {"layer_norm", "layer_norm_of_no_number", not_a_number, &layer_norm},
    {"attention", "attention", devices, &attention},
    {"attention", "attention_to_all_alike", attention_to_all_alike, NULL},
    {"attention", "attention_is_exponential", attention_is_exponential, NULL},
    {"attention", "attention_of_no_number", not_a_number, &attention},
    {"tokens", "tokens", devices, &tokens},
    {"errors", "shapes_that_make_no_sense", shapes_that_make_no_sense, NULL},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

static struct CMUnitTest unit(const char *name, CMUnitTestFunction function,
                              const struct operation *of)
{
    return (struct CMUnitTest){name, function, seed, NULL, (void *)(uintptr_t)of};
}

/* The tests of `operation`, or all, of the subjects. Number of failures. */
static int test_devices(const char *title, const char *operation)
{
    struct CMUnitTest units[TESTS];
    size_t count = 0;
    for (size_t i = 0; i < TESTS; i++)
        if (!operation || strcmp(operation, tests[i].operation) == 0)
            units[count++] = unit(tests[i].name, tests[i].function, tests[i].of);
    return _cmocka_run_group_tests(title, units, count, NULL, NULL);
}

static int test_gradients(void)
{
    static const struct operation *const all[] = {&convolution, &linear, &pooling,
                                                  &batch_norm,  &gelu,   &layer_norm,
                                                  &attention,   &tokens, &loss};
    enum { ALL = sizeof all / sizeof all[0] };
    struct CMUnitTest units[ALL + 1] = {[ALL] = unit("elements", elements, NULL)};
    for (size_t i = 0; i < ALL; i++)
        units[i] = unit(all[i]->name, gradients, all[i]);
    return _cmocka_run_group_tests("gradients", units, ALL + 1, NULL, NULL);
}

static bool is_operation(const char *name)
{
    for (size_t i = 0; i < TESTS; i++)
        if (strcmp(name, tests[i].operation) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL, *precision = argc > 2 ? argv[2] : NULL;
    const char *operation = argc > 3 ? argv[3] : NULL;
    if (name && strcmp(name, "--list") == 0) {
        for (size_t i = 0; i < TESTS; i++)
            if (!i || strcmp(tests[i].operation, tests[i - 1].operation) != 0)
                puts(tests[i].operation);
        return 0;
    }
    if (operation && !is_operation(operation)) {
        fprintf(stderr, "test_device: no operation '%s'; --list names them\n", operation);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that a hang tells where */
    find_subjects(name, precision, false);
    if (name && subject_count < 2) {
        printf("SKIP: there is no device %s%s%s here\n", name, precision ? " with " : "",
               precision ? precision : "");
        close_subjects();
        return 77;
    }
    int failed = operation ? 0 : test_gradients();
    /* The processor's once more for each SIMD level; the one it lacks repeats the best below. */
    static const char *const levels[] = {"c", "avx2", "avx512"};
    for (int i = 0; i < 3; i++) {
        setenv("DL2_SIMD", levels[i], 1);
        find_subjects(name, precision, i > 0);
        if (subject_count > 1)
            failed += test_devices(levels[i], operation);
    }
    close_subjects();
    return failed != 0;
}
