/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a trainer of the user's hands back: OUT/result.json in dl2's own form (dl2-result/1), or a
 * file of its tool's, by RESULT (study/result_values.c). Nothing is guessed: what is missing, no
 * number, out of its unit's range or of another training is an error that names the file.
 */
#ifndef DL2_STUDY_RESULT_H
#define DL2_STUDY_RESULT_H

#include "common/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define DL2_RESULT_FILE "result.json"
/* What dl2-train evaluate writes, dl2-evaluation/1. */
#define DL2_RESULT_OF_DL2 "evaluation_report.json"

/* A metric, as reports have it: {"name", "unit", "higher_is_better"}. Units with a range are
 * "fraction", 0 to 1, and "percent"; those of other names have any finite number. */
struct dl2_result_metric {
    const char *name, *unit;
    bool lower_is_better;
};
/* Is a value in the unit's range? The error begins with `where`. */
int dl2_result_check_value(const struct dl2_result_metric *metric, double value, const char *where,
                           struct dl2_error *error);

/* A training that has ended well. */
struct dl2_result_source {
    const char *out;  /* the folder that it was told */
    const char *kept; /* the folder of its report, which outcomes are copied to */
    int64_t began_ns; /* files from before are another's */
    uint64_t seed;
};

/* Completes a report of dl2_trainer_report(): the values of `final`, `epochs`, settings. */
int dl2_result_take(json_t *report, const char *setting, const struct dl2_result_source *source,
                    struct dl2_error *error);

/* Ends the program at a wrong RESULT, "" is none. */
void dl2_result_check_setting(const char *setting);

/* ---- RESULT */

/* The values that a file of a tool's has, in its order. Kept. */
struct dl2_result_values {
    struct dl2_result_metric metric;
    double *at;
    size_t count;
    size_t chosen; /* which counts */
    bool is_best;  /* it was chosen as the best, which is biased */
};
int dl2_result_read_values(const char *setting, const struct dl2_result_source *source,
                           struct dl2_result_values *values, struct dl2_error *error);

/* The one file of the folder that the pattern matches; kept. It is no older than the training, and
 * no link leads out of the folder. */
int dl2_result_find(const char *pattern, const struct dl2_result_source *source, const char **path,
                    struct dl2_error *error);
/* The text of a file of at most 64 MiB, kept. */
int dl2_result_text(const char *path, const char **text, struct dl2_error *error);

#endif
