/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A budget of seconds turned into a number of epochs, anew at every step, from the speed that was
 * measured so far. The schedule is then played over that number, so that the rate has come to its
 * end when time is up. What is left of the budget must pay for training, for a validation after
 * every `validate_every` epochs, for the one at the end, and for writing things down.
 *
 * Threads: one at a time.
 */
#ifndef DL2_TRAIN_BUDGET_H
#define DL2_TRAIN_BUDGET_H

struct dl2_budget {
    double seconds;        /* in all */
    double validate_every; /* epochs; 0: only at the end */
    /* Measured. Training: sums in which older steps count less. */
    double trained_seconds, trained_epochs;
    unsigned trained_calls;
    double validate_seconds; /* the slowest so far */
    double validate_guess;   /* set by the caller until one is measured; 0: there are none */
    double write_seconds;    /* likewise */
};

/* `epochs` (a part of one, usually) of training took `seconds`, data waits and all. */
void dl2_budget_trained(struct dl2_budget *budget, double epochs, double seconds);
void dl2_budget_validated(struct dl2_budget *budget, double seconds);
void dl2_budget_wrote(struct dl2_budget *budget, double seconds);

/*
 * How many epochs the whole run will come to, at `position` with `elapsed` seconds gone: at least
 * `position`; INFINITY in the first few steps, which say little about the
 * others (plans are made, queues filled).
 */
double dl2_budget_epochs(const struct dl2_budget *budget, double position, double elapsed);

#endif
