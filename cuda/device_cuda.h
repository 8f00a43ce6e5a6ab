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
    size_t l2_bytes;                  /* of the card's cache */
    struct dl2_cudnn_choice *choices; /* how to do convolutions */
    struct dl2_plan_files files;
    struct dl2_step_times *times; /* NULL: nobody wants them */
    bool clocks_up, told_untested, told_file;
    struct retired *retired;
    struct dl2_recording *recording; /* being made */
    unsigned recordings;             /* there are */
    struct block *blocks;
    size_t allocated; /* bytes of the blocks, and what plans keep that is as large as tensors */
};

/* -- errors -- */

/* Did all go well so far? Calls that compute ask first. */
static inline bool has_not_failed(const struct cuda *cuda)
{
    return !cuda->base.failure.status;
}

/* Keeps the first failure. `what` says for which layer, and may be NULL. */
void dl2_cuda_note(struct cuda *cuda, cudaError_t status, const char *call, const char *what);

/* One of kernels.h's calls, which is left out after a failure. `what` as above. */
#define LAUNCH(cuda, what, call)                                                                   \
    do {                                                                                           \
        if (has_not_failed(cuda))                                                                  \
            dl2_cuda_note(cuda, (cudaError_t)(call), "kernel launch", what);                       \
    } while (0)

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
int dl2_cuda_acquire(struct cuda *cuda, size_t bytes, const char *what, void *out,
                     struct dl2_error *error);
/* Once all is done that was queued, where it may be in use. */
void dl2_cuda_release(struct cuda *cuda, void *memory);
/* Scratch of `bytes` at least, whose address the next call may change. */
int dl2_cuda_grow(struct cuda *cuda, struct area *area, size_t bytes, const char *what,
                  struct dl2_error *error);
int dl2_cuda_grow_partials(struct cuda *cuda, unsigned channels, struct dl2_error *error);

/* -- methods of the device's table that other files define -- */

/* By file: device_calls.c (five, which layers use, too), device_attention.c, device_conv.c,
 * device_dense.c, device_kernels.c, device_linear.c, device_norm.c. */
#define DL2_CUDA_METHODS(ROW)                                                                      \
    ROW(copy)                                                                                      \
    ROW(sync)                                                                                      \
    ROW(download)                                                                                  \
    ROW(all_reduce)                                                                                \
    ROW(all_reduce_wait)                                                                           \
    ROW(attention_create)                                                                          \
    ROW(attention_forward)                                                                         \
    ROW(attention_backward)                                                                        \
    ROW(attention_check)                                                                           \
    ROW(conv_create)                                                                               \
    ROW(conv_forward)                                                                              \
    ROW(conv_backward_data)                                                                        \
    ROW(conv_backward_weights)                                                                     \
    ROW(conv_check)                                                                                \
    ROW(pool_create)                                                                               \
    ROW(pool_forward)                                                                              \
    ROW(pool_backward)                                                                             \
    ROW(tokens_forward)                                                                            \
    ROW(tokens_backward)                                                                           \
    ROW(activate_backward)                                                                         \
    ROW(smooth)                                                                                    \
    ROW(smooth_backward)                                                                           \
    ROW(add)                                                                                       \
    ROW(dropout)                                                                                   \
    ROW(gate)                                                                                      \
    ROW(gate_backward)                                                                             \
    ROW(loss_create)                                                                               \
    ROW(loss_run)                                                                                  \
    ROW(dice_create)                                                                               \
    ROW(dice_run)                                                                                  \
    ROW(confusion)                                                                                 \
    ROW(add_bias)                                                                                  \
    ROW(sum_rows)                                                                                  \
    ROW(copy_columns)                                                                              \
    ROW(check_gradients)                                                                           \
    ROW(clip_gradients)                                                                            \
    ROW(optimizer_step)                                                                            \
    ROW(end_update)                                                                                \
    ROW(move_average)                                                                              \
    ROW(convert_weights)                                                                           \
    ROW(get_loss_scale)                                                                            \
    ROW(set_loss_scale)                                                                            \
    ROW(linear_create)                                                                             \
    ROW(linear_forward)                                                                            \
    ROW(linear_backward_data)                                                                      \
    ROW(linear_backward_weights)                                                                   \
    ROW(linear_check)                                                                              \
    ROW(norm_create)                                                                               \
    ROW(norm_train)                                                                                \
    ROW(norm_eval)                                                                                 \
    ROW(norm_backward)                                                                             \
    ROW(layer_norm_create)                                                                         \
    ROW(layer_norm_forward)                                                                        \
    ROW(layer_norm_backward)

/* dl2_cuda_NAME(), with the parameters that the table gives NAME. */
#define DL2_CUDA_DECLARE(name) __typeof__(*((struct dl2_device_class *)0)->name) dl2_cuda_##name;
DL2_CUDA_METHODS(DL2_CUDA_DECLARE)
#undef DL2_CUDA_DECLARE

#endif
