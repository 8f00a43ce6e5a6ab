/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of images in a column of a table: postgresql://HOST/DATABASE?table=NAME&group=COLUMN
 * (docs/formats/transcode.md). dl2-report includes this header, too: it asks a server for groups.
 */
#ifndef DL2_DATASET_GROUP_COLUMN_H
#define DL2_DATASET_GROUP_COLUMN_H

#include "dataset/dataset.h"

/* Could `address` be read, as far as that can be told without its server? */
int dl2_group_column_check(const char *address, struct dl2_error *error);

/*
 * Sets `lines` to a line "KEY TAB GROUP" for each row whose group is not null; keys are those of
 * the dataset's samples (dataset/dataset.h). DL2_ERR_FORMAT for keys and groups with a newline, and
 * for groups that are empty or have a tab.
 */
int dl2_group_column_read(const char *address, struct dl2_bytes *lines, struct dl2_error *error);

#endif
