/* What dl2-quality leaves behind: a table, JSON (dl2-quality/1, docs/formats.md), CSV. */
#ifndef DL2_QUALITY_OUTPUT_H
#define DL2_QUALITY_OUTPUT_H

#include "common/error.h"
#include "quality/score.h"

#include <stdio.h>

/* The aggregates of every variant and what the metrics are. */
void dl2_scoring_print(const struct dl2_scoring *scoring, FILE *out);

/* Every fault by name, a line each. Control characters in names become '?'. */
void dl2_scoring_print_faults(const struct dl2_scoring *scoring, FILE *out);

/* A document with all variants. */
int dl2_scoring_write_json(const struct dl2_scoring *scoring, const char *path,
                           struct dl2_error *error);

/*
 * A document for each variant, FOLDER/NAME.json. DL2_ERR_ARGUMENT, before anything is written,
 * where two variants have one name or a name can't be a file's.
 */
int dl2_scoring_write_json_folder(const struct dl2_scoring *scoring, const char *folder,
                                  struct dl2_error *error);

/* A line for each pair, scored or not, and each extra image; RFC 4180. */
int dl2_scoring_write_csv(const struct dl2_scoring *scoring, const char *path,
                          struct dl2_error *error);

/* Can these variants' names be file names, each its own? For a check before the work begins. */
int dl2_check_variant_names(const char *const *paths, size_t count, struct dl2_error *error);

#endif
