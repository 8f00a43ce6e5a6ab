/* SPDX-License-Identifier: BSD-2-Clause */
/* Which container lies at a remote address. Only this room's files include this header. */
#ifndef DL2_DATASET_REMOTE_CONTAINER_H
#define DL2_DATASET_REMOTE_CONTAINER_H

#include "dataset/container.h"

/*
 * Sets dataset->remote and ->container, and what the container's reader begins with: a packed
 * dataset by its index, a folder by its store's listing, or a list.
 */
int dl2_remote_find_container(struct dl2_dataset *dataset, const char *address,
                              const struct dl2_remote_options *options, struct dl2_error *error);

/* Does a dl2-variant.json say that there is more to come, there or above (ROOT/train/rose)? */
int dl2_remote_look_for_completeness(struct dl2_dataset *dataset, struct dl2_error *error);

#endif
