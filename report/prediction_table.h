/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a training's network predicted for each validation image: dl2-train's predictions-K.npy
 * (docs/formats/train.md), read strictly. A file that is not exactly that is refused: its sizes are
 * checked before they are used.
 */
#ifndef DL2_REPORT_PREDICTION_TABLE_H
#define DL2_REPORT_PREDICTION_TABLE_H

#include "common/error.h"
#include "common/memory.h"

#include <stdbool.h>
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
    struct dl2_prediction *rows; /* [count]; `values`, `order` and `keys` lie in its block */
    double *values; /* [count]: outcomes of another trainer's metric, which have no classes; NULL */
    uint32_t *order; /* [count]: rows by key; no key comes twice */
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

/* -- steps of reading such a table, and that of outcomes (report/outcome_table.h) -- */

/* *dictionary is the text of a NumPy file's header, kept, and *begin where its data begins. */
int dl2_npy_header(const uint8_t *data, size_t size, const char *name, const char **dictionary,
                   size_t *begin, struct dl2_error *error);
/*
 * Has it one dimension and columns as in `columns`, a POSIX extended expression in which a blank is
 * any number of blanks, and whose first parenthesis is the type of the key, "S20"? `kind` is its
 * letter.
 */
bool dl2_npy_is_table(const char *dictionary, const char *columns, char *kind, size_t *characters,
                      size_t *rows);
/* Does the file end behind so many rows? */
int dl2_npy_expect_rows(size_t size, size_t begin, size_t rows, size_t row_bytes, const char *name,
                        struct dl2_error *error);
/* Sets `order`; names a key that comes twice. */
int dl2_prediction_table_sort(const char *name, struct dl2_prediction_table *table,
                              struct dl2_error *error);

/*
 * Pairs images by key: found[i] is the row of `own` with the key of `reference`'s row i, or
 * own->count. Fails where they disagree on an image's class, or have no image in common. Keys are
 * equal or not: a dataset's keys have no extension, so a variant's are the original's.
 */
int dl2_prediction_table_join(const struct dl2_prediction_table *reference,
                              const struct dl2_prediction_table *own, size_t *found,
                              struct dl2_error *error);

#endif
