/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a sample: what is known of it before any of its bytes are read. It is made once, by
 * read-ahead or else when the sample is taken, and travels with the sample to the end.
 *
 * The sample's random numbers are keyed by (seed, epoch, index); where samples may come several
 * times in an epoch, also by their position in it. The crop is drawn once, as soon as the image's
 * size is known: from the dataset (dl2_dataset_cuts()), and then the byte range follows from it;
 * from the cache of decoded images; or else from the header. The random state is the same, so the
 * crop's numbers come first in any case, and those of the caller's operations follow.
 *
 * Threads: any number at once; a planner changes only between epochs.
 */
#ifndef DL2_LOADER_SAMPLE_PLAN_H
#define DL2_LOADER_SAMPLE_PLAN_H

#include "common/random.h"
#include "dataset/dataset.h"
#include "loader/loader_config.h"
#include "pixels/crop.h"

/* What the plans of an epoch's samples have in common. */
struct dl2_planner {
    const struct dl2_dataset *dataset;
    const struct dl2_loader_config *config;
    struct dl2_decoded_cache *decoded; /* the loader's or a shared one; NULL: none */
    bool videos; /* samples are video files: their frames are known once they are open */
    bool sliced; /* plan a byte range for samples that can be cut; caches keep samples whole */
    uint64_t epoch;
    const uint32_t
        *epoch_positions; /* by claim, in all ranks' epoch; NULL: no sample comes twice */
};

/* A sample's position in all ranks' epoch, from 1, as plans have it; 0: no sample comes twice. */
static inline uint64_t dl2_plan_epoch_position(const uint32_t *positions, size_t at)
{
    return positions ? (uint64_t)positions[at] + 1 : 0;
}

struct dl2_sample_plan {
    uint32_t index;
    uint32_t image;         /* the dataset's number of what is read: the sample, or a frame of it */
    unsigned frame;         /* of a clip: which of those that are loaded */
    size_t clip, available; /* of a clip: its first image (of a video 0), and its frames */
    size_t start;           /* of one clip: the first of its frames that is loaded */
    uint64_t epoch_position; /* dl2_plan_epoch_position() */
    uint32_t width, height;  /* of the upright image; 0: not known yet, and there is no crop */
    struct dl2_random
        random; /* the next number is the first after the crop's, once that is drawn */
    struct dl2_crop crop;
    const struct dl2_decoded_image *decoded; /* from the cache; NULL: it is to be decoded */
    struct dl2_cuts cuts;                    /* where slices are to be read */
    struct dl2_slice_range slices;           /* count 0: the whole sample */
};

/* The planner of a loader for epoch 0. Dataset and settings must outlive it. */
struct dl2_planner dl2_planner_of(const struct dl2_dataset *dataset,
                                  const struct dl2_loader_config *config);

/*
 * Makes the plan of the sample plan->index at plan->epoch_position, which the caller has set; of a
 * clip, the plan of its frame plan->frame. All frames of a clip have the same random state.
 */
void dl2_plan_sample(const struct dl2_planner *planner, struct dl2_sample_plan *plan);

/* Draws where the frames of a video of `count` frames begin, before the crop is drawn. */
void dl2_plan_set_frames(const struct dl2_planner *planner, size_t count,
                         struct dl2_sample_plan *plan);
/* The number in its clip of frame plan->frame. */
size_t dl2_plan_frame(const struct dl2_planner *planner, const struct dl2_sample_plan *plan);

/* Reads that a sample takes: one for each frame of a clip, and one for a video. */
static inline unsigned dl2_plan_reads(const struct dl2_planner *planner)
{
    return planner->videos ? 1 : dl2_loader_frames(planner->config);
}

/* Is a frame of the clip that was planned the same image as the frame before? */
bool dl2_plan_repeats(const struct dl2_planner *planner, const struct dl2_sample_plan *plan,
                      unsigned frame);
/* Has the clip fewer frames than are to be loaded? */
bool dl2_plan_is_short(const struct dl2_planner *planner, const struct dl2_sample_plan *plan);

/* With several config.val_clips: have some of the sample's clips frames in common, between their
 * first and last ones; and are some the same? */
bool dl2_plan_overlaps(const struct dl2_planner *planner, const struct dl2_sample_plan *plan);
bool dl2_plan_has_equal_clips(const struct dl2_planner *planner,
                              const struct dl2_sample_plan *plan);

/* Frames of a clip from the first to the last that are loaded. */
uint64_t dl2_loader_frame_span(const struct dl2_loader_config *config);

/* Looks in the cache for an image that was not there when the plan was made. */
void dl2_plan_find_decoded(const struct dl2_planner *planner, struct dl2_sample_plan *plan);

/* Sets the image's size from its header, in pixels. DL2_ERR_FORMAT if it was known and differs. */
int dl2_plan_set_size(const struct dl2_planner *planner, uint32_t width, uint32_t height,
                      struct dl2_sample_plan *plan, struct dl2_error *error);

/* How much coarser the image of a crop may be decoded: dl2_crop_reduction(), where the filter sees
 * all pixels. */
uint32_t dl2_plan_reduction(const struct dl2_loader_config *config, const struct dl2_crop *crop);

/* The settings of pixels/ that follow from a loader's: which crops are drawn. */
struct dl2_crop_config dl2_loader_crop_config(const struct dl2_loader_config *config);

#endif
