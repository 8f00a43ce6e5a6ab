/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Graphs of cuDNN's operations while they are put together, descriptor by descriptor. Source:
 * "cuDNN 9 backend API" (tensor, operation and operation graph descriptors).
 *
 * The first failure sticks to a graph: the calls after it do nothing and return NULL, so only its
 * end needs a check.
 */
#ifndef DL2_CUDA_CUDNN_GRAPH_H
#define DL2_CUDA_CUDNN_GRAPH_H

#include "device/device.h"

#include <cudnn.h>

/* Where a tensor of a graph lies when the graph runs. */
struct dl2_cudnn_place {
    int64_t name;  /* cuDNN's */
    int tensor;    /* number of the caller's tensor, or DL2_CUDNN_VALUE */
    size_t offset; /* bytes into it */
    float value;
};

enum { DL2_CUDNN_VIRTUAL = -1, DL2_CUDNN_VALUE = -2 };

struct dl2_cudnn_tensor {
    cudnnDataType_t type;
    int64_t rank; /* 4, or 5 where there is a depth */
    int64_t dims[5], strides[5];
    int tensor; /* as a place's; DL2_CUDNN_VIRTUAL: between two operations, in no memory */
    size_t offset;
    float value; /* of DL2_CUDNN_VALUE: one number, which the host gives */
};

enum { DL2_CUDNN_DESCRIPTORS = 96, DL2_CUDNN_OPERATIONS = 24, DL2_CUDNN_PLACES = 16 };

struct dl2_cudnn_graph {
    const char *what; /* what it is for, in messages */
    struct dl2_error *error;
    int status;
    cudnnBackendDescriptor_t made[DL2_CUDNN_DESCRIPTORS];
    cudnnBackendDescriptor_t operations[DL2_CUDNN_OPERATIONS];
    struct dl2_cudnn_place places[DL2_CUDNN_PLACES];
    unsigned made_count, operation_count, place_count;
};

/* A new descriptor, which the graph destroys. */
cudnnBackendDescriptor_t dl2_cudnn_make(struct dl2_cudnn_graph *graph,
                                        cudnnBackendDescriptorType_t type);
/* One of the graph's operations, in their order. */
cudnnBackendDescriptor_t dl2_cudnn_operation(struct dl2_cudnn_graph *graph,
                                             cudnnBackendDescriptorType_t type);
/* A tensor, finalized. Memory begins at a multiple of 16 bytes. */
cudnnBackendDescriptor_t dl2_cudnn_tensor(struct dl2_cudnn_graph *graph,
                                          const struct dl2_cudnn_tensor *tensor);
void dl2_cudnn_set(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t count, const void *values);
/* One value that is a descriptor. */
void dl2_cudnn_link(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                    cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void dl2_cudnn_finalize(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor);
/* Appends `out` = mode(a, b), in float32; b: NULL where there is one operand. */
void dl2_cudnn_pointwise(struct dl2_cudnn_graph *graph, cudnnPointwiseMode_t mode,
                         cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                         cudnnBackendDescriptor_t out);
/* The graph of all operations. `handle` may be NULL. */
cudnnBackendDescriptor_t dl2_cudnn_close(struct dl2_cudnn_graph *graph, cudnnHandle_t handle);
void dl2_cudnn_graph_free(struct dl2_cudnn_graph *graph);

/* An element of the precision's tensors. */
cudnnDataType_t dl2_cudnn_type(enum dl2_precision precision);

/* DL2_OK, or an error that names the call, what it was for (NULL: nothing to name) and cuDNN's
 * reason. */
int dl2_cudnn_check(cudnnStatus_t status, const char *call, const char *what,
                    struct dl2_error *error);

#endif
