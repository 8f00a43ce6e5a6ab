/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files compressed by gzip, read as if they were not. Reading on is cheap, and so is what was read
 * a little while ago; anything else begins at the file's first byte again. So this is for callers
 * that read from front to back.
 */
#ifndef DL2_DATASET_GZIP_FILES_H
#define DL2_DATASET_GZIP_FILES_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

/* A few files that are open at once. */
struct dl2_gzip_files;

struct dl2_gzip_files *dl2_gzip_files_new(struct dl2_error *error);
void dl2_gzip_files_free(struct dl2_gzip_files *files);

/* Decompresses a whole file to find its size and its faults: DL2_ERR_FORMAT where the data are
 * damaged, cut short, or not gzip's. Messages do not name the file. */
int dl2_gzip_measure(const char *path, uint64_t *bytes, struct dl2_error *error);

/* Reads `size` bytes at `offset` of what the file decompresses to: how many there were, fewer at
 * the end, or a negative status. `path` must outlive `files`. Any thread, one after the other. */
int64_t dl2_gzip_read(struct dl2_gzip_files *files, const char *path, uint64_t offset, void *out,
                      size_t size, struct dl2_error *error);

#endif
