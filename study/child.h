/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs other programs and waits for them. They end with this one, however it ends. */
#ifndef DL2_STUDY_CHILD_H
#define DL2_STUDY_CHILD_H

#include "study/text.h"

#include <signal.h>

/* Runs a command, found on the PATH, with an empty standard input. `out` and `err` are descriptors
 * for its output, or -1 for this program's own. Returns its exit status, 128 and the signal's
 * number if one ended it, or 127, after a message, if it cannot be run. */
int dl2_child_run(struct dl2_words command, int out, int err);

/*
 * The same for a command that may leave programs behind: a process between the two waits for it,
 * then for what it has started, which has 2 seconds to end by itself. After `limit` seconds (0:
 * none) it gets SIGTERM, and SIGKILL with all the rest if that does not end it in 30. So it does if
 * this process ends in whatever way: nothing goes on unseen.
 */
int dl2_child_keep(struct dl2_words command, int out, int err, unsigned limit);

/* The same with its output, and its messages unless `messages` is NULL, as texts. */
int dl2_child_ask(struct dl2_words command, const char **output, const char **messages);

/* From now on a SIGINT, SIGTERM or SIGHUP ends this process only when the command that it runs has
 * ended, which gets the signals that its group gets. `usual` is the mask for commands. */
void dl2_child_outlast(const sigset_t *usual);

#endif
