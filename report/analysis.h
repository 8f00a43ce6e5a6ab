/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Analyses a study: which variants keep the original's accuracy?
 *
 * Accuracies are top-1 in percent, differences in percentage points, all intervals 95%.
 *
 * A variant's accuracy is the mean over seeds with Student's interval. Its difference to the
 * original is taken between trainings of the same seed. Where several variants were trained from
 * the same seeds, the noise of a training is estimated from all of them together: the residual of
 * accuracy = variant + seed, with (variants - 1)(seeds - 1) degrees of freedom (a randomized block
 * design, e.g. Montgomery, Design and Analysis of Experiments, ch. 4; for one variant it is the
 * paired t-test). So few seeds suffice where there are many variants. A variant that lacks some of
 * the original's seeds is compared by a paired t-test over those it has, or, with fewer than two,
 * by Welch's with the smaller sample's degrees of freedom.
 *
 * The intervals tell of the chance in training, not of the choice of validation images.
 */
#ifndef DL2_REPORT_ANALYSIS_H
#define DL2_REPORT_ANALYSIS_H

#include "report/collect.h"

struct dl2_estimate {
    double mean, half; /* NAN without values; half is INFINITY for one value */
    size_t count;
};

/* Is the difference to the original within the tolerance? */
enum dl2_verdict {
    DL2_VERDICT_NONE,     /* not trained, or the original wasn't */
    DL2_VERDICT_WITHIN,   /* the whole interval is */
    DL2_VERDICT_LIKELY,   /* the measured difference is, the interval reaches beyond */
    DL2_VERDICT_UNLIKELY, /* the measured difference is beyond, the interval reaches inside */
    DL2_VERDICT_BEYOND,   /* the whole interval is beyond */
};

/* "within", "could be", "looks worse", "worse", "". */
const char *dl2_verdict_text(enum dl2_verdict verdict);

struct dl2_comparison {             /* one variant, one network */
    struct dl2_estimate top1, top5; /* percent */
    struct dl2_estimate train_rate; /* images a second */
    struct dl2_estimate stall;      /* percent of the time */
    bool shared;                    /* others shared the machine meanwhile, or that is not known */
    struct dl2_estimate joules;     /* an image */
    double difference, half;        /* to the original, points; NAN where it can't be told */
    size_t pairs;                   /* seeds that both were trained from */
    enum dl2_verdict verdict;       /* NONE for the original itself */
};

/* A recommendation. Indices are variants, study->variant_count where there is none. */
struct dl2_advice {
    size_t sure;     /* the best that is within */
    size_t likely;   /* the best that could be, where it beats the sure one */
    char text[1024]; /* in whole sentences */
};

struct dl2_analysis { /* one network */
    const char *arch;
    double tolerance;                   /* points */
    struct dl2_comparison *comparisons; /* [variant_count] */
    unsigned trainers; /* most trainings at a time on a machine; 0: of none is that known */
    bool shared;       /* any comparison is */
    double noise;      /* a training's standard deviation, points; NAN if unknown */
    size_t freedom;    /* degrees of freedom of `noise` */
    size_t seeds;      /* of the original */
    struct dl2_advice smallest, fastest; /* by bytes; by images a second and core of the loader */
};

/* Mean and 95% interval of a list, which is sorted in place. */
struct dl2_estimate dl2_estimate_mean(double *values, size_t count);

enum dl2_verdict dl2_judge(double difference, double half, double tolerance);

/* `arch` is borrowed. Free with dl2_analysis_free(). */
int dl2_analyse(const struct dl2_study *study, const char *arch, double tolerance,
                struct dl2_analysis *analysis, struct dl2_error *error);
void dl2_analysis_free(struct dl2_analysis *analysis);

#endif
