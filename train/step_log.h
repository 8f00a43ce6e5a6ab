/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line for each step of a run, in a file that a resumed run goes on with (docs/formats/train.md,
 * "Steps").
 *
 * Threads: one.
 */
#ifndef DL2_TRAIN_STEP_LOG_H
#define DL2_TRAIN_STEP_LOG_H

#include "common/error.h"

#include <stdint.h>

struct dl2_step_log;

struct dl2_step_entry {
    uint64_t step;             /* number of the update, from 1 */
    double epoch;              /* the position after it */
    double loss, lr;           /* of its images, NAN where none counted; of the update */
    double seconds, data_wait; /* of this rank, from the end of the step before; part of it */
    uint64_t images;           /* of all ranks */
};

/*
 * Opens the log of a run that has done `steps` so far. Lines of later steps, which a part of the
 * run left that ended without a checkpoint, are cut off, and so is a last line without its end;
 * with 0 steps the file begins anew.
 */
int dl2_step_log_open(const char *path, uint64_t steps, struct dl2_step_log **out,
                      struct dl2_error *error);
/* NULL is allowed. Lines that were not flushed may be lost. */
void dl2_step_log_close(struct dl2_step_log *log);
int dl2_step_log_add(struct dl2_step_log *log, const struct dl2_step_entry *entry,
                     struct dl2_error *error);
/* Writes what was added: before a checkpoint, which would count on it. */
int dl2_step_log_flush(struct dl2_step_log *log, struct dl2_error *error);

#endif
