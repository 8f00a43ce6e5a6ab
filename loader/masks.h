/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masks beside images: gray images of class numbers, of the images' size. A mask is read in the
 * read stage, shows what its image shows, of the size of the output and without a filter, and
 * follows the image through all that moves pixels.
 *
 * Threads: one at a time for each mask.
 */
#ifndef DL2_LOADER_MASKS_H
#define DL2_LOADER_MASKS_H

#include "codec/decoder.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "loader/loader_config.h"
#include "pixels/augment.h"
#include "pixels/crop.h"

/* The mask of one sample under way. */
struct dl2_sample_mask {
    struct dl2_bytes bytes, columns;
    struct dl2_decoder *decoder;
    struct dl2_pixels pixels; /* of the output's size */
};

/* The bytes of a mask in a batch; the size of an image in it was checked before. */
static inline size_t dl2_loader_mask_bytes(const struct dl2_loader_config *config)
{
    return (size_t)config->height * dl2_loader_width(config) *
           (config->volume_depth ? config->volume_depth : 1);
}

/* Expects zeroed memory, and does nothing where the loader has no masks. Free it in either case. */
int dl2_mask_init(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  struct dl2_error *error);
void dl2_mask_free(struct dl2_sample_mask *mask);
size_t dl2_mask_memory(const struct dl2_sample_mask *mask);

/* DL2_ERR_FORMAT if the sample has none. */
int dl2_mask_read(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  const struct dl2_dataset *dataset, uint32_t index, struct dl2_error *error);

/*
 * Makes mask->pixels of what an image of width x height pixels shows. DL2_ERR_FORMAT for a mask of
 * another size, of color other than a palette, with alpha, or of more than 8 bits.
 */
int dl2_mask_show(struct dl2_sample_mask *mask, const struct dl2_loader_config *config,
                  uint32_t width, uint32_t height, const struct dl2_crop_box *crop,
                  struct dl2_error *error);

#endif
