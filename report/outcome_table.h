/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What another trainer's network made of each validation image: a key and a number whose mean is
 * the metric (docs/formats/train.md), as CSV or as a NumPy file, read strictly.
 */
#ifndef DL2_REPORT_OUTCOME_TABLE_H
#define DL2_REPORT_OUTCOME_TABLE_H

#include "report/prediction_table.h"

/*
 * Reads a table that has keys and `values`; its rows have no classes. Free with
 * dl2_prediction_table_free(), on failure too. `name` is for messages; one that ends in .npy is of
 * NumPy. Keys lose the extension of an image's file, which differs between variants.
 */
int dl2_outcome_table_parse(const void *data, size_t size, const char *name,
                            struct dl2_prediction_table *table, struct dl2_error *error);
int dl2_outcome_table_read(const char *path, struct dl2_prediction_table *table,
                           struct dl2_error *error);

/* The mean of the values. */
double dl2_outcome_table_mean(const struct dl2_prediction_table *table);

/* DL2_ERR_FORMAT names the first key that one of them has alone. */
int dl2_outcome_table_same_keys(const struct dl2_prediction_table *reference,
                                const struct dl2_prediction_table *own, struct dl2_error *error);

#endif
