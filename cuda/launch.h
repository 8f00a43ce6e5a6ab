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
    (kernel<<<grid, block, 0, stream>>>(__VA_ARGS__), cudaGetLastError())
#endif

#endif
