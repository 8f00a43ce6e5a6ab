/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sample stage: from encoded bytes to pixels in the batch. A job is one sample under way, with
 * everything that it needs, so that another thread can take it over between two stages:
 *
 * - READ: plan and bytes of the sample (fetch.h), or its decoded image from the cache; its targets
 *   (targets.h), mask (masks.h) and label file (boxes.h)
 * - DECODE: header, crop, pixels of the crop, mask, boxes; for a batch decoder header and crop
 * - TRANSFORM: resize and flip into the batch; a batch decoder gets the encoded image instead
 * - OPERATION: the augmentation, then the caller's operations, one after the other
 * - STORE: the result into the batch
 * - PLACE: a clip that was gathered into the batch
 * - DONE
 *
 * Volumes (volume_sample.h) have no DECODE, and always a STORE. A video is read with its first
 * frame and opened by the first DECODE; the READ of others is a plan alone.
 *
 * Without operations, TRANSFORM writes into the batch and there is no STORE. The frames of a clip
 * go through READ to STORE one after the other, each with the same random state. Where a batch must
 * not wait for a clip, they are gathered in the job's memory, and PLACE follows.
 *
 * Threads: one at a time for each job. Jobs share only the recipe, which does not change meanwhile.
 */
#ifndef DL2_LOADER_SAMPLE_H
#define DL2_LOADER_SAMPLE_H

#include "codec/decoder.h"
#include "codec/video.h"
#include "loader/batch_decoder.h"
#include "loader/boxes.h"
#include "loader/decoded.h"
#include "loader/fetch.h"
#include "loader/loader_config.h"
#include "loader/masks.h"
#include "loader/targets.h"
#include "loader/volume_sample.h"
#include "pixels/augment.h"
#include "pixels/crop.h"
#include "pixels/resize.h"

/* What all samples of a loader have in common. Without a dataset a job begins at DECODE, with
 * job->plan and job->fetched from its caller. */
struct dl2_recipe {
    struct dl2_planner planner; /* with the dataset and the loader's settings */
    struct dl2_fetch *fetch;
    struct dl2_augmentation *augmentation; /* NULL: none */
    size_t sample_bytes, image_bytes;      /* in the batch: of a sample, and of a frame of it */
    bool gathers; /* frames of clips stay with the job until the clip is whole */
    struct dl2_target_list targets;
    struct dl2_box_source boxes;
    struct dl2_foreground *foreground; /* of volumes, where patches are to show some; else NULL */
    struct dl2_volume_cache *volumes;  /* NULL: none are kept */
};

/* Sets the settings, which stay the caller's, and what follows from them: the size of a sample and
 * the augmentation, which the caller frees, of this recipe and of one that failed. */
int dl2_recipe_init(struct dl2_recipe *recipe, const struct dl2_loader_config *config,
                    struct dl2_error *error);

/* How a sample's pixels are stored at `out`, as the settings have it. */
struct dl2_resize_output dl2_loader_output(const struct dl2_loader_config *config, void *out);

enum dl2_stage {
    DL2_STAGE_READ,
    DL2_STAGE_DECODE,
    DL2_STAGE_TRANSFORM,
    DL2_STAGE_OPERATION,
    DL2_STAGE_STORE,
    DL2_STAGE_PLACE,
    DL2_STAGE_DONE
};

struct dl2_job {
    size_t position;      /* in the order of samples */
    enum dl2_stage stage; /* the next */
    unsigned operation;   /* the next */
    double seconds;       /* that its stages took so far */
    /* `index` from the beginning, the rest from the read stage. With slices, the crop's y is
     * relative to the first slice after they were joined. */
    struct dl2_sample_plan plan;
    struct dl2_loader_stats stats; /* for the caller to add up and clear */

    struct dl2_fetched fetched; /* encoded bytes; given back once they are decoded */
    bool holds_bytes;
    struct dl2_bytes joined; /* the file made of slices */
    /* Clips use these: */
    uint32_t clip_width, clip_height; /* of the first frame */
    struct dl2_bytes clip;            /* what is gathered */
    struct dl2_video *video;          /* while its frames are decoded; else NULL */
    struct dl2_decoder *decoder;
    struct dl2_raster raster; /* in the decoder's memory, or the cache's */
    struct dl2_resizer resizer;
    struct dl2_pixels pixels;         /* what operations work on */
    struct dl2_target_bytes *targets; /* [recipe->targets.count] */
    struct dl2_sample_mask mask;
    struct dl2_sample_boxes boxes;
    struct dl2_volume_sample volume;

    /* With a batch decoder. */
    bool to_decoder;                     /* let the batch decoder decode the sample, if it can */
    bool staged;                         /* it can: `encoded` is for it */
    struct dl2_decode_slot *decode_slot; /* of the sample's place, once it has one */
    unsigned place_number;
    struct dl2_encoded encoded;
};

/* Makes a job of zeroed memory. */
int dl2_job_init(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
void dl2_job_free(struct dl2_job *job, const struct dl2_recipe *recipe);
/* The bytes that a job holds. */
size_t dl2_job_memory(const struct dl2_job *job, const struct dl2_recipe *recipe);

/* Begins with sample `index`, which is number `position` of the order; `epoch_position` is that of
 * struct dl2_sample_plan. */
void dl2_job_begin(struct dl2_job *job, uint32_t index, size_t position, uint64_t epoch_position);

/* Does the next stage write into the batch? */
bool dl2_job_needs_place(const struct dl2_job *job, const struct dl2_recipe *recipe);

/*
 * Runs the next stage. `out` is the sample's place in the batch, recipe->sample_bytes bytes, for a
 * stage that needs one. Errors name the sample and the stage; after one, begin with another sample.
 */
int dl2_job_step(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                 struct dl2_error *error);

/* The part of the image that a job shows, once its image is decoded. */
struct dl2_crop_box dl2_job_crop_box(const struct dl2_job *job);

/* Gives back the encoded bytes that the job holds. */
void dl2_job_drop(struct dl2_job *job, const struct dl2_recipe *recipe);

#endif
