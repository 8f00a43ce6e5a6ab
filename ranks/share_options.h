/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs have in common whose images several processes can share: parts that know nothing of
 * each other (--part, common/work_part.h), or ranks (--ranks, ranks/world.h). */
#ifndef DL2_RANKS_SHARE_OPTIONS_H
#define DL2_RANKS_SHARE_OPTIONS_H

#include "common/option.h"
#include "common/work_part.h"
#include "ranks/world.h"

struct dl2_share {
    struct dl2_work_part part;
    unsigned ranks; /* to start; 0: none */
};

/* The options of a struct dl2_share, as a table for programs to include (common/option.h). */
extern const struct dl2_option dl2_share_options[];

/* Why the options do not fit together, or NULL. */
const char *dl2_share_find_conflict(const struct dl2_share *share);

/* Opens the world of a program's process, as dl2_world_open() does, which is none for a part by
 * itself, whoever starts it. Prints what is wrong. */
int dl2_share_open(const struct dl2_share *share, const char *program, struct dl2_world **world,
                   int *exit_status);

/* The worker threads of this process: --jobs, or else its share of the processors that it has
 * together with other ranks. */
unsigned dl2_share_jobs(const struct dl2_common_options *common, const struct dl2_world *world);

/* Prints that a part has ended, and that others are missing, the first of them `first`; or, where
 * none is, the `rest` of the line. */
void dl2_share_print_end(const struct dl2_work_part *part, unsigned missing, unsigned first,
                         const char *rest);

#endif
