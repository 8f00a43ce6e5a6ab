/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a loader that is set up: epochs, and the consumer's side. "Locked": see
 * pipeline.h. */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* ---- epochs ---- */

const char *dl2_loader_augment(const struct dl2_loader *loader)
{
    return loader->config.augment;
}

bool dl2_loader_box_class(const struct dl2_loader *loader, size_t number, int64_t *label,
                          const char **name)
{
    return dl2_box_source_class(&loader->recipe.boxes, number, label, name);
}

const char *dl2_loader_boxes_warning(const struct dl2_loader *loader)
{
    return loader->recipe.boxes.warning;
}

const char *dl2_loader_shares_note(const struct dl2_loader *loader)
{
    return loader->order.sampler.shares_note;
}

const char *dl2_loader_targets(const struct dl2_loader *loader)
{
    return loader->config.targets;
}

uint64_t dl2_loader_epoch_samples(const struct dl2_loader_config *config, uint64_t samples)
{
    if (!config->train)
        return samples;
    return config->draws ? config->draws : samples * (config->repeats ? config->repeats : 1);
}

uint64_t dl2_loader_steps(const struct dl2_loader *loader)
{
    return loader->order.sampler.steps;
}

/* Locked. Drops what is left of an epoch. On return nothing is in flight, and all slots are free
 * except those that the consumer has. */
static void stop_epoch(struct dl2_loader *loader)
{
    dl2_workers_cancel(loader);
    while (loader->in_flight)
        pthread_cond_wait(&loader->ring.progress, &loader->mutex);
    atomic_store_explicit(&loader->canceled, false, memory_order_relaxed);
    dl2_slots_reset(loader);
}

static void set_delivered(struct dl2_loader *loader, uint32_t position, bool delivered)
{
    struct dl2_claim_order *order = &loader->order;
    const uint64_t bit = (uint64_t)1 << position % 64;
    if (delivered)
        order->delivered[position / 64] |= bit;
    else
        order->delivered[position / 64] &= ~bit;
}

static int keep_pending(struct dl2_loader *loader, const uint32_t *missing, uint32_t count,
                        struct dl2_error *error)
{
    struct dl2_claim_order *order = &loader->order;
    if (count && !order->queue) {
        DL2_TRY(DL2_NEW(&order->queue, order->sampler.positions, "a loader", error));
        DL2_TRY(DL2_NEW(&order->pending, order->sampler.positions, "a loader", error));
        loader->memory += (uint64_t)order->sampler.positions * 2 * sizeof *order->queue;
    }
    if (count)
        memmove(order->pending, missing, count * sizeof *missing);
    order->pending_count = count;
    return DL2_OK;
}

/* The sample numbers of the epoch, in the order of claims. */
static const uint32_t *fill_queue(struct dl2_loader *loader)
{
    struct dl2_claim_order *order = &loader->order;
    if (!order->pending_count)
        return order->sampler.order + order->resumed_at;
    for (uint32_t number = 0; number < order->end_claim; number++)
        order->queue[number] = order->sampler.order[dl2_claim_position(loader, number)];
    return order->queue;
}

/* Where each claim's sample is in the epoch of all ranks. */
static const uint32_t *fill_epoch_positions(struct dl2_loader *loader)
{
    struct dl2_claim_order *order = &loader->order;
    const uint32_t *positions = order->sampler.epoch_positions;
    for (uint32_t number = 0; positions && number < order->end_claim; number++)
        order->epoch_positions[number] = positions[dl2_claim_position(loader, number)];
    return order->epoch_positions;
}

/* Locked, with nothing in flight. */
static int start_at(struct dl2_loader *loader, const struct dl2_loader_position *at,
                    struct dl2_error *error)
{
    struct dl2_ring *ring = &loader->ring;
    struct dl2_claim_order *order = &loader->order;
    const uint32_t positions = order->sampler.positions;
    DL2_TRY(keep_pending(loader, at->missing, at->missing_count, error));
    memset(order->delivered, 0, (positions / 64 + 1) * sizeof *order->delivered);
    for (uint32_t i = 0; i < at->next; i++)
        set_delivered(loader, i, true);
    for (uint32_t i = 0; i < at->missing_count; i++)
        set_delivered(loader, order->pending[i], false);
    dl2_fetch_start(loader->recipe.fetch, NULL, 0); /* the order changes now */
    dl2_sampler_set_epoch(&order->sampler, at->epoch);
    loader->recipe.planner.epoch = at->epoch;
    order->resumed_at = at->next;
    ring->next_step = at->step;
    ring->first_place = ring->next_place = at->next - at->missing_count;
    order->next_claim = 0;
    order->end_claim = positions - ring->first_place;
    loader->fail_claim = DL2_NOWHERE;
    loader->epoch_done = loader->epoch_bad = 0;
    loader->started = true;
    dl2_error_clear(&loader->error);
    loader->recipe.planner.epoch_positions = fill_epoch_positions(loader);
    dl2_fetch_start(loader->recipe.fetch, fill_queue(loader), order->end_claim);
    pthread_cond_broadcast(&loader->workers.work_available);
    return DL2_OK;
}

