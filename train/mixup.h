/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mixup (Zhang, Cisse, Dauphin, Lopez-Paz: "mixup: beyond empirical risk minimization", ICLR 2018):
 * every sample of a batch is blended with a partner from the same batch, one share for all. CutMix
 * (Yun et al., ICCV 2019): every sample gets a rectangle of its partner's, one rectangle for all.
 */
#ifndef DL2_TRAIN_MIXUP_H
#define DL2_TRAIN_MIXUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The share of the sample itself, from Beta(alpha, alpha), alpha > 0, and partner[0 .. count-1], a
 * permutation of 0 .. count-1. Named by (seed, step) alone.
 */
double dl2_mixup_draw(uint64_t seed, uint64_t step, double alpha, uint32_t *partner,
                      unsigned count);

struct dl2_mix {
    double share; /* of the sample itself, 0 to 1: in mixup of its pixels, in CutMix of its area */
    bool cuts;    /* CutMix; the rectangle in pixels may be empty */
    uint32_t x, y, width, height;
};

/*
 * Draws mixup with `mixup` as alpha, CutMix with `cutmix`, or with both above 0 one of them, each
 * with a probability of 1/2; one must be. Sizes are of images, in pixels. CutMix's rectangle is
 * torchvision's: it has a part of 1 - Beta(alpha, alpha) of the area around a place that is
 * uniform in the image, as far as it lies within. The rest as dl2_mixup_draw().
 */
struct dl2_mix dl2_mix_draw(uint64_t seed, uint64_t step, double mixup, double cutmix,
                            uint32_t height, uint32_t width, uint32_t *partner, unsigned count);

/* Gives each image of a batch, height x width pixels of `channels` bytes, its partner's rectangle,
 * as that was before; of clips, in each of their frames (1: images). `spare` is for width *
 * channels bytes. */
void dl2_mix_paste(const struct dl2_mix *mix, uint8_t *images, uint32_t frames, uint32_t height,
                   uint32_t width, uint32_t channels, const uint32_t *partner, unsigned count,
                   uint8_t *spare);

#endif
