/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fits quantization tables to a dataset and to what a training sees of it (dl2-transcode
 * fit-tables): coefficients are counted in the dataset's images, weighted by what each is worth
 * (transcode/tables/fit_sensitivity.h), and the steps chosen by rate and distortion
 * (transcode/tables/fit_steps.h). The files that they make are plain baseline JPEGs.
 */
#ifndef DL2_TRANSCODE_FIT_TABLES_H
#define DL2_TRANSCODE_FIT_TABLES_H

#include "transcode/transcode.h"

enum { DL2_FIT_IMAGES = 1000 };

/* Beside those of struct dl2_transcode_options: source, of whose split `train` images are taken, or
 * of all where it has none, samples, members, decode, jobs and progress. */
struct dl2_fit_options {
    const struct dl2_transcode_options *common;
    const char *sensitivity;                  /* a network's; NULL: of the pipeline alone */
    unsigned height, width;                   /* of the input, where `sensitivity` is NULL */
    const struct dl2_codec *codec;            /* takes tables */
    double area[2];                           /* of crops: the least and the most of an image's */
    const struct dl2_resolution *resolutions; /* a family for each, with each subsampling */
    size_t resolution_count;
};

/*
 * Writes `path` (codec/jpeg_tables.h) from at most DL2_FIT_IMAGES images, the same for any number
 * of jobs. *images: how many it took; *failed: how many could not be read, which the progress
 * names. DL2_ERR_FORMAT where none could.
 */
int dl2_fit_tables(const struct dl2_fit_options *options, const char *path, size_t *images,
                   size_t *failed, struct dl2_error *error);

#endif
