/* SPDX-License-Identifier: BSD-2-Clause */
#define KERNELS dl2_jpeg_color_kernels_avx512
#define NAME    "avx512"
#include "codec/jpeg/jpeg_color_kernels.inc"
