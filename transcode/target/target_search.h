/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds an image's quality for a target (transcode/target/target.h).
 *
 * A codec that has trials (JPEG) is searched through for a score, quality by quality, because
 * scores fall here and there as the quality rises, above all at the quality that a source had
 * before.
 *
 * For others, and for sizes, files are made: first at the quality that the mean curve of a sample
 * of the images says, then by that curve moved to where the image's own files are, and from the
 * sixth on every other time halfway between those. The search ends where a quality meets the target
 * and the next one, which was tried, does not, or at a file that meets it within the tolerance.
 *
 * The result depends on the image, the options and the curve alone.
 */
#ifndef DL2_TRANSCODE_TARGET_SEARCH_H
#define DL2_TRANSCODE_TARGET_SEARCH_H

#include "transcode/target/target.h"

enum { DL2_TARGET_SAMPLES = 5 }; /* qualities at which a sample's images are tried */

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
    const struct dl2_target_curve *curve; /* not used where all qualities are tried */
    const struct dl2_codec *codec;
    const struct dl2_image *image;
    const struct dl2_encode_options *encode;
    struct dl2_bytes *out; /* becomes the file */
    struct dl2_target_result *result;
};

/* Makes job->out the file. DL2_ERR_UNSUPPORTED for an image that is too small for the metric, and,
 * with DL2_MISS_FAIL, for one that misses the target. */
int dl2_target_search(const struct dl2_target_job *job, struct dl2_error *error);

/* An image of the sample: dl2_target_even() at DL2_TARGET_SAMPLES qualities; errors as those of a
 * search. The job has no curve, and nothing to fill in. */
int dl2_target_sample(const struct dl2_target_job *job, double evens[DL2_TARGET_SAMPLES],
                      struct dl2_error *error);

/* The curve of `count` images, of which those with values that are not finite do not count. */
void dl2_target_curve_make(struct dl2_target_curve *curve, const struct dl2_quality_target *target,
                           const double (*evens)[DL2_TARGET_SAMPLES], size_t count);

/* The source's file took the place of what was found, with its pixels. */
void dl2_target_take_source(const struct dl2_target_job *job);

/* Makes searcher->trial the file of a quality, and scores it: for tests. */
int dl2_target_try(const struct dl2_target_job *job, int quality, double *score,
                   struct dl2_error *error);

#endif
