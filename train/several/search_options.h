/* SPDX-License-Identifier: BSD-2-Clause */
/* What a search is told (train/several/search.h). */
#ifndef DL2_TRAIN_SEARCH_OPTIONS_H
#define DL2_TRAIN_SEARCH_OPTIONS_H

#include <stdbool.h>

enum dl2_search_algorithm {
    DL2_SEARCH_GRID,
    DL2_SEARCH_RANDOM,
    DL2_SEARCH_HALVING,
    DL2_SEARCH_ASHA,
};
extern const char *const dl2_search_words[]; /* "grid"; NULL at the end */

/* The figure on the first validation set that models are compared by; the other one decides between
 * equals. */
enum dl2_search_goal { DL2_SEARCH_ACCURACY, DL2_SEARCH_LOSS };
extern const char *const dl2_search_goal_words[];

struct dl2_search_options {
    const char *space; /* file; NULL: no search */
    enum dl2_search_goal goal;
    void (*tell)(const char *line); /* of a round that has ended; NULL: nobody listens */
    enum dl2_search_algorithm algorithm;
    unsigned trials, at_once, eta;
    double first_epochs; /* of the first round of halving and asha */
};
/* Whether models are compared, and stopped, before their end. */
static inline bool dl2_search_has_rounds(const struct dl2_search_options *options)
{
    return options->algorithm == DL2_SEARCH_HALVING || options->algorithm == DL2_SEARCH_ASHA;
}

#define DL2_SEARCH_DEFAULTS                                                                        \
    {                                                                                              \
        .algorithm = DL2_SEARCH_RANDOM, .trials = 16, .at_once = 8, .eta = 3, .first_epochs = 1    \
    }

#endif
