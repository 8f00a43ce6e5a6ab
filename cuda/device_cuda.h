/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the cuda device: its context, its memory, and how calls fail
 * (device_calls.c). device_cuda.c has the device itself and its table; the others have the layers,
 * by kind, under the names of device/device.h's methods.
 */
#ifndef DL2_CUDA_DEVICE_CUDA_H
#define DL2_CUDA_DEVICE_CUDA_H

#include "cuda/plan_files.h"
#include "cuda/reducer.h"
#include "device/device.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

/* Memory of the card that grows. */
struct area {
    void *memory;
    size_t size;
};

/* Scratch that was outgrown, but that recordings still write to. */
struct retired {
    void *memory;
    struct retired *next;
};

struct cuda {
    struct dl2_device base;
    unsigned ranks;
    enum dl2_precision precision;
    bool deterministic, graphs;
    void (*note)(void *context, const char *text); /* the options' */
    void *note_context;
    cudaStream_t stream, uploads;
    cudaEvent_t uploaded, ingested[2];
    uint64_t ingests;  /* the last but one's event is ingested[ingests % 2] */
    uint64_t profiled; /* a profiler sees what follows this many ingests, up to the next */
    cudnnHandle_t cudnn;
    cublasLtHandle_t blas;
    struct dl2_gpu_reducer *reducer;
    struct dl2_gpu_state *state;
    size_t workspace_limit;
    struct area workspace, partials, gradient, scores;
    size_t l2_bytes;                 /* of the card's cache */
    struct dl2_conv_choice *choices; /* how to do convolutions */
    struct dl2_plan_files files;
    struct dl2_step_times *times; /* NULL: nobody wants them */
    bool clocks_up, told_untested, told_file;
    struct retired *retired;
    struct dl2_cuda_recording *recording; /* being made */
    unsigned recordings;                  /* there are */
    struct block *blocks;
    size_t allocated; /* bytes of the blocks, and what plans keep that is as large as tensors */
};

/* -- errors -- */

/* Did all go well so far? Calls that compute ask first. */
static inline bool well(const struct cuda *cuda)
{
    return !cuda->base.failure.status;
}

/* Keeps the first failure. `what` says for which layer, and may be NULL. */
void dl2_cuda_note(struct cuda *cuda, cudaError_t status, const char *call, const char *what);

/* One of kernels.h's. */
static inline void launched(struct cuda *cuda, int status, const char *what)
{
    dl2_cuda_note(cuda, (cudaError_t)status, "kernel launch", what);
}

/* A library's call that left its message in the failure. */
static inline void library(struct cuda *cuda, int status)
{
    if (status < 0)
        dl2_error_prefix(&cuda->base.failure, "device cuda");
}

int dl2_cuda_out_of_memory(struct dl2_error *error, const char *what);

/* A line for the user, which begins with "device cuda: ". */
DL2_PRINTF(2, 3) void dl2_cuda_tell(const struct cuda *cuda, const char *format, ...);

/* -- memory of the card -- */

/* `out` is a pointer's address. */
int dl2_cuda_take(struct cuda *cuda, size_t bytes, const char *what, void *out,
                  struct dl2_error *error);
/* Once all is done that was queued, where it may be in use. */
void dl2_cuda_give(struct cuda *cuda, void *memory);
/* Scratch of `bytes` at least, whose address the next call may change. */
int dl2_cuda_grow(struct cuda *cuda, struct area *area, size_t bytes, const char *what,
                  struct dl2_error *error);
int dl2_cuda_grow_partials(struct cuda *cuda, unsigned channels, struct dl2_error *error);

/* -- methods that layers use, too -- */

void dl2_cuda_copy(struct dl2_device *device, void *to, const void *from, size_t bytes);
int dl2_cuda_sync(struct dl2_device *device, struct dl2_error *error);
int dl2_cuda_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                      struct dl2_error *error);
void dl2_cuda_all_reduce(struct dl2_device *device, float *data, size_t count);
void dl2_cuda_all_reduce_wait(struct dl2_device *device);

/* -- methods of layers -- */

/* device_attention.c */
void dl2_cuda_attention_free(struct dl2_attention *plan);
int dl2_cuda_attention_create(struct dl2_device *device, const struct dl2_attention_shape *shape,
                              struct dl2_attention **out, struct dl2_error *error);
void dl2_cuda_attention_forward(struct dl2_attention *plan, const void *qkv, void *y);
void dl2_cuda_attention_backward(struct dl2_attention *plan, const void *qkv, const void *dy,
                                 void *dqkv);

/* device_conv.c */
void dl2_cuda_conv_free(struct dl2_conv *plan);
int dl2_cuda_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                         struct dl2_conv **out, struct dl2_error *error);
void dl2_cuda_conv_forward(struct dl2_conv *plan, const void *x, const void *weights,
                           const float *bias, void *y);
void dl2_cuda_conv_backward_data(struct dl2_conv *plan, const void *dy, const void *weights,
                                 void *dx);
