/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codecs compared by the sizes of their files at equal image quality, after Bjontegaard: the
 * logarithm of the size is interpolated over the quality, and its mean difference to another
 * codec's is taken over the qualities that both have, never beyond.
 *
 * Interpolation is PCHIP (Fritsch and Butland 1984, as in SciPy), which does not overshoot. Quality
 * is a metric's value; its negative, where lower is better; or -10 log10(1 - value), in dB, of
 * metrics of which 1 is the best, because there most qualities crowd just below 1.
 */
#ifndef DL2_REPORT_CODEC_SIZES_H
#define DL2_REPORT_CODEC_SIZES_H

#include "report/metric_trust.h"
#include "report/study.h"

enum { DL2_BD_POINTS = 256, DL2_BD_DRAWS = 1000 };

/* Log sizes by rising quality. */
struct dl2_bd_curve {
    size_t count;
    double quality[DL2_BD_POINTS], log_size[DL2_BD_POINTS];
};

/* Adds a point. One without a finite quality or without a size adds none; of points of one quality
 * the smallest size counts; those beyond DL2_BD_POINTS are left out. */
void dl2_bd_add(struct dl2_bd_curve *curve, double quality, double size);

/* Qualities to compare at. */
struct dl2_bd_range {
    double low, high;
};
#define DL2_BD_EVERYWHERE                                                                          \
    (struct dl2_bd_range)                                                                          \
    {                                                                                              \
        -INFINITY, INFINITY                                                                        \
    }

/* The mean of log(own size / anchor's size) over the range's part that both curves cover; NAN if
 * there is none, or a curve has fewer than two points. *overlap is that part's share of what either
 * curve covers of the range, 0 to 1. */
double dl2_bd_log_ratio(const struct dl2_bd_curve *own, const struct dl2_bd_curve *anchor,
                        const struct dl2_bd_range *range, double *overlap);

/* One codec by one metric. Sizes are percent of the anchor's at equal quality; NAN: not known. */
struct dl2_codec_size {
    size_t images;            /* that could be compared one by one */
    size_t left_out;          /* other images of the anchor: no common qualities, or lossless */
    double per_image;         /* mean over the images of each one's size */
    double low, high;         /* its 95% interval by the bootstrap, over images */
    double smaller;           /* percent of the images whose size is below the anchor's */
    size_t pooled_images;     /* that all variants of both have with a value; 0: not known, the
                                 pooled size is by the variants' aggregates */
    double pooled, overlap;   /* size by mean quality and all bytes; share of qualities, percent */
    double per_image_overlap; /* mean over the images, percent */
};

/* What to compare by. */
struct dl2_codec_choice {
    const char *anchor;        /* a codec; NULL: jpeg, else the first */
    const char *metric;        /* that `range` is for; NULL: none */
    struct dl2_bd_range range; /* in the metric's unit */
};

/* The anchor's first variant; variant_count if the study has no such codec, or no codec. */
size_t dl2_codec_anchor(const struct dl2_study *study, const struct dl2_codec_choice *choice);

/*
 * sizes[metric * variant_count + v], set for each codec's first variant v, the anchor's aside.
 * Reads the variants' quality files once more, for scores and sizes of single images.
 */
int dl2_codec_sizes_find(const struct dl2_study *study, const struct dl2_metric_names *metrics,
                         const struct dl2_codec_choice *choice, struct dl2_codec_size *sizes,
                         struct dl2_error *error);

#endif
