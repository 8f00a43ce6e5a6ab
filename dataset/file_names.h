/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What files of other programs are to the image that they belong to, by their names alone: masks
 * (docs/python.md), and with dl2_dataset_labels_path() label files. Only this room's files include
 * this header.
 *
 * Threads: any.
 */
#ifndef DL2_DATASET_FILE_NAMES_H
#define DL2_DATASET_FILE_NAMES_H

#include "common/error.h"
#include "dataset/dataset.h"

struct dl2_named_key {
    const char *key;
    size_t number; /* of the sample */
};

/* By key, then by number. */
void dl2_keys_sort(struct dl2_named_key *keys, size_t count);
/* The first sorted key that is the first `length` bytes of a name, or NULL. */
const struct dl2_named_key *dl2_keys_search(const struct dl2_named_key *keys, size_t count,
                                            const char *name, size_t length);
/* The same as the sample's number, or SIZE_MAX. */
size_t dl2_keys_find(const struct dl2_named_key *keys, size_t count, const char *name,
                     size_t length);

/* May a key be that of a mask? */
bool dl2_may_be_mask(const char *key);
/* Is a sample, by key and extension, the mask of another one, and called otherwise than
 * KEY.mask.EXT? Then *image is that one's key, and *kind "mask" or "seg"; else *image is NULL. */
int dl2_find_masked(const struct dl2_named_key *keys, size_t count, const struct dl2_sample *sample,
                    const char **kind, const char **image, struct dl2_error *error);
/* How many of all samples are; *first: the key of one. */
int dl2_find_named_masks(const struct dl2_sample *samples, size_t count, size_t *found,
                         const char **first, struct dl2_error *error);

#endif
