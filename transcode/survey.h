/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in a dataset: formats, sizes, how its images were encoded, the channels' mean and
 * deviation, files that cannot be read, and near duplicates.
 *
 * Mean and standard deviation are those of a pixel of a random image, 0 to 255, as a training sees
 * them: each image counts alike, whatever its size, and gray counts for all three channels.
 * dl2-train takes them as --mean and --std.
 *
 * Two images are near duplicates if the difference hash of their 9 x 8 gray thumbnails (64 bits: is
 * a pixel brighter than its right neighbour?) differs in at most DL2_SURVEY_BITS bits, and the
 * thumbnails by at most DL2_SURVEY_LEVELS levels on average. Groups are what such pairs join.
 */
#ifndef DL2_TRANSCODE_SURVEY_H
#define DL2_TRANSCODE_SURVEY_H

#include "common/error.h"
#include "common/progress.h"
#include "dataset/dataset.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { DL2_SURVEY_BITS = 3, DL2_SURVEY_LEVELS = 4 };

struct dl2_survey_options {
    const char *source;
    enum dl2_samples samples;                     /* frames of clips are images here */
    const char *label_field;                      /* as in struct dl2_dataset_options */
    const char *groups;                           /* file of groups to write; NULL: none */
    uint64_t max_pixels;                          /* of an image */
    const struct dl2_external_decoders *external; /* codec/external_decoders.h; NULL: none */
    unsigned jobs;                                /* 0: dl2_cpu_count() */
    struct dl2_progress *progress;                /* shown as it goes on */
};

/* *out is dl2-survey/1 (docs/formats.md), a new reference. Images that cannot be read are no error,
 * but listed. The result is the same for any number of jobs. The file of groups has all images, one
 * that has no near duplicate in a group of its own (docs/formats.md). */
int dl2_survey(const struct dl2_survey_options *options, json_t **out, struct dl2_error *error);

/* The survey as a table for people. */
void dl2_survey_print(const json_t *survey, FILE *out);

#endif
