/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of networks that label pixels and voxels. */
#include "tests/device/test_device.h"

#include "device/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES(table) table, sizeof table / sizeof table[0], sizeof table[0]

/* -- transposed convolution: the shape is the convolution's whose gradient it is -- */

static void run_transposed(const struct op *op, struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_transposed *plan = NULL;
    ok(dl2_transposed_create(d, op->shape, &plan, &error), &error);
    const struct layer t = hold_layer(op, d, ELEMENTS);
    dl2_transposed_forward(plan, t.x, t.w, t.b, t.y);
    dl2_transposed_backward_weights(plan, t.x, t.dy, t.dw, t.db, false);
    if (op->again)
        dl2_transposed_backward_weights(plan, t.x, t.dy, t.dw, t.db, true);
    dl2_transposed_backward_data(plan, t.dy, t.w, t.dx);
    finish(d);
    dl2_device_plan_free(plan);
}

static struct op transposed_op(const void *shape)
{
    const struct dl2_conv_shape *s = shape;
    const struct dl2_sides in = dl2_conv_out(s);
    const size_t outs = dl2_sides_count(s->in), taps = dl2_sides_count(s->kernel);
    return op_of((struct op){.name = "transposed convolution",
                             .run = run_transposed,
                             .shape = s,
                             .counts = {s->batch * dl2_sides_count(in) * s->out_channels,
                                        s->out_channels * taps * s->in_channels,
                                        s->bias ? s->in_channels : 0},
                             .out_count = s->batch * outs * s->in_channels});
}

static const struct dl2_conv_shape transposeds[] = {
    FLAT_CONV(2, 4, 6, 3, 4, 2, 2, 2, 2, 0, 0, 1, true),
    FLAT_CONV(1, 5, 7, 2, 3, 3, 3, 2, 2, 1, 1, 1, true),
    {1, {4, 4, 2}, 3, 5, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, 1, true},
    /* from here on too large for differences */
    FLAT_CONV(2, 16, 18, 32, 64, 2, 2, 2, 2, 0, 0, 1, true),
    FLAT_CONV(3, 12, 10, 17, 33, 2, 2, 2, 2, 0, 0, 1, false),
    {2, {8, 6, 10}, 16, 32, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, 1, true},
};
const struct operation transposed_operation = {
    "transposed_convolution", transposed_op, SHAPES(transposeds), 3, 1, 2e-5, 2e-6, NULL};

/* -- instance norm -- */

struct instance_case {
    struct dl2_norm_shape shape;
    unsigned samples;
    bool two_gradients;
};

static void run_instance_norm(const struct op *op, struct dl2_device *d)
{
    const struct instance_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_instance_norm *norm = NULL;
    ok(dl2_instance_norm_create(d, &test->shape, test->samples, &norm, &error), &error);
    const struct layer t = hold_layer(op, d, BYTES);
    /* dy twice, where a value goes two ways: the gradients are twice as large, and dy half. */
    void *half = t.dy;
    if (test->two_gradients) {
        float *values = dl2_calloc(op->out_count, sizeof *values);
        assert_non_null(values);
        for (size_t i = 0; i < op->out_count; i++)
            values[i] = op->dy[i] / 2;
        half = hold(d, ELEMENTS, values, NULL, op->out_count);
        free(values);
    }
    dl2_instance_norm_forward(norm, t.x, t.w, t.b, t.y);
    for (int i = 0; i <= op->again; i++)
        dl2_instance_norm_backward(norm, t.x, t.y, half, test->two_gradients ? half : NULL, t.w,
                                   t.b, t.dx, t.dw, t.db, i > 0);
    finish(d);
    dl2_device_plan_free(norm);
}

static struct op instance_norm_op(const void *shape)
{
    const struct instance_case *test = shape;
    const size_t channels = test->shape.channels;
    const size_t count = test->samples * test->shape.rows * channels;
    struct op op = op_of((struct op){.name = "instance norm",
                                     .run = run_instance_norm,
                                     .shape = test,
                                     .counts = {count, channels, channels},
                                     .out_count = count});
    /* Samples with means of their own. */
    for (size_t i = 0; i < count; i++)
        op.in[0][i] = 2 * op.in[0][i] + 3 * (float)(i % channels % 5) -
                      (float)(i / (test->shape.rows * channels));
    return op;
}

