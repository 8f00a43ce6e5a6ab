/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cuda device's all_reduce(), by NCCL: sums over the ranks, each with a card of its own, on a
 * stream beside the one that computes.
 *
 * Threads: the device's. Every rank makes the same calls in the same order.
 */
#ifndef DL2_CUDA_REDUCER_H
#define DL2_CUDA_REDUCER_H

#include "ranks/world.h"

#include <cuda_runtime_api.h>

struct dl2_gpu_reducer;

/* "NCCL 2.28.9", or "" where this build has none; static. */
const char *dl2_gpu_reducer_version(void);

/* For the calling thread's current card. `world` must outlive it; its ranks meet at the first sum,
 * which must not be captured. DL2_ERR_UNSUPPORTED where this build has no NCCL and there is more
 * than one rank. */
int dl2_gpu_reducer_open(const struct dl2_world *world, struct dl2_gpu_reducer **out,
                         struct dl2_error *error);
/* Free recordings of its sums first: NCCL waits for that. NULL is fine. */
void dl2_gpu_reducer_close(struct dl2_gpu_reducer *reducer);

/* Adds up `data` once `stream` has come here, in place; may be captured into a graph. */
int dl2_gpu_reducer_add(struct dl2_gpu_reducer *reducer, float *data, size_t count,
                        cudaStream_t stream, struct dl2_error *error);
/* `stream` goes on once all that was added is there. */
int dl2_gpu_reducer_wait(struct dl2_gpu_reducer *reducer, cudaStream_t stream,
                         struct dl2_error *error);
/* Records a failure since the last call, such as another rank's end. Call it after waiting for the
 * card: after a failure the wait ends too, and the sums are wrong. NULL is fine. */
int dl2_gpu_reducer_check(struct dl2_gpu_reducer *reducer, struct dl2_error *error);

#endif
