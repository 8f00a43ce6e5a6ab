/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantises a block by rate and distortion: of the levels that its AC coefficients may have, those
 * with the least weighted squared error + lambda * bits, by the code lengths of given Huffman
 * tables (Ramchandran, Vetterli 1994; Crouse, Ramchandran 1997). A coefficient takes the nearest
 * level, the one below, or zero.
 */
#ifndef DL2_CODEC_JPEG_JPEG_TRELLIS_H
#define DL2_CODEC_JPEG_JPEG_TRELLIS_H

#include "codec/jpeg/jpeg_writer.h"

#include <stdint.h>

/* Of a table, in zigzag order. */
struct dl2_jpeg_trellis {
    uint16_t steps[64];
    double weights[64]; /* of a squared unit of a coefficient */
    double lambda;      /* what a bit is worth */
};

/* `block` and `out` are scaled by 8, in zigzag order; quantising `out` gives the chosen levels. DC
 * stays as it is. */
void dl2_jpeg_trellis_block(const struct dl2_jpeg_trellis *trellis, const struct dl2_jpeg_coder *ac,
                            const int16_t block[64], int16_t out[64]);

#endif
