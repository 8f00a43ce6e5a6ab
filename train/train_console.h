/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dl2-train shows while runs go on: results on stdout, notes and a progress bar on stderr.
 *
 * Threads: one.
 */
#ifndef DL2_TRAIN_TRAIN_CONSOLE_H
#define DL2_TRAIN_TRAIN_CONSOLE_H

#include "common/error.h"
#include "train/trainer.h"

#include <stdbool.h>

/* Set by dl2_train.c before any run begins. */
extern struct dl2_train_console {
    const char *program; /* its name, for messages */
    bool quiet;
    bool several;   /* lines begin with the model's name */
    bool searching; /* models' results are not shown: a search says at its end what it has found */
    unsigned rank;  /* this process' */
} dl2_train_console;

/* The functions that show a model's run. The model must outlive it. */
struct dl2_train_events dl2_train_console_events(struct dl2_train_model *model);

/* Ends the progress bar, if one is shown: to be called before any other line is printed. */
void dl2_train_console_end_bar(void);

/* Says that this rank, of several, has failed. */
void dl2_train_console_failed(const struct dl2_error *error);

#endif