int dl2_loader_start_epoch(struct dl2_loader *loader, uint64_t epoch, uint64_t first_step,
                           struct dl2_error *error)
{
    if (first_step > loader->order.sampler.steps)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "there is no step %" PRIu64 ": an epoch has %" PRIu64, first_step,
                             loader->order.sampler.steps);
    const struct dl2_loader_position at = {
        .epoch = epoch, .step = first_step, .next = dl2_samples_before(loader, first_step)};
    pthread_mutex_lock(&loader->mutex);
    stop_epoch(loader);
    const int status = start_at(loader, &at, error);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* ---- what decides the order ---- */

static uint64_t hash_of_keys(const struct dl2_dataset *dataset)
{
    XXH64_hash_t hash = 0;
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        hash = XXH64(sample.key, strlen(sample.key), hash);
    }
    return hash;
}

void dl2_loader_get_order(struct dl2_loader *loader, struct dl2_loader_order *order)
{
    const struct dl2_loader_config *config = &loader->order.sampler.config;
    if (!loader->order.identity.samples)
        loader->order.identity =
            (struct dl2_loader_order){.seed = config->train ? config->seed : 0,
                                      .dataset = hash_of_keys(loader->recipe.planner.dataset),
                                      .samples = loader->order.sampler.count,
                                      .batch = config->batch,
                                      .rank = config->rank,
                                      .world = config->world,
                                      .shuffle_chunk = config->shuffle_chunk,
                                      .shuffle_window = config->shuffle_window,
                                      .weights = loader->order.weights_hash,
                                      .repeats = config->repeats > 1 ? config->repeats : 0,
                                      .draws = config->draws,
                                      .train = config->train,
                                      .drop_last = config->drop_last,
                                      .balanced = config->balanced,
                                      .shares = dl2_sampler_shares(&loader->order.sampler)};
    *order = loader->order.identity;
}

static int check_order(struct dl2_loader *loader, const struct dl2_loader_order *theirs,
                       struct dl2_error *error)
{
    struct dl2_loader_order ours;
    if (!theirs->samples)
        return DL2_OK;
    dl2_loader_get_order(loader, &ours);
    const struct {
        const char *name;
        uint64_t theirs, ours;
    } parts[] = {
        {"train", theirs->train, ours.train},
        {"samples", theirs->samples, ours.samples},
        {"dataset", theirs->dataset, ours.dataset},
        {"seed", theirs->seed, ours.seed},
        {"batch", theirs->batch, ours.batch},
        {"drop_last", theirs->drop_last, ours.drop_last},
        {"rank", theirs->rank, ours.rank},
        {"world", theirs->world, ours.world},
        {"shuffle_chunk", theirs->shuffle_chunk, ours.shuffle_chunk},
        {"shuffle_window", theirs->shuffle_window, ours.shuffle_window},
        {"balanced", theirs->balanced, ours.balanced},
        {"repeats", theirs->repeats, ours.repeats},
        {"num_samples", theirs->draws, ours.draws},
        {"sample_weights", theirs->weights, ours.weights},
        {"shares", theirs->shares, ours.shares},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].theirs != parts[i].ours && !strcmp(parts[i].name, "dataset"))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "the position is one in another dataset: its samples have other "
                                 "names or another order");
        else if (parts[i].theirs != parts[i].ours && !strcmp(parts[i].name, "sample_weights"))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "the position is one in epochs of other weights");
        else if (parts[i].theirs != parts[i].ours && !strcmp(parts[i].name, "shares"))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "the position is one in epochs of other shares");
        else if (parts[i].theirs != parts[i].ours)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "the position is one in other epochs: it has %s %" PRIu64
                                 ", this loader %" PRIu64,
                                 parts[i].name, parts[i].theirs, parts[i].ours);
    return DL2_OK;
}

