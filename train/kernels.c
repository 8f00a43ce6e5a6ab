/*
 * Compiled once per SIMD level with DL2_KERNELS naming the table; plain C that compilers vectorise.
 * Loops run over tiles that stay in the first-level cache, so a kernel may take several simple
 * passes over a tile and still touch memory once.
 */
#include "train/kernels.h"

#ifndef DL2_KERNELS
#define DL2_KERNELS      dl2_kernels_c
#define DL2_KERNELS_NAME "c"
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

static inline float held(float value, float limit)
{
    value = value > 0 ? value : 0;
    return value < limit ? value : limit;
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
        } else {
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                out[i] = a[i] * (in[i] - mean[i]) + b[i] + (more ? more[i] : 0);
        }
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
        const float *y = gradient->y + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            tile[i] = y[i] > 0 && y[i] < limit ? g[i] : 0;
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

static void activate(const float *x, float *y, size_t count, float limit)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = held(x[i], limit);
}

static void activate_backward(const float *y, const float *dy, float *dx, size_t count, float limit)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 && y[i] < limit ? dy[i] : 0;
}

static void add(const float *a, const float *b, float *y, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
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

static void sgd(float *weights, const float *gradient, float *momentum, size_t count, float share,
                float rate, float beta, float decay, int nesterov)
{
    float through = nesterov ? beta : 1, direct = nesterov ? 1 : 0;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = share * gradient[i] + decay * weights[i];
        momentum[i] = beta * momentum[i] + g;
        weights[i] -= rate * (direct * g + through * momentum[i]);
    }
}

static void move_average(float *average, const float *values, size_t count, float moves)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        average[i] += moves * (values[i] - average[i]);
}

extern const struct dl2_kernels DL2_KERNELS;
const struct dl2_kernels DL2_KERNELS = {
    .name = DL2_KERNELS_NAME,
    .norm_sums = norm_sums,
    .norm_apply = norm_apply,
    .norm_backward_sums = norm_backward_sums,
    .norm_backward_data = norm_backward_data,
    .activate = activate,
    .activate_backward = activate_backward,
    .add = add,
    .ingest = ingest,
    .ingest_mixed = ingest_mixed,
    .sgd = sgd,
    .move_average = move_average,
};
