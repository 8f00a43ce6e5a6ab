/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target: what each image of a variant is to reach with a quality of its own (dl2-transcode
 * --target). transcode/target/target_search.h finds the qualities.
 */
#ifndef DL2_TRANSCODE_TARGET_H
#define DL2_TRANSCODE_TARGET_H

#include "codec/codec.h"
#include "quality/metric.h"

/* Which file an image has: the smallest that meets the target, or the one that is nearest to it,
 * on either side. */
enum dl2_target_rule { DL2_TARGET_AT_LEAST, DL2_TARGET_NEAREST };
extern const char *const dl2_target_rules[]; /* the words, NULL-ended */

/* What an image has that no quality brings to the target: the file that is nearest to it, its
 * source's file, or nothing, as one that cannot be encoded. */
enum dl2_target_miss { DL2_MISS_BEST, DL2_MISS_COPY, DL2_MISS_FAIL };
extern const char *const dl2_target_misses[];

/* Zeroed: none. */
struct dl2_quality_target {
    const char *name;                /* a metric's, "bytes" or "bpp"; NULL: there is no target */
    const struct dl2_metric *metric; /* NULL: the file's size */
    double value;                    /* the least or most score, or the most bytes or bpp */
    int low, high;                   /* the qualities that are tried */
    enum dl2_target_rule rule;
    enum dl2_target_miss miss;
    double tolerance; /* a search may end so close to the target: dl2_target_even()'s difference */
    unsigned input_size; /* of a metric with of_input: the side of the networks' input, pixels; else
                            0 */
    unsigned probes;     /* files that are made at most, 1 to 100 */
};

/* "METRIC=VALUE", "bytes=N" or "bpp=N"; `rest` has all but name, metric and value.
 * DL2_ERR_ARGUMENT. */
int dl2_target_parse(const char *text, const struct dl2_quality_target *rest,
                     struct dl2_quality_target *out, struct dl2_error *error);
bool dl2_target_equal(const struct dl2_quality_target *a, const struct dl2_quality_target *b);
/* The record, `target` of docs/formats/transcode.md: a new object. */
json_t *dl2_target_json(const struct dl2_quality_target *target);

/* Does a score, or a size, meet it? */
bool dl2_target_meets(const struct dl2_quality_target *target, double score);

/*
 * A score or size on a scale on which it rises with the quality, about evenly: the logarithm of a
 * size, or of what is lost, with its sign changed: the mean squared error (of dB), 1 - SSIM, 100 -
 * SSIMULACRA2, a distance. So differences are relative: 0.02 is 2% of what is lost, or of the
 * bytes.
 */
double dl2_target_even(const struct dl2_quality_target *target, double score);

/* Is a target of this kind found in all qualities, by dl2_codec's trials? */
static inline bool dl2_target_is_scanned(const struct dl2_quality_target *target,
                                         const struct dl2_codec *codec)
{
    return target->metric && codec->trial_new;
}

#endif
