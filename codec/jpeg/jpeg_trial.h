/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decoding JPEGs of several qualities gives, without making the files. Entropy coding loses
 * nothing, so that a quality takes a quantization, an inverse DCT and the conversion to RGB; the
 * forward DCT is done once. Rows are made as they are asked for:
 *
 *     coefficients (jpeg_sweep.h) -> quantize (jpeg_forward.h) -> planes (jpeg_inverse.h)
 *                                                              -> pixels (jpeg_color.h)
 *
 * Pixels are those of dl2_image_decode(), bit for bit. Of files that an orientation turns, each
 * quality is made whole. Working memory: up to 15 bytes a pixel, and 3 if it is turned.
 */
#ifndef DL2_CODEC_JPEG_JPEG_TRIAL_H
#define DL2_CODEC_JPEG_JPEG_TRIAL_H

#include "codec/jpeg_tables.h"
#include "common/error.h"
#include "pixels/image.h"

#include <stdint.h>

struct dl2_jpeg_trial;

/* For files of an image as dl2_jpeg_sweep_new() takes it, whose pixels an EXIF orientation turns.
 * The image is not needed afterwards. */
int dl2_jpeg_trial_new(struct dl2_jpeg_trial **out, const struct dl2_image *image, uint32_t across,
                       uint32_t down, const struct dl2_jpeg_steps *steps, int orientation,
                       struct dl2_error *error);

/*
 * Rows [top, bottom) of *out are those of a file of the quality; others may be of any. The image is
 * the trial's, until the next call. 1: done; 0: coefficients are so large that decoders differ, so
 * that only a file can tell, and of the trial NULL; negative: out of memory.
 */
int dl2_jpeg_trial_rows(struct dl2_jpeg_trial *trial, int quality, uint32_t top, uint32_t bottom,
                        const struct dl2_image **out, struct dl2_error *error);

/* Frees the trial; NULL is allowed. */
void dl2_jpeg_trial_free(struct dl2_jpeg_trial *trial);

#endif
