/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole volumes on another grid: turned so that their axes run otherwise, and resampled to other
 * numbers of voxels. The first and the last voxel of an axis stay where they are, so that voxel i
 * of n lies at i * (old - 1) / (n - 1), as scipy.ndimage.zoom() has it.
 *
 * Functions replace *voxels or *labels, one channel in memory of malloc(), which they free.
 * Threads: any number, each with arrays of its own. DL2_ERR_MEMORY leaves the array as it was or
 * resampled along some axes; free it.
 */
#ifndef DL2_PIXELS_VOLUME_RESAMPLE_H
#define DL2_PIXELS_VOLUME_RESAMPLE_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Axis i of the result is axis from[i], reversed if `reverse`. */
struct dl2_volume_turn {
    unsigned from[3];
    bool reverse[3];
};

/* `bytes` is the size of a voxel, 1 or 4; size is that of the array, and becomes the result's. */
int dl2_volume_turn(void **voxels, size_t bytes, size_t size[3], const struct dl2_volume_turn *turn,
                    struct dl2_error *error);

/* order 1 is linear, 3 a cubic B-spline through the voxels, mirrored at the ends
 * (scipy.ndimage.zoom() with mode="mirror"). Any number of voxels, at least 1, along an axis. */
int dl2_volume_resample(float **voxels, const size_t size[3], const size_t to[3], unsigned order,
                        struct dl2_error *error);

enum dl2_label_rule {
    DL2_LABELS_NEAREST, /* the nearest voxel: order 0 */
    DL2_LABELS_LINEAR,  /* the class whose linear share of the voxels around is largest, or the
                           lowest of several */
    /* The voxel floor(i * old / n), PyTorch's interpolate(mode="nearest"), as MLPerf's 3D U-Net:
     * up to a voxel beside the image. */
    DL2_LABELS_MLPERF
};
int dl2_labels_resample(uint8_t **labels, const size_t size[3], const size_t to[3],
                        enum dl2_label_rule rule, struct dl2_error *error);

#endif
