/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packed dataset that is written to S3: its files are made in a folder of this machine, and each
 * goes to the store when it is whole. What may lie there, and what is removed, the caller decides.
 *
 * Threads: one at a time.
 */
#ifndef DL2_DATASET_STORE_PLACE_H
#define DL2_DATASET_STORE_PLACE_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

struct dl2_store_place;

/* Lists what lies at an address s3://, and makes the folder. */
int dl2_store_place_open(const char *address, struct dl2_store_place **out,
                         struct dl2_error *error);

/* The folder to write to, in TMPDIR or /tmp. */
const char *dl2_store_place_folder(const struct dl2_store_place *place);

/* The objects that were there when they were listed, by their paths from the address; NULL behind
 * the last. */
const char *dl2_store_place_object(const struct dl2_store_place *place, size_t number);
/* Lists them again. */
int dl2_store_place_list(struct dl2_store_place *place, struct dl2_error *error);
/* An object's address for messages, to be freed. */
char *dl2_store_place_shown(const struct dl2_store_place *place, const char *name);

/* Copies an object into the folder, if it was listed. */
int dl2_store_place_fetch(struct dl2_store_place *place, const char *name, struct dl2_error *error);

/* Reads an object as it is now: 1, or 0 if there is none. DL2_ERR_LIMIT above max_bytes. */
int dl2_store_place_load(struct dl2_store_place *place, const char *name, uint64_t max_bytes,
                         struct dl2_bytes *out, struct dl2_error *error);

/* Sends a file of the folder, as the object `name` below the address. */
int dl2_store_place_send(struct dl2_store_place *place, const char *path, const char *name,
                         struct dl2_error *error);

/* Removes an object, if it is there. */
int dl2_store_place_remove(struct dl2_store_place *place, const char *name,
                           struct dl2_error *error);

/* Removes the folder. */
void dl2_store_place_close(struct dl2_store_place *place);

#endif
