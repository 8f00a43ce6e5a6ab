/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the bytes of a shard come from: an open file, a compressed one, or one behind a server. */
#ifndef DL2_DATASET_SOURCE_H
#define DL2_DATASET_SOURCE_H

#include "dataset/files/gzip_files.h"
#include "remote/remote.h"

struct dl2_shard_source {
    int fd;                         /* open for reading; -1 if it is compressed or remote */
    struct dl2_remote_file *remote; /* NULL if it is a file */
    struct dl2_gzip_files *gzip;    /* has the file `path`; NULL if it is not compressed */
    const char *path;
};

/* Reads `size` bytes at `offset`: how many there were, fewer at the end of the file, or a negative
 * status. Messages name a remote file alone. Any number of threads at once. */
int64_t dl2_source_read(const struct dl2_shard_source *source, uint64_t offset, void *out,
                        size_t size, struct dl2_error *error);

#endif
