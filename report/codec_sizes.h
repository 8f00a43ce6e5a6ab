/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codecs compared by the sizes of their files at equal image quality (report/bd_rate.h). Quality is
 * a metric's value; its negative, where lower is better; or -10 log10(1 - value), in dB, of metrics
 * of which 1 is the best, because there most qualities crowd just below 1.
 */
#ifndef DL2_REPORT_CODEC_SIZES_H
#define DL2_REPORT_CODEC_SIZES_H

#include "report/bd_rate.h"
#include "report/image_scores.h"
#include "report/study.h"

enum { DL2_BD_DRAWS = 1000 }; /* of a bootstrap */

/* What a codec may need less of at equal quality. */
enum dl2_cost { DL2_COST_BYTES, DL2_COST_ENCODING, DL2_COST_LOADING, DL2_COSTS };

/* A variant's bytes; CPU seconds of encoding an image, and of loading it. NAN: not known. */
double dl2_variant_cost(const struct dl2_study_variant *variant, enum dl2_cost cost);

/* One codec by one metric. Sizes are percent of the anchor's at equal quality; NAN: not known. */
struct dl2_codec_size {
    size_t images;          /* that could be compared one by one */
    size_t left_out;        /* other images of the anchor: no common qualities, or lossless */
    double per_image;       /* mean over the images of each one's size */
    double low, high;       /* its 95% interval by the bootstrap, over images */
    double smaller;         /* percent of the images whose size is below the anchor's */
    size_t pooled_images;   /* that all variants of both have with a value; 0: not known, the
                               pooled size is by the variants' aggregates */
    double pooled, overlap; /* size by mean quality and all bytes; share of qualities, percent */
    double pooled_low, pooled_high; /* its 95% interval by the bootstrap, over images */
    double encoding, loading;       /* pooled: CPU time of both instead of bytes */
    double per_image_overlap;       /* mean over the images, percent */
};

/* What to compare by. */
struct dl2_codec_choice {
    const char *anchor;        /* a codec; NULL: jpeg, else the first */
    const char *metric;        /* that `range` is for; NULL: none */
    struct dl2_bd_range range; /* in the metric's unit */
};

/* The anchor's first variant; variant_count if the study has no such codec, or no codec. */
size_t dl2_codec_anchor(const struct dl2_study *study, const struct dl2_codec_choice *choice);

/* All codecs by all metrics. */
struct dl2_codec_sizes {
    size_t anchor; /* as dl2_codec_anchor() has it */
    struct dl2_metric_names metrics;
    struct dl2_codec_size
        *items; /* [metric * variant_count + v], of each codec's first variant v */
};

/* `images` are those of the anchor's first variant. The items are kept. */
struct dl2_codec_sizes dl2_codec_sizes_find(const struct dl2_study *study,
                                            const struct dl2_image_scores *images,
                                            const struct dl2_codec_choice *choice);

/* The size of variant v's codec by metric m; NULL: v starts no codec, or nothing is known. */
const struct dl2_codec_size *dl2_codec_size_at(const struct dl2_study *study,
                                               const struct dl2_codec_sizes *sizes, size_t m,
                                               size_t v);

#endif
