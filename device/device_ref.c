/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference device: every operation as its definition reads, one thread, sums in double. Slow,
 * and what the other devices are held against, in float32 and with elements of half its width.
 */
#include "common/memory.h"
#include "common/random.h"
#include "device/dense.h"
#include "device/device.h"
#include "device/element.h"
#include "device/host_memory.h"
#include "device/ref_dense.h"
#include "ranks/reducer.h"
#include "ranks/sync_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ref {
    struct dl2_device base;
    struct dl2_reducer *reducer; /* NULL: alone */
    /* The loss scale; it stays 1 unless elements are F16. */
    struct dl2_loss_scale scale;
    bool dynamic, finite; /* finite: so are the gradients of this update */
};

/* Element i of a tensor. */
static inline double ref_get(enum dl2_element element, const void *tensor, size_t i)
{
    if (element == DL2_ELEMENT_F32)
        return ((const float *)tensor)[i];
    float value;
    dl2_elements_to_floats(element, (const uint16_t *)tensor + i, &value, 1);
    return value;
}

/* `sum`, and the products of n elements from a[i] and b[k] on, one after the other. */
static double ref_dot(enum dl2_element element, double sum, const void *a, size_t i, const void *b,
                      size_t k, size_t n)
{
    if (element == DL2_ELEMENT_F32) {
        const float *one = (const float *)a + i, *other = (const float *)b + k;
        for (size_t c = 0; c < n; c++)
            sum += (double)one[c] * other[c];
    } else {
        for (size_t c = 0; c < n; c++)
            sum += ref_get(element, a, i + c) * ref_get(element, b, k + c);
    }
    return sum;
}

/* Adds `factor` times n elements from a[i] on. */
static void ref_add_scaled(enum dl2_element element, double *sums, double factor, const void *a,
                           size_t i, size_t n)
{
    if (element == DL2_ELEMENT_F32) {
        const float *one = (const float *)a + i;
        for (size_t c = 0; c < n; c++)
            sums[c] += factor * one[c];
    } else {
        for (size_t c = 0; c < n; c++)
            sums[c] += factor * ref_get(element, a, i + c);
    }
}

static inline void ref_set(enum dl2_element element, void *tensor, size_t i, double value)
{
    const float rounded = (float)value;
    if (element == DL2_ELEMENT_F32)
        ((float *)tensor)[i] = rounded;
    else
        dl2_elements_from_floats(element, &rounded, (uint16_t *)tensor + i, 1);
}

/* A zeroed plan of `size` bytes and `doubles` behind them; NULL: the error says so. */
static void *ref_plan(size_t size, size_t doubles, const char *what, struct dl2_error *error)
{
    struct dl2_device_plan *plan = NULL;
    size_t room;
    if (dl2_size_mul(doubles, sizeof(double), &room) && dl2_size_add(room, size, &room))
        plan = dl2_calloc(1, room);
    if (plan)
        plan->free = free;
    else
        dl2_error_set(error, DL2_ERR_MEMORY, "device ref: out of memory for %s", what);
    return plan;
}

static const char *ref_version(void)
{
    return "plain C";
}

static void ref_close(struct dl2_device *device)
{
    if (device)
        dl2_reducer_stop(((struct ref *)device)->reducer);
    free(device);
}

static void ref_copy(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

static void ref_zero(struct dl2_device *device, void *memory, size_t bytes)
{
    (void)device;
    memset(memory, 0, bytes);
}

static void ref_all_reduce(struct dl2_device *device, float *data, size_t count)
{
    dl2_reducer_add(((struct ref *)device)->reducer, data, count);
}

static void ref_all_reduce_wait(struct dl2_device *device)
{
    dl2_reducer_wait(((struct ref *)device)->reducer, &device->failure);
}

/* -- convolution -- */

struct dl2_conv {
    struct dl2_device_plan plan;
    enum dl2_element element;
    struct dl2_conv_shape s;
    struct dl2_sides out;
    double sums[]; /* in_channels */
};

static int ref_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                           struct dl2_conv **out, struct dl2_error *error)
{
    DL2_TRY(dl2_conv_shape_check(shape, error));
    struct dl2_conv *conv = ref_plan(sizeof *conv, shape->in_channels, "a convolution", error);
    if (!conv)
        return DL2_ERR_MEMORY;
    conv->element = device->element;
    conv->s = *shape;
    conv->out = dl2_conv_out(shape);
    *out = conv;
    return DL2_OK;
}

/* A place in a tensor, or a tap of a kernel. */
struct ref_place {
    unsigned d, h, w;
};

static const struct dl2_sides ref_one = {1, 1, 1};

/* The i-th place of these sides, row by row. */
static struct ref_place ref_place_of(size_t i, const struct dl2_sides *sides)
{
    const unsigned at = (unsigned)i, row = at / sides->width; /* no tensor has 2^31 elements */
    return (struct ref_place){row / sides->height, row % sides->height, at % sides->width};
}

/* The pixel, among a sample's, that a tap of output `o` sees; false in the padding. Coordinates
 * wrap below zero, so one comparison does. */
static bool ref_tap(const struct dl2_conv_shape *s, struct ref_place o, struct ref_place tap,
                    size_t *pixel)
{
    const unsigned d = o.d * s->stride.depth + tap.d - s->pad.depth;
    const unsigned h = o.h * s->stride.height + tap.h - s->pad.height;
    const unsigned w = o.w * s->stride.width + tap.w - s->pad.width;
    *pixel = ((size_t)d * s->in.height + h) * s->in.width + w;
    return d < s->in.depth && h < s->in.height && w < s->in.width;
}

/* Output coordinate whose tap saw input `i`, along one axis; false where there is none. */
static bool ref_seen_by(unsigned i, unsigned tap, unsigned stride, unsigned pad, unsigned out,
                        unsigned *o)
{
    if (i + pad < tap || (i + pad - tap) % stride)
        return false;
    *o = (i + pad - tap) / stride;
    return *o < out;
}

