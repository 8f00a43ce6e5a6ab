/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What samples have beside their images, as dl2_dataset_read_sidecars() reads it and
 * dl2_writer_add_with_sidecars() writes it: items of bytes that go by their extensions ("json",
 * "seg.png").
 *
 * Threads: one at a time for each object.
 */
#ifndef DL2_DATASET_BESIDE_H
#define DL2_DATASET_BESIDE_H

#include "common/error.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A sample has so much beside its image at most; more is refused. */
enum { DL2_BESIDE_MAX_ITEMS = 256 };
#define DL2_BESIDE_MAX_BYTES ((uint64_t)INT32_MAX)

/* Can this be part of a file's name in every container? */
bool dl2_is_sidecar_extension(const char *text);

/* Zeroed at first. */
struct dl2_sidecars {
    struct dl2_sidecar {
        char *extension;
        struct dl2_bytes bytes;
    } * items;
    size_t count;
    uint64_t bytes; /* of all items */
};

/* Adds an item of `size` bytes, to be filled in by the caller, and points *item at it. */
int dl2_sidecars_add(struct dl2_sidecars *sidecars, const char *extension, uint64_t size,
                     struct dl2_sidecar **item, struct dl2_error *error);
/* Sorts the items by their extensions, as every list of them is. */
void dl2_sidecars_sort(struct dl2_sidecars *sidecars);
/* Frees the items and zeroes the list. */
void dl2_sidecars_free(struct dl2_sidecars *sidecars);

/* Items that a container could not hold, counted by extension. Zeroed at first. */
struct dl2_left_out {
    struct dl2_left_out_row {
        char *extension; /* NULL: all others */
        size_t count;
    } rows[9];
    size_t count; /* of all of them */
};

void dl2_left_out_count(struct dl2_left_out *left_out, const char *extension);
/* "WHAT: 312 .txt, 40 .seg.png; WHY": a string to free, or NULL if nothing was. */
char *dl2_left_out_message(const struct dl2_left_out *left_out, const char *what, const char *why);
#define DL2_LEFT_OUT "left out beside images"
void dl2_left_out_free(struct dl2_left_out *left_out);

#ifdef __cplusplus
}
#endif

#endif
