/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a .cu file starts its kernels, so that the same file compiles twice: with nvcc for cards, and
 * with a C++ compiler for tests on machines that have none (tests/cuda/emulate.h).
 *
 * DL2_LAUNCH(kernel, grid, block, stream, arguments...) is a cudaError_t: whether it was started.
 * A kernel's template arguments are put in parentheses: DL2_LAUNCH((add<float, 4>), ...).
 * Shared memory is static. Kernels use no more of CUDA than emulate.h names; a kernel that needs
 * more adds it there.
 */
#ifndef DL2_CUDA_LAUNCH_H
#define DL2_CUDA_LAUNCH_H

#ifdef DL2_EMULATE
#include "tests/cuda/emulate.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define DL2_LAUNCH(kernel, grid, block, stream, ...)                                               \
    dl2_launch(kernel, grid, block, stream, __VA_ARGS__)

/* Unlike <<<>>> this has a status of its own. The last error, by which that one is checked, may be
 * one that a library or PyTorch left there, and is to leave none for them. */
template <class... P, class... A>
inline cudaError_t dl2_launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                              A... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    cudaError_t status = cudaLaunchKernelEx(&config, kernel, arguments...);
    if (status != cudaSuccess)
        cudaGetLastError();
    return status;
}
#endif

#endif
