/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images to score, by number and by key: those of a dataset, the frames of its clips and videos
 * among them, or one file. Private to score.c. Frame 7 of the video "film" has the key
 * "film/00007", as that of a clip of images, and an equal part of the file's bytes.
 *
 * Threads: any number once it is open, each with its own scratch memory.
 */
#ifndef DL2_QUALITY_SCORE_SOURCE_H
#define DL2_QUALITY_SCORE_SOURCE_H

#include "codec/video.h"
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
    /* Only a dataset of videos has these; else NULL: */
    size_t *first;  /* [samples + 1] the number of each video's first frame */
    char **frames;  /* [count] their keys */
    size_t *sample; /* [count] the video of each */
};

/* A video that a thread has open; zeroed at first. */
struct dl2_score_video {
    struct dl2_video *video; /* NULL: none */
    size_t sample;
    struct dl2_resizer resizer;
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

/* Decodes a frame of a video. In ascending order no frame is decoded twice. */
int dl2_score_source_frame(const struct dl2_score_source *source, size_t index, uint64_t max_pixels,
                           struct dl2_score_video *open, struct dl2_bytes *scratch,
                           struct dl2_image *image, struct dl2_error *error);
void dl2_score_video_free(struct dl2_score_video *open);

/* Finds the one sample of this key; *found is false if there is none. A key of several samples is
 * an error. */
int dl2_score_source_find(const struct dl2_score_source *source, const char *key, bool *found,
                          size_t *index, struct dl2_error *error);

/* Lists the keys of a dataset that another lacks, NULL-ended. */
int dl2_score_source_extra(const struct dl2_score_source *source,
                           const struct dl2_score_source *other, char ***extra, size_t *count,
                           struct dl2_error *error);

#endif
