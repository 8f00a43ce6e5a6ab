/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations and cases that are tested by themselves. */
#include "tests/device/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void norm_one_row(void **state)
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

void norm_eval(void **state)
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
        dl2_device_plan_free(norm);
    }
}

void activations(void **state)
{
    (void)state;
    static const enum dl2_activation all[] = {DL2_IDENTITY, DL2_RELU, DL2_RELU6, DL2_ELU};
    for (int a = 0; a < 4; a++) {
        struct op op = activation_op(&all[a]);
        const bool smooth = all[a] == DL2_ELU; /* which multiplies */
        against_reference(&op, smooth ? 1e-6 : 0);
        op.run(&op, subjects[0].device);
        for (size_t i = 0; i < op.out_count; i++) {
            const float y = op.in[0][i], below = smooth ? op.dy[i] * (y + 1) : 0;
            const float gradient = !a || (y > 0 && !(a == 2 && y == 6)) ? op.dy[i] : below;
            const float off = smooth ? 1e-6f : 0;
            assert_true(fabsf(op.gradient[0][i] - gradient) <= off);
            assert_true(fabsf(op.y[i] - (gradient + y + gradient)) <= 3 * off);
        }
        op_free(&op);
    }
}

/* Against libm, with a relative error where that is small, too: far below zero. */
void smooth_near_and_far(void **state)
{
    (void)state;
    static const struct smooth_case cases[] = {{DL2_GELU, 36001}, {DL2_SILU, 36001}};
    for (int c = 0; c < 2; c++) {
        const size_t count = cases[c].count;
        struct op op = smooth_op(&cases[c]);
        for (size_t i = 0; i < count; i++) {
            op.in[0][i] = (float)i / 2000 - 9;
            op.dy[i] = 1;
        }
        for (size_t k = 1; k < subject_count; k++) {
            const double more = tolerance_of(&subjects[k], 0);
            round_to(&subjects[k], op.in[0], count);
            op.run(&op, subjects[k].device);
            for (size_t i = 0; i < count; i++) {
                const double x = op.in[0][i], s = 1 / (1 + exp(-x));
                const double share = c ? s : erfc(-x / sqrt(2)) / 2;
                const double density = c ? s * (1 - s) : exp(-x * x / 2) / sqrt(2 * M_PI);
                const double slope = share + x * density;
                assert_true(fabs(op.y[i] - x * share) <= (4e-6 + more) * fabs(x * share) + more);
                assert_true(fabs(op.gradient[0][i] - slope) <= 5e-7 + 2 * more);
            }
        }
        op_free(&op);
    }
}

/* ELU as batch norm ends with it, against libm: near 0, where exp(x) - 1 would lose digits, far
 * below, and of what is no number. */
void elu_near_and_far(void **state)
{
    (void)state;
    enum { COUNT = 4099 };
    const float gamma = 1, beta = 0, mean = 0, var = 1;
    const struct dl2_norm_shape shape = {COUNT, 1, 0, 0.1f, DL2_ELU, false, false};
    float *x = fresh(COUNT), *y = fresh(COUNT);
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *d = subjects[k].device;
        struct dl2_norm *norm = NULL;
        const double more = tolerance_of(&subjects[k], 0);
        for (int i = 0; i < COUNT; i++)
            x[i] = i % 2 ? (float)i / 20 - 200 : ldexpf(-1.5f, -i % 32);
        round_to(&subjects[k], x, COUNT);
        x[7] = NAN;
        ok(d->ops->norm_create(d, &shape, &norm, &error), &error);
        d->ops->norm_eval(norm, hold(d, ELEMENTS, x, NULL, COUNT), NULL,
                          hold(d, BYTES, &gamma, NULL, F), hold(d, BYTES, &beta, NULL, F),
                          hold(d, BYTES, &mean, NULL, F), hold(d, BYTES, &var, NULL, F),
                          hold(d, ELEMENTS, y, y, COUNT));
        finish(d);
        for (int i = 0; i < COUNT; i++) {
            const double want = x[i] > 0 ? x[i] : expm1(x[i]);
            if (i == 7)
                assert_true(isnan(y[i]));
            else if (!(fabs(y[i] - want) <= (3e-7 + more) * fabs(want)))
                fail_msg("%s: ELU of %.9g is %.9g, not %.9g", subjects[k].name, x[i], y[i], want);
        }
        dl2_device_plan_free(norm);
    }
    free(x);
    free(y);
}

