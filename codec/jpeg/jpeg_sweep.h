/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encodes an image as baseline JPEGs of several qualities, each byte for byte as libjpeg-turbo
 * would (islow DCT). Color conversion, averaging of chroma and the forward DCT are done once; each
 * quality has a quantization and a Huffman coder of its own.
 *
 * A row of MCUs takes the whole way before the next one begins, so that it stays in the
 * processor's cache:
 *
 *     pixels -> Y, Cb, Cr -> chroma averaged -> coefficients -+-> quantize, code -> file of q 10
 *                                                             +-> quantize, code -> file of q 50
 *                                                             +-> ...
 *
 * Working memory doesn't depend on the image's height: at most 100 bytes a pixel of its width, and
 * 17 kB a quality.
 *
 * Files with Huffman tables of their own need all coefficients twice, to count the symbols and to
 * code them. There all rows go as far as the coefficients first, which take at most 6 bytes a pixel
 * more.
 */
#ifndef DL2_CODEC_JPEG_JPEG_SWEEP_H
#define DL2_CODEC_JPEG_JPEG_SWEEP_H

#include "codec/jpeg/jpeg_writer.h"
#include "common/error.h"
#include "common/memory.h"
#include "pixels/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct dl2_jpeg_sweep;

/* Huffman tables: libjpeg's standard ones, those that suit a file best, or those of the two that
 * make the smaller file; the standard ones if both make the same. */
enum dl2_jpeg_codes_kind { DL2_JPEG_STANDARD, DL2_JPEG_OPTIMIZED, DL2_JPEG_SMALLER };

/*
 * For `count` files of an image of at most 65,500 pixels a side, which stays where it is.
 * `across`, `down`: pixels of a chroma sample, 1 1, 2 1 or 2 2; 1 1 of a gray image.
 */
int dl2_jpeg_sweep_new(struct dl2_jpeg_sweep **sweep, const struct dl2_image *image,
                       uint32_t across, uint32_t down, enum dl2_jpeg_codes_kind tables,
                       size_t count, struct dl2_error *error);

/* Begins the next file. `out` stays where it is until dl2_jpeg_sweep_run() has ended. `cinfo` has
 * the file's parameters, libjpeg's standard Huffman tables among them; it is not needed
 * afterwards. */
int dl2_jpeg_sweep_add(struct dl2_jpeg_sweep *sweep, const struct jpeg_compress_struct *cinfo,
                       struct dl2_bytes *out, struct dl2_error *error);

/* Makes the coefficients of an image whose files have tables of their own; and those of a row of
 * MCUs, which are the sweep's. For callers that write no files. */
void dl2_jpeg_sweep_transform(struct dl2_jpeg_sweep *sweep);
struct dl2_jpeg_blocks dl2_jpeg_sweep_blocks(const struct dl2_jpeg_sweep *sweep, uint32_t row);
uint32_t dl2_jpeg_sweep_rows(const struct dl2_jpeg_sweep *sweep);

/* Writes the files that were added. */
int dl2_jpeg_sweep_run(struct dl2_jpeg_sweep *sweep, struct dl2_error *error);

/* Frees the sweep; NULL is allowed. */
void dl2_jpeg_sweep_free(struct dl2_jpeg_sweep *sweep);

#endif
