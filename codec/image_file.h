/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells which files are images, for code that lists datasets.
 *
 * Threads: any number at once.
 */
#ifndef DL2_CODEC_IMAGE_FILE_H
#define DL2_CODEC_IMAGE_FILE_H

#include <stdbool.h>

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

#ifdef __cplusplus
}
#endif

#endif