static double ref_activated(enum dl2_activation activation, double value)
{
    if (activation == DL2_ELU)
        return value <= 0 ? expm1(value) : value;
    if (activation != DL2_IDENTITY && value <= 0) /* NaN stays NaN */
        return 0;
    return activation == DL2_RELU6 && value > 6 ? 6 : value;
}

/* The gradient g of an activation's output y, times the activation's slope there. */
static double ref_passed(enum dl2_activation activation, double y, double g)
{
    if (activation == DL2_ELU)
        return y > 0 ? g : g * (y + 1);
    return activation == DL2_IDENTITY || (y > 0 && !(activation == DL2_RELU6 && y >= 6)) ? g : 0;
}

static void ref_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                             const float *bias, void *y)
{
    const struct dl2_conv_shape *s = &conv->s;
    enum dl2_element e = conv->element;
    size_t at = 0, ins = s->in_channels / s->groups;
    const size_t pixels = dl2_sides_count(s->in), outs = dl2_sides_count(conv->out);
    const size_t kernel = dl2_sides_count(s->kernel);
    for (unsigned n = 0; n < s->batch; n++)
        for (size_t p = 0; p < outs; p++) {
            const struct ref_place to = ref_place_of(p, &conv->out);
            for (unsigned o = 0; o < s->out_channels; o++) {
                double sum = bias ? bias[o] : 0;
                size_t first = o / (s->out_channels / s->groups) * ins, pixel;
                for (size_t k = 0; k < kernel; k++) {
                    if (!ref_tap(s, to, ref_place_of(k, &s->kernel), &pixel))
                        continue;
                    size_t in = (n * pixels + pixel) * s->in_channels + first;
                    sum = ref_dot(e, sum, x, in, weights, (o * kernel + k) * ins, ins);
                }
                ref_set(e, y, at++, ref_activated(s->activation, sum));
            }
        }
}

static void ref_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                   void *dx)
{
    const struct dl2_conv_shape *s = &conv->s;
    const struct dl2_sides *out = &conv->out;
    enum dl2_element e = conv->element;
    size_t at = 0;
    size_t ins = s->in_channels / s->groups, outs = s->out_channels / s->groups;
    const size_t pixels = dl2_sides_count(s->in), kernel = dl2_sides_count(s->kernel);
    for (unsigned n = 0; n < s->batch; n++)
        for (size_t p = 0; p < pixels; p++) {
            const struct ref_place i = ref_place_of(p, &s->in);
            memset(conv->sums, 0, s->in_channels * sizeof *conv->sums);
            for (size_t k = 0; k < kernel; k++) {
                const struct ref_place tap = ref_place_of(k, &s->kernel);
                struct ref_place seen;
                if (!ref_seen_by(i.d, tap.d, s->stride.depth, s->pad.depth, out->depth, &seen.d) ||
                    !ref_seen_by(i.h, tap.h, s->stride.height, s->pad.height, out->height,
                                 &seen.h) ||
                    !ref_seen_by(i.w, tap.w, s->stride.width, s->pad.width, out->width, &seen.w))
                    continue;
                size_t row = ((size_t)n * out->depth + seen.d) * out->height + seen.h;
                size_t from = (row * out->width + seen.w) * s->out_channels;
                for (unsigned o = 0; o < s->out_channels; o++) {
                    size_t tapped = (o * kernel + k) * ins;
                    ref_add_scaled(e, conv->sums + o / outs * ins, ref_get(e, dy, from + o),
                                   weights, tapped, ins);
                }
            }
            for (size_t c = 0; c < s->in_channels; c++)
                ref_set(e, dx, at++, conv->sums[c]);
        }
}

static void ref_put(float *to, double value, bool accumulate)
{
    *to = accumulate ? (float)(*to + value) : (float)value;
}

static void ref_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                      float *dweights, float *dbias, bool accumulate)
{
    const struct dl2_conv_shape *s = &conv->s;
    enum dl2_element e = conv->element;
    size_t ins = s->in_channels / s->groups, outs = s->out_channels;
    const size_t in_pixels = dl2_sides_count(s->in), out_pixels = dl2_sides_count(conv->out);
    const size_t kernel = dl2_sides_count(s->kernel);
    const size_t pixels = s->batch * out_pixels;
    for (unsigned o = 0; o < outs; o++)
        for (size_t k = 0; k < kernel; k++) {
            const struct ref_place tap = ref_place_of(k, &s->kernel);
            size_t first = o / (outs / s->groups) * ins;
            memset(conv->sums, 0, ins * sizeof *conv->sums);
            for (size_t p = 0; p < pixels; p++) {
                size_t n = p / out_pixels, pixel;
                if (!ref_tap(s, ref_place_of(p % out_pixels, &conv->out), tap, &pixel))
                    continue;
                size_t in = (n * in_pixels + pixel) * s->in_channels + first;
                ref_add_scaled(e, conv->sums, ref_get(e, dy, p * outs + o), x, in, ins);
            }
            for (size_t c = 0; c < ins; c++)
                ref_put(dweights++, conv->sums[c], accumulate);
        }
    for (size_t o = 0; dbias && o < outs; o++) {
        double sum = 0;
        for (size_t p = 0; p < pixels; p++)
            sum += ref_get(e, dy, p * outs + o);
        ref_put(dbias + o, sum, accumulate);
    }
}

/* -- linear: a convolution of images of one pixel -- */

static int ref_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                             struct dl2_linear **out, struct dl2_error *error)
{
    const struct dl2_conv_shape pixels = {.batch = shape->batch,
                                          .in = ref_one,
                                          .in_channels = shape->in,
                                          .out_channels = shape->out,
                                          .kernel = ref_one,
                                          .stride = ref_one,
                                          .groups = 1,
                                          .bias = shape->bias,
                                          .activation = shape->activation};
    return ref_conv_create(device, &pixels, (struct dl2_conv **)out, error);
}

static void ref_linear_forward(struct dl2_linear *linear, const void *x, const void *weights,
                               const float *bias, void *y)
{
    ref_conv_forward((struct dl2_conv *)linear, x, weights, bias, y);
}

