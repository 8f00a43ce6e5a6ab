/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled once per SIMD level with DL2_CPU_KERNELS naming the table; plain C that compilers
 * vectorize. Loops run over tiles that stay in the first-level cache, so a kernel may take several
 * simple passes over a tile and still touch memory once.
 */
#include "device/cpu_kernels.h"

#include <math.h>

#ifndef DL2_CPU_KERNELS
#define DL2_CPU_KERNELS      dl2_cpu_kernels_c
#define DL2_CPU_KERNELS_NAME "c"
#endif

enum {
    TILE = 256,
    FLUSH = 32, /* float sums go into double ones after so many rows */
};

/* Rows of `period` elements, a tile of columns at a time; each call gets a tile of one row. */
static size_t tile_width(size_t column, size_t period)
{
    return period - column < TILE ? period - column : TILE;
}

static void norm_sums(const float *x, size_t count, const float *shift, size_t period, double *sum,
                      double *squares)
{
    for (size_t column = 0; column < period; column += TILE) {
        size_t width = tile_width(column, period);
        float s[TILE], q[TILE];
        unsigned rows = 0;
        for (size_t i = 0; i < width; i++)
            s[i] = q[i] = 0;
        for (size_t at = column; at < count; at += period) {
            size_t n = count - at < width ? count - at : width;
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                float d = x[at + i] - shift[column + i];
                s[i] += d;
                q[i] += d * d;
            }
            if (++rows < FLUSH && at + period < count)
                continue;
            rows = 0;
            for (size_t i = 0; i < width; i++) {
                sum[column + i] += (double)s[i];
                squares[column + i] += (double)q[i];
                s[i] = q[i] = 0;
            }
        }
    }
}

/*
 * exp(x) for x <= 0: 2^n * exp(r) with n the integer nearest to x / log(2), whose bits a large
 * float's addition leaves in its mantissa; exp(r) = 1 + r + r^2 * P(r), where P is the polynomial
 * of degree 4 of the least relative error (Remez's algorithm; 3.3e-9). In floats the error is at
 * most 9e-8 down to exp(-87), and 0 below that, where floats begin to lose digits. Returns
 * exp(r) - 1, and 2^n in *power.
 */
static inline float exponential_parts(float x, float *power)
{
    union {
        float number;
        uint32_t bits;
    } shifted = {.number = x * 1.44269504f + 0x1.8p23f};
    const float n = shifted.number - 0x1.8p23f;
    const float r = (x - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f; /* log(2) in two pieces */
    float p = 0.001381314483f;
    p = p * r + 0.008369418830f;
    p = p * r + 0.041668456783f;
    p = p * r + 0.166665147915f;
    p = p * r + 0.499999930507f;
    shifted.bits = (shifted.bits << 23) + 0x3f800000;
    *power = shifted.number;
    return r + r * r * p;
}

static inline float exponential(float x)
{
    float power;
    const float more = exponential_parts(x, &power);
    return x < -87 ? 0 : (1 + more) * power;
}

/* exp(x) - 1 below 0, x above; near 0 without loss of digits. NaN stays NaN. */
static inline float elu(float x)
{
    const float low = x > 0 ? 0 : x;
    float power;
    const float more = exponential_parts(low, &power);
    const float below = low < -87 ? -1 : more * power + (power - 1);
    return x > 0 ? x : below;
}

/* So written that NaN stays NaN. */
static inline float held(float value, float limit)
{
    value = 0 > value ? 0 : value;
    return limit < value ? limit : value;
}

static void norm_apply(const float *x, const float *residual, size_t count, const float *mean,
                       const float *a, const float *b, size_t period, float limit, float *y)
{
    for (size_t at = 0; at < count; at += period) {
        size_t n = count - at < period ? count - at : period;
        const float *in = x + at, *more = residual ? residual + at : NULL;
        float *out = y + at;
        if (more && limit > 0) {
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                out[i] = held(a[i] * (in[i] - mean[i]) + b[i] + more[i], limit);
        } else if (limit > 0) {
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                out[i] = held(a[i] * (in[i] - mean[i]) + b[i], limit);
        } else if (limit < 0) {
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                out[i] = elu(a[i] * (in[i] - mean[i]) + b[i] + (more ? more[i] : 0));
        } else {
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                out[i] = a[i] * (in[i] - mean[i]) + b[i] + (more ? more[i] : 0);
        }
    }
}

static void activate_backward(const float *y, const float *dy, float *dx, size_t count, float limit)
{
    if (limit < 0) {
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            dx[i] = y[i] > 0 ? dy[i] : dy[i] * (y[i] + 1);
    } else {
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            dx[i] = y[i] > 0 && y[i] < limit ? dy[i] : 0;
    }
}

/* The masked gradient of up to a tile at `at`, which is `column` in the period; in `tile` or in
 * place. */
static const float *masked(const struct dl2_masked *gradient, size_t at, size_t column, size_t n,
                           float *tile)
{
    const float *g = gradient->dy + at;
    const float limit = gradient->limit;
    if (gradient->dy2) {
        const float *g2 = gradient->dy2 + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            tile[i] = g[i] + g2[i];
        g = tile;
    }
    if (gradient->mask == DL2_MASK_X) {
        const float *x = gradient->x + at, *mean = gradient->mean + column;
        const float *a = gradient->a + column, *b = gradient->b + column;
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            float v = a[i] * (x[i] - mean[i]) + b[i];
            tile[i] = v > 0 && v < limit ? g[i] : 0;
        }
        g = tile;
    } else if (gradient->mask == DL2_MASK_Y) {
        activate_backward(gradient->y + at, g, tile, n, limit);
        g = tile;
    }
    return g;
}

