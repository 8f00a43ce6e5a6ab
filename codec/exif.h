/* SPDX-License-Identifier: BSD-2-Clause */
/* The orientation in an EXIF block (CIPA DC-008), which is a small TIFF file, and its thumbnail. */
#ifndef DL2_CODEC_EXIF_H
#define DL2_CODEC_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The orientation, 1 to 8, of a block that starts with a TIFF header, or with "Exif\0\0" and then
 * one. 1 where there is none, or where the block is damaged: a bad orientation is no reason to
 * refuse a good picture.
 */
int dl2_exif_orientation(const uint8_t *data, size_t size);

/*
 * Makes the orientation of a block that starts with a TIFF header 1, where there is one, and takes
 * away the reference to its thumbnail, which would show the image as it was turned. False: it is
 * no such block.
 */
bool dl2_exif_make_upright(uint8_t *data, size_t size);

#endif