static void ref_linear_backward_data(struct dl2_linear *linear, const void *dy, const void *weights,
                                     void *dx)
{
    ref_conv_backward_data((struct dl2_conv *)linear, dy, weights, dx);
}

static void ref_linear_backward_weights(struct dl2_linear *linear, const void *x, const void *dy,
                                        float *dweights, float *dbias, bool accumulate)
{
    ref_conv_backward_weights((struct dl2_conv *)linear, x, dy, dweights, dbias, accumulate);
}

/* -- pooling -- */

struct dl2_pool {
    struct dl2_device_plan plan;
    enum dl2_element element;
    struct dl2_pool_shape s;
    uint32_t *winner; /* DL2_POOL_MAX: element of x that each element of y came from */
    float sums[];     /* of gradients, as large as x; and then the winners */
};

static int ref_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                           struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    size_t ins = shape->batch * dl2_sides_count(shape->in) * shape->channels;
    size_t outs = shape->batch * dl2_sides_count(shape->out) * shape->channels;
    struct dl2_pool *pool = ref_plan(
        sizeof *pool + ins * sizeof *pool->sums + outs * sizeof *pool->winner, 0, "pooling", error);
    if (!pool)
        return DL2_ERR_MEMORY;
    pool->element = device->element;
    pool->s = *shape;
    pool->winner = (uint32_t *)(pool->sums + ins);
    *out = pool;
    return DL2_OK;
}

/* Element (n, d, h, w, c) of a pooling's input. */
static size_t ref_pool_at(const struct dl2_pool_shape *s, size_t n, size_t d, size_t h, size_t w,
                          size_t c)
{
    return (((n * s->in.depth + d) * s->in.height + h) * s->in.width + w) * s->channels + c;
}

/* The window of element i of a pooling's output, and its sample and channel. */
static struct dl2_pool_window ref_pool_window(const struct dl2_pool_shape *s, size_t i, size_t *n,
                                              size_t *c)
{
    const size_t pixels = dl2_sides_count(s->out);
    const struct ref_place o = ref_place_of(i / s->channels % pixels, &s->out);
    *n = i / s->channels / pixels;
    *c = i % s->channels;
    return dl2_pool_window(s, o.d, o.h, o.w);
}

static void ref_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    const struct dl2_pool_shape *s = &pool->s;
    enum dl2_element e = pool->element;
    const size_t outs = s->batch * dl2_sides_count(s->out) * s->channels;
    for (size_t i = 0; i < outs; i++) {
        size_t n, c, best = SIZE_MAX;
        const struct dl2_pool_window v = ref_pool_window(s, i, &n, &c);
        double sum = 0, most = 0;
        for (unsigned d = v.d0; d < v.d1; d++)
            for (unsigned h = v.h0; h < v.h1; h++)
                for (unsigned w = v.w0; w < v.w1; w++) {
                    size_t at = ref_pool_at(s, n, d, h, w, c);
                    double value = ref_get(e, x, at);
                    sum += value;
                    if (best == SIZE_MAX || value > most) {
                        best = at;
                        most = value;
                    }
                }
        if (s->kind == DL2_POOL_MAX) {
            ref_set(e, y, i, most);
            pool->winner[i] = (uint32_t)best;
        } else {
            ref_set(e, y, i, sum / (double)dl2_pool_window_size(&v));
        }
    }
}

static void ref_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    const struct dl2_pool_shape *s = &pool->s;
    enum dl2_element e = pool->element;
    const size_t count = ref_pool_at(s, s->batch, 0, 0, 0, 0);
    const size_t outs = s->batch * dl2_sides_count(s->out) * s->channels;
    memset(pool->sums, 0, count * sizeof *pool->sums);
    for (size_t i = 0; i < outs; i++) {
        float g = (float)ref_get(e, dy, i);
        if (s->kind == DL2_POOL_MAX) {
            pool->sums[pool->winner[i]] += g;
            continue;
        }
        size_t n, c;
        const struct dl2_pool_window v = ref_pool_window(s, i, &n, &c);
        float share = g / (float)dl2_pool_window_size(&v);
        for (unsigned d = v.d0; d < v.d1; d++)
            for (unsigned h = v.h0; h < v.h1; h++)
                for (unsigned w = v.w0; w < v.w1; w++)
                    pool->sums[ref_pool_at(s, n, d, h, w, c)] += share;
    }
    for (size_t i = 0; i < count; i++)
        ref_set(e, dx, i, pool->sums[i]);
}

/* -- batch norm -- */

struct dl2_norm {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    enum dl2_element element;
    struct dl2_norm_shape s;
    double *mean, *scale;  /* of the last batch; scale is 1 / sqrt(var + epsilon) */
    double *sum, *product; /* of backward's gradients, over what mean is over */
    double kept[];         /* all of these */
};

static int ref_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                           struct dl2_norm **out, struct dl2_error *error)
{
    const size_t channels = shape->channels;
    struct dl2_norm *norm = ref_plan(sizeof *norm, 4 * channels, "batch norm", error);
    if (!norm)
        return DL2_ERR_MEMORY;
    norm->device = device;
    norm->element = device->element;
    norm->s = *shape;
    norm->mean = norm->kept;
    norm->scale = norm->kept + channels;
    norm->sum = norm->kept + 2 * channels;
    norm->product = norm->kept + 3 * channels;
    *out = norm;
    return DL2_OK;
}

static void ref_norm_apply(const struct dl2_norm *norm, const void *x, const void *residual,
                           const float *gamma, const float *beta, void *y)
{
    const struct dl2_norm_shape *s = &norm->s;
    enum dl2_element e = norm->element;
    for (size_t i = 0; i < s->rows * s->channels; i++) {
        size_t c = i % s->channels;
        double value = gamma[c] * (ref_get(e, x, i) - norm->mean[c]) * norm->scale[c] + beta[c];
        if (residual)
            value += ref_get(e, residual, i);
        ref_set(e, y, i, ref_activated(s->activation, value));
    }
}

