/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The learning rate as a function of how far a run is.
 *
 * Positions are real numbers of epochs, so a run of 2.7 epochs (what a time budget came to) has a
 * schedule as good as one of 90. The policies are those of NVIDIA's image classification examples,
 * which (DL)2 uses; with `interval` 1 and a position that is the number of whole epochs they give
 * its very numbers, with `interval` 1 / steps the rate moves at every step.
 *
 * With e and E the position and the length net of warm-up, lr the peak rate, and end the last one:
 *
 *   warm-up      lr * min(1, (position + interval) / warmup)    while position < warmup
 *   cosine       end + (lr - end) * (1 + cos(pi e / E)) / 2
 *   linear       lr + (end - lr) * e / E
 *   exponential  lr * (end / lr)^(e / E)        end 0 stands for lr / 1000
 *   step         lr * 0.1 at 1/3, 2/3 and 8/9 of the whole run (30, 60 and 80 of 90), not below end
 *
 * Threads: pure functions.
 */
#ifndef DL2_TRAIN_SCHEDULE_H
#define DL2_TRAIN_SCHEDULE_H

#include "common/error.h"

enum dl2_lr_policy { DL2_LR_COSINE, DL2_LR_STEP, DL2_LR_LINEAR, DL2_LR_EXPONENTIAL };

struct dl2_schedule {
    enum dl2_lr_policy policy;
    double lr, end_lr; /* peak and last rate, lr > 0, 0 <= end_lr <= lr */
    double epochs;     /* length of the whole run, warm-up included */
    double warmup;     /* epochs, below `epochs` */
    double interval;   /* epochs from one change of the rate to the next: 1, or 1 / steps */
};

/* The rate at `position` epochs into the run; positions beyond its end count as the end. */
double dl2_schedule_lr(const struct dl2_schedule *schedule, double position);

/* "cosine" and so on, in the order of the enum, for options and reports; NULL ends them. */
extern const char *const dl2_lr_policy_words[];

#endif
