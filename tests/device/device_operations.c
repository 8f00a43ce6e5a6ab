/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that are tested alike: how each runs on a device, with which shapes, and against what.
 */
#include "tests/device/test_device.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct op op_of(struct op op)
{
    for (int i = 0; i < INPUTS; i++) {
        op.in[i] = op.counts[i] ? fresh(op.counts[i]) : NULL;
        op.gradient[i] = op.counts[i] ? fresh(op.counts[i]) : NULL;
    }
    op.dy = fresh(op.out_count);
    op.y = fresh(op.out_count);
    return op;
}

void op_free(struct op *op)
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

void *hold_in(const struct op *op, struct dl2_device *d, enum kind kind, int i)
{
    return hold(d, kind, op->in[i], NULL, op->counts[i] * (kind == BYTES ? F : 1));
}

void *hold_gradient(const struct op *op, struct dl2_device *d, enum kind kind, int i)
{
    return hold(d, kind, op->gradient[i], op->gradient[i], op->counts[i] * (kind == BYTES ? F : 1));
}

struct layer hold_layer(const struct op *op, struct dl2_device *d, enum kind weights)
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
    dl2_device_plan_free(conv);
}

static struct op conv_op(const void *shape)
{
    const struct dl2_conv_shape *s = shape;
    const struct dl2_sides out = dl2_conv_out(s);
    const size_t pixels = (size_t)s->in.depth * s->in.height * s->in.width;
    const size_t taps = (size_t)s->kernel.depth * s->kernel.height * s->kernel.width;
    size_t window = taps * s->in_channels / s->groups;
    return op_of((struct op){.name = "convolution",
                             .run = run_conv,
                             .shape = s,
                             .counts = {s->batch * pixels * s->in_channels,
                                        s->out_channels * window, s->bias ? s->out_channels : 0},
                             .out_count = (size_t)s->batch * out.depth * out.height * out.width *
                                          s->out_channels});
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
    dl2_device_plan_free(linear);
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
    dl2_device_plan_free(pool);
}

static struct op pool_op(const void *shape)
{
    const struct dl2_pool_shape *s = shape;
    const size_t ins = (size_t)s->in.depth * s->in.height * s->in.width * s->channels;
    const size_t outs = (size_t)s->out.depth * s->out.height * s->out.width * s->channels;
    return op_of((struct op){.name = s->kind == DL2_POOL_MAX ? "max pooling" : "average pooling",
                             .run = run_pool,
                             .shape = s,
                             .counts = {s->batch * ins},
                             .out_count = s->batch * outs});
}

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
    dl2_device_plan_free(norm);
}

struct op norm_op(const void *shape)
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
    const struct dl2_step_params params = {.lambda = test->lambda, .scale = test->scale};
    d->ops->set_step_params(d, &params);
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
    dl2_device_plan_free(loss);
}

struct op loss_op(const void *shape)
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
    d->ops->add(d, dy, y, DL2_IDENTITY, sum, count);
    d->ops->add(d, sum, dy, DL2_IDENTITY, sum, count);
    finish(d);
}

struct op activation_op(const void *shape)
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
        const float low = activation && x < 0 ? activation == DL2_ELU ? expm1f(x) : 0 : x;
        op.in[0][i] = activation == DL2_RELU6 && low > 6 ? 6 : low;
    }
    return op;
}

static void run_smooth(const struct op *op, struct dl2_device *d)
{
    const struct smooth_case *test = op->shape;
    const bool in_place = op->again;
    const size_t count = op->out_count;
    void *x = hold(d, ELEMENTS, op->in[0], in_place ? op->y : NULL, count);
    void *dy = hold(d, ELEMENTS, op->dy, in_place ? op->gradient[0] : NULL, count);
    void *y = in_place ? x : hold(d, ELEMENTS, op->y, op->y, count);
    d->ops->smooth_backward(d, test->kind, x, dy, in_place ? dy : hold_gradient(op, d, ELEMENTS, 0),
                            count);
    d->ops->smooth(d, test->kind, x, y, count);
    finish(d);
}

struct op smooth_op(const void *shape)
{
    const struct smooth_case *test = shape;
    return op_of((struct op){.name = test->kind == DL2_GELU ? "gelu" : "silu",
                             .run = run_smooth,
                             .shape = shape,
                             .counts = {test->count},
                             .out_count = test->count});
}