void dl2_cuda_conv_backward_weights(struct dl2_conv *plan, const void *x, const void *dy,
                                    float *dweights, float *dbias, bool accumulate);
int dl2_cuda_conv_check(struct dl2_conv *plan, unsigned *checked, struct dl2_error *error);

/* device_kernels.c */
void dl2_cuda_pool_free(struct dl2_pool *plan);
int dl2_cuda_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                         struct dl2_pool **out, struct dl2_error *error);
void dl2_cuda_pool_forward(struct dl2_pool *plan, const void *x, void *y);
void dl2_cuda_pool_backward(struct dl2_pool *plan, const void *dy, void *dx);
void dl2_cuda_tokens_forward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                             const void *x, const float *class_token, const float *positions,
                             void *y);
void dl2_cuda_tokens_backward(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                              const void *dy, void *dx, float *dclass_token, float *dpositions,
                              bool accumulate);
void dl2_cuda_activate(struct dl2_device *device, enum dl2_activation activation, const void *x,
                       void *y, size_t count);
void dl2_cuda_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                                const void *y, const void *dy, void *dx, size_t count);
void dl2_cuda_gelu(struct dl2_device *device, const void *x, void *y, size_t count);
void dl2_cuda_gelu_backward(struct dl2_device *device, const void *x, const void *dy, void *dx,
                            size_t count);
void dl2_cuda_add(struct dl2_device *device, const void *a, const void *b, void *y, size_t count);
void dl2_cuda_dropout(struct dl2_device *device, const void *x, void *y, size_t count, float rate,
                      uint64_t seed, uint64_t layer);
void dl2_cuda_loss_free(struct dl2_loss *plan);
int dl2_cuda_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                         struct dl2_loss **out, struct dl2_error *error);
void dl2_cuda_loss_run(struct dl2_loss *plan, const void *logits, const int32_t *labels,
                       const uint32_t *partner, float *losses, void *dlogits,
                       struct dl2_loss_sums *sums);
void dl2_cuda_check_gradients(struct dl2_device *device, const float *gradient, size_t count);
void dl2_cuda_sgd_step(struct dl2_device *device, float *weights, void *lowered,
                       const float *gradient, float *momentum, size_t count, bool decays,
                       bool nesterov);
void dl2_cuda_adamw_step(struct dl2_device *device, float *weights, void *lowered,
                         const float *gradient, float *first, float *second, size_t count,
                         bool decays);
void dl2_cuda_end_update(struct dl2_device *device);
void dl2_cuda_move_average(struct dl2_device *device, float *average, const float *values,
                           size_t count);
void dl2_cuda_lower(struct dl2_device *device, const float *weights, void *lowered, size_t count);
int dl2_cuda_get_loss_scale(struct dl2_device *device, struct dl2_loss_scale *scale,
                            struct dl2_error *error);
int dl2_cuda_set_loss_scale(struct dl2_device *device, const struct dl2_loss_scale *scale,
                            struct dl2_error *error);

/* device_linear.c */
void dl2_cuda_linear_free(struct dl2_linear *plan);
int dl2_cuda_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                           struct dl2_linear **out, struct dl2_error *error);
void dl2_cuda_linear_forward(struct dl2_linear *plan, const void *x, const void *weights,
                             const float *bias, void *y);
void dl2_cuda_linear_backward_data(struct dl2_linear *plan, const void *dy, const void *weights,
                                   void *dx);
void dl2_cuda_linear_backward_weights(struct dl2_linear *plan, const void *x, const void *dy,
                                      float *dweights, float *dbias, bool accumulate);
int dl2_cuda_linear_check(struct dl2_linear *plan, unsigned *checked, struct dl2_error *error);

/* device_norm.c */
void dl2_cuda_norm_free(struct dl2_norm *plan);
int dl2_cuda_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                         struct dl2_norm **out, struct dl2_error *error);
void dl2_cuda_norm_train(struct dl2_norm *plan, const void *x, const void *residual,
                         const float *gamma, const float *beta, float *running_mean,
                         float *running_var, void *y);
void dl2_cuda_norm_eval(struct dl2_norm *plan, const void *x, const void *residual,
                        const float *gamma, const float *beta, const float *running_mean,
                        const float *running_var, void *y);
void dl2_cuda_norm_backward(struct dl2_norm *plan, const void *x, const void *y, const void *dy,
                            const void *dy2, const float *gamma, const float *beta, void *dx,
                            void *dresidual, float *dgamma, float *dbeta, bool accumulate);
void dl2_cuda_layer_norm_free(struct dl2_layer_norm *plan);
int dl2_cuda_layer_norm_create(struct dl2_device *device, const struct dl2_layer_norm_shape *shape,
                               struct dl2_layer_norm **out, struct dl2_error *error);
void dl2_cuda_layer_norm_forward(struct dl2_layer_norm *plan, const void *x, const float *gamma,
                                 const float *beta, void *y);
void dl2_cuda_layer_norm_backward(struct dl2_layer_norm *plan, const void *x, const void *dy,
                                  const float *gamma, void *dx, float *dgamma, float *dbeta,
                                  bool accumulate);

#endif
