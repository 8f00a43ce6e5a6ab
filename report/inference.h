/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How sure is a difference in accuracy? Arithmetic alone: no files, no text.
 *
 * A difference between a variant and the original is a table: d[s][i] is what training s (a seed)
 * gains or loses on validation image i: 1, 0 or -1 of top-1, any number of the loss. Seeds and
 * images are both drawn by chance, and crossed: d[s][i] = mean + seed + image + residual. The
 * variance of the mean over both is
 *
 *     MS_seed / (seeds x images) + (MS_image - MS_residual) / (seeds x images)
 *
 * with the mean squares of the two-way analysis of variance (Searle, Casella & McCulloch, Variance
 * Components, 1992, ch. 4). The first part is the chance of training: what a repetition with other
 * seeds and the same images would show. The second is what the choice of the images adds
 * (Bouthillier et al., "Accounting for variance in machine learning benchmarks", MLSys 2021, on
 * why both count). Images that are alike, such as those of one patient, are chosen together: then
 * groups take the place of images.
 *
 * Few seeds say little about the chance of training, so a variant's own is drawn towards that of
 * all variants together. Tables are double [rows][seeds], NAN where there is no training.
 */
#ifndef DL2_REPORT_INFERENCE_H
#define DL2_REPORT_INFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mean and half its 95% interval. */
struct dl2_estimate {
    double mean, half; /* NAN without values; half is INFINITY for one value */
    size_t count;
};
/* The estimate from a list, which is sorted in place. */
struct dl2_estimate dl2_estimate_mean(double *values, size_t count);

/*
 * The variance of a mean, and the degrees of freedom of its estimate. INFINITY and 0: unknown. A
 * second, independent part may add to it.
 */
struct dl2_spread {
    double variance, freedom;
    double added, added_freedom; /* 0: no second part */
};

/*
 * What exceeds a mean's error with probability `tail` at most: half the width of an interval. Each
 * part's own half, by Student's t, and the root of the sum of their squares, which is never too
 * narrow (Banerjee, "Approximate confidence interval for linear functions of means of k populations
 * when the population variances are not equal", Sankhya 22, 1960). Satterthwaite's degrees of
 * freedom make it too narrow by up to a third where the larger part has one or two.
 */
double dl2_spread_half(const struct dl2_spread *spread, double tail);

/* The spread of a sum of two independent values that have one part each. */
struct dl2_spread dl2_spread_sum(const struct dl2_spread *a, const struct dl2_spread *b);

/* The same of values that are multiplied by `factor`. */
struct dl2_spread dl2_spread_scaled(const struct dl2_spread *spread, double factor);

/* Images that are not independent of each other. NULL in place of it: each by itself. */
struct dl2_groups {
    const uint32_t *of; /* [images]: below `count` */
    size_t count;       /* at least 1; none is empty */
    double alike; /* how much more alike images of a group are than others: 0, not at all; 1, copies
                   * of each other (dl2_groups_alike()) */
};

/* The intraclass correlation of a value of each image, 0 to 1, by a one-way analysis of variance; 1
 * where nothing tells, as all groups have one image or all values are the same. */
double dl2_groups_alike(const double *values, size_t images, const struct dl2_groups *groups);

struct dl2_mean_squares {
    size_t seeds;
    size_t units;                 /* images, or groups of them */
    double mean;                  /* over all images */
    double seed, image, residual; /* 0 where there is one seed or one unit */
    double unit; /* by which one more unit might change the mean, if an image's cell may change by
                  * 1: an image, or two thirds of as many of a group as change together */
};

/*
 * `table` is double [seeds][images], both at least 1. With groups, their sums take the place of
 * images: what a sum differs from the mean of as many images, times groups / images (the
 * linearized ratio: Cochran, Sampling Techniques, 1977, ch. 9A).
 */
struct dl2_mean_squares dl2_mean_squares(const double *table, size_t seeds, size_t images,
                                         const struct dl2_groups *groups);

/*
 * The part of the variance of the mean that the choice of images adds, never negative. It counts as
 * if one image more were gained or lost in all trainings (Agresti & Min, "Simple improved
 * confidence intervals for comparing matched proportions", Statistics in Medicine 24, 2005): a few
 * images without any change don't prove that none would. Of groups it is two thirds of one more:
 * images of a group that are all lost together are rare, and a hundred groups may have none.
 */
double dl2_variance_of_images(const struct dl2_mean_squares *squares);

/* Both sources of chance; `seeds` is the chance of training, of this table or pooled. */
struct dl2_spread dl2_spread_of_both(const struct dl2_mean_squares *squares,
                                     const struct dl2_spread *seeds);

/* The noise of one training, from a table of accuracies: the residual of row + seed. */
struct dl2_noise {
    double deviation; /* standard deviation; NAN where the table can't tell */
    size_t freedom;
};
struct dl2_noise dl2_noise_estimate(const double *table, size_t rows, size_t seeds);

