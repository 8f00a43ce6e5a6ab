/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef DL2_REPORT_META_ANALYSIS_H
#define DL2_REPORT_META_ANALYSIS_H

#include "report/inference.h"

struct dl2_random_effects {
    double mean;     /* over datasets; NAN without any */
    double half;     /* of its 95% interval, Student's t; INFINITY for one dataset */
    double half_new; /* of the 95% prediction interval: what one more such study would measure */
    /* Standard deviation of the true differences between datasets (Hedges & Olkin, Statistical
     * Methods for Meta-Analysis, 1985, ch. 9); 0 where chance explains all. NAN for one dataset. */
    double between;
};

/* Of what `count` studies measured, each with the variance of its error. */
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
