/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations by cuDNN's graph interface: what it can do for one shape and one pass, as plans that
 * run. Source: "cuDNN 9 backend API" (operation graph, heuristics, execution plan, variant pack).
 *
 * Plans are looked for with a handle, on a card, or with a description of a card's properties and
 * no card at all, which is how tests see that plans are found.
 *
 * Threads: one at a time for one handle.
 */
#ifndef DL2_CUDA_CUDNN_PLAN_H
#define DL2_CUDA_CUDNN_PLAN_H

#include "cuda/cudnn_graph.h"

enum dl2_gpu_pass {
    /* of convolutions and linear layers: their output, or the gradients of input and weights */
    DL2_PASS_FORWARD,
    DL2_PASS_DATA,
    DL2_PASS_WEIGHTS,
    DL2_PASS_ATTENTION,
    DL2_PASS_ATTENTION_GRADIENT,
    /* the forward pass of a convolution, with its bias and its ReLU, if it has one, in the same
       call; not of one with ELU */
    DL2_PASS_BIASED,
};

struct dl2_cudnn_request {
    struct dl2_conv_shape conv;           /* its bias and ReLU count in DL2_PASS_BIASED alone */
    struct dl2_attention_shape attention; /* of the last two passes */
    enum dl2_gpu_pass pass;
    enum dl2_precision precision; /* of attention: of 16 bits */
    bool deterministic;
    size_t workspace; /* bytes at most */
};

/* The tensors of attention, by number: those of device.h, the statistics that forward leaves for
 * its gradient, and room for what that adds up. The tensors of a convolution are x, w and y: input,
 * weights and output of the forward pass, or their gradients; the pass says which one is written.
 * The fourth, of DL2_PASS_BIASED, is the bias.
 */
enum {
    DL2_ATTENTION_QKV,
    DL2_ATTENTION_Y,
    DL2_ATTENTION_STATS,
    DL2_ATTENTION_DY,
    DL2_ATTENTION_DQKV,
    DL2_ATTENTION_SCRATCH,
    DL2_ATTENTION_TENSORS,
    DL2_CONV_BIAS = 3,
    DL2_CUDNN_TENSORS = DL2_ATTENTION_TENSORS
};

bool dl2_cudnn_is_attention(const struct dl2_cudnn_request *request);
/* Can it be done in another way than by one call of cuDNN? */
bool dl2_cudnn_is_optional(const struct dl2_cudnn_request *request);
/* Bytes of each tensor; 0 for those that the pass does without. */
void dl2_cudnn_request_bytes(const struct dl2_cudnn_request *request,
                             size_t bytes[DL2_CUDNN_TENSORS]);

enum { DL2_CUDNN_PLAN_NAME = 256 };

/* One way to do it; its tensors are the request's, dense, weights included, of the device's element
 * (float32 with TF32), 16-byte aligned. */
struct dl2_cudnn_plan {
    cudnnBackendDescriptor_t config, plan; /* plan: NULL until it is made */
    size_t workspace;                      /* of a plan that is made */
    bool tensor_cores;
    unsigned place_count;
    struct dl2_cudnn_place places[DL2_CUDNN_PLACES];
    char name[DL2_CUDNN_PLAN_NAME]; /* "eng45_k2=1_k6=0": cuDNN's number of the engine, its knobs */
};

struct dl2_cudnn_plans {
    struct dl2_cudnn_plan *list;
    unsigned count;
};

/*
 * The plans that cuDNN lists and that the request allows, none twice, its favorite first; its last
 * resorts where others are few. They are yet to be made. Exactly one of `handle` and `properties`
 * is not NULL. DL2_ERR_UNSUPPORTED where there is none: the message names the shape. The caller
 * frees what is left in the list.
 */
int dl2_cudnn_plans_find(const struct dl2_cudnn_request *request, cudnnHandle_t handle,
                         cudnnBackendDescriptor_t properties, struct dl2_cudnn_plans *plans,
                         struct dl2_error *error);
void dl2_cudnn_plans_free(struct dl2_cudnn_plans *plans);

/* Makes one, which may compile kernels. An error where cuDNN cannot, or where it takes more than
 * the request's workspace. */
int dl2_cudnn_plan_make(const struct dl2_cudnn_request *request, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t properties, struct dl2_cudnn_plan *plan,
                        struct dl2_error *error);
void dl2_cudnn_plan_free(struct dl2_cudnn_plan *plan);

/* Queues it on the handle's stream. */
int dl2_cudnn_plan_run(const struct dl2_cudnn_plan *plan, cudnnHandle_t handle,
                       const void *const *tensors, void *workspace, struct dl2_error *error);

/* "forward pass of the 3x3 convolution (stride 2) from 64 to 128 channels on 256 images of 56x56",
 * for messages. */
void dl2_cudnn_request_text(const struct dl2_cudnn_request *request, char *text, size_t size);

/* -- the graphs of a request -- */

void dl2_conv_graph(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request);
/* Elements of the input, the weights and the output. */
void dl2_conv_counts(const struct dl2_conv_shape *shape, size_t counts[3]);

void dl2_attention_graph(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request);
/* Bytes of the tensors, those of the gradient alone where it is asked for. */
void dl2_attention_bytes(const struct dl2_attention_shape *shape, size_t element, bool gradient,
                         size_t bytes[DL2_ATTENTION_TENSORS]);

#endif
