/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs print about a dataset that they have opened. */
#ifndef DL2_DATASET_TELL_H
#define DL2_DATASET_TELL_H

#include "common/progress.h"
#include "dataset/dataset.h"

/*
 * Prints each dl2_dataset_warning() on stderr, behind the path: a line each, even when quiet. With
 * `all`, each dl2_dataset_message() but the layout. Nothing where `progress` is NULL.
 */
void dl2_dataset_tell(const struct dl2_dataset *dataset, const char *path, bool all,
                      struct dl2_progress *progress);

#endif