static void norm_backward_sums(const struct dl2_masked *gradient, size_t count, size_t period,
                               double *sum, double *product, float *out)
{
    for (size_t column = 0; column < period; column += TILE) {
        size_t width = tile_width(column, period);
        float s[TILE], q[TILE], tile[TILE];
        unsigned rows = 0;
        for (size_t i = 0; i < width; i++)
            s[i] = q[i] = 0;
        for (size_t at = column; at < count; at += period) {
            size_t n = count - at < width ? count - at : width;
            const float *g = masked(gradient, at, column, n, tile);
            const float *x = gradient->x + at, *mean = gradient->mean + column;
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                s[i] += g[i];
                q[i] += g[i] * (x[i] - mean[i]);
            }
            if (out) {
#pragma omp simd
                for (size_t i = 0; i < n; i++)
                    out[at + i] = g[i];
            }
            if (++rows < FLUSH && at + period < count)
                continue;
            rows = 0;
            for (size_t i = 0; i < width; i++) {
                sum[column + i] += (double)s[i];
                product[column + i] += (double)q[i];
                s[i] = q[i] = 0;
            }
        }
    }
}

static void norm_backward_data(const struct dl2_masked *gradient, size_t count, const float *p,
                               const float *q, const float *r, size_t period, float *dx)
{
    for (size_t row = 0; row < count; row += period)
        for (size_t column = 0; column < period && row + column < count; column += TILE) {
            size_t at = row + column, n = tile_width(column, period);
            n = count - at < n ? count - at : n;
            float tile[TILE];
            const float *g = masked(gradient, at, column, n, tile);
            const float *x = gradient->x + at, *mean = gradient->mean + column;
            float *to = dx + at;
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                to[i] = p[column + i] * g[i] + (q[column + i] * (x[i] - mean[i]) + r[column + i]);
        }
}

/* -- layer norm -- */

static void layer_norm(const float *x, size_t rows, size_t channels, float epsilon,
                       const float *gamma, const float *beta, float *mean, float *inverse, float *y)
{
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        /* With the first element taken off, rows that are all the same have no variance. */
        const float first = x[0];
        float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t c = 0; c < channels; c++)
            sum += x[c] - first;
        const float middle = first + sum / (float)channels;