static void run_gate(const struct op *op, struct dl2_device *d)
{
    const size_t count = op->out_count;
    void *x = hold_in(op, d, ELEMENTS, 0), *gates = hold_in(op, d, ELEMENTS, 1);
    void *dy = hold(d, ELEMENTS, op->dy, NULL, count);
    void *dx = hold_gradient(op, d, ELEMENTS, 0), *dgates = hold_gradient(op, d, ELEMENTS, 1);
    d->ops->gate(d, op->shape, x, gates, hold(d, ELEMENTS, op->y, op->y, count));
    d->ops->gate_backward(d, op->shape, x, gates, dy, dx, dgates);
    finish(d);
}

static struct op gate_op(const void *shape)
{
    const struct dl2_gate_shape *s = shape;
    const size_t gates = (size_t)s->batch * s->channels;
    return op_of((struct op){.name = "gate",
                             .run = run_gate,
                             .shape = s,
                             .counts = {gates * s->rows, gates},
                             .out_count = gates * s->rows});
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
    dl2_device_plan_free(norm);
}

struct op layer_norm_op(const void *shape)
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
    dl2_device_plan_free(attention);
}

struct op attention_op(const void *shape)
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

void near(const char *what, const char *part, const float *want, const float *got, size_t count,
          double tolerance)
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

void against_reference(struct op *op, double tolerance)
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

/* Images: batch, height, width, in; out, kernel, stride, pad; groups, bias, activation. Clips
 * have a depth before each height. */
static const struct dl2_conv_shape convs[] = {
    FLAT_CONV(2, 5, 4, 3, 4, 3, 3, 1, 1, 1, 1, 1, true),
    FLAT_CONV(1, 7, 6, 2, 3, 3, 2, 2, 1, 1, 0, 1, false),
    FLAT_CONV(3, 4, 4, 1, 2, 1, 1, 1, 1, 0, 0, 1, true),
    FLAT_CONV(1, 9, 8, 2, 2, 5, 5, 3, 2, 2, 1, 1, false),
    FLAT_CONV(2, 3, 3, 5, 7, 1, 1, 2, 2, 0, 0, 1, false),
    FLAT_CONV(1, 2, 2, 1, 1, 3, 3, 1, 1, 1, 1, 1, true),
    FLAT_CONV(2, 4, 5, 4, 6, 3, 3, 1, 1, 1, 1, 2, true),
    FLAT_CONV(1, 5, 5, 3, 3, 3, 3, 2, 2, 1, 1, 3, false),
    {2, {3, 4, 5}, 2, 3, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, true},
    {1, {5, 6, 5}, 3, 2, {3, 2, 3}, {2, 1, 2}, {0, 1, 1}, 1, false},
    {1, {2, 4, 3}, 4, 4, {1, 1, 1}, {2, 2, 2}, {0, 0, 0}, 1, false},
    {1, {4, 3, 5}, 4, 6, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, 2, true},
    {1, {1, 4, 4}, 2, 2, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, false},
    /* from here on too large for differences */
    FLAT_CONV(2, 17, 15, 3, 19, 7, 7, 2, 2, 3, 3, 1, false),
    FLAT_CONV(3, 13, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, true),
    FLAT_CONV(2, 14, 14, 16, 32, 3, 3, 2, 2, 1, 1, 1, false),
    FLAT_CONV(2, 9, 9, 64, 48, 1, 1, 1, 1, 0, 0, 1, false),
    FLAT_CONV(1, 23, 21, 1, 8, 11, 11, 4, 4, 2, 2, 1, true),
    FLAT_CONV(5, 8, 8, 32, 32, 3, 3, 1, 1, 1, 1, 1, false),
    FLAT_CONV(3, 9, 7, 24, 24, 3, 3, 1, 1, 1, 1, 24, false),
    FLAT_CONV(2, 13, 13, 96, 96, 3, 3, 2, 2, 1, 1, 96, false),
    FLAT_CONV(1, 11, 12, 33, 33, 5, 5, 1, 1, 2, 2, 33, true),
    FLAT_CONV(2, 8, 8, 48, 96, 3, 3, 1, 1, 1, 1, 4, false),
    FLAT_CONV(7, 6, 6, 32, 16, 1, 1, 1, 1, 0, 0, 8, true),
    FLAT_CONV(3, 13, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, true, DL2_RELU),
    FLAT_CONV(1, 23, 21, 1, 8, 11, 11, 4, 4, 2, 2, 1, true, DL2_RELU),
    FLAT_CONV(1, 11, 12, 33, 33, 5, 5, 1, 1, 2, 2, 33, true, DL2_RELU),
    FLAT_CONV(3, 13, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, true, DL2_ELU),
    {2, {4, 9, 10}, 3, 16, {3, 7, 7}, {1, 2, 2}, {1, 3, 3}, 1, false},
    {1, {5, 6, 5}, 17, 33, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, true, DL2_ELU},
    {2, {5, 6, 7}, 16, 32, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, 1, true, DL2_RELU},
    {2, {5, 7, 6}, 64, 32, {1, 1, 1}, {2, 2, 2}, {0, 0, 0}, 1, false},
    {1, {4, 7, 5}, 24, 24, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 24, true},
};