static void ref_norm_train(struct dl2_norm *norm, const void *x, const void *residual,
                           const float *gamma, const float *beta, float *running_mean,
                           float *running_var, void *y)
{
    const struct dl2_norm_shape *s = &norm->s;
    enum dl2_element e = norm->element;
    double rows = (double)s->rows;
    for (size_t c = 0; c < s->channels; c++) {
        double sum = 0, squares = 0;
        for (size_t r = 0; r < s->rows; r++)
            sum += ref_get(e, x, r * s->channels + c);
        double mean = sum / rows;
        for (size_t r = 0; r < s->rows; r++) {
            double d = ref_get(e, x, r * s->channels + c) - mean;
            squares += d * d;
        }
        norm->mean[c] = mean;
        norm->scale[c] = squares / rows; /* for now */
    }
    if (s->synchronized) {
        struct dl2_device *device = norm->device;
        dl2_sync_moments(device->world, norm->mean, running_mean, s->channels, &device->failure);
        rows *= dl2_world_size(device->world);
    }
    for (size_t c = 0; c < s->channels; c++) {
        double mean = norm->mean[c], var = norm->scale[c];
        double unbiased = rows > 1 ? var * rows / (rows - 1) : var;
        norm->scale[c] = 1 / sqrt(var + s->epsilon);
        running_mean[c] = (float)((1 - s->momentum) * running_mean[c] + s->momentum * mean);
        running_var[c] = (float)((1 - s->momentum) * running_var[c] + s->momentum * unbiased);
    }
    ref_norm_apply(norm, x, residual, gamma, beta, y);
}

static void ref_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                          const float *gamma, const float *beta, const float *running_mean,
                          const float *running_var, void *y)
{
    for (size_t c = 0; c < norm->s.channels; c++) {
        norm->mean[c] = running_mean[c];
        norm->scale[c] = 1 / sqrt((double)running_var[c] + norm->s.epsilon);
    }
    ref_norm_apply(norm, x, residual, gamma, beta, y);
}

static void ref_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                              const void *dy2, const float *gamma, const float *beta, void *dx,
                              void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    const struct dl2_norm_shape *s = &norm->s;
    enum dl2_element e = norm->element;
    double rows = (double)s->rows;
    (void)beta;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t c = 0; c < s->channels; c++) {
            double mean = norm->mean[c], scale = norm->scale[c], sum = 0, product = 0;
            for (size_t r = 0; r < s->rows; r++) {
                size_t i = r * s->channels + c;
                double g = ref_get(e, dy, i) + (dy2 ? ref_get(e, dy2, i) : 0);
                g = ref_passed(s->activation, ref_get(e, y, i), g);
                double normal = (ref_get(e, x, i) - mean) * scale;
                if (!pass) {
                    sum += g;
                    product += g * normal;
                    continue;
                }
                /* dx last: it may lie where dy or x do. */
                if (dresidual)
                    ref_set(e, dresidual, i, g);
                ref_set(e, dx, i,
                        gamma[c] * scale *
                            (g - norm->sum[c] / rows - normal * norm->product[c] / rows));
            }
            if (pass)
                continue;
            norm->sum[c] = sum;
            norm->product[c] = product;
            ref_put(dgamma + c, product, accumulate);
            ref_put(dbeta + c, sum, accumulate);
        }
        if (!pass && s->synchronized) {
            struct dl2_device *device = norm->device;
            dl2_world_sum(device->world, norm->sum, 2 * (size_t)s->channels, &device->failure);
            rows *= dl2_world_size(device->world);
        }
    }
}

/* -- layer norm -- */

struct dl2_layer_norm {
    struct dl2_device_plan plan;
    enum dl2_element element;
    struct dl2_layer_norm_shape s;
    double *mean, *scale;   /* [rows], of the last forward; scale is 1 / sqrt(var + epsilon) */
    double *dgamma, *dbeta; /* [channels] */
    double kept[];          /* all of these */
};

static int ref_layer_norm_create(struct dl2_device *device,
                                 const struct dl2_layer_norm_shape *shape,
                                 struct dl2_layer_norm **out, struct dl2_error *error)
{
    const size_t rows = shape->rows, channels = shape->channels;
    struct dl2_layer_norm *norm =
        ref_plan(sizeof *norm, 2 * (rows + channels), "a layer norm", error);
    if (!norm)
        return DL2_ERR_MEMORY;
    norm->element = device->element;
    norm->s = *shape;
    norm->mean = norm->kept;
    norm->scale = norm->kept + rows;
    norm->dgamma = norm->kept + 2 * rows;
    norm->dbeta = norm->kept + 2 * rows + channels;
    *out = norm;
    return DL2_OK;
}

static void ref_layer_norm_forward(struct dl2_layer_norm *norm, const void *x, const float *gamma,
                                   const float *beta, void *y)
{
    const enum dl2_element e = norm->element;
    const size_t channels = norm->s.channels;
    for (size_t r = 0; r < norm->s.rows; r++) {
        const size_t at = r * channels;
        double mean = 0, var = 0;
        for (size_t c = 0; c < channels; c++)
            mean += ref_get(e, x, at + c);
        mean /= (double)channels;
        for (size_t c = 0; c < channels; c++)
            var += pow(ref_get(e, x, at + c) - mean, 2) / (double)channels;
        norm->mean[r] = mean;
        norm->scale[r] = 1 / sqrt(var + norm->s.epsilon);
        for (size_t c = 0; c < channels; c++)
            ref_set(e, y, at + c,
                    gamma[c] * (ref_get(e, x, at + c) - mean) * norm->scale[r] + beta[c]);
    }
}