#pragma omp simd reduction(+ : squares)
        for (size_t c = 0; c < channels; c++)
            squares += (x[c] - middle) * (x[c] - middle);
        const float scale = 1 / sqrtf(squares / (float)channels + epsilon);
#pragma omp simd
        for (size_t c = 0; c < channels; c++)
            y[c] = gamma[c] * ((x[c] - middle) * scale) + beta[c];
        mean[r] = middle;
        inverse[r] = scale;
    }
}

/* Some rows' part of the gradients of gamma and beta. */
static void layer_norm_sums(const float *x, const float *dy, size_t rows, size_t channels,
                            const float *mean, const float *inverse, double *dgamma, double *dbeta)
{
    for (size_t column = 0; column < channels; column += TILE) {
        size_t width = tile_width(column, channels);
        float s[TILE], q[TILE];
        for (size_t i = 0; i < width; i++)
            s[i] = q[i] = 0;
        for (size_t r = 0; r < rows; r++) {
            const float *in = x + r * channels + column, *d = dy + r * channels + column;
            const float middle = mean[r], scale = inverse[r];
#pragma omp simd
            for (size_t i = 0; i < width; i++) {
                s[i] += d[i];
                q[i] += d[i] * ((in[i] - middle) * scale);
            }
        }
        for (size_t i = 0; i < width; i++) {
            dbeta[column + i] += (double)s[i];
            dgamma[column + i] += (double)q[i];
        }
    }
}

static void layer_norm_backward(const float *x, const float *dy, size_t rows, size_t channels,
                                const float *gamma, const float *mean, const float *inverse,
                                float *dx, double *dgamma, double *dbeta)
{
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        if (r % FLUSH == 0) /* before dx, which may be dy, is written */
            layer_norm_sums(x, dy, rows - r < FLUSH ? rows - r : FLUSH, channels, mean + r,
                            inverse + r, dgamma, dbeta);
        const float middle = mean[r], scale = inverse[r];
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (size_t c = 0; c < channels; c++) {
            const float g = gamma[c] * dy[c];
            sum += g;
            product += g * ((x[c] - middle) * scale);
        }
        sum /= (float)channels;
        product /= (float)channels;
#pragma omp simd
        for (size_t c = 0; c < channels; c++)
            dx[c] = scale * (gamma[c] * dy[c] - sum - (x[c] - middle) * scale * product);
    }
}

/* -- softmax, GELU, SiLU and gates -- */

static void softmax(float *scores, size_t rows, size_t count)
{
    for (size_t r = 0; r < rows; r++, scores += count) {
        float most = scores[0], sum = 0;
#pragma omp simd reduction(max : most)
        for (size_t i = 0; i < count; i++)
            most = scores[i] > most ? scores[i] : most;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < count; i++) {
            scores[i] = exponential(scores[i] - most);
            sum += scores[i];
        }
        const float share = 1 / sum;
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            scores[i] *= share;
    }
}

static void softmax_backward(const float *softmax, float *gradient, size_t rows, size_t count)
{
    for (size_t r = 0; r < rows; r++, softmax += count, gradient += count) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < count; i++)
            sum += softmax[i] * gradient[i];
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            gradient[i] = softmax[i] * (gradient[i] - sum);
    }
}

/*
 * Phi(x), the normal distribution's share below x, by exp(-x^2 / 2). Above zero it is 1 - Phi(-x),
 * and Phi(-z) = exp(-z^2 / 2) * t * Q(t - 1/2) with t = 3 / (3 + z), where Q is the polynomial of
 * degree 8 of the least relative error for z up to 13.5 (Remez's algorithm; 4.2e-8,
 * and 3.5e-7 in floats).
 */
