/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory-bound loops of the cpu device, for one thread's share of a tensor; made once for each
 * SIMD level from the same source (cpu_kernels.c). Private to the cpu device.
 *
 * Arrays per channel are laid out with a period: `period` is a multiple of the channel count
 * and the per-channel arrays are repeated up to it, so that narrow layers run over long rows too. A
 * share starts at channel 0; `count` is its number of elements.
 */
#ifndef DL2_DEVICE_CPU_KERNELS_H
#define DL2_DEVICE_CPU_KERNELS_H

#include "device/optimizer.h"

#include <stddef.h>
#include <stdint.h>

/*
 * An activation is given by its `limit`: 0 for none, DL2_CPU_ELU for ELU, else values are held
 * between 0 and it; INFINITY for ReLU. A gradient passes where the output is above 0 and below the
 * limit; ELU's passes everywhere, times y + 1 where y is below 0.
 */
#define DL2_CPU_ELU (-1.0f)

/* How batch norm's backward knows where its activation was open. */
enum dl2_mask {
    DL2_MASK_NONE, /* there is no activation */
    DL2_MASK_X,    /* where a * (x - mean) + b is between 0 and the limit */
    DL2_MASK_Y,    /* where y is, and ELU's slopes */
};

/* The gradient that reaches a batch norm: dy, or dy + dy2, masked. */
struct dl2_masked {
    const float *dy, *dy2; /* dy2 may be NULL */
    const float *x, *y;
    const float *mean;  /* [period] */
    const float *a, *b; /* [period], DL2_MASK_X */
    enum dl2_mask mask;
    float limit;
};

/* An optimizer's step (device/optimizer.h) and what it needs beside: gradients count `share` times;
 * correction1 is 1 - beta1^t, correction2 alike. */
struct dl2_cpu_update {
    const struct dl2_optimizer_step *step;
    float share, rate, decay, beta1, beta2, epsilon, correction1, correction2;
};

struct dl2_cpu_kernels {
    const char *name;

    /* sum[i] += x - shift, squares[i] += (x - shift)^2, by position in the period. */
    void (*norm_sums)(const float *x, size_t count, const float *shift, size_t period, double *sum,
                      double *squares);
    /* y = a * (x - mean) + b, + residual where not NULL, then the activation. y may be x. */
    void (*norm_apply)(const float *x, const float *residual, size_t count, const float *mean,
                       const float *a, const float *b, size_t period, float limit, float *y);
    /* sum += g, product += g * (x - mean); g, the masked gradient, is left
     * in `out` where not NULL. */
    void (*norm_backward_sums)(const struct dl2_masked *gradient, size_t count, size_t period,
                               double *sum, double *product, float *out);
    /* dx = p * g + q * (x - mean) + r; dx may be any of the inputs. */
    void (*norm_backward_data)(const struct dl2_masked *gradient, size_t count, const float *p,
                               const float *q, const float *r, size_t period, float *dx);

    /* Each of `rows` by itself: y = gamma * (x - mean) * inverse + beta, mean and inverse
     * (1 / sqrt(var + epsilon)) [rows] of its own. */
    void (*layer_norm)(const float *x, size_t rows, size_t channels, float epsilon,
                       const float *gamma, const float *beta, float *mean, float *inverse,
                       float *y);
    /* With n = (x - mean) * inverse and g = gamma * dy: dx = inverse * (g - mean(g) - n * mean(g *
     * n)), dgamma += dy * n, dbeta += dy. dx may be dy. */
    void (*layer_norm_backward)(const float *x, const float *dy, size_t rows, size_t channels,
                                const float *gamma, const float *mean, const float *inverse,
                                float *dx, double *dgamma, double *dbeta);

    /* Rows of `count` scores into their softmax, in place; a gradient of that into one of the
     * scores, in place. */
    void (*softmax)(float *scores, size_t rows, size_t count);
    void (*softmax_backward)(const float *softmax, float *gradient, size_t rows, size_t count);

    void (*gelu)(const float *x, float *y, size_t count);
    void (*gelu_backward)(const float *x, const float *dy, float *dx, size_t count);
    void (*silu)(const float *x, float *y, size_t count);
    void (*silu_backward)(const float *x, const float *dy, float *dx, size_t count);
    /* Of one sample (struct dl2_gate_shape). */
    void (*gate)(const float *x, const float *gate, size_t rows, size_t channels, float *y);
    void (*gate_backward)(const float *x, const float *gate, const float *dy, size_t rows,
                          size_t channels, float *dx, float *dgate);

    /* sum = that of `rows` that are `step` elements apart, or is added to that. */
    void (*sum_rows)(const float *x, size_t rows, size_t step, size_t count, float *sum,
                     int accumulate);

    void (*activate_backward)(const float *y, const float *dy, float *dx, size_t count,
                              float limit);
    void (*add)(const float *a, const float *b, float *y, size_t count);
    void (*add_relu)(const float *a, const float *b, float *y, size_t count);

    /* y = x * a + b; mixed is (own * x + other * x2) * a + b. */
    void (*ingest)(const uint8_t *x, size_t count, const float *a, const float *b, size_t period,
                   float *y);
    void (*ingest_mixed)(const uint8_t *x, const uint8_t *x2, float own, float other, size_t count,
                         const float *a, const float *b, size_t period, float *y);

    void (*update)(const struct dl2_cpu_update *update, size_t begin, size_t end);
    double (*squares)(const float *x, size_t count); /* their sum */
    void (*multiply)(float *x, size_t count, float factor);
    /* average += moves * (values - average) */
    void (*move_average)(float *average, const float *values, size_t count, float moves);
};

extern const struct dl2_cpu_kernels dl2_cpu_kernels_c, dl2_cpu_kernels_avx2, dl2_cpu_kernels_avx512;

#endif
