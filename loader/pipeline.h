/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The batch stage and the interface, private to the files of this room. The order in which files
 * call each other; each calls only files below it:
 *
 *     loader_setup.c    makes and destroys a loader: settings, memory, threads
 *     loader.c          the interface: epochs, the consumer's side
 *     worker.c          worker threads: which sample to work on next
 *     decode_queue.c    full batches that a batch decoder decodes, and the threads for that
 *     claim.c           a claimed sample until it is in its place in a batch
 *     batch.c           batch slots and the places in them
 *     sample.c          the stages of one sample
 *     fetch.c           reads the bytes of a sample
 *     read_ahead.c      reads early; it and its engines (engine.h) call each other
 *     evict.c           evicts files from the page cache
 *     sample_plan.c     the plan of a sample: crop and byte range
 *     sampler.c         the epoch's order
 *
 * bad_samples.c, targets.c, masks.c, boxes.c and cache.c call nothing here and are
 * called by several of these.
 *
 * Workers claim the samples of an epoch strictly in order and work on them in any order. Each
 * sample takes one place in a batch. Places are numbered through the epoch:
 *
 *     place n  ->  step n / batch, place n % batch of that step's batch  ->  a slot that was free
 *
 * A slot is the place in the ring for one batch. Its states, which only batch.c changes:
 *
 *     FREE --first place--> FILLING --last sample--> READY --next()--> TAKEN --release()--> FREE
 *
 * With a batch decoder, a slot is STAGED between FILLING and READY, until the decoder is done.
 *
 * A place can be taken only while a slot is FREE, or already FILLING for the place's step. That
 * bounds the memory. Slots that the consumer keeps from an earlier epoch are not available. In
 * strict order a sample takes its place when it is claimed, so that places follow the order. In the
 * other order it takes one when its pixels are ready to be written, so that no batch waits for it.
 *
 * One mutex guards everything that is shared; samples are worked on outside it. "Locked" in a
 * comment means that the caller holds the mutex. A claim belongs to one worker or to the stack of
 * free ones.
 */
#ifndef DL2_LOADER_PIPELINE_H
#define DL2_LOADER_PIPELINE_H

#include "loader/bad_samples.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"
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

/* Batches that are decoded at once: while the card decodes one, the next one is copied to it. */
enum { DL2_DECODE_THREADS = 2 };

struct dl2_slot {
    struct dl2_batch batch; /* first, so that a pointer to a batch is one to its slot */
    enum dl2_slot_state state;
    unsigned missing;                      /* samples that are not in their places yet */
    uint32_t *positions;                   /* [batch], in the epoch's order */
    struct dl2_target *targets;            /* [batch][targets], views into: */
    struct dl2_target_bytes *target_bytes; /* the same */
    struct dl2_crop_box *crop_boxes;       /* [batch] */
    struct dl2_patch *patches;             /* [batch], of volumes */
    struct dl2_boxes *boxes;               /* [batch], with boxes, views into: */
    struct dl2_bytes *box_blocks;          /* the same */

    /* With a batch decoder. */
    struct dl2_decode_slot *decode_slot;
    bool *refused;       /* [batch] */
    unsigned by_decoder; /* samples that were given to the decoder */
};

struct dl2_place {
    struct dl2_slot *slot; /* NULL: none yet */
    unsigned number;       /* within the batch */
};

/* A claimed sample under way. */
struct dl2_claim {
    struct dl2_job job;
    uint32_t number;   /* among this epoch's claims */
    uint32_t position; /* in the epoch's order */
    uint32_t tries;    /* samples tried: the one at `position`, then those behind it */
    int64_t done, bad; /* places filled, and those whose own sample was bad; not counted yet */
    bool begun;        /* `job` has a sample */
    struct dl2_place place;
    size_t memory;       /* bytes of `job`, as last counted */
    size_t place_memory; /* bytes that its place took over from it, not counted yet */
};

/* Which sample each claim of the epoch is of, and which of them next() has returned. */
struct dl2_claim_order {
    struct dl2_sampler sampler; /* changes only while nothing is in flight */
    uint64_t next_claim, end_claim;
    /* Claim c is at position pending[c], or behind those at resumed_at + c - pending_count. */
    uint32_t *pending;
    uint32_t *queue;           /* sample numbers by claim; used only with pending positions */
    uint32_t *epoch_positions; /* of claims' samples in the epoch of all ranks, where some may come
                                  twice */
    size_t pending_count;
    uint32_t resumed_at;
    uint64_t *delivered;              /* a bit for each position */
    uint32_t *missing;                /* the array that dl2_loader_get_position() returned last */
    uint64_t weights_hash;            /* 0: none were given */
    struct dl2_loader_order identity; /* samples 0: not made yet */
};

/* The batch slots, and how far the epoch has come in them. */
struct dl2_ring {
    struct dl2_slot *slots;         /* [depth] */
    pthread_cond_t place_available; /* for workers whose sample is finished */
    pthread_cond_t progress;        /* for the consumer */
    uint64_t next_step;             /* the consumer's */
    uint64_t next_place;            /* the first that was not taken */
    uint64_t first_place;           /* where this epoch was started */
};

struct dl2_workers {
    pthread_cond_t work_available;
    pthread_t *threads;
    unsigned thread_count;                   /* threads that were started */
    struct dl2_claim *claims, **free_claims; /* [claim_count]; a stack of free_count pointers */
    unsigned claim_count, free_count;
};

