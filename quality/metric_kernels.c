/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "common/simd.h"
#include "quality/metric_kernels.h"

#define LANES 4
#include "quality/metric_loops.h"

const struct dl2_metric_kernels dl2_metric_kernels_c = {
    .name = "c",
    .byte_error = dl2_byte_error_c,
    .luma_error = dl2_luma_error_c,
    .sum_difference = dl2_sum_difference_c,
    .ssim_columns = dl2_ssim_columns_c,
    .ssim_row = dl2_ssim_row_c,
    LOOPS,
};

const struct dl2_metric_kernels *dl2_metric_kernels_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST(dl2_metric_kernels, simd_flags);
}
