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
    bool bf16;       /* convolutions and linear layers multiply in it; tensors are float32 */
    void *narrow[2]; /* of the layer that runs: its input and its result's gradient, in bf16 */
    size_t narrow_size[2];
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
int dl2_cpu_make_layout(dl2_layout *layout, dnnl_data_type_t type, int dims,
                        const dnnl_dims_t sizes, dnnl_format_tag_t tag, struct dl2_error *error);
/* Sizes along a window's axes, for oneDNN: without depth unless `deep`. */
static inline void dl2_cpu_put_sides(dnnl_dim_t *to, bool deep, struct dl2_sides sides)
{
    if (deep)
        *to++ = sides.depth;
    to[0] = sides.height;
    to[1] = sides.width;
}
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
    switch (activation) {
    case DL2_RELU:
        return INFINITY;
    case DL2_RELU6:
        return 6;
    case DL2_ELU:
        return DL2_CPU_ELU;
    case DL2_IDENTITY:
        break;
    }
    return 0;
}

/* -- methods of the device's table that other files define -- */

/* By file: cpu_conv_linear.c, cpu_pool.c, cpu_batch_norm.c, cpu_layer_norm.c, cpu_attention.c,
 * cpu_elementwise.c, cpu_dense.c. */
#define DL2_CPU_METHODS(ROW)                                                                       \
    ROW(conv_create)                                                                               \
    ROW(conv_forward)                                                                              \
    ROW(conv_backward_data)                                                                        \
    ROW(conv_backward_weights)                                                                     \
    ROW(linear_create)                                                                             \
    ROW(linear_forward)                                                                            \
    ROW(linear_backward_data)                                                                      \
    ROW(linear_backward_weights)                                                                   \
    ROW(pool_create)                                                                               \
    ROW(pool_forward)                                                                              \
    ROW(pool_backward)                                                                             \
    ROW(norm_create)                                                                               \
    ROW(norm_train)                                                                                \
    ROW(norm_eval)                                                                                 \
    ROW(norm_backward)                                                                             \
    ROW(layer_norm_create)                                                                         \
    ROW(layer_norm_forward)                                                                        \
    ROW(layer_norm_backward)                                                                       \
    ROW(attention_create)                                                                          \
    ROW(attention_forward)                                                                         \
    ROW(attention_backward)                                                                        \
    ROW(tokens_forward)                                                                            \
    ROW(tokens_backward)                                                                           \
    ROW(dice_create)                                                                               \
    ROW(dice_run)                                                                                  \
    ROW(add_bias)                                                                                  \
    ROW(sum_rows)                                                                                  \
    ROW(copy_columns)                                                                              \
    ROW(activate_backward)                                                                         \
    ROW(smooth)                                                                                    \
    ROW(smooth_backward)                                                                           \
    ROW(add)                                                                                       \
    ROW(dropout)                                                                                   \
    ROW(gate)                                                                                      \
    ROW(gate_backward)                                                                             \
    ROW(clip_gradients)                                                                            \
    ROW(optimizer_step)                                                                            \
    ROW(move_average)

/* dl2_cpu_NAME(), with the parameters that the table gives NAME. */
#define DL2_CPU_DECLARE(name) __typeof__(*((struct dl2_device_class *)0)->name) dl2_cpu_##name;
DL2_CPU_METHODS(DL2_CPU_DECLARE)
#undef DL2_CPU_DECLARE

#endif
