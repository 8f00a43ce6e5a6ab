/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds an image's quality for a target (transcode/target.h).
 *
 * A codec that has trials (JPEG) is searched through for a score, quality by quality, because
 * scores fall here and there as the quality rises, above all at the quality that a source had
 * before (target_scan.c).
 *
 * For others, and for sizes, files are made: first at the quality that the mean curve of a sample
 * of the images says, then by that curve moved to where the image's own files are, and from the
 * sixth on every other time halfway between those. The search ends at a file that meets the target
 * and is within the tolerance of it, or if the next quality, by the curve, does not meet it any
 * more.
 *
 * The result depends on the image, the options and the curve alone.
 */
#ifndef DL2_TRANSCODE_TARGET_SEARCH_H
#define DL2_TRANSCODE_TARGET_SEARCH_H

#include "transcode/target_try.h"

enum { DL2_TARGET_SAMPLES = 5 }; /* qualities at which a sample's images are tried */

/* Makes `out` the file. DL2_ERR_UNSUPPORTED for an image that is too small for the metric, and,
 * with DL2_MISS_FAIL, for one that misses the target. `curve` is not used where all qualities are
 * tried. */
int dl2_target_search(struct dl2_target_searcher *searcher, const struct dl2_quality_target *target,
                      const struct dl2_target_curve *curve, const struct dl2_codec *codec,
                      const struct dl2_image *image, const struct dl2_encode_options *encode,
                      struct dl2_bytes *out, struct dl2_target_result *result,
                      struct dl2_error *error);

/* An image of the sample: dl2_target_even() at DL2_TARGET_SAMPLES qualities; errors as those of a
 * search. */
int dl2_target_sample(struct dl2_target_searcher *searcher, const struct dl2_quality_target *target,
                      const struct dl2_codec *codec, const struct dl2_image *image,
                      const struct dl2_encode_options *encode, double evens[DL2_TARGET_SAMPLES],
                      struct dl2_error *error);

/* The curve of `count` images, of which those with values that are not finite do not count. */
void dl2_target_curve_make(struct dl2_target_curve *curve, const struct dl2_quality_target *target,
                           const double (*evens)[DL2_TARGET_SAMPLES], size_t count);

/* The source's file took the place of what was found, with its pixels. */
void dl2_target_take_source(const struct dl2_quality_target *target, const struct dl2_image *image,
                            const struct dl2_bytes *file, struct dl2_target_result *result);

#endif
