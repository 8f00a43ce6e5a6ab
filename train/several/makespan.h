/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long ranks will take to train several models: a simulation of train/several/hop.h, driven by
 * events and fed with measured times of visits.
 *
 * Three ways are simulated. Hopping is the rule of train/several/hop.c: a rank that is free takes,
 * of the models that are free and due at its partition, the one that is furthest behind (Cerebro's
 * CTQ, without a barrier). Hopping with a barrier is Cerebro's UDAF: in each sub-epoch every rank
 * trains another model, and the next sub-epoch begins when the slowest of them is done. Task
 * parallel is a model's whole training on one rank at a time.
 *
 * Sources: Nakandala, Zhang, Kumar, "Cerebro: a data system for optimized deep learning model
 * selection", 2020; Zhang et al., "Distributed deep learning on data systems: a comparative
 * analysis of approaches" (Cerebro-DS), 2021.
 *
 * Threads: any; there is no shared state.
 */
#ifndef DL2_TRAIN_MAKESPAN_H
#define DL2_TRAIN_MAKESPAN_H

#include "train/several/hop.h"

enum dl2_makespan_way { DL2_MAKESPAN_HOP, DL2_MAKESPAN_BARRIER, DL2_MAKESPAN_TASK };
enum { DL2_MAKESPAN_WAYS = 3 };
extern const char *const dl2_makespan_words[]; /* for people; NULL at the end */

struct dl2_makespan_model {
    double visit;    /* seconds of a visit to one of the partitions, without validation; >= 0 */
    double validate; /* seconds of a validation; >= 0 */
    double epochs;   /* of the training; > 0, finite */
    double validate_every; /* epochs, whole; 0: only at the end */
    double bytes;          /* of its checkpoint, which a visit fetches and puts back */
};

struct dl2_makespan_options {
    unsigned ranks; /* and partitions, >= 1 */
    /* Models that may be in training at once, each begun where a rank has nothing else to do, as in
     * a search; 0: all, from the beginning. */
    unsigned at_once;
    enum dl2_hop_order order;
    uint64_t seed;
    /* [ranks] each; NULL: all alike. Speeds are multiples of that of the ranks that were measured;
     * links are bytes a second, above 0, to and from a rank, NULL: sending takes no time. */
    const double *speeds, *links;
};

struct dl2_makespan {
    double seconds; /* from the first visit's beginning to the last one's end */
    double busy;    /* part of the ranks' time that they are on visits, 0 to 1 */
};

/* Returns 0, or DL2_ERR_MEMORY. */
int dl2_makespan(enum dl2_makespan_way way, const struct dl2_makespan_model *models, size_t count,
                 const struct dl2_makespan_options *options, struct dl2_makespan *out,
                 struct dl2_error *error);

/*
 * Takes the times of visits out of the lines of a file of visits (DL2_VISITS_FILE), in which each
 * model visited all `ranks` partitions in each epoch, and validated in the last visit of it.
 * names[i] is models[i]'s, whose epochs are known. A visit's time is the mean of those without
 * validation; with one rank, where there is none, it contains validation, whose time is 0 then. So
 * it is for a model of less than an epoch. DL2_ERR_FORMAT, with a message that names `path`, for
 * another model without a whole epoch.
 */
int dl2_makespan_take_visits(const char *path, const char *const *names, size_t count,
                             unsigned ranks, struct dl2_makespan_model *models,
                             struct dl2_error *error);

#endif
