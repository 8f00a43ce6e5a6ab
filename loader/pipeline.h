/*
 * What the loader's files share; not for others. Each calls only those below it:
 *
 *     loader.c     the interface, the consumer's side and the epochs
 *     worker.c     what workers do next
 *     finisher.c   what becomes of full batches that a batch decoder is to decode
 *     task.c       one sample's way to its place
 *     batcher.c    where samples go
 *
 * Workers claim an epoch's samples strictly in order, and work on them in any order. Each sample
 * takes one place, and places are numbered through the epoch:
 *
 *     place n  ->  step n / batch, place n % batch of its batch  ->  a slot that was free
 *
 * and a slot is, by turns,
 *
 *     FREE --first place--> FILLING --last sample--> READY --next()--> TAKEN --release()--> FREE
 *
 * or, with a batch decoder, STAGED between FILLING and READY, until a finisher has finished it.
 *
 * A place can be taken only while a slot is FREE or already FILLING for its step, which bounds the
 * memory; what the consumer keeps of an earlier epoch is merely missing. In strict order a sample
 * takes its place when it is claimed, so that places follow the order; else at the moment when its
 * pixels are ready to be written, so that nothing waits for it.
 *
 * One mutex guards all that is shared; samples are worked on outside it. A task belongs to one
 * worker, to the side's queue, or to the pile of free ones.
 */
#ifndef DL2_LOADER_PIPELINE_H
#define DL2_LOADER_PIPELINE_H

#include "loader/bad.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"
#include "loader/pace.h"
#include "loader/sample.h"
#include "loader/sampler.h"

#include <pthread.h>
#include <stdatomic.h>

#define DL2_NOWHERE UINT64_MAX

enum dl2_slot_state {
    DL2_SLOT_FREE,
    DL2_SLOT_FILLING,
    DL2_SLOT_STAGED,
    DL2_SLOT_READY,
    DL2_SLOT_TAKEN
};

/* Batches that are finished at once: while one is decoded the next one is copied. */
enum { DL2_FINISHERS = 2 };

struct dl2_slot {
    struct dl2_batch batch; /* first, so that a batch given back leads to its slot */
    enum dl2_slot_state state;
    unsigned missing;    /* samples that are not there yet */
    uint32_t *positions; /* [batch], of the epoch's order: what dl2_loader_position speaks of */

    /* With a batch decoder. */
    struct dl2_decode_slot *decode;
    bool *refused;       /* [batch] */
    unsigned by_decoder; /* samples that were given to it */
};

struct dl2_place {
    struct dl2_slot *slot; /* NULL: none yet */
    unsigned number;
};

/* A claimed sample under way. */
struct dl2_task {
    struct dl2_work work;
    uint32_t claim;    /* its number among this epoch's claims */
    uint32_t position; /* in the epoch's order */
    uint32_t tries;    /* samples tried for it: the one at its position, then those behind */
    bool begun;        /* `work` has a sample */
    bool aside;        /* it comes from the side */
    bool may_leave;    /* it may be put aside */
    double threshold;  /* seconds above which it is slow */
    struct dl2_place place;
    size_t memory; /* bytes, as last counted */
};

/* A sample that waits for a side worker. */
struct dl2_aside {
    struct dl2_task *task; /* NULL: known to be slow and not begun */
    uint32_t claim;
};

struct dl2_loader {
    const struct dl2_dataset *dataset;
    struct dl2_loader_config config;
    struct dl2_operation *operations;
    struct dl2_recipe recipe; /* these two change only while nothing is in flight */
    struct dl2_sampler sampler;
    bool strict, aware;

    pthread_mutex_t mutex;
    pthread_cond_t work, room, progress; /* for workers, for those with a finished sample, for the
                                          * consumer */
    struct dl2_slot *slots;
    pthread_t *threads;
    unsigned thread_count; /* that run */
    struct dl2_task *tasks, **free_tasks;
    unsigned task_count, free_count;
    unsigned in_flight; /* samples claimed, and not finished */
    bool started, closing;
    uint64_t next_step;   /* of the consumer */
    uint64_t next_place;  /* to be taken */
    uint64_t first_place; /* of this epoch, as it was started */
    uint64_t next_claim, end_claim;
    uint64_t fail_claim; /* DL2_NOWHERE, or what `error` is about */
    struct dl2_error error;

    /* Claim c is position pending[c] first, then position resumed_at + c - pending_count. */
    uint32_t *pending;
    uint32_t *queue; /* sample numbers by claim, where there are pending ones */
    size_t pending_count;
    uint32_t resumed_at;
    uint64_t *delivered; /* a bit for each position */
    uint32_t *missing;   /* what dl2_loader_get_position() gave last */
    uint32_t missing_capacity;
    struct dl2_loader_order order; /* samples 0: not made yet */

