/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the cpu device: helpers (cpu.c), and the layers of its table (cpu_NAME.c).
 *
 * Sums are cut into the same parts whenever the number of threads is the same, and added in order.
 */
#ifndef DL2_DEVICE_CPU_H
#define DL2_DEVICE_CPU_H

#include "device/cpu_kernels.h"
#include "device/device.h"
#include "device/onednn.h"

#include <math.h>

struct dl2_cpu {
    struct dl2_device base;
    unsigned threads;
    const struct dl2_cpu_kernels *kernels;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t version; /* of all that is in device memory but was not computed by a layer */
    double *partials; /* [threads][2 * partial_period]: sums of a layer's parts */
    size_t partial_period;
    float *gradient; /* of a layer's weight and bias, before it is added to another */
    size_t gradient_size;
    struct dl2_reducer *reducer; /* NULL: alone */
};

/* -- threads -- */

/* Smallest share worth a thread, in elements of a float tensor. */
#define DL2_CPU_GRAIN ((size_t)8192)

/* Rows of `channels` that make a grain. */
static inline size_t dl2_cpu_row_grain(size_t channels)
{
    return DL2_CPU_GRAIN / channels + 1;
}

typedef void dl2_cpu_work_fn(void *context, unsigned part, size_t begin, size_t end);

/*
 * Calls work() on consecutive shares of 0 .. items-1. The cut depends on `items`, `grain` and the
 * number of threads only; returns the number of parts.
 */
unsigned dl2_cpu_share_out(const struct dl2_cpu *cpu, size_t items, size_t grain,
                           dl2_cpu_work_fn *work, void *context);

/* OpenMP's number of threads belongs to the calling thread, and others may have changed it: before
 * oneDNN plans or computes. */
void dl2_cpu_claim_threads(const struct dl2_cpu *cpu);

/* Room for two sums of `period` in each part that work is shared out in; false: there is none. */
bool dl2_cpu_reserve_partials(struct dl2_cpu *cpu, size_t period);
/* A part's two lists of sums, [2][period]: as they are, and zeroed. */
static inline double *dl2_cpu_part_sums(const struct dl2_cpu *cpu, unsigned part)
{
    return cpu->partials + 2 * cpu->partial_period * part;
}
double *dl2_cpu_begin_sums(const struct dl2_cpu *cpu, unsigned part, size_t period);

/* -- errors, and calls of oneDNN -- */

int dl2_cpu_out_of_memory(struct dl2_error *error, const char *what);
/* "oneDNN cannot WHAT: ..." unless it could. */
int dl2_cpu_check(dnnl_status_t status, const char *what, struct dl2_error *error);
/* dl2_layout_create() with such an error. */
int dl2_cpu_make_layout(dl2_layout *layout, int dims, const dnnl_dims_t sizes,
                        dnnl_format_tag_t tag, struct dl2_error *error);
/* A failure sticks to the device, and then nothing is done any more. */
void dl2_cpu_execute(struct dl2_cpu *cpu, const_dnnl_primitive_t primitive, int count,
                     const dnnl_exec_arg_t *args, const char *what);

static inline void dl2_cpu_point(dnnl_memory_t memory, const void *address)
{
    dnnl_memory_set_data_handle(memory, (void *)address);
}

/* The activation as kernels take it. */
static inline float dl2_cpu_limit(enum dl2_activation activation)
{
    return activation == DL2_RELU ? INFINITY : activation == DL2_RELU6 ? 6 : 0;
}

/* -- cpu_conv_linear.c -- */

int dl2_cpu_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                        struct dl2_conv **out, struct dl2_error *error);
int dl2_cpu_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                          struct dl2_linear **out, struct dl2_error *error);
void dl2_cpu_conv_free(struct dl2_conv *conv);
void dl2_cpu_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                          const float *bias, void *y);
void dl2_cpu_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                void *dx);
void dl2_cpu_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                   float *dweights, float *dbias, bool accumulate);
void dl2_cpu_linear_free(struct dl2_linear *linear);
void dl2_cpu_linear_forward(struct dl2_linear *linear, const void *x, const void *weights,
                            const float *bias, void *y);
