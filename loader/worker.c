/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker threads: each takes the next sample of the epoch's order, and brings it to its place. */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <math.h>

/* All functions except dl2_worker_run() are called locked. */

uint32_t dl2_claim_position(const struct dl2_loader *loader, uint64_t number)
{
    const struct dl2_claim_order *order = &loader->order;
    return number < order->pending_count
               ? order->pending[number]
               : (uint32_t)(order->resumed_at + number - order->pending_count);
}

static bool can_claim(const struct dl2_loader *loader)
{
    const struct dl2_claim_order *order = &loader->order;
    if (order->next_claim >= order->end_claim)
        return false;
    if (loader->strict)
        return order->next_claim < loader->fail_claim &&
               dl2_slot_of_step(loader, loader->ring.next_place / loader->config.batch);
    return loader->fail_claim == DL2_NOWHERE;
}

static struct dl2_claim *claim_next(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    struct dl2_claim *claim = workers->free_claims[--workers->free_count];
    claim->number = (uint32_t)loader->order.next_claim++;
    dl2_claim_reset(claim, dl2_claim_position(loader, claim->number));
    claim->job.to_decoder = loader->config.decoder && dl2_decoder_wants_next(loader);
    loader->in_flight++;
    if (loader->strict)
        dl2_place_acquire(loader, loader->ring.next_place++, &claim->place);
    return claim;
}

void dl2_workers_cancel(struct dl2_loader *loader)
{
    atomic_store_explicit(&loader->canceled, true, memory_order_relaxed);
    loader->order.end_claim = 0;
    dl2_decode_queue_drop(loader);
    pthread_cond_broadcast(&loader->workers.work_available);
    pthread_cond_broadcast(&loader->ring.place_available);
}

/* Waits for work. NULL when the loader closes. */
static struct dl2_claim *next_claim_to_run(struct dl2_loader *loader)
{
    while (!loader->closing) {
        if (can_claim(loader))
            return claim_next(loader);
        const double start = dl2_clock_wall();
        const bool wanted = loader->strict && loader->order.next_claim < loader->order.end_claim;
        pthread_cond_wait(&loader->workers.work_available, &loader->mutex);
        if (wanted)
            loader->stats.worker_wait += dl2_clock_wall() - start;
    }
    return NULL;
}

static void finish_claim(struct dl2_loader *loader, struct dl2_claim *claim, int status,
                         const struct dl2_error *error)
{
    struct dl2_workers *workers = &loader->workers;
    if (loader->config.decoder && status == DL2_OK && claim->begun) {
        claim->place.slot->by_decoder += claim->job.staged;
        dl2_decoder_share_observe(loader, &claim->job);
    }
    if (status == DL2_OK && dl2_place_fill(&claim->place)) {
        if (claim->place.slot->decode_slot)
            dl2_decode_queue_add(loader, claim->place.slot);
        pthread_cond_signal(&loader->ring.progress);
    }
    if (status < 0)
        dl2_claim_fail(loader, claim->number, status, error);
    dl2_claim_add_stats(loader, claim);
    workers->free_claims[workers->free_count++] = claim;
    /* Whoever stops an epoch waits for the last, and who is to learn of a failure. Otherwise it
     * would wake the consumer once a sample where there is one worker. */
    if (--loader->in_flight == 0 && (loader->fail_claim != DL2_NOWHERE ||
                                     atomic_load_explicit(&loader->canceled, memory_order_relaxed)))
        pthread_cond_signal(&loader->ring.progress);
}

void *dl2_worker_run(void *context)
{
    struct dl2_loader *loader = context;
    struct dl2_claim *claim;
    pthread_mutex_lock(&loader->mutex);
    while ((claim = next_claim_to_run(loader))) {
        struct dl2_error error = DL2_ERROR_INIT;
        pthread_mutex_unlock(&loader->mutex);
        const int status = dl2_claim_run(loader, claim, &error);
        pthread_mutex_lock(&loader->mutex);
        finish_claim(loader, claim, status, &error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}
