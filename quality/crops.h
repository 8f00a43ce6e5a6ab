/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of images for people to look at, chosen by scores that dl2-quality has written, from the
 * reference and from every variant: by each metric that all variants have scores of, the worst
 * image, the median and the best by the mean of their scores over the variants. The files are
 * dl2-crops/2 (docs/formats/quality.md).
 */
#ifndef DL2_QUALITY_CROPS_H
#define DL2_QUALITY_CROPS_H

#include "quality/score.h"

/* Longest side of a crop, pixels. */
enum { DL2_CROP_SIDE = 128 };

/*
 * `scores` is a folder of a NAME.json (dl2-quality/1) for each variant; `folder` is made if it
 * isn't there. Of the options, those of decoding matter, and `samples` and `progress`, which names
 * variants that are left out.
 *
 * The crop is the window in which the variant with the lowest score, by SSIM or the first metric
 * that all have, differs most from the reference, by squared error. Files are written at full size
 * and losslessly (PNG); crops.json comes last. Variants whose images were resized are left out:
 * nothing of theirs would show the same at the same size. Fails where a dataset or a file of scores
 * can't be read. Where no image has a score in all variants, crops.json says that there are no
 * crops.
 */
int dl2_crops_write(const char *reference, const char *const *variants, size_t count,
                    const char *scores, const char *folder,
                    const struct dl2_scoring_options *options, struct dl2_error *error);

#endif
