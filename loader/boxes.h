/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Boxes of samples: they are read in the read stage, follow the crop, the resize and the flip once
 * these are known, and travel with the sample into its batch.
 *
 * Threads: one at a time for each sample; a source does not change.
 */
#ifndef DL2_LOADER_BOXES_H
#define DL2_LOADER_BOXES_H

#include "annotations/annotations.h"
#include "common/error.h"
#include "loader/loader_config.h"
#include "pixels/operations.h"

/* Where boxes come from, as dl2_loader_config.boxes says. */
struct dl2_box_source {
    char *text;                   /* as it was given; NULL: no boxes */
    struct dl2_coco *coco;        /* NULL: label files */
    const char *extension;        /* of these */
    struct dl2_class_names names; /* of these */
    char *warning;                /* what does not fit, or NULL */
};

/* The boxes of one sample under way. Of zeroed memory. */
struct dl2_sample_boxes {
    struct dl2_boxes view; /* into: */
    struct dl2_bytes block;
    /* Label files: the file, and its struct dl2_annotation. */
    struct dl2_bytes file, rows;
    /* Masks: at the image's size, room to draw, room to crop; of the output's size. */
    struct dl2_bytes whole, scratch, columns;
    struct dl2_pixels shown;
};

/* Expects zeroed memory, does nothing where the loader has no boxes. Close it in either case. */
int dl2_box_source_open(struct dl2_box_source *source, const struct dl2_loader_config *config,
                        const struct dl2_dataset *dataset, struct dl2_error *error);
void dl2_box_source_close(struct dl2_box_source *source);

/* Reads a sample's label file; where there is none, the sample has no boxes and is counted.
 * DL2_ERR_FORMAT where it is damaged, or has a class without a name in data.yaml. */
int dl2_boxes_read(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                   const struct dl2_dataset *dataset, uint32_t index,
                   struct dl2_loader_stats *stats, struct dl2_error *error);

/* Class `number` of COCO's categories or data.yaml, by labels; "": a category without a name. False
 * after the last. */
bool dl2_box_source_class(const struct dl2_box_source *source, size_t number, int64_t *label,
                          const char **name);

/*
 * Makes boxes->view of what an image of width x height pixels shows. Where the file's size of the
 * image is another one, boxes are scaled; DL2_ERR_FORMAT if its aspect differs.
 */
int dl2_boxes_show(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                   const struct dl2_loader_config *config, uint32_t index, uint32_t width,
                   uint32_t height, const struct dl2_crop_box *crop, struct dl2_error *error);

/* Exchanges a sample's boxes with those of its place in a batch, and shows them in `out`; with
 * `from` NULL it has none. */
void dl2_boxes_place(struct dl2_sample_boxes *from, struct dl2_bytes *block, struct dl2_boxes *out);

size_t dl2_boxes_memory(const struct dl2_sample_boxes *boxes);
void dl2_boxes_free(struct dl2_sample_boxes *boxes);

#endif