/*
 * The chance of training of a mean over `pairs` seeds. `variance` is that of the pairs' differences
 * (ignored for one pair), `noise` that of all variants together, towards which it is drawn by the
 * weight of DL2_POOL_FREEDOM degrees of freedom (Smyth, "Linear models and empirical Bayes methods
 * for assessing differential expression", 2004; the weight is set, because the few variants of a
 * study can't tell it). More weight would make intervals narrower while all variants are equally
 * noisy, and wrong claims where one is noisier than the others: with three times the deviation and
 * four seeds, tests at 2.5% err in 2.7% by this weight, in 3.3% by 1, and in 6.8 to 10% where all
 * variants are taken for equally noisy.
 */
#define DL2_POOL_FREEDOM 0.25
struct dl2_spread dl2_spread_of_pairs(double variance, size_t pairs, const struct dl2_noise *noise);

/*
 * The spread by the choice of images of a mean over seeds of differences that are no means over
 * images (mAP, F1, AUC): `table` is double [seeds][resamples], what each seed's pair differs on
 * each resample of the images. The bootstrap's covariance between seeds takes the place of
 * (MS_image - MS_residual) / (seeds x images): what seeds have in common is the images' part, and
 * the rest of their variance is in the chance of training already. Of one seed it is all of its
 * variance.
 */
struct dl2_spread dl2_spread_of_resamples(const double *table, size_t seeds, size_t resamples);

/* The ends of the middle 95% of a bootstrap's draws, which are sorted. */
void dl2_middle_95(double *draws, size_t count, double *low, double *high);

/*
 * The pigeonhole bootstrap (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1,
 * 2007): means of `table` with seeds and images drawn anew, independently of each other. A check of
 * the analytic variance: its own is (1 - 1/S) MS_seed / (S I) + (1 - 1/I) MS_image / (S I) + (1 -
 * 1/S)(1 - 1/I) MS_residual / (S I), which is too small for few seeds. Groups are drawn whole.
 */
void dl2_pigeonhole(const double *table, size_t seeds, size_t images,
                    const struct dl2_groups *groups, uint64_t stream, double *means, size_t draws);

/*
 * One question, asked of several datasets: what is the mean difference, what would one more dataset
 * show, and on how many of them is a variant within the tolerance? Arithmetic alone: no files, no
 * text. The studies must be independent of each other.
 *
 * Datasets are drawn by chance (random effects), and each counts the same. Meta-analysis usually
 * weights studies by their precision, but that takes their variances as known. Estimated from a few
 * seeds, such weights make the Hartung-Knapp-Sidik-Jonkman interval (with tau^2 by Paule & Mandel)
 * hold the mean in as few as 83% of summaries instead of 95%. Student's t of the plain mean holds
 * it in 95% or more, however unequal the studies' variances are (Bakirov & Szekely, "Student's
 * t-test for Gaussian scale mixtures", Journal of Mathematical Sciences 139, 2006; Ibragimov &
 * Mueller, "t-statistic based correlation and heterogeneity robust inference", Journal of Business
 * & Economic Statistics 28, 2010). The interval is never narrower than if the datasets had one true
 * difference (Jackson, Law, Ruecker & Schwarzer, "The Hartung-Knapp modification for random-effects
 * meta-analysis", Statistics in Medicine 36, 2017).
 */
struct dl2_random_effects {
    double mean;     /* over datasets; NAN without any */
    double half;     /* of its 95% interval, Student's t; INFINITY for one dataset */
    double half_new; /* of the 95% prediction interval: what one more such study would measure */
    /* Standard deviation of the true differences between datasets (Hedges & Olkin, Statistical
     * Methods for Meta-Analysis, 1985, ch. 9); 0 where chance explains all. NAN for one dataset. */
    double between;
};

/* Combines what `count` studies measured, each with the variance of its error. */
void dl2_random_effects(const double *differences, const double *variances, size_t count,
                        struct dl2_random_effects *effects);

/* The one-sided p-value of "the variant loses at least the tolerance" in one study. 1 where the
 * spread is not known. */
double dl2_noninferiority_p(double difference, const struct dl2_spread *spread, double tolerance);

/*
 * Partial conjunction: replaces the studies' p-values, in any order, by those of "fewer than k of
 * them are within the tolerance", p[k - 1] for k = 1 to `count`. They rise with k, so the largest k
 * with p[k - 1] <= 2.5% is a lower bound on the number of datasets. (count - k + 1) times the k-th
 * smallest, which holds for dependent p-values, too (Benjamini & Heller, "Screening for partial
 * conjunction hypotheses", Biometrics 64, 2008).
 */
void dl2_partial_conjunction(double *p, size_t count);

#endif
