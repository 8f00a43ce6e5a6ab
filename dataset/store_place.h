/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packed dataset that is written to S3: its files are made in a folder of this machine, and each
 * goes to the store when it is whole. dl2-index.bin goes first of what an earlier dataset has left,
 * and comes last: shards without it are refused by readers.
 *
 * Threads: one at a time.
 */
#ifndef DL2_DATASET_STORE_PLACE_H
#define DL2_DATASET_STORE_PLACE_H

#include "common/error.h"

struct dl2_store_place;

/*
 * Makes room at an address s3://..., where only objects may be whose names is_own() knows: the last
 * part of a name; `top` if it is all of it. They are removed. DL2_ERR_ARGUMENT for others, which
 * stay, and for http:// and https://.
 */
int dl2_store_place_open(const char *address, bool (*is_own)(const char *name, bool top),
                         struct dl2_store_place **out, struct dl2_error *error);

/* The folder to write to, in TMPDIR or /tmp. */
const char *dl2_store_place_folder(const struct dl2_store_place *place);

/* Sends a file of the folder, as the object `name` below the address, and removes it there. */
int dl2_store_place_send(struct dl2_store_place *place, const char *path, const char *name,
                         struct dl2_error *error);

/* Removes the folder, and, unless `complete`, what was sent. */
void dl2_store_place_close(struct dl2_store_place *place, bool complete);

#endif