static inline float normal_share(float x, float bell)
{
    const float t = 3 / (3 + fabsf(x)), u = t - 0.5f;
    float q = -0.023093926449f;
    q = q * u + 0.038785207142f;
    q = q * u + 0.022978544561f;
    q = q * u - 0.073897560229f;
    q = q * u - 0.055891529880f;
    q = q * u + 0.126018411567f;
    q = q * u + 0.306692382610f;
    q = q * u + 0.339554828995f;
    q = q * u + 0.243027890068f;
    q *= bell * t;
    return x < 0 ? q : 1 - q;
}

static void gelu(const float *x, float *y, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * normal_share(x[i], exponential(x[i] * x[i] * -0.5f));
}

static void gelu_backward(const float *x, const float *dy, float *dx, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const float bell = exponential(x[i] * x[i] * -0.5f);
        /* The density is the bell over sqrt(2 pi). */
        dx[i] = dy[i] * (normal_share(x[i], bell) + x[i] * (bell * 0.398942280f));
    }
}

/* 1 / (1 + exp(-x)) */
static inline float sigmoid(float x)
{
    const float e = exponential(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static void silu(const float *x, float *y, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * sigmoid(x[i]);
}

static void silu_backward(const float *x, const float *dy, float *dx, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const float e = exponential(-fabsf(x[i])), d = 1 / (1 + e);
        /* e * d * d is the slope of the share, without 1 - 1. */
        dx[i] = dy[i] * ((x[i] < 0 ? e : 1) * d + x[i] * (e * d * d));
    }
}

static void gate(const float *x, const float *gate, size_t rows, size_t channels, float *y)
{
    for (size_t column = 0; column < channels; column += TILE) {
        const size_t width = tile_width(column, channels);
        float open[TILE];
#pragma omp simd
        for (size_t i = 0; i < width; i++)
            open[i] = sigmoid(gate[column + i]);
        for (size_t r = 0, at = column; r < rows; r++, at += channels) {
#pragma omp simd
            for (size_t i = 0; i < width; i++)
                y[at + i] = x[at + i] * open[i];
        }
    }
}

static void gate_backward(const float *x, const float *gate, const float *dy, size_t rows,
                          size_t channels, float *dx, float *dgate)
{
    for (size_t column = 0; column < channels; column += TILE) {
        const size_t width = tile_width(column, channels);
        float open[TILE], s[TILE];
        double total[TILE];
        for (size_t i = 0; i < width; i++) {
            open[i] = sigmoid(gate[column + i]);
            s[i] = 0;
            total[i] = 0;
        }
        for (size_t r = 0, at = column; r < rows; r++, at += channels) {
#pragma omp simd
            for (size_t i = 0; i < width; i++) {
                s[i] += dy[at + i] * x[at + i];
                dx[at + i] = dy[at + i] * open[i];
            }
            if ((r + 1) % FLUSH && r + 1 < rows)
                continue;
            for (size_t i = 0; i < width; i++) {
                total[i] += (double)s[i];
                s[i] = 0;
            }
        }
        for (size_t i = 0; i < width; i++)
            dgate[column + i] = (float)total[i] * open[i] * (1 - open[i]);
    }
}

/* -- elementwise -- */

static void sum_rows(const float *x, size_t rows, size_t step, size_t count, float *sum,
                     int accumulate)
{
    for (size_t column = 0; column < count; column += TILE) {
        size_t width = tile_width(column, count);
        double total[TILE];
        float s[TILE];
        for (size_t i = 0; i < width; i++) {
            total[i] = accumulate ? (double)sum[column + i] : 0;
            s[i] = 0;
        }
        for (size_t r = 0; r < rows; r++) {
            const float *in = x + r * step + column;
#pragma omp simd
            for (size_t i = 0; i < width; i++)
                s[i] += in[i];
            if ((r + 1) % FLUSH && r + 1 < rows)
                continue;
            for (size_t i = 0; i < width; i++) {
                total[i] += (double)s[i];
                s[i] = 0;
            }
        }
        for (size_t i = 0; i < width; i++)
            sum[column + i] = (float)total[i];
    }
}

static void add(const float *a, const float *b, float *y, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

static void add_relu(const float *a, const float *b, float *y, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = held(a[i] + b[i], INFINITY);
}

static void ingest(const uint8_t *x, size_t count, const float *a, const float *b, size_t period,
                   float *y)
{
    for (size_t at = 0; at < count; at += period) {
        size_t n = count - at < period ? count - at : period;
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            y[at + i] = (float)x[at + i] * a[i] + b[i];
    }
}

static void ingest_mixed(const uint8_t *x, const uint8_t *x2, float own, float other, size_t count,
                         const float *a, const float *b, size_t period, float *y)
{
    for (size_t at = 0; at < count; at += period) {
        size_t n = count - at < period ? count - at : period;
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            float v = own * (float)x[at + i] + other * (float)x2[at + i];
            y[at + i] = v * a[i] + b[i];
        }
    }
}

static void sgd(const struct dl2_cpu_update *update, float *weights, const float *gradient,
                float *momentum, size_t count)
{
    const struct dl2_cpu_update u = *update;
    const float through = u.step->nesterov ? u.beta1 : 1, direct = u.step->nesterov ? 1 : 0;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = u.share * gradient[i] + u.decay * weights[i];
        momentum[i] = u.beta1 * momentum[i] + g;
        weights[i] -= u.rate * (direct * g + through * momentum[i]);
    }
}

