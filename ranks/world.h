/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that train together: ranks 0 .. size-1, each with a device of its own. They come from
 * mpirun or srun (transport "mpi": Open MPI, where built in), or from this program itself, which
 * starts them as copies of itself on one machine and joins them by shared memory ("local").
 *
 * Collective calls: every rank makes the same ones in the same order; they block until all have.
 * When a rank ends before its time, "local" lets the others' calls return DL2_ERR_CANCELED, and
 * mpirun ends them: nobody hangs.
 *
 * Sums are formed in the order of the ranks, element by element: the same bits on every rank, in
 * every run, and by either transport.
 *
 * Threads: one at a time per channel. Channel 0 is the trainer's and the device's thread's; 1 is
 * for gradients, which a device may add up from a thread of its own meanwhile.
 */
#ifndef DL2_RANKS_WORLD_H
#define DL2_RANKS_WORLD_H

#include "common/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { DL2_WORLD_CHANNELS = 2, DL2_WORLD_RESTARTS = 5 };

struct dl2_world_class;

/* What is added up. */
enum dl2_world_numbers { DL2_WORLD_FLOATS, DL2_WORLD_DOUBLES };

/* First member of every transport's context. */
struct dl2_world {
    const struct dl2_world_class *ops;
    unsigned rank, size;
    unsigned local_rank, local_size; /* on this machine: which card is ours */
    unsigned sharers; /* ranks that have the same processors to run on, this one among them */
    bool again;       /* takes the place of one that was killed: see part() */
};

struct dl2_world_class {
    const char *name;             /* "mpi", "local" */
    const char *(*version)(void); /* "Open MPI 4.1.4"; for --version and reports */
    /* Did a launcher of this kind start this process? */
    bool (*started)(void);
    /* Both are NULL for the transport whose ranks this program starts itself. */
    int (*open)(struct dl2_world **out, struct dl2_error *error);
    /* All ranks; not after a call that failed. */
    void (*close)(struct dl2_world *world);
    /* This rank gives up, for a reason that the others don't know: their calls fail, or, with
     * "mpi", all processes end now, this one too. What is to be said must have been said. */
    void (*give_up)(const struct dl2_world *world);
    /* From now on this rank makes no collective call but close(). All do that: when a rank is
     * killed, the others go on, and it is started again, with `again` set, at most
     * DL2_WORLD_RESTARTS times. Optional: where it is NULL, a rank that is killed ends all. */
    void (*part)(const struct dl2_world *world);
    /* Has a rank left before its time? Any thread. Optional: NULL where all end with it. */
    bool (*broken)(const struct dl2_world *world);

    /* Bytes that this rank has had from others so far, by the calls below. Any thread. */
    uint64_t (*moved)(const struct dl2_world *world);

    int (*sum)(const struct dl2_world *world, unsigned channel, enum dl2_world_numbers type,
               void *data, size_t count, struct dl2_error *error);
    /* The bytes of rank `root`, to all; channel 0. */
    int (*broadcast)(const struct dl2_world *world, unsigned root, void *data, size_t bytes,
                     struct dl2_error *error);
};

/* The transports of this build; NULL at the end. */
const struct dl2_world_class *dl2_world_at(size_t index);
/* NULL for a name that is not there. */
const struct dl2_world_class *dl2_world_find(const char *name);

struct dl2_world_options {
    const char *transport; /* "local", "mpi"; NULL: whatever started this process */
    unsigned ranks;        /* of "local", to start; 0: none. Not with "mpi" */
};

/*
 * dl2_world_open() returns this in the process that started the ranks, when all of them have ended.
 */
#define DL2_WORLD_ENDED 1

/*
 * Finds or makes the world of this process. 0: it is a rank of *out, or alone where *out is NULL.
 *
 * With options->ranks it starts that many copies of this process, in each of which the call returns
 * 0; itself it waits for them, hands SIGINT and SIGTERM on to them (a second one kills them), and
 * returns DL2_WORLD_ENDED with the exit status for this process. When a rank is killed or fails,
 * those that haven't ended a few seconds later are killed; when the starter is killed, all are.
 * Like fork(), to be called before there are threads or devices. `error` then says which rank was
 * killed.
 */
int dl2_world_open(const struct dl2_world_options *options, struct dl2_world **out,
                   int *exit_status, struct dl2_error *error);

/* -- for all of these NULL is a world of one; collective, on channel 0 -- */

unsigned dl2_world_rank(const struct dl2_world *world);
unsigned dl2_world_size(const struct dl2_world *world);
uint64_t dl2_world_moved(const struct dl2_world *world);
void dl2_world_close(struct dl2_world *world);
int dl2_world_sum(const struct dl2_world *world, double *values, size_t count,
                  struct dl2_error *error);
/* DL2_OK where `status` is DL2_OK on all ranks; else, on all of them, the status and message of the
 * first rank where it isn't. */
int dl2_world_agree(const struct dl2_world *world, int status, struct dl2_error *error);
/* Each rank's `own`, an array or object, to all: in *all, an array in the order of the ranks, which
 * is a new reference. */
int dl2_world_gather(const struct dl2_world *world, const json_t *own, json_t **all,
                     struct dl2_error *error);
/* Rank 0's *text, to all: elsewhere a new string. NULL stays NULL. */
int dl2_world_share(const struct dl2_world *world, char **text, struct dl2_error *error);

#endif
