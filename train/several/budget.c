/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/budget.h"

#include <math.h>

/* Share of the budget within which a measured speed loses most of its weight. */
#define MEMORY 0.1
/* Kept back for what varies: a slow last validation, a busy machine. */
#define RESERVE        0.01
#define VALIDATE_SLACK 1.15
/* Steps, and the share of the budget, that pass before a speed is believed. */
#define FIRST_STEPS 5
#define FIRST_SHARE 0.3

void dl2_budget_trained(struct dl2_budget *budget, double epochs, double seconds)
{
    double keep = exp(-seconds / (MEMORY * budget->seconds));
    if (budget->trained_calls++ == 1)
        keep = 0; /* forgets the first, by far the slowest */
    budget->trained_seconds = budget->trained_seconds * keep + seconds;
    budget->trained_epochs = budget->trained_epochs * keep + epochs;
}

void dl2_budget_validated(struct dl2_budget *budget, double seconds)
{
    budget->validate_seconds = fmax(budget->validate_seconds, seconds);
}

void dl2_budget_wrote(struct dl2_budget *budget, double seconds)
{
    budget->write_seconds = fmax(budget->write_seconds, seconds);
}

double dl2_budget_epochs(const struct dl2_budget *budget, double position, double elapsed)
{
    if (budget->trained_epochs <= 0 ||
        (budget->trained_calls < FIRST_STEPS && elapsed < FIRST_SHARE * budget->seconds))
        return INFINITY;
    double epoch = budget->trained_seconds / budget->trained_epochs;
    double measured = budget->validate_seconds;
    double validate = VALIDATE_SLACK * (measured > 0 ? measured : budget->validate_guess);
    validate += budget->write_seconds;
    double left = budget->seconds * (1 - RESERVE) - elapsed - validate;
    if (left <= 0 || epoch <= 0)
        return position;
    if (budget->validate_every <= 0)
        return position + left / epoch;
    /* To the next validation, then whole rounds of training and validation, then the rest. */
    double every = budget->validate_every;
    double next = (floor(position / every + 1e-9) + 1) * every - position;
    if (left <= next * epoch)
        return position + left / epoch;
    left -= next * epoch;
    double round = every * epoch + validate;
    double rounds = floor(left / round);
    double rest = fmax(0, left - rounds * round - validate);
    return position + next + rounds * every + rest / epoch;
}
