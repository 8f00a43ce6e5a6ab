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

enum { DL2_CONV_PLAN_NAME = 256 };

/* One way to do it; its tensors are the request's, dense, weights included, of the device's element
 * (float32 with TF32), 16-byte aligned. */
struct dl2_conv_plan {
    cudnnBackendDescriptor_t config, plan; /* plan: NULL until it is made */
    size_t workspace;                      /* of a plan that is made */
    bool tensor_cores;
    char name[DL2_CONV_PLAN_NAME]; /* "eng45_k2=1_k6=0": cuDNN's number of the engine, its knobs */
};

struct dl2_conv_plans {
    struct dl2_conv_plan *list;
    unsigned count;
};

/*
 * All plans that cuDNN lists and that the request allows, none twice, its favourite first; they are
 * yet to be made. Exactly one of `handle` and `properties` is not NULL. DL2_ERR_UNSUPPORTED where
 * there is none: the message names the shape. The caller frees what is left in the list.
 */
int dl2_conv_plans_find(const struct dl2_conv_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_conv_plans *plans,
                        struct dl2_error *error);
void dl2_conv_plans_free(struct dl2_conv_plans *plans);

/* Makes one, which may compile kernels; false where cuDNN cannot, or where it takes more than the
 * request's workspace. */
bool dl2_conv_plan_make(const struct dl2_conv_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_conv_plan *plan);
void dl2_conv_plan_free(struct dl2_conv_plan *plan);

/* The error where no plan does. */
int dl2_conv_plans_none(const struct dl2_conv_request *request, struct dl2_error *error);

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
