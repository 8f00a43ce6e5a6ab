/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Analyses a study: which variants keep the original's accuracy?
 *
 * Accuracies are in percent, differences in percentage points. A variant's difference to the
 * original is taken between trainings of the same seed, image by image where the trainings kept
 * their predictions. It has two intervals: by the chance of training, and with the choice of
 * validation images (report/inference.h). A variant that shares no seed with the original is
 * compared by Welch's t-test with the smaller sample's degrees of freedom, by the chance of
 * training alone.
 *
 * Intervals are 95% of each variant by itself. What is claimed of a variant, "within", holds for
 * all variants together: the probability of any wrong claim is at most 2.5% (report/claims.h). It
 * is made with both sources of chance, or without predictions with that of training.
 */
#ifndef DL2_REPORT_ANALYSIS_H
#define DL2_REPORT_ANALYSIS_H

#include "report/accuracy_text.h"
#include "report/claims.h"
#include "report/power.h"
#include "report/study.h"

/* Is the difference to the original within the tolerance? */
enum dl2_verdict {
    DL2_VERDICT_NONE,     /* not trained, or the original wasn't */
    DL2_VERDICT_WITHIN,   /* claimed, as one of all claims */
    DL2_VERDICT_LIKELY,   /* the measured difference is, but it is not claimed */
    DL2_VERDICT_UNLIKELY, /* the measured difference is beyond, the interval reaches inside */
    DL2_VERDICT_BEYOND,   /* the whole interval is beyond */
};

/* "within", "could be", "looks worse", "worse", "". */
const char *dl2_verdict_text(enum dl2_verdict verdict);

/* What is asked of a study. */
struct dl2_question {
    double tolerance;  /* points of accuracy that a variant may lose */
    double percent;    /* above 0: the tolerance is so much of the original's measured accuracy, to
                        * which dl2_analyze() sets it */
    const char *group; /* how images are grouped, as --group has it; NULL: each is by itself */
    /* The numbers of seeds after which the study was looked at while seeds were added to what was
     * open; count 0: it is looked at once, with all seeds and the whole error. */
    struct dl2_looks looks;
    size_t codecs;      /* that share the error, at least; 0: those that there are */
    size_t networks;    /* that share it, at least; 0: this one alone */
    const bool *within; /* [variant_count]: claimed at an earlier look, so it stands; or NULL */
    unsigned draws;     /* of the pigeonhole bootstrap; 0: none */
    bool on_original;   /* validated on the original's images, not on each variant's own */
};

struct dl2_comparison {                 /* one variant, one network */
    struct dl2_estimate accuracy, top5; /* percent */
    double difference;                  /* to the original, points; NAN where it can't be told */
    size_t pairs;                       /* seeds that both were trained from */
    struct dl2_spread training;         /* of the difference, by the chance of training; points */
    struct dl2_spread both; /* with the choice of images; freedom 0: nothing tells of that */
    double half, half_both; /* of the two 95% intervals; INFINITY: unknown, or all that can be */
    double low, high;       /* the bootstrap's 95% interval, points; NAN: not drawn */
    size_t images;          /* validation images that `both` is about; 0: not known how many */
    size_t resamples;       /* of them that `both` is from; 0: it is from predictions or outcomes */
    size_t units;           /* groups of them, or as many as images */
    enum dl2_verdict verdict; /* NONE for the original itself */
    size_t blocker;           /* the larger variant of its codec that ended the tests, or itself */
    double level;             /* of its one-sided test; 0: not reached */
    double bound;             /* the lower end that this test goes by, points; NAN: not reached */
    size_t reached;           /* seeds of the look at which it was first tested */
    size_t decided;           /* seeds after which it was decided; 0: it is open */
};

/* A recommendation. Indices are variants, study->variant_count where there is none. */
struct dl2_advice {
    size_t sure;     /* the best that is within */
    size_t likely;   /* the best that could be, where it beats the sure one */
    char gain[96];   /* "13.9 times smaller"; "" where there is none */
    char text[3072]; /* in whole sentences; of `smallest` why there is none, or "" */
};

/* The variant that is recommended: the sure one, else the likely one. */
static inline size_t dl2_advice_pick(const struct dl2_advice *advice, const struct dl2_study *study)
{
    return advice->sure < study->variant_count ? advice->sure : advice->likely;
}

struct dl2_analysis { /* one network */
    const char *arch;
    const struct dl2_accuracy_kind *kind; /* of the study */
    struct dl2_question question;
    struct dl2_comparison *comparisons; /* [variant_count] */
    struct dl2_noise noise;             /* of a training, points, from all variants together */
    size_t codecs;                      /* that share the probability of a wrong claim */
    size_t seeds;                       /* of the original */
    /* [variant_count]: the same of the trainings as validated on the original's images; NULL: none
     * was. It is a question of its own, with its own 2.5%. */
    struct dl2_comparison *on_original;
    struct dl2_advice smallest;
    struct dl2_study_size needed; /* to claim smallest.likely; few 0: not known, or none suffices */
};

/* How many networks share the error, at least 1. */
static inline size_t dl2_networks_of(const struct dl2_analysis *analysis)
{
    return analysis->question.networks ? analysis->question.networks : 1;
}

/* Half the 95% prediction interval of the difference between one new training on the variant and
 * one on the original, on the same validation images; INFINITY or NAN: not known. */
double dl2_comparison_single(const struct dl2_comparison *comparison);

/* Does it count the choice of images? */
static inline bool dl2_counts_images(const struct dl2_comparison *comparison)
{
    return comparison->images || comparison->resamples;
}

/* The half-width that verdicts go by: with the choice of images where that is known. */
static inline double dl2_comparison_half(const struct dl2_comparison *comparison)
{
    return dl2_counts_images(comparison) ? comparison->half_both : comparison->half;
}

/* The error on each side of a 95% interval over `pairs` seeds: that of the look that they reach
 * (dl2_interval_level()). */
double dl2_interval_tail(const struct dl2_looks *looks, size_t pairs);

/* `arch` is borrowed; what is pointed to is kept. */
struct dl2_analysis dl2_analyze(const struct dl2_study *study, const char *arch,
                                const struct dl2_question *question);
/* All networks of the study: [arch_count], kept. */
struct dl2_analysis *dl2_analyze_all(const struct dl2_study *study,
                                     const struct dl2_question *question);
/*
 * Seeds that a variant should be trained from for the next look. 0: it is decided, or no look is
 * left, or a larger file of its codec is not within yet, so that it can't be claimed, or seeds
 * would hardly decide it: the probability that those of the last look do is below DL2_WORTH_SEEDS.
 */
#define DL2_WORTH_SEEDS 0.2
size_t dl2_analysis_seeds_wanted(const struct dl2_analysis *analysis, size_t variant);

/*
 * The Pareto front: the variants than which no other costs as little and is as accurate. It goes by
 * measured means, so that chance may put a variant on it, or keep one off; verdicts do not use it.
 */

/* Points of accuracy that variant v gains on the original, measured; 0 of the original; NAN: not
 * known. */
double dl2_pareto_gain(const struct dl2_study *study, const struct dl2_analysis *analysis,
                       size_t v);

/* Marks the front: front[variant_count]. `costs` is [variant_count]; a variant whose cost is not
 * finite takes no part. */
void dl2_pareto_find(const struct dl2_study *study, const struct dl2_analysis *analysis,
                     const double *costs, bool *front);

/* The fronts of bytes and accuracy of all networks: [arch * variant_count + variant], kept. */
bool *dl2_pareto_of_bytes(const struct dl2_study *study, const struct dl2_analysis *analyses);

#endif
