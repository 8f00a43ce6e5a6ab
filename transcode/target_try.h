/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries a quality for a target: makes its file, or scores what another way has made. */
#ifndef DL2_TRANSCODE_TARGET_TRY_H
#define DL2_TRANSCODE_TARGET_TRY_H

#include "transcode/target.h"

/* dl2_target_even() of a score or size at each quality, of a mean image. */
struct dl2_target_curve {
    bool known;       /* false: only its slope means something */
    double even[101]; /* from 1 on */
};

/* What was found for an image. */
struct dl2_target_result {
    double score;    /* of the file: the metric, its bytes, or bits per pixel; NAN: it has none */
    uint8_t quality; /* of the file */
    uint8_t probes;  /* qualities that were tried */
    bool met;        /* false: the file misses the target, and is the nearest one that was tried */
};

/* Working memory of a thread; zeroed at first. */
struct dl2_target_searcher {
    struct dl2_scorer *scorer;
    struct dl2_image decoded, scratch;
    struct dl2_bytes trial;
};

void dl2_target_searcher_free(struct dl2_target_searcher *searcher);

/* A search for an image. */
struct dl2_target_job {
    struct dl2_target_searcher *searcher;
    const struct dl2_quality_target *target;
    const struct dl2_target_curve *curve;
    const struct dl2_codec *codec;
    const struct dl2_image *image;
    const struct dl2_encode_options *encode;
    struct dl2_bytes *out;
    struct dl2_target_result *result;
};

/* Makes the image the scorer's reference. DL2_ERR_UNSUPPORTED: it is too small for the metric. */
int dl2_target_begin(const struct dl2_target_job *job, struct dl2_error *error);

/* The score by the target's metric of an image of the job's size. */
int dl2_target_score(const struct dl2_target_job *job, const struct dl2_image *image, double *score,
                     struct dl2_error *error);

/* Makes searcher->trial the file of a quality, and scores it. */
int dl2_target_try(const struct dl2_target_job *job, int quality, double *score,
                   struct dl2_error *error);

/* Tries all qualities for a score, by a codec's trials (codec/codec.h), without making files. Makes
 * job->out the file of the quality that is found, and fills in the result. */
int dl2_target_scan(const struct dl2_target_job *job, struct dl2_error *error);

/* Of a target of a size: a file's bytes, or bits per pixel. */
double dl2_target_size(const struct dl2_quality_target *target, const struct dl2_image *image,
                       const struct dl2_bytes *file);

#endif
