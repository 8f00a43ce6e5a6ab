/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Search: makes configurations out of a space (docs/formats.md, "Spaces"), trains them together,
 * some at a time, stops the bad ones early, and writes DL2_SEARCH_FILE to the folder of the runs
 * after each round. What a search decides follows from the reports of its runs, so that one that
 * was stopped decides the same again.
 *
 * grid     every combination of the values
 * random   `trials` combinations, drawn with the seed
 * halving  as random, but in rounds: all train to the first round's end, then the best 1 / eta of
 *          them to eta times as many epochs, and so on to the last epoch (successive halving:
 *          Jamieson, Talwalkar 2016)
 * asha     as halving, but no round waits for its end: as soon as a model is among the best 1 / eta
 *          of those that have come to a round's end, it goes on; else new ones begin (asynchronous
 *          successive halving: Li et al. 2020)
 *
 * Where all settings are lists, and there are no more than 4096 combinations, random, halving and
 * asha draw none twice.
 */
#ifndef DL2_TRAIN_SEARCH_H
#define DL2_TRAIN_SEARCH_H

#include "train/configs.h"

#define DL2_SEARCH_SCHEMA "dl2-search/1"
#define DL2_SEARCH_FILE   "search.json"

enum dl2_search_algorithm {
    DL2_SEARCH_GRID,
    DL2_SEARCH_RANDOM,
    DL2_SEARCH_HALVING,
    DL2_SEARCH_ASHA,
};
extern const char *const dl2_search_words[]; /* "grid"; NULL at the end */

struct dl2_search_options {
    const char *space; /* file; NULL: no search */
    enum dl2_search_algorithm algorithm;
    unsigned trials, at_once, eta;
    double first_epochs; /* of the first round of halving and asha */
};

#define DL2_SEARCH_DEFAULTS                                                                        \
    {                                                                                              \
        .algorithm = DL2_SEARCH_RANDOM, .trials = 16, .at_once = 8, .eta = 3, .first_epochs = 1    \
    }

/* What the search found. */
struct dl2_search_result {
    const char *name;       /* of the best model, in `configs`; NULL: all diverged */
    const json_t *settings; /* its own */
    double top1;
    double trained, all; /* epochs: of all models together; to the end of each of them */
};

/*
 * Searches, with the models' configurations in `configs`, which the caller frees. `train` calls
 * dl2_train_models(), and returns an exit status; other than 0 it ends the search. Returns 0, or an
 * exit status after an error message.
 */
int dl2_search(const struct dl2_search_options *options, const struct dl2_configs_base *base,
               int (*train)(struct dl2_train_model *models, size_t count),
               struct dl2_configs *configs, struct dl2_search_result *result);

#endif
