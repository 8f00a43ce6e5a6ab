/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of JPEGs, decoded by nvJPEG: what the card's JPEG engines (A100, H100, H200...) support, by
 * them, and the rest by its cores.
 *
 * A decoded image is a raster in the card's memory: the planes of luma and chroma as they are coded
 * or, for gray, luma alone. With `regions` it is a rectangle of interleaved RGB: nvJPEG promises
 * rectangles in this format alone.
 *
 * Threads: backends are for all of them; lists for one at a time. The card is the thread's current
 * one in all calls but describe.
 */
#ifndef DL2_CUDA_JPEG_LISTS_H
#define DL2_CUDA_JPEG_LISTS_H

#include "loader/batch_decoder.h"
#include "pixels/raster.h"

#include <cuda_runtime_api.h>

struct dl2_jpeg_backends; /* of a card: its engines and its cores */
struct dl2_jpeg_lists;    /* decoders' states, for lists one after the other */

/* One image of a list. */
struct dl2_listed_jpeg {
    const uint8_t *data; /* until it is decoded; pinned memory is faster */
    size_t size;
    const struct dl2_coded_frame *plain; /* its header, which memory was laid out by */
    /* Where it goes: RGB with regions, else gray or YCbCr. Planes begin at multiples of the steps
     * of chroma. */
    struct dl2_raster raster;
    /* After decoding. */
    const char *refusal; /* why there is no image, static; NULL: there is */
    bool by_engines;
};

/* DL2_ERR_UNSUPPORTED where the card lacks what the options ask for. */
int dl2_jpeg_backends_open(const struct dl2_batch_decoder_options *options,
                           struct dl2_jpeg_backends **out, struct dl2_error *error);
void dl2_jpeg_backends_close(struct dl2_jpeg_backends *backends); /* NULL is allowed */
/* For reports: a new object, which the caller frees. */
json_t *dl2_jpeg_backends_describe(const struct dl2_jpeg_backends *backends);

/* For at most `most` images at once. */
int dl2_jpeg_lists_create(const struct dl2_jpeg_backends *backends, unsigned most,
                          struct dl2_jpeg_lists **out, struct dl2_error *error);
void dl2_jpeg_lists_free(struct dl2_jpeg_lists *lists); /* NULL is allowed */

/*
 * Decodes images into memory that no stream is still at: cores work in the order of `stream`,
 * engines at once. All are done when the stream is. An image that can't be decoded is refused; an
 * error says that the card or nvJPEG can't go on.
 */
int dl2_jpeg_lists_decode(struct dl2_jpeg_lists *lists, struct dl2_listed_jpeg *const *images,
                          unsigned count, cudaStream_t stream, struct dl2_error *error);

#endif