/* With n = (x - mean) * scale and g = gamma * dy: dx = scale * (g - mean(g) - n * mean(g * n)). */
static void ref_layer_norm_backward(struct dl2_layer_norm *norm, const void *x, const void *dy,
                                    const float *gamma, void *dx, float *dgamma, float *dbeta,
                                    bool accumulate)
{
    const enum dl2_element e = norm->element;
    const size_t channels = norm->s.channels;
    memset(norm->dgamma, 0, channels * sizeof *norm->dgamma);
    memset(norm->dbeta, 0, channels * sizeof *norm->dbeta);
    for (size_t r = 0; r < norm->s.rows; r++) {
        const size_t at = r * channels;
        const double mean = norm->mean[r], scale = norm->scale[r];
        double sum = 0, product = 0;
        for (size_t c = 0; c < channels; c++) {
            const double n = (ref_get(e, x, at + c) - mean) * scale, d = ref_get(e, dy, at + c);
            sum += gamma[c] * d / (double)channels;
            product += gamma[c] * d * n / (double)channels;
            norm->dgamma[c] += d * n;
            norm->dbeta[c] += d;
        }
        for (size_t c = 0; c < channels; c++) {
            const double n = (ref_get(e, x, at + c) - mean) * scale;
            ref_set(e, dx, at + c, scale * (gamma[c] * ref_get(e, dy, at + c) - sum - n * product));
        }
    }
    for (size_t c = 0; c < channels; c++) {
        ref_put(dgamma + c, norm->dgamma[c], accumulate);
        ref_put(dbeta + c, norm->dbeta[c], accumulate);
    }
}

/* -- attention -- */

struct dl2_attention {
    struct dl2_device_plan plan;
    enum dl2_element element;
    struct dl2_attention_shape s;
    double *softmax; /* [batch][heads][tokens][tokens] of the last forward */
    double row[];    /* [tokens], and then the softmax */
};

static int ref_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                                struct dl2_attention **out, struct dl2_error *error)
{
    size_t scores;
    DL2_TRY(dl2_attention_shape_check(shape, &scores, error));
    struct dl2_attention *attention =
        ref_plan(sizeof *attention, shape->tokens + scores, "attention", error);
    if (!attention)
        return DL2_ERR_MEMORY;
    attention->element = device->element;
    attention->s = *shape;
    attention->softmax = attention->row + shape->tokens;
    *out = attention;
    return DL2_OK;
}

/* A head of a sample. */
struct head {
    size_t q, k, v, y; /* where its first token's begin, in qkv and in y */
    size_t step, size; /* elements from token to token in qkv, and of a token */
    double *softmax;   /* [tokens][tokens] */
};

static struct head ref_head_of(const struct dl2_attention *attention, unsigned sample,
                               unsigned number)
{
    const struct dl2_attention_shape *s = &attention->s;
    const size_t tokens = s->tokens, channels = s->channels, size = channels / s->heads;
    const size_t from = sample * tokens * 3 * channels + number * size;
    return (struct head){
        .q = from,
        .k = from + channels,
        .v = from + 2 * channels,
        .y = sample * tokens * channels + number * size,
        .step = 3 * channels,
        .size = size,
        .softmax = attention->softmax + ((size_t)sample * s->heads + number) * tokens * tokens,
    };
}

static void ref_head_forward(struct dl2_attention *attention, const struct head *h, const void *qkv,
                             void *y)
{
    const enum dl2_element e = attention->element;
    const size_t tokens = attention->s.tokens;
    for (size_t i = 0; i < tokens; i++) {
        double *p = h->softmax + i * tokens, most = -INFINITY, sum = 0;
        for (size_t j = 0; j < tokens; j++) {
            p[j] = 0;
            for (size_t c = 0; c < h->size; c++)
                p[j] += ref_get(e, qkv, h->q + i * h->step + c) *
                        ref_get(e, qkv, h->k + j * h->step + c);
            p[j] /= sqrt((double)h->size);
            most = fmax(most, p[j]);
        }
        for (size_t j = 0; j < tokens; j++)
            sum += p[j] = exp(p[j] - most);
        for (size_t j = 0; j < tokens; j++)
            p[j] /= sum;
        for (size_t c = 0; c < h->size; c++) {
            double value = 0;
            for (size_t j = 0; j < tokens; j++)
                value += p[j] * ref_get(e, qkv, h->v + j * h->step + c);
            ref_set(e, y, h->y + i * attention->s.channels + c, value);
        }
    }
}

static void ref_attention_forward(struct dl2_attention *attention, const void *qkv, void *y)
{
    for (unsigned b = 0; b < attention->s.batch; b++)
        for (unsigned n = 0; n < attention->s.heads; n++) {
            const struct head h = ref_head_of(attention, b, n);
            ref_head_forward(attention, &h, qkv, y);
        }
}

/* The softmax is turned into the gradient of the scores, in place. */
static void ref_head_backward(struct dl2_attention *attention, const struct head *h,
                              const void *qkv, const void *dy, void *dqkv)
{
    const enum dl2_element e = attention->element;
    const size_t tokens = attention->s.tokens, channels = attention->s.channels;
    double *p = h->softmax;
    for (size_t j = 0; j < tokens; j++)
        for (size_t c = 0; c < h->size; c++) {
            double dv = 0;
            for (size_t i = 0; i < tokens; i++)
                dv += p[i * tokens + j] * ref_get(e, dy, h->y + i * channels + c);
            ref_set(e, dqkv, h->v + j * h->step + c, dv);
        }
    for (size_t i = 0; i < tokens; i++) {
        double sum = 0;
        for (size_t j = 0; j < tokens; j++) {
            double dp = 0;
            for (size_t c = 0; c < h->size; c++)
                dp += ref_get(e, dy, h->y + i * channels + c) *
                      ref_get(e, qkv, h->v + j * h->step + c);
            attention->row[j] = dp;
            sum += dp * p[i * tokens + j];
        }
        for (size_t j = 0; j < tokens; j++)
            p[i * tokens + j] *= (attention->row[j] - sum) / sqrt((double)h->size);
    }
    for (size_t i = 0; i < tokens; i++)
        for (size_t c = 0; c < h->size; c++) {
            double dq = 0, dk = 0;
            for (size_t j = 0; j < tokens; j++) {
                dq += p[i * tokens + j] * ref_get(e, qkv, h->k + j * h->step + c);
                dk += p[j * tokens + i] * ref_get(e, qkv, h->q + j * h->step + c);
            }
            ref_set(e, dqkv, h->q + i * h->step + c, dq);
            ref_set(e, dqkv, h->k + i * h->step + c, dk);
        }
}

