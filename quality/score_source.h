/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoded images to score, by number and by key: those of a dataset, or one file. Private to
 * score.c. Threads: any number once it is open, each with its own scratch memory. */
#ifndef DL2_QUALITY_SCORE_SOURCE_H
#define DL2_QUALITY_SCORE_SOURCE_H

#include "quality/score.h"

/* Zeroed at first. */
struct dl2_score_source {
    struct dl2_dataset *dataset; /* NULL for a file */
    const char *file;
    size_t count;
    struct dl2_score_key {
        const char *key;
        size_t index;
    } * keys; /* sorted */
};

int dl2_score_source_open(struct dl2_score_source *source, const char *path,
                          const struct dl2_scoring_options *options, struct dl2_error *error);
/* Zeroes it, too. */
void dl2_score_source_close(struct dl2_score_source *source);

/* A file has the key "". */
void dl2_score_source_sample(const struct dl2_score_source *source, size_t index,
                             struct dl2_sample *sample);
int dl2_score_source_read(const struct dl2_score_source *source, size_t index,
                          struct dl2_bytes *scratch, const uint8_t **data, size_t *size,
                          struct dl2_error *error);

/* Finds the one sample of this key; *found is false if there is none. A key of several samples is
 * an error. */
int dl2_score_source_find(const struct dl2_score_source *source, const char *key, bool *found,
                          size_t *index, struct dl2_error *error);

/* Lists the keys of a dataset that another lacks, NULL-ended. */
int dl2_score_source_extra(const struct dl2_score_source *source,
                           const struct dl2_score_source *other, char ***extra, size_t *count,
                           struct dl2_error *error);

#endif
