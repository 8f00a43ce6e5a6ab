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
 * a pixel brighter than its right neighbor?) differs in at most DL2_SURVEY_BITS bits, and the
 * thumbnails by at most DL2_SURVEY_LEVELS levels on average. Groups are what such pairs join.
 */
#ifndef DL2_TRANSCODE_SURVEY_H
#define DL2_TRANSCODE_SURVEY_H

#include "transcode/transcode.h"

#include <jansson.h>
#include <stdio.h>

enum { DL2_SURVEY_BITS = 3, DL2_SURVEY_LEVELS = 4 };

/* Files with a line for each image (docs/formats/transcode.md); NULL: none. */
struct dl2_survey_files {
    const char *groups; /* an image without a near duplicate is in a group of its own */
    const char *csv;
};

/* *out is dl2-survey/1 (docs/formats/transcode.md), a new reference. Images that cannot be read are
 * no error, but listed. The result is the same for any number of jobs. Of the options: source,
 * samples, members, decode, jobs and progress. */
int dl2_survey(const struct dl2_transcode_options *options, const struct dl2_survey_files *files,
               json_t **out, struct dl2_error *error);

/* The survey as a table for people. */
void dl2_survey_print(const json_t *survey, FILE *out);

#endif
