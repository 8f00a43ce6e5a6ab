/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of images for people to look at, chosen by scores that dl2-quality has written
 * (quality/crop_choice.h), from the reference and from every variant. The files are dl2-crops/2
 * (docs/formats.md).
 */
#ifndef DL2_QUALITY_CROPS_H
#define DL2_QUALITY_CROPS_H

#include "common/error.h"
#include "common/progress.h"
#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

/* Longest side of a crop, pixels. */
enum { DL2_CROP_SIDE = 128 };

struct dl2_crops_options {
    const char *scores;       /* folder of a NAME.json (dl2-quality/1) for each variant */
    enum dl2_samples samples; /* frames of clips are images here */
    const char *folder;       /* where the crops go; made if it isn't there */
    uint64_t max_pixels;
    const struct dl2_external_decoders *external; /* NULL: none */
    uint8_t background[3];                        /* under alpha, R, G, B */
    struct dl2_progress *progress;                /* names variants that are left out */
};

/*
 * The crop is the window in which the variant with the lowest score, by SSIM or the first metric
 * that all have, differs most from the reference, by squared error. Files are written at full size
 * and losslessly (PNG); crops.json comes last. Variants whose images were resized are left out:
 * nothing of theirs would show the same at the same size. Fails where a dataset or a file of scores
 * can't be read. Where no image has a score in all variants, crops.json says that there are no
 * crops.
 */
int dl2_crops_write(const char *reference, const char *const *variants, size_t count,
                    const struct dl2_crops_options *options, struct dl2_error *error);

#endif
