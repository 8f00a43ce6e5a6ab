/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variants whose images each have a quality of their own: the lowest that reaches a score, or the
 * highest that keeps a size (dl2-transcode --target).
 *
 * A codec that encodes sweeps (JPEG) is searched through from the lowest quality on, because its
 * scores fall here and there as the quality rises, above all at the quality that a source had
 * before. Others, and sizes, are searched by the secant of two known qualities, with a bisection
 * every other time from the fifth on, until what meets the target is less than a step of quality
 * away from it. The result depends on the image and the options alone.
 */
#ifndef DL2_TRANSCODE_TARGET_H
#define DL2_TRANSCODE_TARGET_H

#include "codec/codec.h"
#include "quality/metric.h"

/* Zeroed: none. */
struct dl2_quality_target {
    const char *name;                /* a metric's, "bytes" or "bpp"; NULL: there is no target */
    const struct dl2_metric *metric; /* NULL: the file's size */
    double value;                    /* the least score, or the most bytes or bits per pixel */
    int low, high;                   /* the qualities that are tried */
};

/* "METRIC=VALUE", "bytes=N" or "bpp=N" with the qualities from low to high. DL2_ERR_ARGUMENT. */
int dl2_target_parse(const char *text, int low, int high, struct dl2_quality_target *out,
                     struct dl2_error *error);
bool dl2_target_equal(const struct dl2_quality_target *a, const struct dl2_quality_target *b);
/* The record, `target` of docs/formats.md: a new object. */
json_t *dl2_target_json(const struct dl2_quality_target *target);

/* What was found for an image. */
struct dl2_target_result {
    double score;    /* of the file: the metric, its bytes, or bits per pixel; NAN: it has none */
    uint8_t quality; /* of the file */
    uint8_t probes;  /* files that were made */
    bool met;        /* false: no quality meets the target, and this is the nearest one */
};

/* Working memory of a thread; zeroed at first. */
struct dl2_target_searcher {
    struct dl2_scorer *scorer;
    struct dl2_image decoded, scratch;
    struct dl2_bytes trial[8];
};

/* Makes `out` the file. DL2_ERR_UNSUPPORTED for an image that is too small for the metric. */
int dl2_target_search(struct dl2_target_searcher *searcher, const struct dl2_quality_target *target,
                      const struct dl2_codec *codec, const struct dl2_image *image,
                      const struct dl2_encode_options *encode, struct dl2_bytes *out,
                      struct dl2_target_result *result, struct dl2_error *error);

/* The source's file took the place of what was found, with its pixels, and is no larger. */
void dl2_target_take_source(const struct dl2_quality_target *target, const struct dl2_image *image,
                            const struct dl2_bytes *file, struct dl2_target_result *result);

void dl2_target_searcher_free(struct dl2_target_searcher *searcher);

#endif
