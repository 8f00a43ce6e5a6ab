/*
 * Decoding for a pipeline: the header first, once; then only the part of the image that is needed,
 * no finer than is of use, with memory that is kept from image to image.
 *
 * The result is the same pixels that cropping the whole decoded image (at the same reduction) would
 * give, bit for bit, whichever way was taken:
 * - JPEG with restart intervals: the segments that cover the rectangle are spliced into a small
 *   JPEG (codec/jpeg/jpeg_tiles.h);
 * - other JPEG: rows above are skipped, rows below never read;
 * - WebP, AVIF, JPEG 2000: crop window, reduced resolutions and tiles as the libraries have them,
 *   but for the kinds of files of which a library gets parts wrong (see each codec's file);
 * - anything else, and what a library decodes as a whole and refuses to in part: the whole image.
 * Gray of a colour JPEG is its luma as coded, here and from dl2_image_decode().
 *
 * Threads: one at a time per decoder; decoders share nothing.
 */
#ifndef DL2_CODEC_DECODER_H
#define DL2_CODEC_DECODER_H

#include "codec/codec.h"
#include "pixels/raster.h"

struct dl2_decoder;

int dl2_decoder_create(struct dl2_decoder **out, struct dl2_error *error);
void dl2_decoder_destroy(struct dl2_decoder *decoder);
/* Bytes that it holds from image to image; what a library takes and gives back meanwhile aside. */
size_t dl2_decoder_memory(const struct dl2_decoder *decoder);

/*
 * Sniffs the codec and reads the header; `info` as dl2_image_read_info() gives it. The bytes must
 * stay where they are until the image is decoded and its raster no longer used. DL2_ERR_LIMIT above
 * max_pixels (0: the default).
 */
int dl2_decoder_open(struct dl2_decoder *decoder, const uint8_t *data, size_t size,
                     uint64_t max_pixels, struct dl2_image_info *info, struct dl2_error *error);

struct dl2_decode_request {
    uint32_t x, y, width, height; /* what is needed, in pixels of the upright image */
    /*
     * 1, 2, 4 or 8: at most so much coarser. What comes out may be finer than that (a codec that
     * can't, a reduction that doesn't pay), never coarser.
     */
    uint32_t reduction;
    uint32_t channels; /* 0: as coded; 1: gray; 3: colour, or gray where the image is gray */
    bool planes;       /* YCbCr planes are welcome; false: gray or RGB, full chroma resolution */
    uint8_t background[3]; /* R, G, B under alpha */
};

#define DL2_DECODE_REQUEST_DEFAULTS                                                                \
    {                                                                                              \
        .reduction = 1, .planes = true, .background = { 255, 255, 255 }                            \
    }

/*
 * Decodes what dl2_decoder_open() opened, once. Every plane of the raster covers at least the
 * rectangle (it may hold more); it is valid until the decoder's next use. The errors of
 * dl2_image_decode(), and DL2_ERR_ARGUMENT for a rectangle outside the image.
 *
 * Damage outside the rectangle need not be noticed.
 */
int dl2_decoder_decode(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                       struct dl2_raster *raster, struct dl2_error *error);

#endif
