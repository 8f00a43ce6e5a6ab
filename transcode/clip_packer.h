/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathers the frames of a clip for a container, which takes a clip whole or not at all: a clip that
 * lacks a frame would have the others under wrong numbers. Frames come in the order of the
 * dataset, which was opened by_frame.
 *
 * Threads: one at a time.
 */
#ifndef DL2_TRANSCODE_CLIP_PACKER_H
#define DL2_TRANSCODE_CLIP_PACKER_H

#include "common/error.h"
#include "common/memory.h"
#include "dataset/dataset.h"
#include "dataset/sidecars.h"
#include "dataset/write/writer.h"

/* Zeroed at first. */
struct dl2_clip_packer {
    struct dl2_bytes *bytes; /* [capacity] */
    struct dl2_writer_frame *frames;
    size_t capacity, count;
    struct dl2_image_range clip; /* count 0: none is gathered */
    const char *key;
    int label;
    struct dl2_sidecars sidecars; /* of its first frame */
    struct dl2_left_out left_out; /* beside other frames, of all clips */
};

/* Does the clip that is gathered have this image? */
static inline bool dl2_clip_packer_expects(const struct dl2_clip_packer *packer, size_t image)
{
    return image - packer->clip.first < packer->clip.count;
}

/* Begins with the clip of an image, and forgets the one before. */
void dl2_clip_packer_begin(struct dl2_clip_packer *packer, const struct dl2_dataset *dataset,
                           size_t image);
/* Adds an image of it; takes what `bytes` holds. The extension must outlive the clip. */
int dl2_clip_packer_add(struct dl2_clip_packer *packer, const char *extension,
                        struct dl2_bytes *bytes, struct dl2_error *error);
/* Copies what lies beside its first frame; what lies beside others is left out and counted. */
int dl2_clip_packer_add_sidecars(struct dl2_clip_packer *packer, size_t image,
                                 const struct dl2_sidecars *sidecars, struct dl2_error *error);
/* Says what has been left out, for people: a string to free, or NULL if nothing. */
char *dl2_clip_packer_left_out(const struct dl2_clip_packer *packer);
/* Are all frames there? */
static inline bool dl2_clip_packer_is_whole(const struct dl2_clip_packer *packer)
{
    return packer->clip.count && packer->count == packer->clip.count;
}
/* Adds a whole clip to a container, and forgets it. The errors of dl2_writer_add_clip(). */
int dl2_clip_packer_write(struct dl2_clip_packer *packer, struct dl2_writer *writer,
                          struct dl2_error *error);
void dl2_clip_packer_free(struct dl2_clip_packer *packer);

#endif
