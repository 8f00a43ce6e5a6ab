/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Full batches that wait for the batch decoder, and the threads that have them decoded. The threads
 * wait for the decoder most of the time, which no worker should.
 *
 * What the decoder refuses is decoded by the processors like any other sample (claim.c). So the set
 * of bad samples, and the samples that replace them, are the same with any decoder and with none.
 *
 * Shares. If both processors and decoder decode, each sample is assigned to one of them when it is
 * claimed. With a share f of the samples for the decoder, W workers are busy for ((1 - f) p + f s)
 * / W seconds for each sample and the decoder for f d seconds, where p, s and d are the times
 * measured here. Both are equal for f = p / (W d + p - s). Neither side gets everything, so that
 * the times of both are still measured.
 */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The claim number of a refused sample, which is not read at its position in the order. */
#define OUT_OF_ORDER UINT32_MAX

#define LEAST_SHARE 0.02
/* Weights of a new time in the running mean, over a few dozen samples or a few batches. */
#define SAMPLE_PART 0.02
#define BATCH_PART  0.25

/* ---- shares ---- */

static void blend_time(double *kept, double seconds, double part)
{
    *kept += (*kept > 0 ? part : 1) * (seconds - *kept);
}

static void set_share(struct dl2_loader *loader)
{
    struct dl2_shares *shares = &loader->decode.shares;
    if (!(shares->processor > 0 && shares->stage > 0 && shares->decoder > 0))
        return;
    const double workers = loader->config.workers;
    const double below = workers * shares->decoder + shares->processor - shares->stage;
    const double share = below > 0 ? shares->processor / below : 1;
    shares->share = fmax(LEAST_SHARE, fmin(1 - LEAST_SHARE, share));
}

bool dl2_decoder_wants_next(struct dl2_loader *loader)
{
    struct dl2_shares *shares = &loader->decode.shares;
    if (!loader->config.decoder_shares)
        return true;
    shares->owed += shares->share;
    const bool wants = shares->owed >= 1;
    shares->owed -= wants;
    return wants;
}

void dl2_decoder_share_observe(struct dl2_loader *loader, const struct dl2_job *job)
{
    struct dl2_shares *shares = &loader->decode.shares;
    blend_time(job->staged ? &shares->stage : &shares->processor, job->seconds, SAMPLE_PART);
    set_share(loader);
}

/* ---- batches ---- */

void dl2_decode_queue_add(struct dl2_loader *loader, struct dl2_slot *slot)
{
    struct dl2_decode_queue *queue = &loader->decode;
    const unsigned end = (queue->staged_first + queue->staged_count++) % loader->config.depth;
    queue->staged[end] = slot;
    loader->in_flight++;
    pthread_cond_signal(&queue->batch_staged);
}

void dl2_decode_queue_drop(struct dl2_loader *loader)
{
    struct dl2_decode_queue *queue = &loader->decode;
    loader->in_flight -= queue->staged_count;
    queue->staged_count = 0;
    pthread_cond_broadcast(&queue->batch_staged);
}

/* Locked. NULL when the loader closes. */
static struct dl2_slot *take_staged(struct dl2_loader *loader)
{
    struct dl2_decode_queue *queue = &loader->decode;
    while (!loader->closing && !queue->staged_count)
        pthread_cond_wait(&queue->batch_staged, &loader->mutex);
    if (loader->closing)
        return NULL;
    struct dl2_slot *slot = queue->staged[queue->staged_first];
    queue->staged_first = (queue->staged_first + 1) % loader->config.depth;
    queue->staged_count--;
    return slot;
}

/* Prepares the refused sample of a place by the processors, or the one that replaces it. */
static int refill_place(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_slot *slot,
                        unsigned number, struct dl2_error *error)
{
    dl2_claim_reset(claim, slot->positions[number]);
    claim->number = OUT_OF_ORDER;
    claim->place = (struct dl2_place){slot, number};
    /* It was counted when it was staged, and is counted again. */
    claim->job.stats.images--;
    claim->done--;
    claim->bad -=
        slot->batch.indices[number] != loader->order.sampler.order[slot->positions[number]];
    return dl2_claim_run(loader, claim, error);
}

