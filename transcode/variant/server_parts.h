/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of a run whose DEST is on a server: each makes its images in a folder of its own, as a part
 * does in a DEST that is a folder, and sends what it has noted (transcode/variant/staged.h) to the
 * server when it has ended (dataset/write/parts_place.h). From what all have sent one process
 * completes the variants.
 *
 *   part-2-of-4               the name of the folder below, sent last: the part is there
 *   3f1c.../jpeg-50.journal   what the part has noted of a variant, and its images
 *   3f1c.../jpeg-50.images
 *
 * Threads: one at a time.
 */
#ifndef DL2_TRANSCODE_SERVER_PARTS_H
#define DL2_TRANSCODE_SERVER_PARTS_H

#include "dataset/write/parts_place.h"
#include "transcode/transcode.h"

struct dl2_server_parts {
    const struct dl2_transcode_options *options; /* of the run */
    struct dl2_work_part part;                   /* that this process makes */
    char *folder;                                /* its own; in TMPDIR, or /tmp */
    struct dl2_parts_place *place;
};

/* Makes the folder. Zero the rest first; to be closed also after an error. */
int dl2_server_parts_begin(struct dl2_server_parts *parts, struct dl2_error *error);
/* Opens the place of parts with this digest. DL2_ERR_CANCELED if another process has the part. */
int dl2_server_parts_meet(struct dl2_server_parts *parts, const char *digest,
                          struct dl2_error *error);
/* Sends the part, which is made. */
int dl2_server_parts_send(struct dl2_server_parts *parts, struct dl2_error *error);
/* Waits until no other process completes the variants; then how many parts are missing, and the
 * lowest of them. *completed: another process has completed all. *elected: none is missing, and
 * this process completes them; else another does. */
int dl2_server_parts_count(struct dl2_server_parts *parts, unsigned *missing, unsigned *first,
                           bool *completed, bool *elected, struct dl2_error *error);
/* Takes what all parts have sent into the folder. DL2_ERR_CANCELED if another process has completed
 * the variants meanwhile. */
int dl2_server_parts_take(struct dl2_server_parts *parts, struct dl2_error *error);
/* Removes it from the server. */
int dl2_server_parts_clear(struct dl2_server_parts *parts, struct dl2_error *error);
void dl2_server_parts_close(struct dl2_server_parts *parts);

#endif
