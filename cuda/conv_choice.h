/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of cuDNN's plans does a convolution's pass on this card: the fastest, by measuring; where
 * bits must repeat from run to run, the first that is deterministic and runs.
 */
#ifndef DL2_CUDA_CONV_CHOICE_H
#define DL2_CUDA_CONV_CHOICE_H

#include "cuda/conv_plan.h"
#include "cuda/device_cuda.h"

/* The choice for a shape and pass. */
struct dl2_conv_choice {
    struct dl2_conv_request request;
    struct dl2_conv_plan plan;
    bool checked; /* against float32 */
    struct dl2_conv_choice *next;
};

/* The device keeps choices until dl2_conv_choices_forget(), and its workspace is large enough for
 * each. */
int dl2_conv_choose(struct cuda *cuda, const struct dl2_conv_shape *shape, enum dl2_conv_pass pass,
                    struct dl2_conv_choice **out, struct dl2_error *error);
void dl2_conv_choices_forget(struct cuda *cuda);

/* Elements of the input, the weights and the output. */
void dl2_conv_counts(const struct dl2_conv_shape *shape, size_t counts[3]);

#endif