/* Rows without any spread: beta, and no gradient for x. */
void layer_norm_constant_rows(void **state)
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
void attention_to_all_alike(void **state)
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
void attention_is_exponential(void **state)
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

/* Figures that can be checked by hand: logits 0 give log(classes); ties rank by class number. */
void loss_by_hand(void **state)
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
void loss_of_no_number(void **state)
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

void dropout_is_the_same_everywhere(void **state)
{
    (void)state;
    const size_t count = 3 * 4096 + 77;
    float *x = fresh(count), *want = fresh(count), *got = fresh(count);
    size_t dropped = 0;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        void *from = hold(d, ELEMENTS, x, NULL, count);
        void *to = hold(d, ELEMENTS, x, k ? got : want, count);
        d->ops->set_step_params(d, &(struct dl2_step_params){.step = 11});
        d->ops->dropout(d, from, to, count, 1, 0.25f, 7, 1);
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

/* Whole samples, by the numbers that elements have otherwise: beyond a block of them, too. */
void runs_are_dropped_whole(void **state)
{
    (void)state;
    enum { EACH = 7, RUNS = 4096 + 300, COUNT = EACH * RUNS };
    float *ones = fresh(COUNT), *want = fresh(RUNS), *got = fresh(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        d->ops->set_step_params(d, &(struct dl2_step_params){.step = 5});
        void *x = hold(d, ELEMENTS, ones, NULL, COUNT), *y = hold(d, ELEMENTS, ones, got, COUNT);
        void *each = hold(d, ELEMENTS, want, want, RUNS);
        d->ops->dropout(d, x, y, COUNT, EACH, 0.25f, 9, 2);
        d->ops->dropout(d, x, each, RUNS, 1, 0.25f, 9, 2);
        finish(d);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(got[i] == want[i / EACH]);
        assert_true(want[RUNS - 1] == 0 || want[RUNS - 1] > 1.3f);
    }
    free(ones);
    free(want);
    free(got);
}

void sums_end_with_relu(void **state)
{
    (void)state;
    float a[5] = {1, -2, 3, NAN, 0}, b[5] = {2, 1, -3, 1, -1}, y[5];
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        d->ops->add(d, hold(d, ELEMENTS, a, NULL, 5), hold(d, ELEMENTS, b, NULL, 5), DL2_RELU,
                    hold(d, ELEMENTS, y, y, 5), 5);
        finish(d);
        assert_true(y[0] == 3 && y[1] == 0 && y[2] == 0 && isnan(y[3]) && y[4] == 0);
    }
}

void ingest(void **state)
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
                d->ops->set_step_params(d, &(struct dl2_step_params){.lambda = 0.7f});
                d->ops->ingest_run(ingest, hold(d, BYTES, images, NULL, count),
                                   mixed ? hold(d, BYTES, partner, NULL, sizeof partner) : NULL,
                                   hold(d, ELEMENTS, got, got, count));
                finish(d);
                near(subjects[k].name, "ingest", want, got, count,
                     tolerance_of(&subjects[k], 1e-6));
                dl2_device_plan_free(ingest);
            }
            free(images);
            free(want);
            free(got);
        }
}

