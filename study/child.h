/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs other programs and waits for them. They end with this one, however it ends. */
#ifndef DL2_STUDY_CHILD_H
#define DL2_STUDY_CHILD_H

#include "study/text.h"

/* Runs a command, found on the PATH, with an empty standard input. `out` and `err` are descriptors
 * for its output, or -1 for this program's own. Returns its exit status, 128 and the signal's
 * number if one ended it, or 127, after a message, if it cannot be run. */
int dl2_child_run(struct dl2_words command, int out, int err);

/* The same with its output, and its messages unless `messages` is NULL, as texts. */
int dl2_child_ask(struct dl2_words command, const char **output, const char **messages);

/* Runs a command with this program's own standard input and output: for make. */
int dl2_child_run_here(struct dl2_words command);

#endif
