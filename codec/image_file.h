/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells which files are images, and decodes slices of volumes, for code that opens datasets.
 *
 * Threads: any number at once.
 */
#ifndef DL2_CODEC_IMAGE_FILE_H
#define DL2_CODEC_IMAGE_FILE_H

#include "common/gray.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is this (without dot, any case) a usual extension of an image file, also of other codecs? */
bool dl2_codec_is_image_extension(const char *extension);

/*
 * The same for a file, for dl2_dataset_options.keep: where its name says nothing, do its first
 * bytes say that one of the codecs can read it?
 */
bool dl2_codec_is_image_file(const char *path);

/*
 * Does this build have a codec for a file of this extension ("": none) that begins with these
 * bytes, for dl2_dataset_options.reads? With `size` 0 the extension alone decides, and one that is
 * not an image's is no reason to say no. Says nothing about damaged files.
 */
bool dl2_codec_reads(const char *extension, const uint8_t *start, size_t size);

/* A dl2_gray_decoder, for dl2_dataset_options.decode_slice: of files of any codec that has such
 * images. */
int dl2_gray_decode(const uint8_t *data, size_t size, const struct dl2_gray_part *part,
                    uint16_t *out, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
