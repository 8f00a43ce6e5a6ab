/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network learns of a sample: its class; a mask, the class of each pixel; or the class of
 * each voxel of a volume. This is where networks, trainer and data agree on the shape of labels: a
 * batch has `count` times dl2_label_count() of them, of type int32_t, row-major, -1 for one that
 * does not count.
 */
#ifndef DL2_NETWORK_LABEL_SHAPE_H
#define DL2_NETWORK_LABEL_SHAPE_H

#include "device/device.h"

enum dl2_label_kind {
    DL2_LABEL_CLASS,  /* of a sample: 1 */
    DL2_LABEL_MASK,   /* of an image's pixels: [height][width] */
    DL2_LABEL_VOLUME, /* of a volume's voxels: [depth][height][width] */
};

/* The value in masks that stands for no label, as in PASCAL VOC and Cityscapes. */
#define DL2_MASK_IGNORED 255

struct dl2_label_shape {
    enum dl2_label_kind kind;
    struct dl2_sides sides; /* 1 where there is no such side */
};

/* Labels of a sample. */
static inline size_t dl2_label_count(const struct dl2_label_shape *shape)
{
    return dl2_sides_count(shape->sides);
}

/* By kind: "class", "mask", "volume", NULL. */
extern const char *const dl2_label_words[];

#endif
