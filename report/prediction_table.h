/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a training's network predicted for each validation image: dl2-train's predictions-K.npy
 * (docs/formats.md), read strictly. A file that is not exactly that is refused: its sizes are
 * checked before they are used.
 */
#ifndef DL2_REPORT_PREDICTION_TABLE_H
#define DL2_REPORT_PREDICTION_TABLE_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/* Largest file that is read, in bytes. */
#define DL2_PREDICTIONS_MAX_BYTES ((uint64_t)1 << 32)

struct dl2_prediction {
    int32_t target, predicted; /* classes; predicted -1: the image could not be read */
    bool top1, top5;
    float loss;
};

struct dl2_prediction_table {
    size_t count;
    size_t known; /* images that could be read */
    size_t right; /* of them, by top-1 */
    char *keys;   /* [count][key_size], each with a zero at its end */
    size_t key_size;
    struct dl2_prediction *rows; /* [count]; `order` and `keys` lie in its block */
    uint32_t *order;             /* [count]: rows by key; no key comes twice */
    /* [count]: which of `group_count` groups a row is in (report/groups.h), all of which have
     * rows; NULL and 0: each row is by itself. Kept. */
    uint32_t *group;
    size_t group_count;
};

/* Free with dl2_prediction_table_free(), on failure too. `name` is for messages. */
int dl2_prediction_table_parse(const void *data, size_t size, const char *name,
                               struct dl2_prediction_table *table, struct dl2_error *error);
int dl2_prediction_table_read(const char *path, struct dl2_prediction_table *table,
                              struct dl2_error *error);
void dl2_prediction_table_free(struct dl2_prediction_table *table);

/*
 * Pairs images by key: found[i] is the row of `own` with the key of `reference`'s row i, or
 * own->count. Fails where they disagree on an image's class, or have no image in common. Keys are
 * equal or not: a dataset's keys have no extension, so a variant's are the original's.
 */
int dl2_prediction_table_join(const struct dl2_prediction_table *reference,
                              const struct dl2_prediction_table *own, size_t *found,
                              struct dl2_error *error);

#endif
