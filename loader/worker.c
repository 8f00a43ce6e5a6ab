/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads. All are alike: each takes a new sample or, with DL2_BATCHING_AWARE, one that was
 * put aside, whichever is needed more.
 *
 * A sample that took longer than the threshold is put aside between two stages, with its whole
 * claim: buffers, decoder, random state. The worker goes on with a free claim; there are as many
 * spare claims as samples can be aside. A sample that was slow in an earlier epoch is put aside
 * before its first stage, since a long stage can't be left in the middle. While new samples can be
 * claimed, only `side_now` workers finish samples that were put aside, so that the others keep
 * filling batches. When no new samples can be claimed, all workers do. When no more samples fit
 * aside, a worker finishes its slow sample itself. So no worker is idle while there is work.
 *
 * side_now changes by up to two with each full batch, like MinatoLoader's number of workers. It
 * rises with the number of batches that are ready, which leave time for slow samples, and with the
 * number of samples that are aside.
 *
 * With adapt_workers, only `limit` of the threads work. It changes by MinatoLoader's rule: up by
 * what is empty of the ring of batches, and by how busy those are that work.
 */
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

static bool put_aside(struct dl2_loader *loader, struct dl2_claim *claim)
{
    struct dl2_workers *workers = &loader->workers;
    if (workers->put_aside_count == workers->put_aside_capacity ||
        atomic_load_explicit(&loader->canceled, memory_order_relaxed))
        return false;
    const unsigned end =
        (workers->put_aside_first + workers->put_aside_count++) % workers->put_aside_capacity;
    workers->put_aside[end] = claim;
    pthread_cond_signal(&workers->work_available);
    return true;
}

/* NULL: the sample was put aside. */
static struct dl2_claim *claim_next(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    struct dl2_claim *claim = workers->free_claims[--workers->free_count];
    claim->number = (uint32_t)loader->order.next_claim++;
    dl2_claim_reset(claim, dl2_claim_position(loader, claim->number));
    claim->may_put_aside = loader->aware;
    claim->threshold = loader->aware ? workers->slow_samples.threshold : INFINITY;
    claim->job.to_decoder = loader->config.decoder && dl2_decoder_wants_next(loader);
    loader->in_flight++;
    if (loader->aware &&
        dl2_slow_samples_has(&workers->slow_samples,
                             loader->order.sampler.order[claim->position]) &&
        put_aside(loader, claim))
        return NULL;
    if (loader->strict)
        dl2_place_acquire(loader, loader->ring.next_place++, &claim->place);
    return claim;
}

static struct dl2_claim *take_put_aside(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    struct dl2_claim *claim = workers->put_aside[workers->put_aside_first];
    workers->put_aside_first = (workers->put_aside_first + 1) % workers->put_aside_capacity;
    workers->put_aside_count--;
    workers->side_active++;
    claim->was_put_aside = true;
    claim->may_put_aside = false;
    return claim;
}

static void drop_put_aside(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    while (workers->put_aside_count) {
        struct dl2_claim *claim = take_put_aside(loader);
        workers->side_active--;
        dl2_job_drop(&claim->job, &loader->recipe);
        workers->free_claims[workers->free_count++] = claim;
        loader->in_flight--;
    }
}

void dl2_workers_cancel(struct dl2_loader *loader)
{
    atomic_store_explicit(&loader->canceled, true, memory_order_relaxed);
    loader->order.end_claim = 0;
    drop_put_aside(loader);
    dl2_decode_queue_drop(loader);
    pthread_cond_broadcast(&loader->workers.work_available);
    pthread_cond_broadcast(&loader->ring.place_available);
}

static void wait_for_work(struct dl2_loader *loader, bool wanted)
{
    struct dl2_workers *workers = &loader->workers;
    const double start = dl2_clock_wall();
    workers->running--;
    pthread_cond_wait(&workers->work_available, &loader->mutex);
    workers->running++;
    if (wanted)
        loader->stats.worker_wait += dl2_clock_wall() - start;
}

/* Waits for work. NULL when the loader closes. A thread that is woken and is one too many leaves
 * the work to those that run, who look for more before they wait. */
static struct dl2_claim *next_claim_to_run(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    while (!loader->closing) {
        if (workers->running > workers->limit) {
            wait_for_work(loader, false);
            continue;
        }
        const bool claimable = can_claim(loader);
        if (workers->put_aside_count && (!claimable || workers->side_active < workers->side_now))
            return take_put_aside(loader);
        if (claimable) {
            struct dl2_claim *claim = claim_next(loader);
            if (claim)
                return claim;
            continue;
        }
        wait_for_work(loader, loader->strict && loader->order.next_claim < loader->order.end_claim);
    }
    return NULL;
}

