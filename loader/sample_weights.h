/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Weights of samples from a file: lines of a sample's key, a blank or a tab, and a number of at
 * least 0, as in
 *
 *   train/rose/0017 2.5
 *
 * A key is the path without extension (dataset/dataset.h) and may hold blanks itself. Lines about
 * samples that the dataset lacks, such as those of another split, and blank lines are passed over;
 * every sample of the dataset needs a line.
 */
#ifndef DL2_LOADER_SAMPLE_WEIGHTS_H
#define DL2_LOADER_SAMPLE_WEIGHTS_H

#include "dataset/dataset.h"

/* The largest file, bytes. */
#define DL2_SAMPLE_WEIGHTS_MAX_BYTES ((uint64_t)1 << 32)

/* Sets *out to a weight for each sample of the dataset: to be freed. Any thread. */
int dl2_sample_weights_read(const char *path, const struct dl2_dataset *dataset, double **out,
                            struct dl2_error *error);

#endif
