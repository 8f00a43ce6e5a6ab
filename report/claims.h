/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which variants lose less than a tolerance? One family of claims: the probability that any of them
 * is wrong is at most 2.5%, however many variants and codecs were tried, and however often one
 * looked while seeds were added. Arithmetic alone: no files, no text.
 *
 * Each claim is a one-sided test of non-inferiority: the variant loses at least the tolerance,
 * until its difference is too far above that. A codec's variants are tested from the largest file
 * to the smallest, each at the codec's whole level; the first that fails ends the codec (a fixed
 * sequence). The codecs share the 2.5%, and a codec whose variants all pass leaves its share to the
 * others, which is Holm's step (Bretz, Maurer, Brannath & Posch, "A graphical approach to
 * sequentially rejective multiple test procedures", Statistics in Medicine 28, 2009).
 *
 * With several looks, each codec's level is spent over them in proportion to the number of seeds (a
 * spending function: Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
 * 70, 1983; Kim & DeMets, Biometrika 74, 1987, power 1; with several hypotheses: Maurer & Bretz,
 * "Multiple testing in group sequential trials using graphical approaches", Statistics in
 * Biopharmaceutical Research 5, 2013). The choice of images, which more seeds do not change, makes
 * looks more alike than the boundaries assume, and so errs to the safe side.
 */
#ifndef DL2_REPORT_CLAIMS_H
#define DL2_REPORT_CLAIMS_H

#include "report/inference.h"

/* The probability of any wrong claim. */
#define DL2_CLAIMS_LEVEL 0.025

enum { DL2_MOST_LOOKS = 16 };

/* Numbers of seeds after which one looks, growing; count 1: a study of that many. */
struct dl2_looks {
    size_t count;
    size_t seeds[DL2_MOST_LOOKS];
};

/*
 * The level of the one-sided test at each look so that all together have `level`. Normal
 * distribution, information in proportion to seeds, growing.
 */
int dl2_spend(double level, const struct dl2_looks *looks, double *levels, struct dl2_error *error);

/* The levels of a study: of one to `codecs` codecs that share DL2_CLAIMS_LEVEL, at each look. */
struct dl2_plan {
    struct dl2_looks looks;
    size_t codecs;
    double *levels; /* [codecs][looks.count]: row k - 1 is for k codecs */
};
/* Free with dl2_plan_free(), on failure too. */
int dl2_plan_make(const struct dl2_looks *looks, size_t codecs, struct dl2_plan *plan,
                  struct dl2_error *error);
void dl2_plan_free(struct dl2_plan *plan);

/* A variant in the family. */
struct dl2_study_claim {
    size_t codec;             /* below plan->codecs */
    double bytes;             /* larger ones are tested first */
    double difference;        /* to the original */
    struct dl2_spread spread; /* freedom 0: can't be tested, so it fails */
    /* What the tests say, and what earlier looks said; {false, false, 0...} before the first. */
    bool within;    /* claimed: it loses less than the tolerance */
    bool beyond;    /* its own interval lies beyond the tolerance; no part of the family */
    size_t look;    /* at which it was decided */
    double level;   /* of its last test; 0: not reached */
    size_t reached; /* the look of its first test */
    size_t blocker; /* where it was not reached: the claim that ended its codec; else itself */
};

/*
 * Tests all claims at one look (0 is the first). Claims that were decided earlier stay so. `claims`
 * keep their order.
 */
int dl2_claims_test(struct dl2_study_claim *claims, size_t count, double tolerance,
                    const struct dl2_plan *plan, size_t look, struct dl2_error *error);

#endif
