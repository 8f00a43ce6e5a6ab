/* SPDX-License-Identifier: BSD-2-Clause */
#define KERNELS dl2_jpeg_color_kernels_avx2
#define NAME    "avx2"
#include "codec/jpeg/jpeg_color_kernels.inc"