static const struct instance_case instances[] = {
    {{8, 3, 1e-5f, 0.1f, DL2_IDENTITY, false, false}, 2, false},
    {{9, 2, 1e-5f, 0.1f, DL2_RELU, false, false}, 3, false},
    {{8, 3, 1e-5f, 0.1f, DL2_RELU, false, false}, 2, true},
    {{1331, 16, 1e-5f, 0.1f, DL2_RELU, false, false}, 3, true},
    {{512, 33, 1e-5f, 0.1f, DL2_IDENTITY, false, false}, 2, false},
};
const struct operation instance_norm_operation = {
    "instance_norm", instance_norm_op, SHAPES(instances), 3, 4e-3, 4e-3, 2e-5, NULL};

/* -- concatenation: columns of two matrices beside each other -- */

struct concat_case {
    size_t rows, first, second;
};

static void run_concat(const struct op *op, struct dl2_device *d)
{
    const struct concat_case *c = op->shape;
    const size_t all = c->first + c->second, at = c->first * dl2_element_size(d->element);
    void *a = hold_in(op, d, ELEMENTS, 0), *b = hold_in(op, d, ELEMENTS, 1);
    uint8_t *y = hold(d, ELEMENTS, op->y, op->y, op->out_count);
    uint8_t *dy = hold(d, ELEMENTS, op->dy, NULL, op->out_count);
    d->ops->copy_columns(d, y, all, a, c->first, c->first, c->rows);
    d->ops->copy_columns(d, y + at, all, b, c->second, c->second, c->rows);
    d->ops->copy_columns(d, hold_gradient(op, d, ELEMENTS, 0), c->first, dy, all, c->first,
                         c->rows);
    d->ops->copy_columns(d, hold_gradient(op, d, ELEMENTS, 1), c->second, dy + at, all, c->second,
                         c->rows);
    finish(d);
}

static struct op concat_op(const void *shape)
{
    const struct concat_case *c = shape;
    return op_of((struct op){.name = "concatenation",
                             .run = run_concat,
                             .shape = c,
                             .counts = {c->rows * c->first, c->rows * c->second},
                             .out_count = c->rows * (c->first + c->second)});
}

static const struct concat_case concats[] = {{3, 2, 4}, {5, 1, 1}, {2047, 32, 16}, {999, 3, 5}};
const struct operation concat_operation = {
    "concatenation", concat_op, SHAPES(concats), 2, 1, 2e-5, 0, NULL};

/* -- Dice loss with cross-entropy, after the cross-entropy -- */

struct dice_case {
    struct dl2_dice_shape shape;
    unsigned ignored; /* every so many-th row has no label; 0: all have one */
    unsigned absent;  /* a class that no row has; 0: none */
    float scale;
};

static int32_t dice_label(const struct dice_case *test, size_t row)
{
    const unsigned label = (unsigned)((row * 7 + row / 5) % test->shape.classes);
    if (test->ignored && row % test->ignored == 0)
        return -1;
    return test->absent && label == test->absent ? 0 : (int32_t)label;
}

/* y: the loss per row that counts, then their number. */
static void run_dice(const struct op *op, struct dl2_device *d)
{
    const struct dice_case *test = op->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss *loss = NULL;
    struct dl2_dice *dice = NULL;
    struct dl2_loss_sums none = {0}, sums = {1, 2, 3, 4};
    const size_t rows = test->shape.samples * test->shape.rows;
    const struct dl2_loss_shape shape = {(unsigned)rows, test->shape.classes, 0};
    int32_t *own = dl2_calloc(rows, sizeof *own);
    assert_non_null(own);
    for (size_t i = 0; i < rows; i++)
        own[i] = dice_label(test, i);
    ok(d->ops->loss_create(d, &shape, &loss, &error), &error);
    ok(d->ops->dice_create(d, &test->shape, &dice, &error), &error);
    void *logits = hold_in(op, d, ELEMENTS, 0), *dlogits = hold_gradient(op, d, ELEMENTS, 0);
    int32_t *labels = hold(d, BYTES, own, NULL, rows * sizeof *own);
    struct dl2_loss_sums *entropy = hold(d, BYTES, &none, NULL, sizeof none);
    struct dl2_loss_sums *total = hold(d, BYTES, &sums, &sums, sizeof sums);
    const struct dl2_step_params params = {.lambda = 1, .scale = test->scale};
    d->ops->set_step_params(d, &params);
    d->ops->loss_run(loss, logits, labels, NULL, NULL, dlogits, entropy);
    d->ops->dice_run(dice, logits, labels, dlogits, entropy, total);
    d->ops->dice_run(dice, logits, labels, NULL, entropy, total);
    finish(d);
    for (size_t i = 0; i < op->counts[0]; i++) {
        op->gradient[0][i] /= (float)loss_scale_of(d);
        if (own[i / test->shape.classes] < 0)
            assert_true(op->gradient[0][i] == 0);
    }
    const double counted = (double)(sums.counted - 2) / 2;
    op->y[0] = (float)((sums.loss - 1) / 2 / counted);
    op->y[1] = (float)counted;
    free(own);
    dl2_device_plan_free(dice);
    dl2_device_plan_free(loss);
}

