/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sums of psnr_rgb, psnr_y and ssim (quality/psnr.c, quality/ssim.c) on the card: one launch
 * makes all three for a pair of images.
 */
#ifndef DL2_CUDA_SCORE_H
#define DL2_CUDA_SCORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Two images of one size in the card's memory; 1 or 3 channels each. */
struct dl2_gpu_pair {
    const uint8_t *a, *b;
    size_t stride_a, stride_b; /* bytes */
    uint32_t channels_a, channels_b;
    uint32_t width, height;
};

/* The part of one block of the launch. */
struct dl2_gpu_score {
    uint64_t samples; /* of (a - b)^2 over samples; gray against color counts three times */
    uint64_t luma;    /* of (a - b)^2 over luma in thousandths */
    double ssim;      /* of SSIM over the windows that begin in the block's tile */
};

/* The number of blocks that a pair takes. */
size_t dl2_gpu_score_blocks(uint32_t width, uint32_t height);
/* Queues the launch and returns a cudaError_t. `scores` is [blocks] in the card's memory; add them
 * up in their order. */
int dl2_gpu_score_pair(const struct dl2_gpu_pair *pair, struct dl2_gpu_score *scores,
                       struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