static void ref_attention_backward(struct dl2_attention *attention, const void *qkv, const void *y,
                                   const void *dy, void *dqkv)
{
    (void)y;
    for (unsigned b = 0; b < attention->s.batch; b++)
        for (unsigned n = 0; n < attention->s.heads; n++) {
            const struct head h = ref_head_of(attention, b, n);
            ref_head_backward(attention, &h, qkv, dy, dqkv);
        }
}

/* -- tokens -- */

static void ref_tokens_forward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                               const void *x, const float *class_token, const float *positions,
                               void *y)
{
    const enum dl2_element e = device->element;
    const size_t channels = shape->channels;
    for (size_t b = 0, from = 0, to = 0; b < shape->batch; b++)
        for (size_t t = 0; t < shape->tokens; t++)
            for (size_t c = 0; c < channels; c++)
                ref_set(e, y, to++,
                        (t ? ref_get(e, x, from++) : class_token[c]) + positions[t * channels + c]);
}

static void ref_tokens_backward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                                const void *dy, void *dx, float *dclass_token, float *dpositions,
                                bool accumulate)
{
    const enum dl2_element e = device->element;
    const size_t channels = shape->channels, size = shape->tokens * channels;
    for (size_t i = 0; i < size; i++) {
        double sum = 0;
        for (size_t b = 0; b < shape->batch; b++) {
            const double d = ref_get(e, dy, b * size + i);
            sum += d;
            if (i >= channels)
                ref_set(e, dx, b * (size - channels) + i - channels, d);
        }
        ref_put(dpositions + i, sum, accumulate);
        if (i < channels)
            ref_put(dclass_token + i, sum, accumulate);
    }
}

/* -- elementwise -- */

static void ref_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                                  const void *y, const void *dy, void *dx, size_t count)
{
    enum dl2_element e = device->element;
    for (size_t i = 0; i < count; i++)
        ref_set(e, dx, i, ref_passed(activation, ref_get(e, y, i), ref_get(e, dy, i)));
}

static double ref_sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static void ref_smooth(struct dl2_device *device, enum dl2_smooth kind, const void *x, void *y,
                       size_t count)
{
    const enum dl2_element e = device->element;
    for (size_t i = 0; i < count; i++) {
        const double v = ref_get(e, x, i);
        ref_set(e, y, i, kind == DL2_GELU ? v / 2 * (1 + erf(v / sqrt(2))) : v * ref_sigmoid(v));
    }
}

static void ref_smooth_backward(struct dl2_device *device, enum dl2_smooth kind, const void *x,
                                const void *dy, void *dx, size_t count)
{
    const enum dl2_element e = device->element;
    for (size_t i = 0; i < count; i++) {
        const double v = ref_get(e, x, i), density = exp(-v * v / 2) / sqrt(2 * M_PI);
        const double gelu = (1 + erf(v / sqrt(2))) / 2 + v * density;
        const double s = ref_sigmoid(v), silu = s + v * s * (1 - s);
        ref_set(e, dx, i, ref_get(e, dy, i) * (kind == DL2_GELU ? gelu : silu));
    }
}

static void ref_add(struct dl2_device *device, const void *a, const void *b,
                    enum dl2_activation activation, void *y, size_t count)
{
    enum dl2_element e = device->element;
    for (size_t i = 0; i < count; i++)
        ref_set(e, y, i, ref_activated(activation, ref_get(e, a, i) + ref_get(e, b, i)));
}

static void ref_dropout(struct dl2_device *device, const void *x, void *y, size_t count,
                        size_t each, float rate, uint64_t seed, uint64_t layer)
{
    enum dl2_element e = device->element;
    float scale = 1 / (1 - rate);
    struct dl2_random random;
    bool kept = false;
    for (size_t i = 0; i < count; i++) {
        if (i % (4096 * each) == 0)
            dl2_random_init(&random, seed, DL2_RANDOM_DROPOUT, device->params.step,
                            (layer << 24) + i / each / 4096);
        if (i % each == 0)
            kept = dl2_random_u32(&random) >= rate * 4294967296.0;
        ref_set(e, y, i, kept ? (float)ref_get(e, x, i) * scale : 0);
    }
}

static void ref_gate(struct dl2_device *device, const struct dl2_gate_shape *shape, const void *x,
                     const void *gate, void *y)
{
    const enum dl2_element e = device->element;
    const size_t channels = shape->channels, size = shape->rows * channels;
    for (size_t i = 0; i < shape->batch * size; i++) {
        const double open = ref_sigmoid(ref_get(e, gate, i / size * channels + i % channels));
        ref_set(e, y, i, ref_get(e, x, i) * open);
    }
}

static void ref_gate_backward(struct dl2_device *device, const struct dl2_gate_shape *shape,
                              const void *x, const void *gate, const void *dy, void *dx,
                              void *dgate)
{
    const enum dl2_element e = device->element;
    const size_t channels = shape->channels;
    for (size_t g = 0; g < shape->batch * channels; g++) {
        const double open = ref_sigmoid(ref_get(e, gate, g));
        const size_t first = g / channels * shape->rows * channels + g % channels;
        double sum = 0;
        for (size_t r = 0; r < shape->rows; r++) {
            const size_t i = first + r * channels;
            sum += ref_get(e, dy, i) * ref_get(e, x, i);
            ref_set(e, dx, i, ref_get(e, dy, i) * open);
        }
        ref_set(e, dgate, g, sum * open * (1 - open));
    }
}

/* -- ingest -- */

struct dl2_ingest {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    struct dl2_ingest_shape s;
};

static int ref_ingest_create(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                             struct dl2_ingest **out, struct dl2_error *error)
{
    struct dl2_ingest *ingest = ref_plan(sizeof *ingest, 0, "ingest", error);
    if (!ingest)
        return DL2_ERR_MEMORY;
    ingest->device = device;
    ingest->s = *shape;
    *out = ingest;
    return DL2_OK;
}