/* With a batch decoder: the batches that wait for it, its threads, and its share of the samples. */
struct dl2_decode_queue {
    pthread_cond_t batch_staged; /* for decode threads */
    pthread_t threads[DL2_DECODE_THREADS];
    unsigned thread_count;    /* threads that were started */
    unsigned threads_begun;   /* threads that have their claim */
    unsigned active;          /* threads that decode a batch now */
    struct dl2_claim *claims; /* [DL2_DECODE_THREADS], to decode what was refused */
    struct dl2_slot **staged; /* a ring of `depth` */
    unsigned staged_first, staged_count;
    struct dl2_shares {
        double share;     /* of the samples, to go to the decoder */
        double owed;      /* samples that should have gone to the decoder, less those that went */
        double processor; /* a worker's recent seconds for a sample that it decodes */
        double stage;     /* a worker's recent seconds for a sample that the decoder decodes */
        double decoder;   /* the decoder's recent seconds for a sample */
    } shares;
};

struct dl2_loader {
    struct dl2_loader_config config;
    struct dl2_operation *operations;
    char *mask_name;                           /* config.mask */
    char *external[DL2_EXTERNAL_DECODERS + 1]; /* config.external.commands */
    struct dl2_recipe recipe;                  /* changes only while nothing is in flight */
    bool strict;

    pthread_mutex_t mutex; /* guards the four parts and what follows */
    struct dl2_claim_order order;
    struct dl2_ring ring;
    struct dl2_workers workers;
    struct dl2_decode_queue decode;

    unsigned in_flight; /* samples that are claimed and not finished, and STAGED batches */
    bool started, closing;
    uint64_t fail_claim; /* the claim that `error` is about, or DL2_NOWHERE */
    struct dl2_error error;

    struct dl2_loader_stats stats;
    struct dl2_fetch_stats fetch_before; /* at the last reset */
    uint64_t memory;                     /* bytes held now, without the caches */
    atomic_bool canceled;                /* what is being worked on is no longer wanted */
    struct dl2_bad_samples bad_samples;
    uint64_t epoch_done, epoch_bad; /* dl2_loader_epoch_bad() */
};

/* ---- batch.c; locked ---- */

/* The slot of a step, else a free slot for it; NULL if all are taken or belong to other steps. */
struct dl2_slot *dl2_slot_of_step(const struct dl2_loader *loader, uint64_t step);
/* FREE to FILLING for a step, or to READY if this rank has no sample in the step. */
void dl2_slot_begin(struct dl2_loader *loader, struct dl2_slot *slot, uint64_t step);
/* STAGED to READY. */
void dl2_slot_decoded(struct dl2_slot *slot);
/* READY to TAKEN, and TAKEN to FREE. */
void dl2_slot_acquire(struct dl2_slot *slot);
void dl2_slot_release(struct dl2_slot *slot);
/* Frees all slots that are not TAKEN. */
void dl2_slots_reset(struct dl2_loader *loader);
/* Takes place `number` of the epoch; false while there is no slot for it. */
bool dl2_place_acquire(struct dl2_loader *loader, uint64_t number, struct dl2_place *place);
/* Counts the sample of a place. True if its batch is full with it, and now READY or STAGED. */
bool dl2_place_fill(const struct dl2_place *place);
/* The number of READY slots. */
unsigned dl2_slots_ready(const struct dl2_loader *loader);
/* Samples of this rank in the steps before a step, and in the batch of a step. */
uint32_t dl2_samples_before(const struct dl2_loader *loader, uint64_t step);
unsigned dl2_batch_size(const struct dl2_loader *loader, uint64_t step);
int dl2_slots_init(struct dl2_loader *loader, struct dl2_error *error);
void dl2_slots_free(struct dl2_loader *loader);

/* ---- claim.c ---- */

/* Starts anew for the sample at a position of the epoch's order: without a place, and to be
 * decoded by the processors. */
void dl2_claim_reset(struct dl2_claim *claim, uint32_t position);
/* Works until a sample is in its place, and takes a place if the claim has none. */
int dl2_claim_run(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_error *error);
/* Locked. Adds a claim's figures to the loader's. */
void dl2_claim_add_stats(struct dl2_loader *loader, struct dl2_claim *claim);
/* Locked. Ends the epoch with an error; of several, that of the earliest claim counts. */
void dl2_claim_fail(struct dl2_loader *loader, uint64_t number, int status,
                    const struct dl2_error *error);
int dl2_loader_nothing_can_be_read(struct dl2_loader *loader, struct dl2_error *error);

/* ---- decode_queue.c; locked, except init and free ---- */

/* Queues a STAGED batch. */
void dl2_decode_queue_add(struct dl2_loader *loader, struct dl2_slot *slot);
/* Drops the batches that no thread has begun. */
void dl2_decode_queue_drop(struct dl2_loader *loader);
/* Should the next sample go to the decoder? */
bool dl2_decoder_wants_next(struct dl2_loader *loader);
/* Records how long a worker took for a sample. */
void dl2_decoder_share_observe(struct dl2_loader *loader, const struct dl2_job *job);
/* Starts the threads, if there is a decoder. */
int dl2_decode_queue_init(struct dl2_loader *loader, struct dl2_error *error);
/* Joins the threads; loader->closing is set. */
void dl2_decode_queue_free(struct dl2_loader *loader);

/* ---- worker.c ---- */

/* A thread's main function. */
void *dl2_worker_run(void *loader);
/* Locked. Ends the epoch: drops what waits, and makes workers drop what is under way as soon as
 * they can. */
void dl2_workers_cancel(struct dl2_loader *loader);
/* The position of a claim in the epoch's order. */
uint32_t dl2_claim_position(const struct dl2_loader *loader, uint64_t number);

#endif
