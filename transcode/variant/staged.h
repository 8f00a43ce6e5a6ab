/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images of a packed variant that were made by parts of a run (dl2-transcode --part, ranks) and
 * wait to be packed. Where a shard ends depends on all images before it, so shards are written at
 * the end, by one process. Until then a part's images lie one after the other in a file of the
 * variant's folder, and the part's journal has a line for each, which ends in its place there and
 * its check sum: "at":OFFSET,"sum":"HEX".
 *
 *   .dl2-variant.journal-2-of-4
 *   .dl2-variant.images-2-of-4
 *
 * An image whose bytes are cut is not there: it is made again. If they have changed, the run ends.
 *
 * Threads: one at a time.
 */
#ifndef DL2_TRANSCODE_STAGED_H
#define DL2_TRANSCODE_STAGED_H

#include "common/error.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/work_part.h"

#include <stdint.h>
#include <stdio.h>

#define DL2_STAGED_IMAGES ".dl2-variant.images"

struct dl2_staged_image {
    uint64_t at, sum;
    uint32_t file; /* its number in struct dl2_staging */
};

/* Zeroed at first. */
struct dl2_staging {
    struct dl2_staged_file {
        char *path;
        uint64_t bytes;
        int fd; /* -1: not open now */
    } * files;
    uint32_t count;
    FILE *out; /* of the part that is being made */
    char *out_path;
    uint64_t end;
};

/* Begins or continues a part's file at `path`, which it takes over. NULL counts as no memory. */
int dl2_staging_begin(struct dl2_staging *staging, char *path, struct dl2_error *error);
/* Appends an image. It is in the system's hands when this returns, so that a line may name it. */
int dl2_staging_put(struct dl2_staging *staging, const void *data, size_t size,
                    struct dl2_staged_image *staged, struct dl2_error *error);
int dl2_staging_end(struct dl2_staging *staging, struct dl2_error *error);
/* Prints what a line has of it. */
void dl2_staged_print(const struct dl2_staged_image *staged, FILE *out);

/* Adds a file that is read, whose path it takes over; its number is that of the last. One that is
 * not there has no bytes. NULL counts as no memory. */
int dl2_staging_add_file(struct dl2_staging *staging, char *path, struct dl2_error *error);
/* What a line has, of the file that was added last; false: its image is not there as a whole. */
bool dl2_staged_read_line(const struct dl2_staging *staging, const json_t *line, uint64_t size,
                          struct dl2_staged_image *staged);
/* Reads an image: DL2_ERR_FORMAT if its bytes have changed. Replaces what `out` holds. */
int dl2_staging_get(struct dl2_staging *staging, const struct dl2_staged_image *staged,
                    uint64_t size, struct dl2_bytes *out, struct dl2_error *error);
void dl2_staging_free(struct dl2_staging *staging);

#endif
