/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding: open, then read a rectangle, image after image. A decoder keeps its memory, and reads
 * no more of an image and no finer than requested, as far as the codec can:
 * - JPEG with restart intervals: only the segments that cover the rectangle are decoded, by our own
 *   decoder (codec/jpeg/jpeg_baseline.h) or spliced into a small JPEG (codec/jpeg/jpeg_tiles.h);
 * - other JPEG: what lies before the rectangle is skipped, what follows never read;
 * - WebP, AVIF, JPEG 2000: rectangles, reduced resolutions and tiles as the libraries have them,
 *   except for the kinds of files that a library decodes wrongly in part (see each codec's file);
 * - PNG: rows below are never read;
 * - JPEG XL that was made of a JPEG file: that file is rebuilt and decoded as any JPEG, so its
 *   pixels are the JPEG's.
 * Images with an EXIF orientation are read in the same way; what was read is then turned upright.
 *
 * The result is bit for bit the pixels that cropping the whole decoded image (at the same
 * reduction) would give. Gray of a color JPEG is its luma as coded, also from dl2_image_decode().
 *
 * Threads: one at a time per decoder; decoders share nothing.
 */
#ifndef DL2_CODEC_DECODER_H
#define DL2_CODEC_DECODER_H

#include "codec/codec.h"

struct dl2_decoder;

int dl2_decoder_create(struct dl2_decoder **out, struct dl2_error *error);
/* NULL is allowed. */
void dl2_decoder_destroy(struct dl2_decoder *decoder);
/* The same for DL2_CLEANUP() of common/scope.h. */
void dl2_decoder_drop(struct dl2_decoder **decoder);
/* Bytes that it holds from image to image, without what a library allocates and frees meanwhile. */
size_t dl2_decoder_memory(const struct dl2_decoder *decoder);

/*
 * Sniffs the codec and parses the header, as dl2_image_read_info(). The bytes must stay where they
 * are until the image is decoded and its raster is no longer used. DL2_ERR_LIMIT above max_pixels
 * (0: DL2_DEFAULT_MAX_PIXELS).
 */
int dl2_decoder_open(struct dl2_decoder *decoder, const uint8_t *data, size_t size,
                     uint64_t max_pixels, struct dl2_image_info *info, struct dl2_error *error);

/* Gives the open image, of a file without one, an EXIF orientation: joined slices have none. */
void dl2_decoder_turn(struct dl2_decoder *decoder, int orientation, struct dl2_image_info *info);

/* False: a request for a reduction of the open image gives what one without gives. */
bool dl2_decoder_reduces(const struct dl2_decoder *decoder);

/*
 * The bytes of a rectangle of the open image, for decoders in hardware: the file that was opened,
 * or if `small` a file made of the part under the rectangle, where one can be made. They stay until
 * the decoder's next use; dl2_decoder_decode() may follow. False: such decoders don't know the
 * file, or it doesn't stand upright.
 */
bool dl2_decoder_crop_bytes(struct dl2_decoder *decoder, const struct dl2_decode_request *crop,
                            bool small, struct dl2_crop_bytes *out);

/*
 * Decodes what dl2_decoder_open() opened, once. The rectangle is one of the upright image. Every
 * plane of the raster covers at least the rectangle (it may hold more); it is valid until the
 * decoder's next use. The errors of dl2_image_decode(), and DL2_ERR_ARGUMENT for a rectangle
 * outside the image.
 *
 * Damage outside the rectangle need not be noticed.
 */
int dl2_decoder_decode(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                       struct dl2_raster *raster, struct dl2_error *error);

#endif
