/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pixels of an object, from polygons or run lengths, as pycocotools draws them: a pixel is
 * inside a polygon by the parity of the edges above it in its column, along edges whose points lie
 * on a grid of fifths of a pixel; several polygons are one object.
 */
#ifndef DL2_ANNOTATIONS_INSTANCE_MASKS_H
#define DL2_ANNOTATIONS_INSTANCE_MASKS_H

#include "common/error.h"
#include "common/memory.h"

/*
 * Sets `mask`, of width x height bytes, row by row, to 1 where a shape of dl2_coco_shape() is and
 * to 0 elsewhere. DL2_ERR_FORMAT for run lengths of another size, and for a polygon that leaves the
 * image by more than its size. `scratch` is for this function alone.
 */
int dl2_instance_mask_draw(const uint32_t *shape, uint32_t width, uint32_t height, uint8_t *mask,
                           struct dl2_bytes *scratch, struct dl2_error *error);

#endif
