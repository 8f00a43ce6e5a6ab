/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How sure is a difference in accuracy? Arithmetic alone: no files, no text.
 *
 * A difference between a variant and the original is a table: d[s][i] is what training s (a seed)
 * gains or loses on validation image i, 1, 0 or -1. Seeds and images are both drawn by chance, and
 * crossed: d[s][i] = mean + seed + image + residual. The variance of the mean over both is
 *
 *     (MS_seed + MS_image - MS_residual) / (seeds x images)
 *
 * with the mean squares of the two-way analysis of variance (Searle, Casella & McCulloch, Variance
 * Components, 1992, ch. 4), and Satterthwaite's degrees of freedom ("An approximate distribution of
 * estimates of variance components", Biometrics Bulletin 2, 1946). MS_seed / (seeds x images) alone
 * is the chance of training: what a repetition with other seeds and the same images would show
 * (Bouthillier et al., "Accounting for variance in machine learning benchmarks", MLSys 2021, on
 * why both count).
 *
 * Few seeds say little about the chance of training, so a variant's own is drawn towards that of
 * all variants together. Tables are double [rows][seeds], NAN where there is no training.
 */
#ifndef DL2_REPORT_INFERENCE_H
#define DL2_REPORT_INFERENCE_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The variance of a mean, and the degrees of freedom of its estimate. INFINITY and 0: unknown. */
struct dl2_spread {
    double variance, freedom;
};

/* What exceeds a mean's error with probability `tail`: half the width of an interval. */
double dl2_spread_half(const struct dl2_spread *spread, double tail);

struct dl2_mean_squares {
    size_t seeds, images;
    double mean;
    double seed, image, residual; /* 0 where there is one seed or one image */
};

/* `table` is int8_t [seeds][images], both at least 1. */
int dl2_mean_squares(const int8_t *table, size_t seeds, size_t images,
                     struct dl2_mean_squares *squares, struct dl2_error *error);

/* The part of the variance of the mean that the choice of images adds, never negative. */
double dl2_variance_of_images(const struct dl2_mean_squares *squares);

/*
 * Both sources of chance; `seeds` is the chance of training, of this table or pooled. The image
 * part counts as if one image more were gained or lost in all trainings (Agresti & Min, "Simple
 * improved confidence intervals for comparing matched proportions", Statistics in Medicine 24,
 * 2005): a few images without any change don't prove that none would.
 */
struct dl2_spread dl2_spread_of_both(const struct dl2_mean_squares *squares,
                                     const struct dl2_spread *seeds);

/* The noise of one training, from a table of accuracies: the residual of row + seed. */
struct dl2_noise {
    double deviation; /* standard deviation; NAN where the table can't tell */
    size_t freedom;
};
int dl2_noise_estimate(const double *table, size_t rows, size_t seeds, struct dl2_noise *noise,
                       struct dl2_error *error);

/*
 * The chance of training of a mean over `pairs` seeds. `variance` is that of the pairs' differences
 * (ignored for one pair), `noise` that of all variants together, which counts as one more degree of
 * freedom: the variance is drawn towards it (Smyth, "Linear models and empirical Bayes methods for
 * assessing differential expression", 2004, with a prior of one degree of freedom). More weight
 * would make intervals narrower while all variants are equally noisy, and wrong claims where one is
 * noisier: with three times the deviation 5% instead of 2.5%. A prior can't be estimated from the
 * few variants and seeds of a study.
 */
struct dl2_spread dl2_spread_of_pairs(double variance, size_t pairs, const struct dl2_noise *noise);

/*
 * The pigeonhole bootstrap (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1,
 * 2007): means of `table` with seeds and images drawn anew, independently of each other. A check of
 * the analytic variance: its own is (1 - 1/S) MS_seed / (S I) + (1 - 1/I) MS_image / (S I) + (1 -
 * 1/S)(1 - 1/I) MS_residual / (S I), which is too small for few seeds.
 */
int dl2_pigeonhole(const int8_t *table, size_t seeds, size_t images, uint64_t stream, double *means,
                   size_t draws, struct dl2_error *error);

#endif
