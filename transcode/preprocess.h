/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2-transcode preprocess: raw volumes become one dataset to train on. Each volume is turned,
 * resampled, clipped and normalized, in this order, and its labels are turned and resampled.
 *
 * DEST/KEY.npy (or .nii, .nii.gz) is the volume, float32, and DEST/KEY.mask.npy its labels, uint8.
 * DEST/dl2-preprocess.json says by which settings they were made. A volume is made again if a file
 * of it is missing, or older than that or than its source; other settings make that anew.
 */
#ifndef DL2_TRANSCODE_PREPROCESS_H
#define DL2_TRANSCODE_PREPROCESS_H

#include "pixels/volume_resample.h"
#include "transcode/transcode.h"

struct dl2_preprocess_options {
    double spacing[3]; /* mm, of depth, height and width; NAN: as the volumes have it */
    unsigned cubic;    /* volumes by order 3, and not 1 */
    enum dl2_label_rule labels;
    char towards[3];  /* as in struct dl2_volume_info; 0: axes stay as they are */
    double clip[2];   /* NAN: no clipping */
    bool of_dataset;  /* the mean and the deviation of each channel, over the training volumes */
    double normal[2]; /* else these; NAN: no normalization */
    unsigned format;  /* a number of dl2_preprocess_formats */
};

/* "npy", "nii", "nii.gz"; NULL ends. The parse() of the options with the names of the members. */
extern const char *const dl2_preprocess_formats[];
int dl2_preprocess_parse_spacing(const char *text, void *spacing, struct dl2_error *error);
int dl2_preprocess_parse_towards(const char *text, void *towards, struct dl2_error *error);
int dl2_preprocess_parse_clip(const char *text, void *clip, struct dl2_error *error);
/* Sets of_dataset or normal of the options at `value`. */
int dl2_preprocess_parse_normal(const char *text, void *value, struct dl2_error *error);

struct dl2_preprocess_result {
    size_t volumes, labeled; /* in DEST */
    size_t written, failed;
    double mean, deviation; /* of the first channel, with of_dataset */
};

/* Of the common options: source, dest, jobs, memory, force, prune and progress. DL2_ERR_ARGUMENT
 * where DEST and SOURCE are in each other's way. Volumes that cannot be read, that lack the spacing
 * or the orientation that is asked for, or whose labels do not lie on them, are named and counted.
 */
int dl2_preprocess(const struct dl2_transcode_options *options,
                   const struct dl2_preprocess_options *how, struct dl2_preprocess_result *result,
                   struct dl2_error *error);

#endif
