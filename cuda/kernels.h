/*
 * The training device's own kernels: what is bound by memory rather than by arithmetic, fused so
 * that each tensor is touched as seldom as can be.
 *
 * Each function queues its work on `stream` and returns a cudaError_t, cudaSuccess being 0.
 * Addresses are of the card's memory. No result depends on the order that blocks run in.
 */
#ifndef DL2_CUDA_KERNELS_H
#define DL2_CUDA_KERNELS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t is a pointer to it */

/* to += from. */
int dl2_gpu_add_floats(float *to, const float *from, size_t count, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
