/* SPDX-License-Identifier: BSD-2-Clause */
/* The reducer of a build without NCCL: one rank, which has nothing to add up. */
#include "cuda/reducer.h"

const char *dl2_gpu_reducer_version(void)
{
    return "";
}

int dl2_gpu_reducer_open(const struct dl2_world *world, struct dl2_gpu_reducer **out,
                         struct dl2_error *error)
{
    *out = NULL;
    if (world->size == 1)
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_UNSUPPORTED,
        "%u ranks can't train together on the cuda device of this build, which has "
        "no NCCL: build it with configure --with-nccl, or use one card",
        world->size);
}

void dl2_gpu_reducer_close(struct dl2_gpu_reducer *reducer)
{
    (void)reducer;
}

int dl2_gpu_reducer_add(struct dl2_gpu_reducer *reducer, float *data, size_t count,
                        cudaStream_t stream, struct dl2_error *error)
{
    (void)reducer;
    (void)data;
    (void)count;
    (void)stream;
    (void)error;
    return DL2_OK;
}

int dl2_gpu_reducer_wait(struct dl2_gpu_reducer *reducer, cudaStream_t stream,
                         struct dl2_error *error)
{
    (void)reducer;
    (void)stream;
    (void)error;
    return DL2_OK;
}

int dl2_gpu_reducer_check(struct dl2_gpu_reducer *reducer, struct dl2_error *error)
{
    (void)reducer;
    (void)error;
    return DL2_OK;
}
