/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connected components of a volume's labels: voxels of one class that are joined by faces, as
 * scipy.ndimage.label() of each class has them, with the bounding boxes of find_objects(). Labels 0
 * and `mask_fill` are no class.
 *
 * They are found in one scan of the labels, by union-find. It takes 4 bytes for each voxel of a
 * slice, which may have 2^29, and up to 80 for each part of a component that is in two neighboring
 * slices, whatever the depth. Of each class DL2_COMPONENTS are kept at most: all if there are no
 * more, else every 2nd, 4th, 8th and so on, whatever gives at least half as many, in the order in
 * which they end.
 *
 * Threads: one for each scan.
 */
#ifndef DL2_LOADER_COMPONENTS_H
#define DL2_LOADER_COMPONENTS_H

#include "common/error.h"
#include "volumes/volume.h"

#include <stdint.h>

enum { DL2_COMPONENTS = 1024 };

struct dl2_component {
    uint32_t first[3], end[3]; /* bounding box; `end` is the first voxel behind it */
    uint8_t class;
};

/* Sets *out to *count components, by class and then in the order in which they end, which the
 * caller frees; to NULL where there are none. Errors name the file. */
int dl2_components_find(struct dl2_volume *labels, unsigned mask_fill, struct dl2_component **out,
                        uint32_t *count, struct dl2_error *error);

#endif
