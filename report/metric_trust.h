/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What image quality metrics tell of accuracy: do they order the variants as accuracy does, and are
 * the images that a variant breaks those that it scores low?
 */
#ifndef DL2_REPORT_METRIC_TRUST_H
#define DL2_REPORT_METRIC_TRUST_H

#include "report/repetitions.h"

enum { DL2_MAX_METRICS = 16 };

/* The metrics that dl2-quality scored, by their names in its files. */
struct dl2_metric_names {
    size_t count;
    char names[DL2_MAX_METRICS][32];
    bool lower_is_better[DL2_MAX_METRICS], one_is_best[DL2_MAX_METRICS];
};
void dl2_metric_names_find(const struct dl2_study *study, struct dl2_metric_names *metrics);

/* The aggregate of a metric over a variant's images: `part` is "mean", or "p5"
 * (where lower is better "p95"). INFINITY where all
 * images are as the original's; NAN: not known. */
double dl2_metric_aggregate(const struct dl2_study_variant *variant, const char *metric,
                            const char *part);

/*
 * Which of two variants is the more accurate, as far as a network's trainings tell beyond chance:
 * the 95% interval of their difference, by repetitions of the study, is on one side of 0.
 */
struct dl2_accuracy_order {
    size_t variants;
    int8_t *signs; /* [variants][variants]: 1: the row's is higher; -1: lower; 0: can't be told.
                      NULL: nothing is known of chance */
    bool images;   /* the choice of images is among the chances */
};
/* The signs are kept. */
struct dl2_accuracy_order dl2_accuracy_order_make(const struct dl2_study *study,
                                                  const struct dl2_analysis *analysis, size_t arch);

/*
 * Variants ordered by one figure, against their order by accuracy: Kendall's tau-b, from 1 (the
 * same order) to -1 (the reverse), 0 is chance.
 *
 * The interval counts all pairs whose accuracies can't be told apart against the figure, then for
 * it. So it holds the truth more often than in 95% of studies; repetitions of the study would give
 * a narrower one, which misses the truth far too often, because noise draws tau towards 0.
 */
struct dl2_ranking {
    size_t variants;   /* with the figure and an accuracy; the original isn't among them */
    size_t pairs;      /* of them */
    size_t alike;      /* pairs that both order alike */
    size_t told;       /* pairs whose accuracies can be told apart */
    size_t told_alike; /* of these, ordered alike */
    double tau;        /* NAN for fewer than three variants, or where all are equal */
    double low, high;  /* NAN: not known */
};

/* Ranks by `values` [variant_count], higher is nearer to the original; NAN: not known. */
struct dl2_ranking dl2_ranking_make(const struct dl2_study *study,
                                    const struct dl2_analysis *analysis,
                                    const struct dl2_accuracy_order *order, const double *values);

/*
 * Images that a variant breaks: those which networks trained on the original get right, and those
 * trained on the variant wrong, in more than half of the seeds that both have. They are compared
 * with the kept: what the original gets right in more than half of the seeds, without the broken.
 */
struct dl2_breakage { /* of one variant and network */
    size_t seeds;     /* 0: not known */
    size_t broken, kept;
    size_t mended;           /* the other way round: right on the variant, wrong on the original */
    struct {                 /* by metric */
        size_t broken, kept; /* images with a score */
        double broken_median, kept_median; /* NAN: none */
        /* Probability that a broken image scores worse than a kept one, ties counted half (the
         * Mann-Whitney statistic); 95% interval after Newcombe, "Confidence intervals for an effect
         * size measure based on the Mann-Whitney statistic", part 2, Statistics in Medicine 25,
         * 2006, method 5. NAN: none. */
        double worse, low, high;
    } metrics[DL2_MAX_METRICS];
};

/* [arch * variant_count + variant], kept. Reads each variant's quality file once more, for its
 * scores of single images; images are paired by key. */
struct dl2_breakage *dl2_breakages_find(const struct dl2_study *study,
                                        const struct dl2_metric_names *metrics);

/* The interval of struct dl2_breakage; `share` is of `a` times `b` pairs. */
void dl2_mann_whitney_interval(double share, size_t a, size_t b, double *low, double *high);

/*
 * By which figure should a quality be chosen? Every metric's mean and worse 5th percentile, and
 * bits per pixel, each with how it orders the variants, and which metrics do best.
 */

enum { DL2_MAX_GUIDES = 2 * DL2_MAX_METRICS + 1 };

/* What variants are ordered by: a metric's aggregate, or bits per pixel. */
struct dl2_guide {
    const char *metric; /* NULL: bits per pixel */
    const char *part;   /* "mean" */
    const char *title;  /* of the part */
    bool lower_is_better;
    struct dl2_ranking ranking;
};

struct dl2_guides { /* of one network */
    struct dl2_guide items[DL2_MAX_GUIDES];
    size_t count; /* bits per pixel comes last */
    bool any;     /* has any of them a tau? */
};

/* "PSNR RGB" of "psnr_rgb"; its own name where dl2-quality has not told. */
const char *dl2_metric_title(const struct dl2_study *study, const char *metric);
double dl2_guide_value(const struct dl2_guide *guide, const struct dl2_study_variant *variant);

/* `metrics` must outlive them. */
struct dl2_guides dl2_guides_make(const struct dl2_study *study,
                                  const struct dl2_analysis *analysis,
                                  const struct dl2_accuracy_order *order,
                                  const struct dl2_metric_names *metrics);
/* Says which metrics come first, and whether the study can tell them from the others; empty where
 * none has a tau. */
void dl2_guides_say(const struct dl2_guides *guides, const struct dl2_study *study, char *text,
                    size_t size);

#endif
