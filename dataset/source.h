/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the bytes of a shard come from: an open file, or one behind a server. */
#ifndef DL2_DATASET_SOURCE_H
#define DL2_DATASET_SOURCE_H

#include "dataset/remote/remote.h"

struct dl2_shard_source {
    int fd;                         /* open for reading; -1 if it is remote */
    struct dl2_remote_file *remote; /* NULL if it is a file */
};

/* Reads `size` bytes at `offset`: how many there were, fewer at the end of the file, or a negative
 * status. Messages name a remote file alone. Any number of threads at once. */
int64_t dl2_source_read(const struct dl2_shard_source *source, uint64_t offset, void *out,
                        size_t size, struct dl2_error *error);

#endif