    /* DL2_BATCHING_AWARE */
    struct dl2_aside *aside; /* a ring */
    unsigned aside_first, aside_count, aside_capacity;
    unsigned side_active, side_now, side_most; /* workers on the side: are, should be, at most */
    struct dl2_pace pace;

    /* With a batch decoder; finisher.c. */
    pthread_cond_t finish; /* for finishers */
    pthread_t finishers[DL2_FINISHERS];
    unsigned finisher_count, finishers_begun, finishing; /* started; that run; that are at it */
    struct dl2_task *finish_tasks; /* [DL2_FINISHERS], to decode what was refused */
    struct dl2_slot **staged;      /* a ring of `depth` */
    unsigned staged_first, staged_count;
    struct dl2_shares {
        double share;     /* of samples that go to the decoder */
        double owed;      /* what that comes to, less what went */
        double processor; /* a worker's seconds for a sample that it decodes, lately */
        double stage;     /* the same for one that it doesn't */
        double decoder;   /* seconds of the decoder for a sample */
    } shares;

    struct dl2_loader_stats stats;
    struct dl2_fetch_stats fetch_before; /* at the last reset */
    uint64_t memory;                     /* held now, without the caches */
    atomic_bool canceled;                /* what is being worked on is no longer wanted */
    struct dl2_bad_list bad;
};

/* ---- batcher.c; the mutex is held ---- */

/* The slot of a step, else a free one for it; NULL where all are taken or of other steps. */
struct dl2_slot *dl2_batcher_slot(const struct dl2_loader *loader, uint64_t step);
/* Place number `number`; false while its slot isn't to be had. */
bool dl2_batcher_take(struct dl2_loader *loader, uint64_t number, struct dl2_place *place);
bool dl2_batcher_has(const struct dl2_loader *loader, uint64_t number);
/* The sample is in its place. True where its batch is full with it, and READY, or STAGED for a
 * finisher. */
bool dl2_batcher_fill(const struct dl2_place *place);
unsigned dl2_batcher_ready(const struct dl2_loader *loader);
/* Samples of the batch of a step. */
unsigned dl2_batcher_size(const struct dl2_loader *loader, uint64_t step);
int dl2_batcher_init(struct dl2_loader *loader, struct dl2_error *error);
void dl2_batcher_free(struct dl2_loader *loader);

/* ---- task.c ---- */

/* What dl2_task_run() returns for a sample that should go aside. */
enum { DL2_TASK_SLOW = 1 };

/* For the sample at a position of the epoch's order: without a place, to be worked on by the
 * processors alone and without a rest. */
void dl2_task_reset(struct dl2_task *task, uint32_t position);
/* Goes on until a sample is in its place; takes one where the task has none. */
int dl2_task_run(struct dl2_loader *loader, struct dl2_task *task, struct dl2_error *error);
/* Held. What a task did, to the loader's figures. */
void dl2_task_add_stats(struct dl2_loader *loader, struct dl2_task *task);
/* Held. Of what ends the epoch, the error of the earliest claim counts. */
void dl2_task_fail(struct dl2_loader *loader, uint64_t claim, int status,
                   const struct dl2_error *error);
int dl2_loader_nothing_can_be_read(struct dl2_loader *loader, struct dl2_error *error);

/* ---- finisher.c; the mutex is held but in init and free ---- */

/* A STAGED batch is to be finished. */
void dl2_finisher_add(struct dl2_loader *loader, struct dl2_slot *slot);
/* Gives up the batches that nobody is at. */
void dl2_finisher_drop(struct dl2_loader *loader);
/* Does the next sample go to the decoder? */
bool dl2_finisher_wants(struct dl2_loader *loader);
/* A worker was done with its part of a sample after so many seconds. */
void dl2_finisher_saw(struct dl2_loader *loader, const struct dl2_work *work);
/* Starts the threads, where there is a decoder. */
int dl2_finisher_init(struct dl2_loader *loader, struct dl2_error *error);
/* Ends them; loader->closing is set. */
void dl2_finisher_free(struct dl2_loader *loader);

/* ---- worker.c ---- */

/* A thread's main function. */
void *dl2_worker_run(void *loader);
/* Held. Gives up what waits for the side workers. */
void dl2_worker_drop_aside(struct dl2_loader *loader);
/* The position in the epoch's order of a claim. */
uint32_t dl2_claim_position(const struct dl2_loader *loader, uint64_t claim);

#endif
