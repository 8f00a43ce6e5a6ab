/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "common/simd.h"
#include "pixels/operation_loops.h"

const struct dl2_operation_kernels dl2_operation_kernels_c = DL2_OPERATION_LOOPS("c", look_up_loop);

const struct dl2_operation_kernels *dl2_operation_kernels_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST_COMPILED(dl2_operation_kernels, simd_flags);
}
