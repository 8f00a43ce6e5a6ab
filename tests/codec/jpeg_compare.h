/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own JPEG decoder and libjpeg-turbo on the same file, for tests and fuzzing. */
#ifndef DL2_TESTS_CODEC_JPEG_COMPARE_H
#define DL2_TESTS_CODEC_JPEG_COMPARE_H

#include "codec/jpeg/jpeg_decode.h"

/* Two decoders; zeroed, they are ready for use. */
struct jpeg_compare {
    struct dl2_jpeg_decoder own, libjpeg;
    struct dl2_image images[2]; /* for interleaved pixels */
};

struct jpeg_verdict {
    int own, libjpeg;     /* statuses of decoding */
    bool taken;           /* our own decoder made the samples, and handed nothing over */
    bool same;            /* where both decoded: all samples of the rectangle are equal */
    unsigned plane;       /* where they differ first */
    uint32_t column, row; /* in the plane's samples, counted in the whole image */
    uint8_t values[2];    /* own, libjpeg */
};

/* Both decoders open the file; false where they don't, for the same reason. */
bool jpeg_compare_open(struct jpeg_compare *compare, const uint8_t *data, size_t size,
                       struct dl2_image_info *info);
/* Decodes the part that `request` says, which lies within the image, with the given flags of enum
 * dl2_simd. Once after each open. */
void jpeg_compare_read(struct jpeg_compare *compare, const struct dl2_decode_request *request,
                       unsigned simd_flags, struct jpeg_verdict *verdict);
void jpeg_compare_free(struct jpeg_compare *compare);

#endif