int dl2_loader_resume(struct dl2_loader *loader, const struct dl2_loader_position *position,
                      struct dl2_error *error)
{
    const struct dl2_loader_position *at = position;
    DL2_TRY(check_order(loader, &at->order, error));
    bool fits = at->step <= loader->order.sampler.steps &&
                at->next <= loader->order.sampler.positions && at->missing_count <= at->next &&
                at->next - at->missing_count == dl2_samples_before(loader, at->step);
    for (uint32_t i = 0; fits && i < at->missing_count; i++)
        fits = at->missing[i] < at->next && (i == 0 || at->missing[i] > at->missing[i - 1]);
    if (!fits)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "step %" PRIu64 " with %" PRIu32 " of %" PRIu32
                             " samples missing is no position of this loader's epochs",
                             at->step, at->missing_count, at->next);
    pthread_mutex_lock(&loader->mutex);
    stop_epoch(loader);
    const int status = start_at(loader, at, error);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* ---- the consumer's side ---- */

/* Locked. Returns 1 if the next batch is there, 0 if not yet, or an error if it never will be. */
static int look_for_next(struct dl2_loader *loader, struct dl2_slot **out, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &loader->config;
    struct dl2_slot *slot = *out = dl2_slot_of_step(loader, loader->ring.next_step);
    /* Batches begin in the order of their steps, so no slot is FILLING for a later step. */
    if (!slot && config->wait_for_release)
        return 0;
    if (!slot)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "all %u batches are taken: give one back before the next",
                             config->depth);
    /* A step in which this rank has no sample: an empty batch keeps it in step with the others. */
    if (slot->state == DL2_SLOT_FREE && dl2_batch_size(loader, loader->ring.next_step) == 0)
        dl2_slot_begin(loader, slot, loader->ring.next_step);
    if (slot->state == DL2_SLOT_READY)
        return 1;
    if (loader->fail_claim == DL2_NOWHERE || loader->in_flight)
        return 0;
    const uint64_t failed = (loader->ring.first_place + loader->fail_claim) / config->batch;
    if (!loader->strict || failed == loader->ring.next_step)
        return dl2_error_copy(error, &loader->error);
    return 0;
}

/* Locked. As look_for_next(), but waits until `deadline` (NULL: for ever) for the next batch. */
static int wait_for_next(struct dl2_loader *loader, const struct timespec *deadline,
                         struct dl2_slot **out, struct dl2_error *error)
{
    int status;
    bool late = false;
    while ((status = look_for_next(loader, out, error)) == 0 && !late) {
        const double start = dl2_clock_wall();
        if (deadline)
            late = pthread_cond_timedwait(&loader->ring.progress, &loader->mutex, deadline) != 0;
        else
            pthread_cond_wait(&loader->ring.progress, &loader->mutex);
        loader->stats.consumer_wait += dl2_clock_wall() - start;
    }
    return status;
}

/* Locked. */
static struct dl2_batch *hand_out(struct dl2_loader *loader, struct dl2_slot *slot)
{
    loader->ring.next_step++;
    dl2_slot_acquire(slot);
    for (unsigned i = 0; i < slot->batch.count; i++)
        set_delivered(loader, slot->positions[i], true);
    loader->stats.batches++;
    return &slot->batch;
}

int dl2_loader_wait(struct dl2_loader *loader, double seconds)
{
    struct timespec deadline;
    struct dl2_slot *slot;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    const uint64_t ns = (uint64_t)deadline.tv_nsec + (uint64_t)(fmax(0, fmin(seconds, 1e9)) * 1e9);
    deadline.tv_sec += (time_t)(ns / 1000000000);
    deadline.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&loader->mutex);
    const bool ready = !loader->started || loader->ring.next_step >= loader->order.sampler.steps ||
                       wait_for_next(loader, &deadline, &slot, NULL) != 0;
    pthread_mutex_unlock(&loader->mutex);
    return ready;
}

int dl2_loader_next(struct dl2_loader *loader, struct dl2_batch **out, struct dl2_error *error)
{
    struct dl2_slot *slot;
    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    int status = 0;
    const bool ended = loader->ring.next_step >= loader->order.sampler.steps;
    if (!loader->started)
        status = dl2_error_set(error, DL2_ERR_ARGUMENT, "no epoch was started");
    else if (!ended)
        status = wait_for_next(loader, NULL, &slot, error);
    if (status == 1)
        *out = hand_out(loader, slot);
    /* If only this rank's share is bad, that is no error here: other ranks have good samples. */
    const bool all_bad = loader->bad_samples.count == loader->order.sampler.count;
    pthread_mutex_unlock(&loader->mutex);
    if (status == 0 && ended && all_bad)
        return dl2_loader_nothing_can_be_read(loader, error);
    return status;
}