void dl2_cpu_linear_backward_data(struct dl2_linear *linear, const void *dy, const void *weights,
                                  void *dx);
void dl2_cpu_linear_backward_weights(struct dl2_linear *linear, const void *x, const void *dy,
                                     float *dweights, float *dbias, bool accumulate);

/* -- cpu_pool.c -- */

void dl2_cpu_pool_free(struct dl2_pool *pool);
int dl2_cpu_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                        struct dl2_pool **out, struct dl2_error *error);
void dl2_cpu_pool_forward(struct dl2_pool *pool, const void *x, void *y);
void dl2_cpu_pool_backward(struct dl2_pool *pool, const void *dy, void *dx);

/* -- cpu_batch_norm.c -- */

void dl2_cpu_norm_free(struct dl2_norm *norm);
int dl2_cpu_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                        struct dl2_norm **out, struct dl2_error *error);
void dl2_cpu_norm_train(struct dl2_norm *norm, const void *from, const void *residual,
                        const float *gamma, const float *beta, float *running_mean,
                        float *running_var, void *y);
void dl2_cpu_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                       const float *gamma, const float *beta, const float *running_mean,
                       const float *running_var, void *y);
void dl2_cpu_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                           const void *dy2, const float *gamma, const float *beta, void *dx,
                           void *dresidual, float *dgamma, float *dbeta, bool accumulate);

/* -- cpu_layer_norm.c -- */

int dl2_cpu_layer_norm_create(struct dl2_device *device, const struct dl2_layer_norm_shape *shape,
                              struct dl2_layer_norm **out, struct dl2_error *error);
void dl2_cpu_layer_norm_free(struct dl2_layer_norm *norm);
void dl2_cpu_layer_norm_forward(struct dl2_layer_norm *norm, const void *x, const float *gamma,
                                const float *beta, void *y);
void dl2_cpu_layer_norm_backward(struct dl2_layer_norm *norm, const void *x, const void *dy,
                                 const float *gamma, void *dx, float *dgamma, float *dbeta,
                                 bool accumulate);

/* -- cpu_attention.c -- */

int dl2_cpu_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                             struct dl2_attention **out, struct dl2_error *error);
void dl2_cpu_attention_free(struct dl2_attention *attention);
void dl2_cpu_attention_forward(struct dl2_attention *attention, const void *qkv, void *y);
void dl2_cpu_attention_backward(struct dl2_attention *attention, const void *qkv, const void *dy,
                                void *dqkv);

/* -- cpu_elementwise.c -- */

void dl2_cpu_tokens_forward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                            const void *x, const float *class_token, const float *positions,
                            void *y);
void dl2_cpu_tokens_backward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                             const void *dy, void *dx, float *dclass_token, float *dpositions,
                             bool accumulate);

void dl2_cpu_activate(struct dl2_device *device, enum dl2_activation activation, const void *x,
                      void *y, size_t count);
void dl2_cpu_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                               const void *y, const void *dy, void *dx, size_t count);
void dl2_cpu_gelu(struct dl2_device *device, const void *x, void *y, size_t count);
void dl2_cpu_gelu_backward(struct dl2_device *device, const void *x, const void *dy, void *dx,
                           size_t count);
void dl2_cpu_add(struct dl2_device *device, const void *a, const void *b, void *y, size_t count);
void dl2_cpu_dropout(struct dl2_device *device, const void *x, void *y, size_t count, float rate,
                     uint64_t seed, uint64_t layer);
void dl2_cpu_sgd_step(struct dl2_device *device, float *weights, void *lowered,
                      const float *gradient, float *momentum, size_t count, bool decays,
                      bool nesterov);
void dl2_cpu_adamw_step(struct dl2_device *device, float *weights, void *lowered,
                        const float *gradient, float *first, float *second, size_t count,
                        bool decays);
void dl2_cpu_move_average(struct dl2_device *device, float *average, const float *values,
                          size_t count);

#endif
