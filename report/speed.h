/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which variant that keeps the accuracy is the fastest: to load, to train on, and to an accuracy?
 *
 * Loading is images a second of a core of the input pipeline, training images a second of the
 * device with what it waits for. Both come from rounds (report/rounds.h) in which each measurement
 * had the machine to itself, never from the trainings that accuracy is from. Time to an accuracy is
 * the epochs that the mean accuracy of a variant's trainings takes to reach it, straight lines
 * between validations, at the rate of training that the rounds measured; validation is not in it.
 *
 * Intervals are 95%, of each variant by itself. Ratios of rates are taken round by round. The
 * epochs' part is a jackknife over seeds (Efron & Tibshirani, An Introduction to the Bootstrap,
 * 1993, ch. 11), and the two parts add (Satterthwaite's degrees of freedom).
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
    struct dl2_ratio ratio[DL2_SPEED_KINDS]; /* times as fast as the original */
};

struct dl2_speeds {             /* one network */
    struct dl2_speed *variants; /* [variant_count] */
    double accuracy;            /* percent of top-1 that trainings are timed to */
    size_t rounds;              /* in which training was measured */
    struct dl2_advice fastest[DL2_SPEED_KINDS];
};

/* "load", "train", "accuracy": for file names and headings. */
extern const char *const dl2_speed_words[];

/* "34 s", "12.5 min", "3.4 h". */
const char *dl2_speed_duration(double seconds, char out[32]);

/* The analysis is of the same network. `accuracy` is in percent; NAN: the original's final one, the
 * mean over its trainings, less the tolerance. Free with dl2_speeds_free(), on failure too. */
int dl2_speeds_analyse(const struct dl2_study *study, const struct dl2_analysis *analysis,
                       double accuracy, struct dl2_speeds *speeds, struct dl2_error *error);
void dl2_speeds_free(struct dl2_speeds *speeds);

#endif
