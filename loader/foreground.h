/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the foreground of volumes is: voxels whose label is above 0, and not config.mask_fill,
 * which is no class. The labels of a volume are scanned when they are first asked for. Kept in
 * memory are, by config.foreground_rule,
 *
 *   voxel      up to DL2_FOREGROUND_VOXELS of these voxels: every one if there are no more, else
 *              every 2nd, 4th, 8th and so on, whatever gives at least half as many
 *   component  the bounding boxes of up to DL2_COMPONENTS components of each class, likewise
 *
 * So what is kept follows from the labels alone.
 *
 * Threads: any number at once.
 */
#ifndef DL2_LOADER_FOREGROUND_H
#define DL2_LOADER_FOREGROUND_H

#include "loader/loader_config.h"
#include "volumes/volume.h"

struct dl2_foreground;

/* Of `samples` volumes, by the rule and the mask_fill of the settings. */
int dl2_foreground_create(uint32_t samples, const struct dl2_loader_config *config,
                          struct dl2_foreground **out, struct dl2_error *error);
void dl2_foreground_destroy(struct dl2_foreground *foreground);
/* Bytes that it holds now. */
size_t dl2_foreground_memory(const struct dl2_foreground *foreground);

/* What a patch is to show: a component's bounding box, or a voxel. */
struct dl2_foreground_box {
    size_t first[3], end[3]; /* `end` is the first voxel behind it */
};

/* Draws what a patch of a sample is to show, from its labels. Returns 1, 0 if it has no foreground,
 * or an error, which names a file: the sample's `path` or that of its labels. */
int dl2_foreground_draw(struct dl2_foreground *foreground, uint32_t index, const char *path,
                        struct dl2_volume *labels, struct dl2_random *random,
                        struct dl2_foreground_box *box, struct dl2_error *error);

#endif
