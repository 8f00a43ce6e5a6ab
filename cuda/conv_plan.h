/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Convolutions by cuDNN's graph interface: what it can do for one shape and one pass, as plans that
 * run. Source: "cuDNN 9 backend API" (operation graph, heuristics, execution plan, variant pack).
 *
 * Plans are looked for with a handle, on a card, or with a description of a card's properties and
 * no card at all, which is how tests see that plans are found.
 *
 * Threads: one at a time for one handle.
 */
#ifndef DL2_CUDA_CONV_PLAN_H
#define DL2_CUDA_CONV_PLAN_H

#include "device/device.h"

#include <cudnn.h>

enum dl2_conv_pass { DL2_CONV_FORWARD, DL2_CONV_DATA, DL2_CONV_WEIGHTS };

struct dl2_conv_request {
    struct dl2_conv_shape shape; /* its bias is not looked at */
    enum dl2_conv_pass pass;
    enum dl2_precision precision;
    bool deterministic;
    size_t workspace; /* bytes at most */
};

/* One way to do it; its tensors are the request's, dense, weights included, of the device's element
 * (float32 with TF32), 16-byte aligned. */
struct dl2_conv_plan {
    cudnnBackendDescriptor_t plan, config;
    size_t workspace;
    bool tensor_cores;
};

/*
 * Up to `room` plans, cuDNN's favourite first; *count is at least 1. Exactly one of `handle` and
 * `properties` is not NULL. DL2_ERR_UNSUPPORTED where there is none: the message names the shape.
 */
int dl2_conv_plans_find(const struct dl2_conv_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_conv_plan *plans,
                        unsigned room, unsigned *count, struct dl2_error *error);
void dl2_conv_plan_free(struct dl2_conv_plan *plan);

/* Queues it on the handle's stream. x, w, y: input, weights, output of the forward pass, or their
 * gradients; the pass says which one is written. */
int dl2_conv_plan_run(const struct dl2_conv_plan *plan, cudnnHandle_t handle, const void *x,
                      const void *w, const void *y, void *workspace, struct dl2_error *error);

/* "forward pass of the 3x3 convolution (stride 2) from 64 to 128 channels on 256 images of 56x56",
 * for messages. */
void dl2_conv_request_text(const struct dl2_conv_request *request, char *text, size_t size);

/* DL2_OK, or an error that names the call, what it was for (NULL: nothing to name) and cuDNN's
 * reason. */
int dl2_cudnn_check(cudnnStatus_t status, const char *call, const char *what,
                    struct dl2_error *error);

#endif
