/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of quality metrics: full-reference, on images in memory, no files. dl2-quality
 * scores datasets with it; a search for a target quality can call it just as well. Images are of 8
 * bits; a metric with measure_deep can also score those of 16.
 *
 *     struct dl2_scorer *scorer;
 *     dl2_scorer_create(&scorer, &error);
 *     dl2_scorer_set_reference(scorer, &reference);
 *     dl2_scorer_score(scorer, &dl2_metric_ssim, &variant, &score, &error);   ... any number
 *     dl2_scorer_free(scorer);
 *
 * Luma is BT.601, full range, not rounded: 0.299 R + 0.587 G + 0.114 B, of the samples as coded. It
 * is held in thousandths (299 R + 587 G + 114 B), which is a whole number below 2^18 and so exact
 * in a float.
 *
 * Where one image is gray and the other color, the gray one stands for R = G = B; its luma is its
 * gray.
 *
 * Threads: the registry is constant. A scorer belongs to one thread at a time. It needs 730 kB, and
 * what a metric allocates for itself, which its definition's file states and later scores reuse.
 */
#ifndef DL2_QUALITY_METRIC_H
#define DL2_QUALITY_METRIC_H

#include "common/error.h"
#include "pixels/deep_image.h"
#include "pixels/image.h"

/* Numbers that a metric adds up over a pair of images, at most. */
enum { DL2_METRIC_SUMS = 5 };

/* The score of one pair by one metric. */
struct dl2_score {
    double value; /* in the metric's unit; NAN: the pair has no value */
    double mean;  /* where the metric has of_mse: the mean squared error, on the 0-255 scale; else
                     the value */
};

struct dl2_scorer;

/* A row of the registry: every fact about a metric, and its functions. */
struct dl2_metric {
    const char *name;        /* in files and options: "psnr_rgb" */
    const char *title;       /* in tables: "PSNR RGB" */
    const char *unit;        /* "dB", or "" */
    const char *definition;  /* one line that tells it from its namesakes */
    const char *viewer_name; /* in codec-compare, where that has the same; NULL: `name` */
    unsigned digits;         /* decimals in tables; JSON and CSV have them all */
    bool lower_is_better;    /* 0 is the best; else higher is better */
    bool one_is_best;        /* reports compare it by -10 log10(1 - value) */
    bool by_default;         /* dl2-quality scores it unless told otherwise */
    /* Images without a value: the field of JSON that counts them, and what tables say behind the
     * count. NULL: tables count them elsewhere. */
    const char *missing, *missing_note;
    /* The mean of an image is that of strips of its rows, each weighted by its rows less `overlap`,
     * which two strips that follow one another share. */
    bool adds_up;
    uint32_t overlap;
    uint32_t min_side; /* shortest side, in pixels, that an image with a value can have */
    /* Not NULL: the value is this metric's, of both images as a network gets them
     * (quality/input.c), so that their sizes may differ; the three functions below are not used,
     * but of_mse says that there is a mean squared error. */
    const struct dl2_metric *of_input;
    /* Adds up what it needs of the scorer's reference and `variant`, on the processors. Sizes are
     * equal and at least min_side. Metrics with the same function share its work. */
    int (*measure)(struct dl2_scorer *scorer, const struct dl2_image *variant,
                   double sums[DL2_METRIC_SUMS], struct dl2_error *error);
    /* The same sums, on the 0-255 scale, of images of 16 bits; NULL: the metric is of 8 bits. */
    void (*measure_deep)(const struct dl2_deep_image *reference,
                         const struct dl2_deep_image *variant, double sums[DL2_METRIC_SUMS]);
    /* From sums, made on any device, to dl2_score's mean; NULL: that is sums[sum]. */
    double (*mean)(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                   const struct dl2_image *variant);
    unsigned sum;
    /* The value of a mean squared error, INFINITY if there is none; NULL for a metric whose mean
     * is its value. */
    double (*of_mse)(double mse);
};

/*
 * The registry. To add a metric, add its name here and define dl2_metric_NAME in a file of its own.
 * DL2_METRICS_OF_LIBRARIES are those that a library computes, which a build may lack.
 */
/* clang-format off */
#define DL2_METRICS(ROW)                                                                           \
    ROW(psnr_rgb) ROW(psnr_y) ROW(ssim) ROW(ms_ssim) ROW(psnr_hvs_m) ROW(ssimulacra2)              \
    ROW(ciede2000) ROW(ciede2000_p95) ROW(input_psnr) ROW(input_ssim)
#define DL2_METRICS_OF_LIBRARIES(ROW) ROW(butteraugli_max) ROW(butteraugli_3)
/* clang-format on */

#define DL2_METRIC_DECLARE(name) extern const struct dl2_metric dl2_metric_##name;
DL2_METRICS(DL2_METRIC_DECLARE)
DL2_METRICS_OF_LIBRARIES(DL2_METRIC_DECLARE)
#undef DL2_METRIC_DECLARE

/* No build has more. */
#define DL2_METRIC_ADD(name) +1
enum { DL2_METRIC_COUNT = DL2_METRICS(DL2_METRIC_ADD) DL2_METRICS_OF_LIBRARIES(DL2_METRIC_ADD) };
#undef DL2_METRIC_ADD

/* In the registry's order; NULL at the end. */
const struct dl2_metric *dl2_metric_at(unsigned index);

/* The score that follows from a pair's sums; without a value where the images are too small. */
void dl2_score_of_sums(const struct dl2_metric *metric, const double sums[DL2_METRIC_SUMS],
                       const struct dl2_image *reference, const struct dl2_image *variant,
                       struct dl2_score *score);

/* Uses the fastest code that dl2_simd_flags() allows. */
int dl2_scorer_create(struct dl2_scorer **out, struct dl2_error *error);
void dl2_scorer_free(struct dl2_scorer *scorer);

/* All following scores are against this image, which stays the caller's. */
void dl2_scorer_set_reference(struct dl2_scorer *scorer, const struct dl2_image *reference);
/* The image that the reference was resized from, which stays the caller's: metrics with of_input
 * compare with it. Until the next reference. */
void dl2_scorer_set_original(struct dl2_scorer *scorer, const struct dl2_image *original);

/* The side of a network's square input, in pixels, for metrics with of_input. */
enum { DL2_INPUT_SIZE = 224, DL2_MAX_INPUT_SIZE = 16384 };
void dl2_scorer_set_input_size(struct dl2_scorer *scorer, unsigned size);

/*
 * Scores a variant by `count` metrics: scores[i] is that of metrics[i]; where that is NULL,
 * scores[i] stays as it is. Work that metrics have in common is done once. DL2_ERR_ARGUMENT where
 * the sizes differ (but for metrics with of_input), DL2_ERR_MEMORY. A pair without a value is no
 * error.
 */
int dl2_scorer_score_all(struct dl2_scorer *scorer, const struct dl2_metric *const *metrics,
                         unsigned count, const struct dl2_image *variant, struct dl2_score *scores,
                         struct dl2_error *error);
/* The same by one metric. */
int dl2_scorer_score(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                     const struct dl2_image *variant, struct dl2_score *score,
                     struct dl2_error *error);

/* Are all samples equal, gray standing for R = G = B? Sizes must match. */
bool dl2_images_equal(const struct dl2_image *a, const struct dl2_image *b);

#endif