static void adamw(const struct dl2_cpu_update *update, float *weights, const float *gradient,
                  float *first, float *second, size_t count)
{
    const struct dl2_cpu_update u = *update;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const float g = u.share * gradient[i];
        first[i] += (1 - u.beta1) * (g - first[i]);
        second[i] = u.beta2 * second[i] + (1 - u.beta2) * g * g;
        const float step = first[i] / u.correction1;
        const float scale = sqrtf(second[i] / u.correction2) + u.epsilon;
        weights[i] -= u.rate * (u.decay * weights[i] + step / scale);
    }
}

static void rmsprop(const struct dl2_cpu_update *update, float *weights, const float *gradient,
                    float *momentum, float *second, size_t count)
{
    const struct dl2_cpu_update u = *update;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const float g = u.share * gradient[i] + u.decay * weights[i];
        second[i] = u.beta2 * second[i] + (1 - u.beta2) * g * g;
        momentum[i] = u.beta1 * momentum[i] + g / (sqrtf(second[i]) + u.epsilon);
        weights[i] -= u.rate * momentum[i];
    }
}

static void update(const struct dl2_cpu_update *u, size_t begin, size_t end)
{
    const struct dl2_optimizer_step *step = u->step;
    float *weights = step->weights + begin, *momentum = step->momentum + begin;
    const float *gradient = step->gradient + begin;
    switch (step->kind) {
    case DL2_SGD:
        sgd(u, weights, gradient, momentum, end - begin);
        break;
    case DL2_ADAMW:
        adamw(u, weights, gradient, momentum, step->second_moment + begin, end - begin);
        break;
    case DL2_RMSPROP:
        rmsprop(u, weights, gradient, momentum, step->second_moment + begin, end - begin);
        break;
    }
}

static double squares(const float *x, size_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static void multiply(float *x, size_t count, float factor)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

static void move_average(float *average, const float *values, size_t count, float moves)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        average[i] += moves * (values[i] - average[i]);
}

const struct dl2_cpu_kernels DL2_CPU_KERNELS = {
    .name = DL2_CPU_KERNELS_NAME,
    .norm_sums = norm_sums,
    .norm_apply = norm_apply,
    .norm_backward_sums = norm_backward_sums,
    .norm_backward_data = norm_backward_data,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .silu = silu,
    .silu_backward = silu_backward,
    .gate = gate,
    .gate_backward = gate_backward,
    .sum_rows = sum_rows,
    .activate_backward = activate_backward,
    .add = add,
    .add_relu = add_relu,
    .ingest = ingest,
    .ingest_mixed = ingest_mixed,
    .update = update,
    .squares = squares,
    .multiply = multiply,
    .move_average = move_average,
};
