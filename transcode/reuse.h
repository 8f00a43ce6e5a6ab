/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether a lossy variant takes a source file as it is instead of encoding its pixels again
 * (dl2-transcode --never-larger). Encoding again at the same quality or a higher one loses quality
 * once more and saves nothing.
 *
 * Only a file of the variant's own codec can be taken, and only if it shows the pixels that the
 * variant promises: upright, opaque, and of a JPEG gray or YCbCr of 8 bits in Huffman codes, which
 * every program reads. It keeps its metadata, and stays progressive if it is. A baseline JPEG gets
 * the restart intervals that the variant is to have, which changes no pixel; all other files stay
 * as they are, byte for byte.
 */
#ifndef DL2_TRANSCODE_REUSE_H
#define DL2_TRANSCODE_REUSE_H

#include "codec/codec.h"

/* The facts of a source file's headers. */
struct dl2_reuse {
    const struct dl2_codec *codec; /* whose variants may take the file; NULL: none may */
    struct dl2_coding coding;
};

/* Reads the headers; a file that can't be read may not be taken. */
void dl2_reuse_look(struct dl2_reuse *reuse, const uint8_t *data, size_t size);

/* May the variant have the file without being encoded, by the headers alone? */
bool dl2_reuse_suffices(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                        const struct dl2_encode_options *encode);

/*
 * Makes `out` what a variant has for the image: it is encoded, or the file itself, encode->source,
 * whose headers are in `reuse`. `spare` is memory for the work. Adds the encoder's CPU time to
 * *encode_cpu, in seconds. 1: it is the file; 0: it was encoded; else an error.
 */
int dl2_reuse_encode(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                     const struct dl2_image *image, const struct dl2_encode_options *encode,
                     struct dl2_bytes *spare, struct dl2_bytes *out, double *encode_cpu,
                     struct dl2_error *error);

/* The second half of that: makes `out`, which was encoded, the file itself where the variant may
 * have it and it is no larger, or of `any_size`. */
int dl2_reuse_replace(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                      const struct dl2_encode_options *encode, bool any_size,
                      struct dl2_bytes *spare, struct dl2_bytes *out, struct dl2_error *error);

#endif