static struct op dice_op(const void *shape)
{
    const struct dice_case *test = shape;
    struct op op =
        op_of((struct op){.name = "dice",
                          .run = run_dice,
                          .shape = test,
                          .counts = {test->shape.samples * test->shape.rows * test->shape.classes},
                          .out_count = 2});
    for (size_t i = 0; i < op.counts[0]; i++)
        op.in[0][i] *= 3;
    return op;
}

static void prepare_dice(struct op *op, enum purpose purpose)
{
    const struct dice_case *test = op->shape;
    if (purpose == DIFFERENCES) {
        op->dy[0] = test->scale;
        op->dy[1] = 0;
    }
}

static const struct dice_case dices[] = {
    {{2, 12, 3}, 0, 0, 1},   {{1, 15, 2}, 4, 0, 0.5f},   {{3, 8, 4}, 3, 2, 2},
    {{2, 4099, 3}, 0, 0, 1}, {{2, 500, 9}, 5, 4, 0.25f}, {{1, 20001, 5}, 7, 0, 1},
};
const struct operation dice_operation = {"dice", dice_op, SHAPES(dices), 3,
                                         0.01,   3e-3,    2e-6,          prepare_dice};

/* -- confusion -- */

enum { CONFUSED = 3001, KINDS = 7 };

/* By hand, with ties, rows without a label, and a row that has no number. */
void confusion(void **state)
{
    float *logits = fresh(CONFUSED * KINDS);
    int32_t labels[CONFUSED];
    uint64_t want[KINDS * KINDS] = {0};
    (void)state;
    for (size_t n = 0; n < CONFUSED; n++) {
        float *row = logits + n * KINDS;
        labels[n] = (int32_t)(n * 5 % (KINDS + 1)) - 1;
        for (size_t k = 0; k < KINDS; k++)
            row[k] = floorf(4 * row[k]); /* exact in any element, and often equal */
        if (n % 100 == 3)
            row[n % KINDS] = NAN;
        if (labels[n] < 0)
            continue;
        size_t best = 0;
        bool number = true;
        for (size_t k = 0; k < KINDS; k++) {
            best = row[k] > row[best] ? k : best;
            number = number && row[k] == row[k];
        }
        want[(size_t)labels[n] * KINDS + (number ? best : ((size_t)labels[n] + 1) % KINDS)] += 2;
    }
    for (size_t s = 0; s < subject_count; s++) {
        struct dl2_device *d = subjects[s].device;
        uint64_t got[KINDS * KINDS] = {0};
        void *values = hold(d, ELEMENTS, logits, NULL, CONFUSED * KINDS);
        int32_t *given = hold(d, BYTES, labels, NULL, sizeof labels);
        uint64_t *matrix = hold(d, BYTES, got, got, sizeof got);
        for (int twice = 0; twice < 2; twice++)
            d->ops->confusion(d, values, given, CONFUSED, KINDS, matrix);
        finish(d);
        assert_memory_equal(got, want, sizeof got);
    }
    free(logits);
}

/* A loss of pixels must show that training has diverged. */
void pixels_of_no_number(void **state)
{
    struct op op = dice_op(&dices[3]);
    (void)state;
    op.in[0][4] = NAN;
    for (size_t s = 0; s < subject_count; s++) {
        op.run(&op, subjects[s].device);
        assert_true(isnan(op.y[0]) && isnan(op.gradient[0][4]));
    }
    op_free(&op);
}
