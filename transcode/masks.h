/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies beside an image that is resized for a variant. Masks get the image's new size, each
 * pixel from the nearest one, so that they have no values that they had not; the rest stays as it
 * is.
 *
 * A mask is an image of its image's upright size in a lossless format that this build writes: one
 * called KEY.mask.EXT or KEY.seg.EXT, which may be in colors; or any that is gray of 8 bits or
 * fewer, or has a palette, as loaders take masks. One of those two names that cannot be resized is
 * an error, because it would not fit its image any more.
 */
#ifndef DL2_TRANSCODE_MASKS_H
#define DL2_TRANSCODE_MASKS_H

#include "dataset/sidecars.h"
#include "pixels/resize_image.h"

#include <pthread.h>

/* What a run copied as it is beside images that it resized, counted by extension; zeroed, with its
 * mutex initialized. Threads: any. */
struct dl2_unresized {
    pthread_mutex_t mutex;
    struct dl2_left_out counts;
    bool label_folders; /* "txt" is YOLO's label file, which has no pixels, and is not counted */
};

/* Working memory of a thread; zeroed at first. */
struct dl2_mask_resizer {
    struct dl2_image_resizer resizer;
    struct dl2_image image, resized;
    struct dl2_bytes bytes;
};

/* `out`, which is empty, becomes `in` for an image that was of width x height pixels and is of
 * new_width x new_height now. Items that stay as they are are counted; `unresized` NULL: not. */
int dl2_masks_resize(struct dl2_mask_resizer *resizer, const struct dl2_sidecars *in,
                     uint32_t width, uint32_t height, uint32_t new_width, uint32_t new_height,
                     struct dl2_sidecars *out, struct dl2_unresized *unresized,
                     struct dl2_error *error);

void dl2_mask_resizer_free(struct dl2_mask_resizer *resizer);

/* Says what was copied as it is: a string to free, or NULL if nothing was. */
char *dl2_unresized_message(const struct dl2_unresized *unresized);

/* What tells masks that are not called so from photographs. Zeroed: the image was not looked at. */
struct dl2_mask_look {
    uint32_t width, height;
    bool few_colors; /* in a lossless format, of at most 64 colors, and no piece of sky */
};

struct dl2_mask_look dl2_mask_look_at(const uint8_t *data, size_t size,
                                      const struct dl2_image *image);

/* Counts the images of few colors that have the size of another one, which has more; *first is the
 * number of the first. */
int dl2_mask_looks_count(const struct dl2_mask_look *looks, size_t count, size_t *found,
                         size_t *first, struct dl2_error *error);

#endif
