/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Products of matrices by cublasLt: d = a * b, rows first, for linear layers, attention and their
 * gradients; one, or a batch of them that differ in nothing but where they lie.
 * Source: cuBLAS documentation, "Using the cublasLt API".
 *
 * Threads: one at a time for one product.
 */
#ifndef DL2_CUDA_MATMUL_H
#define DL2_CUDA_MATMUL_H

#include "device/device.h"

#include <cublasLt.h>

/* How a matrix lies in memory; all 0: rows without gaps, from a multiple of 16 bytes on. */
struct dl2_product_matrix {
    size_t step;        /* elements from row to row */
    size_t stride;      /* elements from one of the batch to the next */
    uint32_t alignment; /* bytes of which each of the batch begins at a multiple: 2, 4, 8, 16 */
};

/* d is [rows][columns]. a is [rows][inner], or [inner][rows] where transposed; b is
 * [inner][columns], or [columns][inner]. */
struct dl2_product_shape {
    unsigned rows, columns, inner;
    unsigned batch; /* 0: one */
    struct dl2_product_matrix a, b, d;
    bool a_transposed, b_transposed;
    bool bias;         /* [columns], of d's element, is added to each row */
    bool relu;         /* ends it; only with a bias */
    bool float_result; /* d is float32, whatever the precision */
    float factor;      /* of the product; 0: 1 */
    enum dl2_precision precision;
    const char *what; /* "gradient of a linear layer's weights", for messages; static */
};

struct dl2_product;

/* Chooses how to do it with `workspace` bytes at most. */
int dl2_product_create(cublasLtHandle_t handle, const struct dl2_product_shape *shape,
                       size_t workspace, struct dl2_product **out, struct dl2_error *error);
void dl2_product_free(struct dl2_product *product);
size_t dl2_product_workspace(const struct dl2_product *product);
/* Queues it on `stream`. `bias` is read where the shape has one. */
int dl2_product_run(struct dl2_product *product, cublasLtHandle_t handle, const void *a,
                    const void *b, const void *bias, void *d, bool accumulate, void *workspace,
                    cudaStream_t stream, struct dl2_error *error);

/* DL2_OK, or an error that names the call, what it was for, and the reason. */
int dl2_cublas_check(cublasStatus_t status, const char *call, const struct dl2_product_shape *shape,
                     struct dl2_error *error);

#endif
