/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of cuDNN's plans does a layer's pass on this card: the fastest, by measuring; where bits
 * must repeat from run to run, the first that is deterministic and runs.
 */
#ifndef DL2_CUDA_CUDNN_CHOICE_H
#define DL2_CUDA_CUDNN_CHOICE_H

#include "cuda/cudnn_plan.h"
#include "cuda/device_cuda.h"

/* The choice for a shape and pass. */
struct dl2_cudnn_choice {
    struct dl2_cudnn_request request;
    struct dl2_cudnn_plan plan; /* its `plan` is NULL where none can be used */
    bool checked;               /* against float32 */
    struct dl2_cudnn_choice *next;
};

/* For the shape and pass of `wanted`; the rest is the device's. The device keeps choices until
 * dl2_cudnn_choices_forget(), and its workspace is large enough for each. Where cuDNN has no plan
 * that can be used, `out` is NULL if the request is optional; else it is DL2_ERR_UNSUPPORTED. */
int dl2_cudnn_choose(struct cuda *cuda, const struct dl2_cudnn_request *wanted,
                     struct dl2_cudnn_choice **out, struct dl2_error *error);
/* Queues it; a failure of the device names the layer. */
void dl2_cudnn_run(struct cuda *cuda, const struct dl2_cudnn_choice *choice,
                   const void *const *tensors);
void dl2_cudnn_choices_forget(struct cuda *cuda);

#endif