static const struct dl2_linear_shape linears[] = {{1, 1, 1, true},
                                                  {3, 5, 4, true},
                                                  {2, 7, 3, false},
                                                  {33, 129, 17, true},
                                                  {5, 64, 1000, true},
                                                  {33, 129, 17, true, DL2_RELU},
                                                  {33, 129, 17, true, DL2_ELU}};

static const struct dl2_pool_shape pools[] = {
    FLAT_POOL(DL2_POOL_MAX, 2, 5, 4, 3, 2, 2, 2, 2, 2, 2, 0, 0),
    FLAT_POOL(DL2_POOL_MAX, 1, 7, 5, 2, 4, 3, 3, 3, 2, 2, 1, 1),
    FLAT_POOL(DL2_POOL_MAX, 2, 6, 4, 2, 3, 2, 3, 3, 2, 2, 0, 0), /* rounded up */
    FLAT_POOL(DL2_POOL_ADAPTIVE_AVERAGE, 2, 5, 3, 3, 1, 1, 0, 0, 0, 0, 0, 0),
    FLAT_POOL(DL2_POOL_ADAPTIVE_AVERAGE, 1, 5, 7, 2, 3, 4, 0, 0, 0, 0, 0, 0),
    FLAT_POOL(DL2_POOL_ADAPTIVE_AVERAGE, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0),
    {DL2_POOL_MAX, 1, {4, 5, 4}, 2, {2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}},
    {DL2_POOL_MAX, 1, {5, 4, 5}, 1, {3, 2, 3}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
    {DL2_POOL_ADAPTIVE_AVERAGE, 1, {3, 4, 2}, 1, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
    {DL2_POOL_ADAPTIVE_AVERAGE, 1, {5, 3, 4}, 2, {3, 2, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
    FLAT_POOL(DL2_POOL_MAX, 3, 31, 29, 17, 15, 14, 3, 3, 2, 2, 0, 0),
    FLAT_POOL(DL2_POOL_MAX, 3, 30, 26, 16, 15, 13, 3, 3, 2, 2, 0, 0),
    FLAT_POOL(DL2_POOL_MAX, 2, 16, 16, 32, 8, 8, 3, 3, 2, 2, 1, 1),
    FLAT_POOL(DL2_POOL_ADAPTIVE_AVERAGE, 7, 8, 8, 65, 1, 1, 0, 0, 0, 0, 0, 0),
    {DL2_POOL_MAX, 2, {9, 21, 20}, 33, {9, 10, 10}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0}},
    {DL2_POOL_MAX, 3, {9, 11, 12}, 32, {4, 5, 6}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}},
    {DL2_POOL_ADAPTIVE_AVERAGE, 5, {4, 7, 7}, 64, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
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
    {{9, 2, 1e-5f, 0.1f, DL2_ELU, false, false}, false, true},
    {{8, 3, 1e-5f, 0.1f, DL2_ELU, true, false}, true, true},
    {{2531, 16, 1e-5f, 0.1f, DL2_RELU, false, false}, false, true},
    {{4099, 5, 1e-5f, 0.1f, DL2_RELU, true, false}, true, true},
    {{77, 300, 1e-5f, 0.1f, DL2_RELU, true, false}, false, true},
    {{1333, 64, 1e-5f, 0.1f, DL2_IDENTITY, false, false}, false, true},
    {{5, 2048, 1e-5f, 0.1f, DL2_RELU, false, false}, true, false},
    {{9, 3, 1e-5f, 0.1f, DL2_RELU6, false, false}, false, true},
    {{1001, 24, 1e-5f, 0.1f, DL2_RELU6, false, false}, false, false},
    {{333, 96, 1e-5f, 0.1f, DL2_RELU6, true, false}, true, true},
    {{1001, 24, 1e-5f, 0.1f, DL2_ELU, false, false}, false, false},
    {{333, 96, 1e-5f, 0.1f, DL2_ELU, true, false}, true, true},
};

static const struct smooth_case smooths[] = {
    {DL2_GELU, 100}, {DL2_SILU, 100}, {DL2_GELU, 50021}, {DL2_SILU, 50021}};

static const struct dl2_gate_shape gates[] = {{2, 3, 5},   {1, 1, 1},     {3, 1, 300},
                                              {4, 33, 24}, {5, 200, 320}, {2, 97, 7}};

static void prepare_gate(struct op *op, enum purpose purpose)
{
    for (size_t i = 0; i < op->counts[1]; i++) /* shut and open, too */
        op->in[1][i] *= purpose == DIFFERENCES ? 2 : i % 3 == 0 ? 1000 : 5;
}

static void prepare_smooth(struct op *op, enum purpose purpose)
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
const struct operation convolution_operation = {"convolution", conv_op, SHAPES(convs), 13, 1,
                                                2e-5,          2e-6,    NULL};
const struct operation linear_operation = {"linear", linear_op, SHAPES(linears), 3, 1, 2e-5,
                                           2e-6,     NULL};
const struct operation pooling_operation = {"pooling", pool_op, SHAPES(pools), 10,
                                            0.25,      1e-4,    1e-6,          prepare_pool};
const struct operation batch_norm_operation = {"batch_norm", norm_op, SHAPES(norms), 8,
                                               4e-3,         4e-3,    2e-5,          NULL};
const struct operation smooth_operation = {"smooth", smooth_op, SHAPES(smooths), 2, 1e-3,
                                           1e-3,     1e-6,      prepare_smooth};
const struct operation gate_operation = {"gate", gate_op, SHAPES(gates), 3,
                                         1e-3,   1e-3,    2e-6,          prepare_gate};
const struct operation layer_norm_operation = {
    "layer_norm", layer_norm_op, SHAPES(layer_norms), 2, 1e-3, 2e-3, 1e-5, NULL};
const struct operation attention_operation = {
    "attention", attention_op, SHAPES(attentions), 3, 1e-3, 2e-3, 5e-6, NULL};
const struct operation tokens_operation = {"tokens", tokens_op, SHAPES(token_shapes), 2, 1, 2e-5,
                                           2e-6,     NULL};
const struct operation loss_operation = {"loss", loss_op, SHAPES(losses), 3,
                                         0.02,   2e-3,    1e-6,           prepare_loss};

static struct op nth_op(const struct operation *operation, size_t i, enum purpose purpose)
{
    struct op op = operation->make((const char *)operation->shapes + i * operation->size);
    op.again = purpose == AGAIN;
    if (operation->prepare)
        operation->prepare(&op, purpose);
    return op;
}

void gradients(void **state)
{
    const struct operation *operation = *state;
    for (size_t i = 0; i < operation->small; i++) {
        struct op op = nth_op(operation, i, DIFFERENCES);
        against_differences(&op, operation->step, operation->slope);
        op_free(&op);
    }
}

void devices(void **state)
{
    const struct operation *operation = *state;
    for (size_t i = 0; i < operation->count; i++)
        for (int purpose = ONCE; purpose <= AGAIN; purpose++) {
            struct op op = nth_op(operation, i, (enum purpose)purpose);
            against_reference(&op, operation->plain);
            op_free(&op);
        }
}

/* What has become of training that diverged must be seen: y and dx have NaN where x has. */
void not_a_number(void **state)
{
    const struct operation *operation = *state;
    struct op op = nth_op(operation, operation == &smooth_operation ? 0 : 3, ONCE);
    /* A key of attention: one score of many. */
    op.in[0][operation == &attention_operation ? attentions[3].channels + 1 : 1] = NAN;
    for (size_t k = 1; k < subject_count; k++) {
        op.run(&op, subjects[k].device);
        assert_true(isnan(op.y[1]) && isnan(op.gradient[0][1]));
    }
    op_free(&op);
}
