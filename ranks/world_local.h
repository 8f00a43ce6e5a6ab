/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport "local": ranks on one machine that share memory. Between world.c, launch.c, which
 * starts the ranks, and tests, which have them in threads; others: ranks/world.h.
 */
#ifndef DL2_RANKS_WORLD_LOCAL_H
#define DL2_RANKS_WORLD_LOCAL_H

#include "ranks/world.h"

/* The limit of --ranks. */
#define DL2_LOCAL_RANKS_MAX 256

/* Memory for `ranks` ranks, which processes forked later share. */
struct dl2_local;
int dl2_local_create(unsigned ranks, struct dl2_local **out, struct dl2_error *error);
/* This process' view of it. */
void dl2_local_destroy(struct dl2_local *local);

/* One rank's place, once each. dl2_world_close() closes it, and destroys `local` where `owner`. */
int dl2_local_join(struct dl2_local *local, unsigned rank, bool owner, struct dl2_world **out,
                   struct dl2_error *error);

/* Rank `rank` will make no more calls: who waits for it, or ever will, gets DL2_ERR_CANCELED. Any
 * process, any thread. */
void dl2_local_leave(struct dl2_local *local, unsigned rank);

/* Have the ranks parted? struct dl2_world_class */
bool dl2_local_parted(const struct dl2_local *local);

/* Starts the ranks and waits for them: see dl2_world_open(). */
int dl2_local_launch(unsigned ranks, struct dl2_world **out, int *exit_status,
                     struct dl2_error *error);

#endif