/* Adds the decoder's time to *seconds. */
static int decode_batch(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_slot *slot,
                        double *seconds, struct dl2_error *error)
{
    const struct dl2_batch_decoder_class *ops = loader->config.decoder->ops;
    const unsigned count = slot->batch.count;
    for (bool refused = true; refused;) {
        memset(slot->refused, 0, count * sizeof *slot->refused);
        const double start = dl2_clock_wall();
        const int status = ops->finish(slot->decode_slot, count, slot->refused, error);
        *seconds += dl2_clock_wall() - start;
        DL2_TRY(status);
        refused = false;
        for (unsigned i = 0; i < count; i++)
            if (slot->refused[i]) {
                refused = true;
                DL2_TRY(refill_place(loader, claim, slot, i, error));
            }
    }
    return DL2_OK;
}

/* Locked. */
static void end_batch(struct dl2_loader *loader, struct dl2_slot *slot, int status, double seconds,
                      const struct dl2_error *error)
{
    const uint64_t first = slot->batch.step * loader->config.batch;
    const uint64_t number = first > loader->ring.first_place ? first - loader->ring.first_place : 0;
    if (status == DL2_OK)
        dl2_slot_decoded(slot);
    else
        dl2_claim_fail(loader, number, status, error);
    loader->stats.finish += seconds;
    if (status == DL2_OK && slot->by_decoder) {
        blend_time(&loader->decode.shares.decoder,
                   seconds / slot->by_decoder / loader->decode.active, BATCH_PART);
        set_share(loader);
    }
    loader->in_flight--;
    pthread_cond_signal(&loader->ring.progress);
}

static void *decode_thread(void *context)
{
    struct dl2_loader *loader = context;
    struct dl2_slot *slot;
    pthread_mutex_lock(&loader->mutex);
    struct dl2_claim *claim = &loader->decode.claims[loader->decode.threads_begun++];
    while ((slot = take_staged(loader))) {
        struct dl2_error error = DL2_ERROR_INIT;
        double seconds = 0;
        loader->decode.active++;
        pthread_mutex_unlock(&loader->mutex);
        const int status = decode_batch(loader, claim, slot, &seconds, &error);
        pthread_mutex_lock(&loader->mutex);
        dl2_claim_add_stats(loader, claim);
        end_batch(loader, slot, status, seconds, &error);
        loader->decode.active--;
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- making and unmaking ---- */

int dl2_decode_queue_init(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_decode_queue *queue = &loader->decode;
    if (!loader->config.decoder)
        return DL2_OK;
    queue->shares.share = 0.5;
    DL2_TRY(DL2_NEW(&queue->staged, loader->config.depth, "a loader", error));
    DL2_TRY(DL2_NEW(&queue->claims, DL2_DECODE_THREADS, "a loader", error));
    for (unsigned i = 0; i < DL2_DECODE_THREADS; i++) {
        struct dl2_claim *claim = &queue->claims[i];
        DL2_TRY(dl2_job_init(&claim->job, &loader->recipe, error));
        claim->memory = dl2_job_memory(&claim->job, &loader->recipe);
        loader->memory += claim->memory;
    }
    for (unsigned i = 0; i < DL2_DECODE_THREADS; i++) {
        const int reason = pthread_create(&queue->threads[i], NULL, decode_thread, loader);
        if (reason)
            return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start a thread for batches: %s",
                                 strerror(reason));
        queue->thread_count++;
    }
    return DL2_OK;
}

void dl2_decode_queue_free(struct dl2_loader *loader)
{
    struct dl2_decode_queue *queue = &loader->decode;
    for (unsigned i = 0; i < queue->thread_count; i++)
        pthread_join(queue->threads[i], NULL);
    for (unsigned i = 0; queue->claims && i < DL2_DECODE_THREADS; i++)
        dl2_job_free(&queue->claims[i].job, &loader->recipe);
    free(queue->claims);
    free(queue->staged);
}
