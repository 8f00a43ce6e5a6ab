/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of struct dl2_remote_options, as a table for programs to include (common/option.h).
 */
#ifndef DL2_REMOTE_OPTIONS_H
#define DL2_REMOTE_OPTIONS_H

#include "common/option.h"
#include "remote/access.h"

extern const struct dl2_option dl2_remote_options[];

/*
 * The options for one of several paths: none for a path on this machine, if another of them is
 * remote and so has what was given.
 */
struct dl2_remote_options dl2_remote_options_of(const struct dl2_remote_options *given,
                                                const char *path, bool another_is_remote);

#endif
