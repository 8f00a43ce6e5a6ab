/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A search, private to its files; others include search.h.
 *
 *     search.c        which trials train, and how far
 *     search_table.c  all trials, ranked, for people and as a table
 *     search_space.c  configurations out of a space
 */
#ifndef DL2_TRAIN_SEARCH_STATE_H
#define DL2_TRAIN_SEARCH_STATE_H

#include "train/several/search.h"

#include <sys/stat.h>

/* With an eta of 2, the last round is more than 2^30 epochs long. */
enum { DL2_SEARCH_ROUNDS = 32 };

enum dl2_trial_status {
    DL2_TRIAL_WAITING,
    DL2_TRIAL_TRAINED,
    DL2_TRIAL_STOPPED,
    DL2_TRIAL_DIVERGED
};
extern const char *const dl2_trial_status_words[];

struct dl2_trial {
    enum dl2_trial_status status;
    long goal;       /* the round that it trains to the end of; -1: it has not begun */
    size_t done;     /* rounds that it has come to the end of, or has diverged in */
    double epochs;   /* that it was trained for */
    uint64_t others; /* images of a validation that was on others than validated_on; 0: none */
    double accuracy, loss; /* on the first validation set, in the last round that it was in */
    struct {               /* its report, at the last look */
        ino_t number;
        int64_t mtime;
        long goal; /* then */
    } seen;
};

/* A round but the last, which ends with the run, and the trials that have come to its end, the best
 * first. */
struct dl2_search_round {
    double until;
    size_t keep; /* halving: how many of them go on */
    struct dl2_search_entry {
        size_t trial;
        double accuracy, loss; /* here; NAN: diverged */
    } * entries;
    size_t count;
};

struct dl2_search {
    const struct dl2_search_options *options;
    struct dl2_configs_base base;
    struct dl2_configs configs;
    struct dl2_train_settings settings; /* base.settings is this one */
    struct dl2_search_space *space;
    json_t *identity;
    json_t *data_hashes;  /* of its models' reports; NULL: not known yet */
    json_t *validated_on; /* {"images", "images_sum"} of the first validation set; NULL: not yet */
    struct dl2_trial *trials; /* one for each configuration */
    struct dl2_search_round rounds[DL2_SEARCH_ROUNDS];
    size_t round_count;
    char *report, *table;
    size_t *ranking;  /* room for the numbers of all trials */
    struct stat seen; /* the report, when its decisions were read last */
    bool completed;
};

/* ---- search_table.c */

/* How many of the round's models went on. */
size_t dl2_search_count_kept(const struct dl2_search *search, size_t round);

/* Is the first of two trials, or entries of a round, the better one? Those without a finite loss
 * are equal, and worse than all others. */
bool dl2_search_is_better(const struct dl2_search *search, double accuracy, double loss,
                          double other_accuracy, double other_loss);
/* It has diverged, or had no finite loss in the last round that it was in. */
bool dl2_trial_has_failed(const struct dl2_trial *trial);
/* It has figures and has not failed: its place in the ranking counts. */
bool dl2_trial_is_ranked(const struct dl2_trial *trial);

/* Puts all trials into search->ranking, the best first. */
void dl2_search_rank(const struct dl2_search *search);
/* Writes DL2_SEARCH_TABLE of trials that are ranked. */
int dl2_search_save_table(const struct dl2_search *search, struct dl2_error *error);

#endif