/* Values of any number of channels that are normalized already. */
void ingest_of_floats(void **state)
{
    (void)state;
    struct dl2_ingest_shape shape = {.batch = 3, .height = 7, .width = 9, .channels = 5};
    const size_t count = 3u * 7u * 9u * 5u;
    float *want = fresh(count), *got = fresh(count);
    shape.floats = true;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_device *d = subjects[k].device;
        struct dl2_ingest *ingest = NULL;
        ok(d->ops->ingest_create(d, &shape, &ingest, &error), &error);
        d->ops->ingest_run(ingest, hold(d, BYTES, want, NULL, count * F), NULL,
                           hold(d, ELEMENTS, got, got, count));
        finish(d);
        near(subjects[k].name, "ingest of floats", want, got, count, tolerance_of(&subjects[k], 0));
        dl2_device_plan_free(ingest);
    }
    free(want);
    free(got);
}

/* Three updates; weights, then the optimizer's state, into `out`. */
static void run_optimizer(const struct subject *subject, enum dl2_optimizer kind, bool nesterov,
                          const float *start, const float *gradient, size_t count, float *out)
{
    const size_t decayed = 12345; /* no more than the first part of them */
    struct dl2_device *d = subject->device;
    const struct dl2_device_class *ops = d->ops;
    const bool has_low_precision = d->element != DL2_ELEMENT_F32;
    float *scaled = fresh(count), *image = fresh(count);
    for (size_t i = 0; i < count; i++)
        scaled[i] = gradient[i] * (float)loss_scale_of(d);
    float *w = hold(d, BYTES, start, out, count * F), *g = hold(d, BYTES, scaled, NULL, count * F);
    float *m = hold(d, BYTES, start, out + count, count * F);
    float *v = hold(d, BYTES, start, out + 2 * count, count * F);
    void *low_precision = has_low_precision ? hold(d, ELEMENTS, scaled, image, count) : NULL;
    ops->zero(d, m, count * F);
    ops->zero(d, v, count * F);
    if (has_low_precision)
        ops->convert_weights(d, w, low_precision, count);
    for (int update = 1; update <= 3; update++) {
        const struct dl2_step_params params = {.rate = 0.1f / (float)update,
                                               .momentum = 0.875f,
                                               .weight_decay = 1e-2f,
                                               .beta2 = 0.75f,
                                               .epsilon = 1e-4f,
                                               .update = (uint64_t)update};
        ops->set_step_params(d, &params);
        if (ops->check_gradients)
            ops->check_gradients(d, g, count);
        for (int part = 0; part < 2; part++) {
            const size_t first = part ? decayed : 0, size = dl2_element_size(d->element);
            const struct dl2_optimizer_step step = {
                .kind = kind,
                .decays = !part,
                .nesterov = nesterov,
                .count = part ? count - decayed : decayed,
                .weights = w + first,
                .low_precision = low_precision ? (char *)low_precision + first * size : NULL,
                .gradient = g + first,
                .momentum = m + first,
                .second_moment = dl2_optimizer_facts(kind)->adaptive ? v + first : NULL,
            };
            ops->optimizer_step(d, &step);
        }
        if (ops->end_update)
            ops->end_update(d);
    }
    finish(d);
    memcpy(scaled, out, count * F);
    round_to(subject, scaled, count); /* the image of the weights is theirs, bit for bit */
    if (has_low_precision)
        assert_memory_equal(scaled, image, count * F);
    free(image);
    free(scaled);
}

void optimizers(void **state)
{
    (void)state;
    const size_t count = 20011;
    float *start = fresh(count), *gradient = fresh(count);
    float *want = fresh(3 * count), *got = fresh(3 * count);
    for (int o = 0; dl2_optimizer_words[o]; o++)
        for (int nesterov = 0; nesterov <= dl2_optimizer_facts((enum dl2_optimizer)o)->nesterov;
             nesterov++)
            for (size_t k = 0; k < subject_count; k++) {
                run_optimizer(&subjects[k], (enum dl2_optimizer)o, nesterov, start, gradient, count,
                              k ? got : want);
                near(subjects[k].name, dl2_optimizer_words[o], want, k ? got : want, 3 * count,
                     1e-6);
            }
    free(start);
    free(gradient);
    free(want);
    free(got);
}

