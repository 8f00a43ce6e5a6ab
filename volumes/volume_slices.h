/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes as slices: a tar file, NAME.slices, whose first member is volume.json, followed by an
 * image file of one channel for each slice of each channel: slice z of channel 0 is 0000.jp2, with
 * several channels 0-0000.jp2. Other programs open each with their own libraries.
 *
 *     | volume.json | 0000.jp2 | 0001.jp2 | ... | two empty blocks |
 *
 * volume.json (docs/formats/datasets.md) says where each image is, and what its samples stand for:
 * a voxel's value is slope * (minimum + sample) + intercept.
 *
 * Threads: one at a time for each object.
 */
#ifndef DL2_VOLUMES_SLICES_H
#define DL2_VOLUMES_SLICES_H

#include "common/gray.h"
#include "common/memory.h"
#include "volumes/volume.h"

#define DL2_SLICES_EXTENSION "slices"

/* What volume.json says beside the volume's header. */
struct dl2_volume_slices {
    unsigned bits;
    struct dl2_volume_slice {
        uint64_t offset; /* in the file; while it is written, from the end of volume.json on */
        uint64_t bytes;
    } * table;    /* [channels][depth] */
    size_t count; /* of them */
};

void dl2_volume_slices_free(struct dl2_volume_slices *slices);

/* Reads volume.json. The images lie within bytes [start, end) of the file. */
int dl2_volume_slices_parse(const char *text, size_t size, uint64_t start, uint64_t end,
                            struct dl2_volume_info *info, struct dl2_volume_slices *slices,
                            struct dl2_error *error);
/* Finds it in the open file `fd` of so many bytes, and parses it. */
int dl2_volume_slices_read(int fd, uint64_t bytes, struct dl2_volume_info *info,
                           struct dl2_volume_slices *slices, struct dl2_error *error);

/* A file that is being made in memory, slice by slice. Zeroed at first. */
struct dl2_volume_slices_writer {
    const char *extension; /* of the images; the caller sets it */
    struct dl2_volume_slices slices;
    struct dl2_bytes members;
};

/* Adds the encoded slice that follows in the order of channels and depth. */
int dl2_volume_slices_add(struct dl2_volume_slices_writer *writer,
                          const struct dl2_volume_info *info, const struct dl2_bytes *image,
                          struct dl2_error *error);
/*
 * Makes `out` the file of a volume whose slices are all added. What their samples stand for is in
 * `info`; `type` is the type of the source's voxels.
 */
int dl2_volume_slices_finish(const struct dl2_volume_slices_writer *writer,
                             const struct dl2_volume_info *info, const char *type,
                             struct dl2_bytes *out, struct dl2_error *error);
void dl2_volume_slices_writer_free(struct dl2_volume_slices_writer *writer);

#endif
