/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a packed dataset is written: a folder, or a prefix of a store. While it is written a mark
 * lies there, ".dl2-unfinished". What a writer left there before is overwritten, anything else is
 * refused.
 *
 * A store has no locks, so two runs may begin to write to one prefix. The mark there names its run:
 * the later one's takes the place of the earlier one's, which looks before it sends a file, and
 * fails. What it was sending just then may still land on a file of the other: the index has sums.
 *
 * Threads: one at a time.
 */
#ifndef DL2_DATASET_WRITE_PLACE_H
#define DL2_DATASET_WRITE_PLACE_H

#include "common/error.h"
#include "dataset/split.h"
#include "dataset/write/store_place.h"

struct dl2_write_place {
    char *root;                    /* the folder to write to; for a store, one of this machine */
    struct dl2_store_place *store; /* where its files go; NULL: they stay */
    /* Folders here that are of splits by names of their own: this writer's, and what an earlier one
     * has left. Only these may be cleared. */
    struct dl2_part_list folders;
    /* What lay here before, as an index says; NULL: files of any format are a writer's. */
    const struct dl2_shard_format *format;
    char *run; /* of a store: who writes, and since when */
};

/* Refuses what is in the way (DL2_ERR_ARGUMENT), marks the place, and removes what a writer has
 * left there. Call close also after an error. */
int dl2_write_place_open(const char *path, struct dl2_write_place *place, struct dl2_error *error);

/* Notes in the mark that the folder of a split of this name belongs to the dataset. */
int dl2_write_place_add_folder(struct dl2_write_place *place, const char *name,
                               struct dl2_error *error);

/* A file that is whole goes to the store, as the object `name`; without a store it stays.
 * DL2_ERR_CANCELED if another run has begun to write to the same prefix. */
int dl2_write_place_send(const struct dl2_write_place *place, const char *path, const char *name,
                         struct dl2_error *error);

/* Removes the mark: all is there. */
int dl2_write_place_unmark(const struct dl2_write_place *place, struct dl2_error *error);

/* Removes what was written, unless it is another run's by now. */
void dl2_write_place_undo(struct dl2_write_place *place);

void dl2_write_place_close(struct dl2_write_place *place);

#endif
