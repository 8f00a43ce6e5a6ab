/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that adds up gradients over a world's ranks while the device computes others: what
 * all_reduce() and all_reduce_wait() are on devices whose memory is the host's.
 *
 * Threads: one calls these; the thread inside has the world's channel 1 to itself.
 */
#ifndef DL2_RANKS_REDUCER_H
#define DL2_RANKS_REDUCER_H

#include "ranks/world.h"

struct dl2_reducer;

/* The world must outlive it. */
int dl2_reducer_start(const struct dl2_world *world, struct dl2_reducer **out,
                      struct dl2_error *error);
/* Waits for sums that have begun. NULL is fine. */
void dl2_reducer_stop(struct dl2_reducer *reducer);

/* Begins to add up `data` over the ranks, in place. After a failure it does nothing. */
void dl2_reducer_add(struct dl2_reducer *reducer, float *data, size_t count);
/* Until all that was begun is done. Returns the first failure, now and ever after. */
int dl2_reducer_wait(struct dl2_reducer *reducer, struct dl2_error *error);

#endif
