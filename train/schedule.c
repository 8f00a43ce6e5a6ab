/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/schedule.h"

#include <math.h>
#include <stddef.h>

const char *const dl2_lr_policy_words[] = {
    [DL2_LR_COSINE] = "cosine",
    [DL2_LR_STEP] = "step",
    [DL2_LR_LINEAR] = "linear",
    [DL2_LR_EXPONENTIAL] = "exponential",
    NULL,
};

/* The rate falls to a tenth at these positions, in ninetieths of the run. */
static double step_rate(const struct dl2_schedule *schedule, double position)
{
    static const double falls[] = {30, 60, 80};
    double lr = schedule->lr;
    for (size_t i = 0; i < sizeof falls / sizeof *falls; i++)
        if (position * 90 >= falls[i] * schedule->epochs)
            lr *= 0.1;
    return fmax(lr, schedule->end_lr);
}

double dl2_schedule_lr(const struct dl2_schedule *schedule, double position)
{
    const double pi = 3.14159265358979323846;
    double lr = schedule->lr, end = schedule->end_lr;
    if (position < schedule->warmup)
        return lr * fmin(1, (position + schedule->interval) / schedule->warmup);
    if (schedule->policy == DL2_LR_STEP)
        return step_rate(schedule, position);
    double length = schedule->epochs - schedule->warmup;
    double part = length > 0 ? fmin(1, (position - schedule->warmup) / length) : 1;
    switch (schedule->policy) {
    case DL2_LR_LINEAR:
        return lr + (end - lr) * part;
    case DL2_LR_EXPONENTIAL:
        return lr * pow(end > 0 ? end / lr : 1e-3, part);
    default:
        return end + (lr - end) * 0.5 * (1 + cos(pi * part));
    }
}
