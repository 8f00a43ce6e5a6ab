/* SPDX-License-Identifier: BSD-2-Clause */
/* Huffman tables for an image: those that code its symbols with the fewest bits. */
#ifndef DL2_CODEC_JPEG_JPEG_OPTIMAL_H
#define DL2_CODEC_JPEG_JPEG_OPTIMAL_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/*
 * The table for symbols that occur counts[symbol] times, at least one of them at all, as libjpeg
 * makes it (ITU-T T.81, annex K.2): codes have at most 16 bits, and none has only ones. Sums of all
 * counts stay below 2^54.
 */
void dl2_jpeg_optimal_table(const uint64_t counts[256], JHUFF_TBL *table);

#endif