static void ref_ingest_run(struct dl2_ingest *ingest, const void *from, const uint32_t *partner,
                           void *y)
{
    const struct dl2_ingest_shape *s = &ingest->s;
    const uint8_t *images = from;
    float lambda = ingest->device->params.lambda;
    size_t size = (size_t)s->height * s->width * s->channels;
    if (s->floats) {
        dl2_elements_from_floats(ingest->device->element, from, y, size * s->batch);
        return;
    }
    for (size_t n = 0; n < s->batch; n++)
        for (size_t i = 0; i < size; i++) {
            size_t c = i % s->channels;
            double value = images[n * size + i];
            if (partner)
                value = lambda * value + (1 - lambda) * (double)images[partner[n] * size + i];
            ref_set(ingest->device->element, y, n * size + i, (value - s->mean[c]) / s->std[c]);
        }
}

/* -- loss -- */

struct dl2_loss {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    struct dl2_loss_shape s;
    double logits[]; /* classes */
};

static int ref_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                           struct dl2_loss **out, struct dl2_error *error)
{
    struct dl2_loss *loss = ref_plan(sizeof *loss, shape->classes, "the loss", error);
    if (!loss)
        return DL2_ERR_MEMORY;
    loss->device = device;
    loss->s = *shape;
    *out = loss;
    return DL2_OK;
}

static bool ref_counts(const int32_t *labels, const uint32_t *partner, size_t n)
{
    return labels[n] >= 0 && (!partner || labels[partner[n]] >= 0);
}

static void ref_loss_run(struct dl2_loss *loss, const void *from, const int32_t *labels,
                         const uint32_t *partner, float *losses, void *dlogits,
                         struct dl2_loss_sums *sums)
{
    const struct dl2_step_params *params = &loss->device->params;
    enum dl2_element e = loss->device->element;
    double scale = params->scale * ((struct ref *)loss->device)->scale.scale;
    size_t batch = loss->s.batch, classes = loss->s.classes, counted = 0;
    double smoothing = loss->s.smoothing, own = partner ? params->lambda : 1;
    for (size_t n = 0; n < batch; n++)
        counted += ref_counts(labels, partner, n);
    for (size_t n = 0; n < batch; n++) {
        bool count = ref_counts(labels, partner, n);
        double *logits = loss->logits, value = 0, total = 0;
        int32_t label = count ? labels[n] : 0,
                other = count && partner ? labels[partner[n]] : label;
        size_t rank = 0;
        bool unordered = false;
        for (size_t k = 0; k < classes; k++)
            logits[k] = ref_get(e, from, n * classes + k);
        double highest = logits[0];
        for (size_t k = 0; k < classes; k++) {
            highest = logits[k] > highest ? logits[k] : highest;
            rank += logits[k] > logits[label] || (logits[k] == logits[label] && k < (size_t)label);
            unordered |= isnan(logits[k]) != 0;
        }
        rank = unordered ? DL2_RANK_NAN : rank;
        for (size_t k = 0; k < classes; k++)
            total += exp(logits[k] - highest);
        for (size_t k = 0; k < classes; k++) {
            double log_p = logits[k] - highest - log(total);
            double target = smoothing / (double)classes;
            target += (1 - smoothing) * own * (k == (size_t)label);
            target += (1 - smoothing) * (1 - own) * (k == (size_t)other);
            value -= target * log_p;
            if (dlogits)
                ref_set(e, dlogits, n * classes + k,
                        count ? scale / (double)counted * (exp(log_p) - target) : 0);
        }
        if (losses)
            losses[n] = count ? (float)value : 0;
        if (count) {
            sums->loss += value;
            sums->counted++;
            sums->top1 += rank < 1;
            sums->top5 += rank < 5;
        }
    }
}

/* -- optimizer -- */

static void ref_check_gradients(struct dl2_device *device, const float *gradient, size_t count)
{
    struct ref *ref = (struct ref *)device;
    ref->finite = true;
    for (size_t i = 0; device->element == DL2_ELEMENT_F16 && i < count; i++)
        ref->finite &= isfinite(gradient[i]) != 0;
}

static void ref_clip_gradients(struct dl2_device *device, float *gradient, size_t count,
                               float limit)
{
    const struct ref *ref = (struct ref *)device;
    const double share = 1 / (ref->scale.scale * dl2_world_size(device->world));
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)gradient[i] * gradient[i];
    const double factor = limit / (sqrt(squares) * share + 1e-6);
    for (size_t i = 0; !(factor >= 1) && i < count; i++)
        gradient[i] *= (float)factor;
}

static void ref_optimizer_step(struct dl2_device *device, const struct dl2_optimizer_step *step)
{
    const struct ref *ref = (struct ref *)device;
    const struct dl2_step_params *params = &device->params;
    const float rate = params->rate, decay = step->decays ? params->weight_decay : 0;
    const float beta1 = params->momentum, beta2 = params->beta2, epsilon = params->epsilon;
    const float share = (float)(1 / (ref->scale.scale * dl2_world_size(device->world)));
    const double t = (double)(params->update - ref->scale.skipped);
    const float correction1 = (float)(1 - pow(beta1, t)), correction2 = (float)(1 - pow(beta2, t));
    for (size_t i = 0; ref->finite && i < step->count; i++) {
        float *w = &step->weights[i], *m = &step->momentum[i], *v = step->second_moment;
        float g = step->gradient[i] * share;
        if (step->kind != DL2_ADAMW)
            g += decay * *w;
        if (v) {
            v += i;
            *v = beta2 * *v + (1 - beta2) * g * g;
        }
        switch (step->kind) {
        case DL2_SGD:
            *m = beta1 * *m + g;
            *w -= rate * (step->nesterov ? g + beta1 * *m : *m);
            break;
        case DL2_ADAMW:
            *m += (1 - beta1) * (g - *m);
            *w -= rate * (decay * *w + *m / correction1 / (sqrtf(*v / correction2) + epsilon));
            break;
        case DL2_RMSPROP:
            *m = beta1 * *m + g / (sqrtf(*v) + epsilon);
            *w -= rate * *m;
            break;
        }
        if (step->low_precision)
            ref_set(device->element, step->low_precision, i, *w);
    }
}

