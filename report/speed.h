/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which variant that keeps the accuracy is the fastest: to load, to train on, and to an accuracy?
 *
 * Loading is images a second of a core of the input pipeline, training images a second of the
 * device with what it waits for. Both come from rounds (report/rounds.h) in which each measurement
 * had the machine to itself, never from the trainings that accuracy is from. Time to an accuracy is
 * the epochs that the mean accuracy of a variant's trainings takes to reach it, at the rate of
 * training that the rounds measured; validation is not in it. Where the mean falls from one
 * validation to the next, the two are one level in their middle (isotonic regression: Barlow,
 * Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions, 1972); between
 * levels there are straight lines.
 *
 * Intervals are 95%, of each variant by itself. Ratios of rates are taken round by round. The
 * epochs' part is a jackknife over seeds (Efron & Tibshirani, An Introduction to the Bootstrap,
 * 1993, ch. 11): it counts trainings, not the choice of validation images. The two variances add,
 * with the smaller of their degrees of freedom, which is safe (Mickey & Brown, "Bounds on the
 * distribution functions of the Behrens-Fisher statistic", Annals of Mathematical Statistics 37,
 * 1966). tests/report/simulate_speed.c counts how often they hold.
 *
 * Claims, of each network and of each of the three ways by itself:
 *
 * - "Faster than the original" is one family: the probability that any such claim is wrong is at
 *   most DL2_CLAIMS_LEVEL (Holm, "A simple sequentially rejective multiple test procedure",
 *   Scandinavian Journal of Statistics 6, 1979). Of rates, the family has the variants that are or
 *   could be within the tolerance, of time to an accuracy all that were trained on.
 * - The recommended variant and those that may be as fast are a confidence set for the fastest of
 *   those within the tolerance (Hsu, Multiple Comparisons, 1996, ch. 4): with the same probability
 *   the fastest is not among them. A variant stays out if the recommended one is faster, at
 *   DL2_CLAIMS_LEVEL divided by the family's size less one.
 */
#ifndef DL2_REPORT_SPEED_H
#define DL2_REPORT_SPEED_H

#include "report/analysis.h"

enum dl2_speed_kind { DL2_SPEED_LOAD, DL2_SPEED_TRAIN, DL2_SPEED_ACCURACY, DL2_SPEED_KINDS };

struct dl2_speed {                           /* one variant, one network */
    struct dl2_estimate load_rate;           /* images a second and core of the loader */
    struct dl2_estimate train_rate;          /* images a second */
    struct dl2_estimate stall;               /* percent of the time that training waits for data */
    struct dl2_estimate joules;              /* an image */
    double epochs, seconds;                  /* to the accuracy; NAN: never, or not known */
    size_t schedule;                         /* epochs of a whole training; 0: not known */
    struct dl2_ratio ratio[DL2_SPEED_KINDS]; /* times as fast as the original */
    bool faster[DL2_SPEED_KINDS];            /* than the original: claimed, as one of a family */
    bool rival[DL2_SPEED_KINDS];             /* may be as fast as the recommended one */
};

struct dl2_speeds {             /* one network */
    struct dl2_speed *variants; /* [variant_count] */
    double accuracy;            /* percent of accuracy that trainings are timed to */
    size_t rounds;              /* in which training was measured */
    struct dl2_advice fastest[DL2_SPEED_KINDS];
};

/* "load", "train", "accuracy": for file names and headings. */
extern const char *const dl2_speed_words[];

/* "34 s", "12.5 min", "3.4 h". */
const char *dl2_speed_duration(double seconds);

/* The analysis is of the same network. `accuracy` is in percent; NAN: the original's final one, the
 * mean over its trainings, less the tolerance. What is pointed to is kept. */
struct dl2_speeds dl2_speeds_analyze(const struct dl2_study *study,
                                     const struct dl2_analysis *analysis, double accuracy);

#endif
