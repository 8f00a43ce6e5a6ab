/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of dl2-quality: a table, JSON (dl2-quality/1, docs/formats/quality.md) and CSV. */
#ifndef DL2_QUALITY_OUTPUT_H
#define DL2_QUALITY_OUTPUT_H

#include "common/error.h"
#include "quality/score.h"

#include <stdio.h>

/* Prints the aggregates of every variant, and the metrics' definitions. */
void dl2_scoring_print(const struct dl2_scoring *scoring, FILE *out);

/* Prints a line for each fault. Control characters in names become '?'. */
void dl2_scoring_print_faults(const struct dl2_scoring *scoring, FILE *out);

/* A bound for the scores by one metric. */
struct dl2_score_bound {
    const struct dl2_metric *metric;
    double value;
};

/* Prints a line for each image that is worse than a bound: variant, key, metric and score, with
 * tabs between them; and one with the number of images that are too small to be judged. Returns how
 * many are worse. The metrics must have been scored. */
size_t dl2_scoring_print_worse(const struct dl2_scoring *scoring,
                               const struct dl2_score_bound *bounds, size_t count, FILE *out);

/* Prints how many heat maps were drawn, and what has none. */
void dl2_scoring_print_heatmaps(const struct dl2_scoring *scoring,
                                const struct dl2_heatmap_options *options, FILE *out);

/* Writes one document with all variants. */
int dl2_scoring_write_json(const struct dl2_scoring *scoring, const char *path,
                           struct dl2_error *error);

/* Writes a document for each variant, FOLDER/NAME.json. Call dl2_check_variant_names() first. */
int dl2_scoring_write_json_folder(const struct dl2_scoring *scoring, const char *folder,
                                  struct dl2_error *error);

/* Writes a line for each pair, scored or not, and for each extra image; RFC 4180. */
int dl2_scoring_write_csv(const struct dl2_scoring *scoring, const char *path,
                          struct dl2_error *error);

/* DL2_ERR_ARGUMENT where two variants have one name or a name can't be a file's. */
int dl2_check_variant_names(const char *const *paths, size_t count, struct dl2_error *error);

#endif
