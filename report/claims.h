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
 * Networks have equal parts. With several looks, each codec's level is divided over them
 * (Bonferroni; Maurer & Bretz, "Multiple testing in group sequential trials using graphical
 * approaches", Statistics in Biopharmaceutical Research 5, 2013, on several hypotheses). This holds
 * however the looks depend on each other. The wider levels of a spending function (Lan & DeMets,
 * 1983) take variances as known: with the few degrees of freedom of a study they made 3.6% wrong
 * claims instead of 2.5% (one variant, 2 to 8 seeds). Looks that were planned have shares in
 * proportion to what each adds to the cube of the number of seeds: with two or three seeds
 * Student's t lets hardly any claim pass, whatever its share. Where nobody planned how often one
 * looks, the first look spends three quarters of the error, and each later one three quarters of
 * what is left.
 */
#ifndef DL2_REPORT_CLAIMS_H
#define DL2_REPORT_CLAIMS_H

#include "report/inference.h"

/* The probability of any wrong claim. */
#define DL2_CLAIMS_LEVEL 0.025

enum { DL2_MAX_LOOKS = 17 }; /* 16 of --interim, and one that was made before */

/* Numbers of seeds after which one looks, growing; count 1: a study of that many. */
struct dl2_looks {
    size_t count;
    size_t seeds[DL2_MAX_LOOKS];
    double share[DL2_MAX_LOOKS]; /* of the error, at each look; at most 1 together */
};

/* Divides `left` of the error over the looks from `first` on, in proportion to what each adds to
 * the cube of the number of seeds; 0 and 1 divide all over all. */
void dl2_looks_plan(struct dl2_looks *looks, size_t first, double left);

/* The share of a look that nobody planned, where earlier ones spent so much of the error. */
double dl2_look_unplanned(double spent);

/* The level of the one-sided test at a look (0 is the first), where the codecs that are open have
 * so many equal parts. */
double dl2_look_level(const struct dl2_looks *looks, size_t look, size_t parts);

/*
 * The error on each side of a variant's own interval at a look. With several looks it is that of
 * the look, so that the intervals of all looks together hold the truth with 95% (repeated
 * confidence intervals: Jennison & Turnbull, Group Sequential Methods, 2000, ch. 9). That of a look
 * by itself, or one with no share, is a plain 95% interval.
 */
double dl2_interval_level(const struct dl2_looks *looks, size_t look);

/* A variant in the family. */
struct dl2_study_claim {
    size_t codec;             /* below `codecs` of dl2_claims_test() */
    double bytes;             /* larger ones are tested first */
    double difference;        /* to the original */
    struct dl2_spread spread; /* freedom 0: can't be tested, so it fails */
    /* What the tests say, and what earlier looks said; {false, false, 0...} before the first. */
    bool within;    /* claimed: it loses less than the tolerance */
    bool shown;     /* by a test of these looks; a claim of before them stands without one */
    bool beyond;    /* its own interval lies beyond the tolerance; no part of the family */
    size_t look;    /* at which it was decided */
    double level;   /* of its last test; 0: not reached */
    double bound;   /* the lower end that this test compares with the tolerance; NAN: not reached */
    size_t reached; /* the look of its first test */
    size_t blocker; /* where it was not reached: the claim that ended its codec; else itself */
};

/*
 * Tests all claims of one network at one look (0 is the first); so many networks, at least 1, have
 * equal parts of the error. Claims that were decided earlier stay so. A codec below `codecs`
 * without claims keeps its part of the level. `claims` keep their order.
 */
void dl2_claims_test(struct dl2_study_claim *claims, size_t count, size_t codecs, size_t networks,
                     double tolerance, const struct dl2_looks *looks, size_t look);

#endif
