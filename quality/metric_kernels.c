/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "common/simd.h"
#include "quality/metric_kernels.h"

const struct dl2_metric_kernels dl2_metric_kernels_c = {
    .name = "c",
    .byte_error = dl2_byte_error_c,
    .luma_error = dl2_luma_error_c,
    .sum_difference = dl2_sum_difference_c,
    .ssim_columns = dl2_ssim_columns_c,
    .ssim_row = dl2_ssim_row_c,
};

const struct dl2_metric_kernels *dl2_metric_kernels_for(unsigned simd_flags)
{
    const struct dl2_metric_kernels *kernels = &dl2_metric_kernels_c;
    (void)simd_flags;
#ifdef HAVE_AVX2
    if (simd_flags & DL2_SIMD_AVX2)
        kernels = &dl2_metric_kernels_avx2;
#endif
#ifdef HAVE_AVX512
    if (simd_flags & DL2_SIMD_AVX512)
        kernels = &dl2_metric_kernels_avx512;
#endif
    return kernels;
}
