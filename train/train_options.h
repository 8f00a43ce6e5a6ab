/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of a training run: their options, and what they come to together. */
#ifndef DL2_TRAIN_TRAIN_OPTIONS_H
#define DL2_TRAIN_TRAIN_OPTIONS_H

#include "common/option.h"
#include "train/trainer.h"

/* A command line: the run's config, and what it is made from. */
struct dl2_train_settings {
    struct dl2_train_config config;
    const char *data, *world;
    double epochs; /* NAN: not given */
    unsigned ranks, gpus;
    bool freeze;
};

/* A table of struct dl2_train_settings. The report has each value under the option's name. */
extern const struct dl2_option dl2_train_options[];

/* The commands of dl2-train, as bits of the rows' `commands`. */
enum {
    DL2_RUN = 1 << 0,
    DL2_EVALUATION = 1 << 1,
    DL2_MEASURING = 1 << 2,
    DL2_SEVERAL = 1 << 3, /* models of a list */
    DL2_SEARCH = 1 << 4,
    DL2_PLANNING = 1 << 5, /* how long several or a search will take */
    DL2_TOGETHER = DL2_SEVERAL | DL2_SEARCH | DL2_PLANNING,
    DL2_TRAINING = DL2_RUN | DL2_TOGETHER,
};

/* Names of the options that an evaluation takes from its file and repeats in its report; NULL ends
 * them. */
extern const char *const dl2_evaluation_options[];

/* An option's time, as 10m or 1h30m, to seconds, a double. For its row's `parse`. */
int dl2_parse_duration(const char *text, void *value, struct dl2_error *error);

/* The settings before any option. */
struct dl2_train_settings dl2_train_defaults(void);

/*
 * Sets an evaluation's options that were not given to those of the file's run, and
 * config.run.origin. Call it before dl2_train_options_check(). Returns 0, or an exit status after
 * an error message.
 */
int dl2_train_options_take(struct dl2_train_settings *settings, const struct dl2_program *program,
                           const struct dl2_common_options *common);

/*
 * Checks parsed settings and completes them, but for what depends on the number of ranks. With
 * `needs_data` a dataset or synthetic data must be named. Returns 0, or an exit status after an
 * error message. Call dl2_train_options_free() in either case.
 */
int dl2_train_options_check(struct dl2_train_settings *settings, const struct dl2_program *program,
                            const struct dl2_common_options *common, bool needs_data);

/* Checks and completes learning rate and weight decay for that number of
 * ranks; returns as above. */
int dl2_train_options_check_rates(struct dl2_train_config *config,
                                  const struct dl2_program *program, unsigned ranks);

void dl2_train_options_free(struct dl2_train_config *config);
/* Number of processes that the command line starts; 0: none. */
unsigned dl2_train_options_ranks(const struct dl2_train_settings *settings);

#endif