/* One number by hand, over two updates: torch.optim.AdamW's. */
void adamw_by_hand(void **state)
{
    (void)state;
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const float start = 1, gradients[] = {0.5f, -0.25f};
        float got[3];
        float *w = hold(d, BYTES, &start, &got[0], F), *g = hold(d, BYTES, &start, NULL, F);
        float *m = hold(d, BYTES, &start, &got[1], F), *v = hold(d, BYTES, &start, &got[2], F);
        void *low_precision =
            d->element == DL2_ELEMENT_F32 ? NULL : hold(d, ELEMENTS, &start, NULL, 1);
        d->ops->zero(d, m, F);
        d->ops->zero(d, v, F);
        double weight = 1, first = 0, second = 0;
        for (int t = 1; t <= 2; t++) {
            struct dl2_error error = DL2_ERROR_INIT;
            float scaled = gradients[t - 1] * (float)loss_scale_of(d);
            ok(d->ops->sync(d, &error), &error);
            d->ops->upload(d, g, &scaled, F);
            d->ops->wait_uploads(d);
            d->ops->set_step_params(d, &(struct dl2_step_params){.rate = 0.1f,
                                                                 .momentum = 0.9f,
                                                                 .weight_decay = 0.1f,
                                                                 .beta2 = 0.99f,
                                                                 .epsilon = 1e-8f,
                                                                 .update = (uint64_t)t});
            d->ops->optimizer_step(d, &(struct dl2_optimizer_step){DL2_ADAMW, true, false, 1, w,
                                                                   low_precision, g, m, v});
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
void clipping(void **state)
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
void averages(void **state)
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
            ops->set_step_params(d, &(struct dl2_step_params){.average_decay = decays[step]});
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
void loss_scale(void **state)
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
        void *low_precision = hold(d, ELEMENTS, start, NULL, 3);
        const struct dl2_step_params params = {.rate = 1, .momentum = 0.5f};
        ops->set_step_params(d, &params);
        for (int i = 0; i < 3; i++) {
            float *g = hold(d, BYTES, bad[i], NULL, sizeof bad[i]), w_now[3];
            ops->check_gradients(d, g, 3);
            /* Those of the first step may be finite. */
            ops->optimizer_step(d, &(struct dl2_optimizer_step){DL2_SGD, true, false, 2, w,
                                                                low_precision, g, m, NULL});
            ops->optimizer_step(d, &(struct dl2_optimizer_step){DL2_SGD, false, false, 1, w + 2,
                                                                (char *)low_precision + 4, g + 2,
                                                                m + 2, NULL});
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
            ops->set_step_params(
                d, &(struct dl2_step_params){
                       .rate = 1, .momentum = 0.5f, .beta2 = 0.75f, .update = (uint64_t)i});
            ops->check_gradients(d, g, 3);
            ops->optimizer_step(d, &(struct dl2_optimizer_step){DL2_ADAMW, true, false, 3, w,
                                                                low_precision, g, m, v});
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
void recordings(void **state)
{
    (void)state;
    const struct dl2_conv_shape shape = FLAT_CONV(3, 9, 7, 8, 16, 3, 3, 1, 1, 1, 1, 1, false);
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
            ops->set_step_params(d, &(struct dl2_step_params){.step = (uint64_t)step});
            if (step == 3)
                ops->copy(d, x, x2, ins * dl2_element_size(d->element));
            if (step == 1)
                ops->record_begin(d);
            if (recording) {
                ops->replay(recording);
            } else {
                ops->conv_forward(conv, x, w, NULL, y);
                ops->dropout(d, y, y, outs, 1, 0.5f, 1, 0);
            }
            if (step == 1) {
                recording = ops->record_end(d);
                assert_non_null(recording);
            }
        }
        ops->conv_forward(conv, x2, w, NULL, again);
        ops->dropout(d, again, again, outs, 1, 0.5f, 1, 0);
        finish(d);
        near(subjects[k].name, "a replay", direct, replayed, outs, 0);
        ops->recording_free(recording);
        dl2_device_plan_free(conv);
    }
    free(first);
    free(second);
    free(matrix);
    free(direct);
    free(replayed);
}

void shapes_that_make_no_sense(void **state)
{
    (void)state;
    const struct dl2_conv_shape large = FLAT_CONV(1, 2, 2, 3, 4, 5, 5, 1, 1, 1, 1, 1, false);
    const struct dl2_conv_shape empty = FLAT_CONV(0, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 1, false);
    const struct dl2_conv_shape huge =
        FLAT_CONV(1u << 16, 1u << 10, 1u << 10, 3, 4, 3, 3, 1, 1, 1, 1, 1, false);
    const struct dl2_conv_shape stuck = FLAT_CONV(1, 8, 8, 3, 4, 3, 3, 0, 0, 1, 1, 1, false);
    const struct dl2_conv_shape uneven = FLAT_CONV(1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 3, false);
    const struct dl2_conv_shape none_at_all = FLAT_CONV(1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 0, false);
    const struct dl2_conv_shape unbiased =
        FLAT_CONV(1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 1, false, DL2_RELU);
    /* No depth at all, a stride of none, a clip too short, and what no convolution ends with. */
    const struct dl2_conv_shape shallow = {1,         {0, 8, 8}, 3, 4,    {1, 3, 3},
                                           {1, 1, 1}, {0, 1, 1}, 1, false};
    const struct dl2_conv_shape frozen = {1,         {3, 8, 8}, 3, 4,    {1, 3, 3},
                                          {0, 1, 1}, {0, 1, 1}, 1, false};
    const struct dl2_conv_shape brief = {1,         {2, 8, 8}, 3, 4,    {3, 3, 3},
                                         {1, 1, 1}, {0, 1, 1}, 1, false};
    const struct dl2_conv_shape relu6 =
        FLAT_CONV(1, 8, 8, 3, 4, 3, 3, 1, 1, 1, 1, 1, true, DL2_RELU6);
    const struct dl2_conv_shape *bad[] = {&large,       &empty,    &huge,   &stuck,
                                          &uneven,      &shallow,  &frozen, &brief,
                                          &none_at_all, &unbiased, &relu6};
    const struct dl2_pool_shape pool = FLAT_POOL(DL2_POOL_MAX, 1, 4, 4, 1, 3, 3, 2, 2, 2, 2, 2, 2);
    const struct dl2_pool_shape short_clip = {DL2_POOL_MAX, 1,         {1, 4, 4}, 1,
                                              {1, 2, 2},    {2, 2, 2}, {2, 2, 2}, {0, 0, 0}};
    const struct dl2_attention_shape odd[] = {
        {1, 4, 6, 4}, {1, 4, 6, 0}, {1, 0, 6, 3}, {1, 1u << 20, 1, 1}};
    for (size_t k = 0; k < subject_count; k++) {
        struct dl2_device *d = subjects[k].device;
        const struct dl2_device_class *ops = d->ops;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_conv *conv = NULL;
            assert_int_equal(ops->conv_create(d, bad[i], &conv, &error), DL2_ERR_ARGUMENT);
            assert_true(error.message[0]);
        }
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_pool *made = NULL;
        assert_int_equal(ops->pool_create(d, &pool, &made, &error), DL2_ERR_ARGUMENT);
        dl2_error_clear(&error);
        assert_int_equal(ops->pool_create(d, &short_clip, &made, &error), DL2_ERR_ARGUMENT);
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
void elements(void **state)
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
