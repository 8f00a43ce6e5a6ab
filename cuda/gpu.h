/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the whole room: the cards of the machine, and CUDA's errors in words that help.
 *
 * Threads: any, at any time; CUDA's current card is each thread's own.
 */
#ifndef DL2_CUDA_GPU_H
#define DL2_CUDA_GPU_H

#include "common/error.h"

#include <cuda_runtime_api.h>

/* Is there a card, and a driver that this build's runtime can use? Quiet where there is none. */
bool dl2_gpu_present(void);

/* "CUDA 13.0", with which this was built; static. */
const char *dl2_gpu_version(void);

/* Makes card `number` the calling thread's, and starts it; the message says which there are. */
int dl2_gpu_use(unsigned number, struct dl2_error *error);

/*
 * Makes card `number`, which was used before, the calling thread's, until dl2_gpu_leave() with the
 * card that it had: for threads of others, whose card is not ours to change.
 */
int dl2_gpu_enter(unsigned number, int *before, struct dl2_error *error);
void dl2_gpu_leave(int before);

/* DL2_OK, or an error that names `call` ("cudaMalloc"), CUDA's reason, and what to do. A failure of
 * memory is DL2_ERR_MEMORY, of a missing or unsuitable card or driver DL2_ERR_UNSUPPORTED, of
 * anything else DL2_ERR_SYSTEM. */
int dl2_gpu_check(cudaError_t status, const char *call, struct dl2_error *error);

#endif