void dl2_loader_release(struct dl2_loader *loader, struct dl2_batch *batch)
{
    struct dl2_slot *slot = (struct dl2_slot *)batch;
    pthread_mutex_lock(&loader->mutex);
    dl2_slot_release(slot);
    pthread_cond_broadcast(loader->strict ? &loader->workers.work_available
                                          : &loader->ring.place_available);
    pthread_cond_signal(&loader->ring.progress); /* the consumer fills in empty batches */
    pthread_mutex_unlock(&loader->mutex);
}

/* Locked. Was the sample at a position not returned by dl2_loader_next()? */
static bool is_missing(const struct dl2_loader *loader, uint32_t position)
{
    return !(loader->order.delivered[position / 64] >> position % 64 & 1);
}

int dl2_loader_get_position(struct dl2_loader *loader, struct dl2_loader_position *position,
                            struct dl2_error *error)
{
    struct dl2_claim_order *order = &loader->order;
    *position = (struct dl2_loader_position){0};
    if (!loader->started)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no epoch was started");
    pthread_mutex_lock(&loader->mutex);
    const uint32_t done = dl2_samples_before(loader, loader->ring.next_step);
    /* `next` follows the last of the `done` positions that were returned. */
    uint32_t next = 0, missing = 0;
    for (uint32_t counted = 0; counted < done; next++) {
        counted += !is_missing(loader, next);
        missing += is_missing(loader, next);
    }
    free(order->missing);
    const int status = DL2_NEW(&order->missing, missing, "a loader", error);
    for (uint32_t i = 0, filled = 0; status == DL2_OK && filled < missing; i++)
        if (is_missing(loader, i))
            order->missing[filled++] = i;
    *position = (struct dl2_loader_position){
        .epoch = loader->recipe.planner.epoch,
        .step = loader->ring.next_step,
        .next = next,
        .missing_count = missing,
        .missing = order->missing,
    };
    pthread_mutex_unlock(&loader->mutex);
    dl2_loader_get_order(loader, &position->order);
    return status;
}

/* Locked. Adds the figures of the read stage and the caches. */
static void add_storage(const struct dl2_loader *loader, struct dl2_loader_stats *stats)
{
    struct dl2_fetch_stats fetch;
    dl2_fetch_get_stats(loader->recipe.fetch, &fetch);
    stats->bytes_read = fetch.bytes_read - loader->fetch_before.bytes_read;
    stats->requests = fetch.requests - loader->fetch_before.requests;
    stats->encoded_hits = fetch.cache_hits - loader->fetch_before.cache_hits;
    stats->memory += fetch.memory;
    if (loader->recipe.foreground)
        stats->memory += dl2_foreground_memory(loader->recipe.foreground);
    if (loader->recipe.volumes)
        stats->memory += dl2_volume_cache_bytes(loader->recipe.volumes);
    if (loader->recipe.planner.decoded)
        stats->memory += dl2_decoded_bytes(loader->recipe.planner.decoded);
}

void dl2_loader_get_stats(const struct dl2_loader *loader, struct dl2_loader_stats *stats)
{
    struct dl2_loader *shared = (struct dl2_loader *)loader; /* only the mutex changes */
    pthread_mutex_lock(&shared->mutex);
    *stats = shared->stats;
    add_storage(shared, stats);
    pthread_mutex_unlock(&shared->mutex);
}

void dl2_loader_stats_reset(struct dl2_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->stats = (struct dl2_loader_stats){.memory = loader->stats.memory};
    dl2_fetch_get_stats(loader->recipe.fetch, &loader->fetch_before);
    pthread_mutex_unlock(&loader->mutex);
}

const char *const *dl2_loader_bad(const struct dl2_loader *loader, size_t *count)
{
    struct dl2_loader *shared = (struct dl2_loader *)loader; /* sorts in place, locked */
    pthread_mutex_lock(&shared->mutex);
    const char *const *texts = dl2_bad_samples_texts(&shared->bad_samples);
    *count = texts ? shared->bad_samples.count : 0;
    pthread_mutex_unlock(&shared->mutex);
    return texts;
}

void dl2_loader_epoch_bad(const struct dl2_loader *loader, uint64_t *samples, uint64_t *bad)
{
    struct dl2_loader *shared = (struct dl2_loader *)loader; /* only the mutex changes */
    pthread_mutex_lock(&shared->mutex);
    *samples = shared->epoch_done;
    *bad = shared->epoch_bad;
    pthread_mutex_unlock(&shared->mutex);
}
