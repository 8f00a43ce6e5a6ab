/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on a patch of a volume: float32 [channels][depth][height][width], and its labels,
 * uint8 [depth][height][width]. Axes 0, 1, 2 are depth, height, width. What moves voxels moves
 * labels alike; what changes values leaves them as they are.
 *
 * Plain C: each works on rows of neighbors in memory, which compilers vectorize. No operation
 * allocates memory or fails. Threads: one at a time for each struct dl2_voxels.
 */
#ifndef DL2_PIXELS_VOLUME_OPERATIONS_H
#define DL2_PIXELS_VOLUME_OPERATIONS_H

#include "common/error.h"
#include "common/random.h"

#include <stddef.h>
#include <stdint.h>

struct dl2_voxels {
    float *data;                    /* [channels][size[0]][size[1]][size[2]] */
    float *spare;                   /* as large: operations may swap the two */
    uint8_t *labels, *spare_labels; /* the same; NULL: none */
    float *line;                    /* private: three rows with margins */
    size_t channels, size[3];
};

/* Allocates a patch, with labels if they are wanted; its contents are undefined. Free it in either
 * case. */
int dl2_voxels_init(struct dl2_voxels *voxels, size_t channels, const size_t size[3], bool labels,
                    struct dl2_error *error);
void dl2_voxels_free(struct dl2_voxels *voxels);
/* Bytes that it holds. */
size_t dl2_voxels_memory(const struct dl2_voxels *voxels);

/* Each channel's mean becomes 0 and its deviation 1; constant values become 0. `part` voxels from
 * `at` on count and change, the others stay. */
void dl2_voxels_zscore(struct dl2_voxels *voxels, const size_t at[3], const size_t part[3]);
/* The same part: low becomes 0 and high 1; others become the nearer of these. */
void dl2_voxels_window(struct dl2_voxels *voxels, const size_t at[3], const size_t part[3],
                       double low, double high);

/* Reverses an axis. */
void dl2_voxels_flip(struct dl2_voxels *voxels, unsigned axis);

/* Adds normal random numbers of this deviation. */
void dl2_voxels_noise(struct dl2_voxels *voxels, struct dl2_random *random, double deviation);

/* Multiplies all values. */
void dl2_voxels_brightness(struct dl2_voxels *voxels, double factor);

/* A value becomes ((v - least) / range) ^ exponent * range + least, by the least and greatest value
 * of its channel. */
void dl2_voxels_gamma(struct dl2_voxels *voxels, double exponent);

enum { DL2_VOXELS_BLUR_MAX = 10 }; /* the largest deviation of a blur, voxels */

/* A Gaussian over the three axes, cut off at four deviations; the outermost voxels are repeated
 * outside (scipy.ndimage.gaussian_filter with mode="nearest"). */
void dl2_voxels_blur(struct dl2_voxels *voxels, double sigma);

/*
 * Elastic deformation. Random displacements at a grid of control points, uniform within +-most
 * voxels along each axis, become those of all voxels by cubic B-splines. Values are interpolated
 * linearly and labels are those of the nearest voxel; outside, the outermost voxels are repeated.
 * `points` control points along each axis, 2 to DL2_ELASTIC_POINTS, lie evenly from the first voxel
 * to the last; one more on each side completes the splines.
 */
enum { DL2_ELASTIC_POINTS = 16 };
struct dl2_elastic {
    unsigned points;
    /* [axis][z][y][x], points + 2 along each */
    float offsets[3][DL2_ELASTIC_POINTS + 2][DL2_ELASTIC_POINTS + 2][DL2_ELASTIC_POINTS + 2];
};
void dl2_elastic_draw(struct dl2_elastic *elastic, struct dl2_random *random, unsigned points,
                      double most);
void dl2_voxels_elastic(struct dl2_voxels *voxels, const struct dl2_elastic *elastic);

#endif
