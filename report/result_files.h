/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON files that a study's results are in, with the figures that docs/formats.md describes. A
 * figure that cannot be, such as a percentage in the place of a fraction or a negative size, makes
 * the whole file unusable: nobody knows what else in it is wrong.
 */
#ifndef DL2_REPORT_RESULT_FILES_H
#define DL2_REPORT_RESULT_FILES_H

#include "common/error.h"

#include <jansson.h>

/* On how many resamples of the validation images another trainer's metric may be computed. */
enum { DL2_LEAST_RESAMPLES = 100, DL2_MOST_RESAMPLES = 100000 };

/*
 * dl2_json_load() of a file of results, and dl2_result_check(). NULL `error`: the caller does not
 * ask why.
 */
int dl2_result_load(const char *path, const char *schema, json_t **out, struct dl2_error *error);

/*
 * Checks all figures of `json` that the table has for `schema`. DL2_ERR_FORMAT names `path`, the
 * field, its value and what is expected. A field that is missing or null is not known, and no
 * error.
 */
int dl2_result_check(const json_t *json, const char *schema, const char *path,
                     struct dl2_error *error);

/*
 * Is what the file says it is of, a text or a whole number, what the folder's name says? A field
 * that is missing says nothing. DL2_ERR_FORMAT names both.
 */
int dl2_result_is_of(const json_t *json, const char *path, const char *field, const char *name,
                     struct dl2_error *error);

/* Prints the table, a line for each row, with tabs between the columns. */
void dl2_result_figures_print(void);

#endif