static unsigned moved(unsigned now, double change, unsigned most)
{
    const long to = (long)now + (long)fmax(-2, fmin(2, change));
    return to < 1 ? 1 : to > (long)most ? most : (unsigned)to;
}

/* Which part is ready of the slots that the consumer does not have, but for the one just filled. */
static double share_ready(const struct dl2_loader *loader, const struct dl2_slot *filled)
{
    unsigned others = 0, ready = 0;
    for (unsigned i = 0; i < loader->config.depth; i++) {
        const struct dl2_slot *slot = &loader->ring.slots[i];
        others += slot != filled && slot->state != DL2_SLOT_TAKEN;
        ready += slot != filled && slot->state == DL2_SLOT_READY;
    }
    return others ? (double)ready / others : 1;
}

/*
 * With each full batch, but not before times can be told. How busy: CPU seconds of those that work,
 * of what they could have had; MinatoLoader wants 70%. Its two weights are set so that a full ring
 * alone, or busy workers alone, change nothing.
 */
static void adapt_workers(struct dl2_loader *loader, const struct dl2_slot *filled)
{
    static const double LEAST_SECONDS = 0.005, TO_FILL = 3, TO_BE_BUSY = 2, BUSY = 0.7;
    struct dl2_workers *workers = &loader->workers;
    const double now = dl2_clock_wall(), seconds = now - workers->since;
    if (seconds >= LEAST_SECONDS) {
        const double full = share_ready(loader, filled);
        const double busy = workers->cpu / (seconds * workers->limit);
        workers->limit = moved(workers->limit, TO_FILL * (1 - full) + TO_BE_BUSY * (busy - BUSY),
                               loader->config.workers);
        workers->cpu = 0;
        workers->since = now;
        pthread_cond_broadcast(&workers->work_available);
    }
    struct dl2_loader_stats *stats = &loader->stats;
    workers->limits += workers->limit;
    stats->workers_mean = (double)workers->limits / (double)++workers->batches;
    if (!stats->workers_least || workers->limit < stats->workers_least)
        stats->workers_least = workers->limit;
    if (workers->limit > stats->workers_most)
        stats->workers_most = workers->limit;
}

static void adapt_side_workers(struct dl2_loader *loader)
{
    struct dl2_workers *workers = &loader->workers;
    const double full = (double)dl2_slots_ready(loader) / loader->config.depth;
    const double queue = (double)workers->put_aside_count / workers->put_aside_capacity;
    workers->side_now =
        moved(workers->side_now, rint(2 * (full - 0.5) + 2 * (queue - 0.5)), workers->side_most);
}

static void finish_claim(struct dl2_loader *loader, struct dl2_claim *claim, int status,
                         const struct dl2_error *error)
{
    struct dl2_workers *workers = &loader->workers;
    if (loader->aware && status == DL2_OK && claim->begun)
        dl2_slow_samples_add(&workers->slow_samples, claim->job.plan.index, claim->job.seconds,
                             claim->job.seconds > claim->threshold);
    if (loader->config.decoder && status == DL2_OK && claim->begun) {
        claim->place.slot->by_decoder += claim->job.staged;
        dl2_decoder_share_observe(loader, &claim->job);
    }
    workers->side_active -= claim->was_put_aside;
    loader->stats.aside += claim->was_put_aside && status == DL2_OK;
    if (status == DL2_OK && dl2_place_fill(&claim->place)) {
        if (claim->place.slot->decode_slot)
            dl2_decode_queue_add(loader, claim->place.slot);
        if (loader->aware)
            adapt_side_workers(loader);
        if (loader->config.adapt_workers)
            adapt_workers(loader, claim->place.slot);
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
    loader->workers.running++;
    while ((claim = next_claim_to_run(loader))) {
        struct dl2_error error = DL2_ERROR_INIT;
        int status;
        do {
            pthread_mutex_unlock(&loader->mutex);
            const double before = loader->config.adapt_workers ? dl2_clock_thread_cpu() : 0;
            status = dl2_claim_run(loader, claim, &error);
            const double after = loader->config.adapt_workers ? dl2_clock_thread_cpu() : 0;
            pthread_mutex_lock(&loader->mutex);
            loader->workers.cpu += after - before;
            if (status == DL2_CLAIM_SLOW && put_aside(loader, claim))
                break;
            claim->may_put_aside = false; /* no more samples fit aside: finish this one */
        } while (status == DL2_CLAIM_SLOW);
        if (status != DL2_CLAIM_SLOW)
            finish_claim(loader, claim, status, &error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}
