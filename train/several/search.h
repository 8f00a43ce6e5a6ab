/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Search: makes configurations out of a space (docs/formats/train.md, "Spaces"), decides which of
 * them train, and how far, and stops the bad ones early. It decides by the reports of the runs, and
 * keeps what it has decided in DL2_SEARCH_FILE, in the folder of the runs, from which a search that
 * was stopped goes on.
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
 *
 * Beside that file lies DL2_SEARCH_TABLE, a line for each model, the best first.
 *
 * There are two ways to train. dl2_search_run() trains in waves: models of a round that share
 * batches. By ranks (train/several/hop.h) each rank decides by dl2_search_plan() on one model more
 * whenever it has none to train, so that it waits only where all depends on a model that trains: at
 * the end of halving's rounds.
 */
#ifndef DL2_TRAIN_SEARCH_H
#define DL2_TRAIN_SEARCH_H

#include "train/several/configs.h"
#include "train/several/hop.h"
#include "train/several/search_options.h"

#define DL2_SEARCH_SCHEMA "dl2-search/1"
#define DL2_SEARCH_FILE   "search.json"
#define DL2_SEARCH_TABLE  "search.csv"

/* What the search found, or what it has found so far. */
struct dl2_search_result {
    const char *name;       /* of the best model, the search's; NULL: none has been validated */
    const json_t *settings; /* its own */
    double accuracy, loss;
    double trained, all; /* epochs: of all models together; to the end of each of them */
};

struct dl2_search;

/* Makes the models of a search, in base->config->out. Returns 0, or an exit status after an error
 * message. Call dl2_search_close() also then. `options` is borrowed. */
int dl2_search_open(const struct dl2_search_options *options, const struct dl2_configs_base *base,
                    struct dl2_search **out);
void dl2_search_close(struct dl2_search *search);
/* Its models, for dl2_train_hopping(). */
struct dl2_configs *dl2_search_configs(struct dl2_search *search);

/* Claims the place, or resumes what is there. By one process, before any trains. */
int dl2_search_begin(struct dl2_search *search, struct dl2_error *error);
/* Trains in waves. `train` calls dl2_train_models(), and returns an exit status; other than 0 it
 * ends the search. Returns 0, or an exit status after an error message. */
int dl2_search_run(struct dl2_search *search,
                   int (*train)(struct dl2_train_model *models, size_t count));
/* For all ranks that train its models. */
struct dl2_hop_plan dl2_search_plan(struct dl2_search *search);

struct dl2_search_result dl2_search_result(struct dl2_search *search);
/* Prints the `most` best models of that result, the best first. */
void dl2_search_print(const struct dl2_search *search, size_t most, FILE *out);

#endif
