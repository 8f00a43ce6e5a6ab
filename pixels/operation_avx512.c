/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/operation_loops.h"

const struct dl2_operation_kernels dl2_operation_kernels_avx512 = DL2_OPERATION_LOOPS("avx512");