static void ref_end_update(struct dl2_device *device)
{
    struct ref *ref = (struct ref *)device;
    struct dl2_loss_scale *scale = &ref->scale;
    if (device->element != DL2_ELEMENT_F16)
        return;
    scale->skipped += !ref->finite;
    scale->good = ref->finite ? scale->good + 1 : 0;
    if (ref->dynamic && !ref->finite)
        scale->scale /= 2;
    if (ref->dynamic && scale->good == 2000) {
        scale->scale *= 2;
        scale->good = 0;
    }
    ref->finite = true;
}

static void ref_move_average(struct dl2_device *device, float *average, const float *values,
                             size_t count)
{
    float moves = 1 - device->params.average_decay;
    for (size_t i = 0; i < count; i++)
        average[i] += moves * (values[i] - average[i]);
}

static void ref_convert_weights(struct dl2_device *device, const float *weights,
                                void *low_precision, size_t count)
{
    dl2_elements_from_floats(device->element, weights, low_precision, count);
}

static int ref_get_loss_scale(struct dl2_device *device, struct dl2_loss_scale *scale,
                              struct dl2_error *error)
{
    (void)error;
    *scale = ((struct ref *)device)->scale;
    return DL2_OK;
}

static int ref_set_loss_scale(struct dl2_device *device, const struct dl2_loss_scale *scale,
                              struct dl2_error *error)
{
    (void)error;
    ((struct ref *)device)->scale = *scale;
    return DL2_OK;
}

static int ref_open(const struct dl2_device_options *options, struct dl2_device **out,
                    struct dl2_error *error);

extern const struct dl2_device_class dl2_device_ref;
const struct dl2_device_class dl2_device_ref = {
    .name = "ref",
    .summary = "plain C on one thread, the reference that other devices are tested against",
    .version = ref_version,
    .open = ref_open,
    .close = ref_close,
    .alloc = dl2_host_alloc,
    .free = dl2_host_free,
    .upload = ref_copy,
    .wait_uploads = dl2_host_wait_uploads,
    .download = dl2_host_download,
    .copy = ref_copy,
    .zero = ref_zero,
    .sync = dl2_host_sync,
    .set_step_params = dl2_host_set_step_params,
    .all_reduce = ref_all_reduce,
    .all_reduce_wait = ref_all_reduce_wait,
    .conv_create = ref_conv_create,
    .conv_forward = ref_conv_forward,
    .conv_backward_data = ref_conv_backward_data,
    .conv_backward_weights = ref_conv_backward_weights,
    .linear_create = ref_linear_create,
    .linear_forward = ref_linear_forward,
    .linear_backward_data = ref_linear_backward_data,
    .linear_backward_weights = ref_linear_backward_weights,
    .pool_create = ref_pool_create,
    .pool_forward = ref_pool_forward,
    .pool_backward = ref_pool_backward,
    .norm_create = ref_norm_create,
    .norm_train = ref_norm_train,
    .norm_eval = ref_norm_eval,
    .norm_backward = ref_norm_backward,
    .layer_norm_create = ref_layer_norm_create,
    .layer_norm_forward = ref_layer_norm_forward,
    .layer_norm_backward = ref_layer_norm_backward,
    .attention_create = ref_attention_create,
    .attention_forward = ref_attention_forward,
    .attention_backward = ref_attention_backward,
    .tokens_forward = ref_tokens_forward,
    .tokens_backward = ref_tokens_backward,
    .activate_backward = ref_activate_backward,
    .smooth = ref_smooth,
    .smooth_backward = ref_smooth_backward,
    .add = ref_add,
    .dropout = ref_dropout,
    .gate = ref_gate,
    .gate_backward = ref_gate_backward,
    .ingest_create = ref_ingest_create,
    .ingest_run = ref_ingest_run,
    .loss_create = ref_loss_create,
    .loss_run = ref_loss_run,
    .dice_create = dl2_ref_dice_create,
    .dice_run = dl2_ref_dice_run,
    .confusion = dl2_host_confusion,
    .add_bias = dl2_ref_add_bias,
    .sum_rows = dl2_ref_sum_rows,
    .copy_columns = dl2_ref_copy_columns,
    .check_gradients = ref_check_gradients,
    .clip_gradients = ref_clip_gradients,
    .optimizer_step = ref_optimizer_step,
    .end_update = ref_end_update,
    .move_average = ref_move_average,
    .convert_weights = ref_convert_weights,
    .get_loss_scale = ref_get_loss_scale,
    .set_loss_scale = ref_set_loss_scale,
};

static int ref_open(const struct dl2_device_options *options, struct dl2_device **out,
                    struct dl2_error *error)
{
    enum dl2_precision precision = options ? options->precision : DL2_PRECISION_FP32;
    bool bf16 = precision == DL2_PRECISION_BF16, fp16 = precision == DL2_PRECISION_FP16;
    if (options) {
        struct dl2_device_options rest = *options;
        rest.precision = bf16 || fp16 ? DL2_PRECISION_FP32 : precision;
        DL2_TRY(dl2_device_check_plain(&dl2_device_ref, &rest, error));
    }
    struct ref *ref = dl2_calloc(1, sizeof *ref);
    if (!ref)
        return dl2_error_memory(error, "device ref");
    ref->base.ops = &dl2_device_ref;
    ref->base.element = bf16 ? DL2_ELEMENT_BF16 : fp16 ? DL2_ELEMENT_F16 : DL2_ELEMENT_F32;
    ref->base.staging = 1;
    ref->base.world = options ? options->world : NULL;
    ref->finite = true;
    ref->dynamic = fp16 && !(options->loss_scale > 0);
    ref->scale.scale = !fp16 ? 1 : ref->dynamic ? 65536 : options->loss_scale;
    int status = DL2_OK;
    if (ref->base.world)
        status = dl2_reducer_start(ref->base.world, &ref->reducer, error);
    if (status < 0) {
        free(ref);
        return status;
    }
    *out = &ref->base;
    return DL2_OK;
}
