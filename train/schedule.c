#include "train/schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const policy_names[] = {
    [DL2_LR_COSINE] = "cosine",
    [DL2_LR_STEP] = "step",
    [DL2_LR_LINEAR] = "linear",
    [DL2_LR_EXPONENTIAL] = "exponential",
};

/* Where the rate falls to a tenth, as ninetieths of the run. */
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

int dl2_lr_policy_parse(const char *text, enum dl2_lr_policy *policy, struct dl2_error *error)
{
    for (size_t i = 0; i < sizeof policy_names / sizeof *policy_names; i++) {
        if (strcmp(text, policy_names[i]) == 0) {
            *policy = (enum dl2_lr_policy)i;
            return DL2_OK;
        }
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "'%s' is no learning-rate policy: cosine, step, linear or exponential",
                         text);
}

const char *dl2_lr_policy_name(enum dl2_lr_policy policy)
{
    return policy_names[policy];
}
