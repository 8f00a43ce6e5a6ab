/*
 * What workers do. All are alike: each takes what is most wanted now, a new sample or, where slow
 * ones are put aside (DL2_BATCHING_AWARE), one of those.
 *
 * A sample is put aside between two stages once it took longer than the threshold, with its whole
 * task: buffers, decoder, random state. The worker goes on with a free task, of which there are as
 * many as can be aside. A sample that was slow in an earlier epoch goes aside before anything is
 * done to it, since a single long stage can't be left in the middle. While new samples can be had,
 * only `side_now` workers are on the side, so that the others keep filling batches; when there are
 * none, all are; and when no more fit aside, whoever has a slow one finishes it. So no worker idles
 * while there is anything to do.
 *
 * side_now moves by up to two with each full batch, like MinatoLoader's number of workers, from how
 * full the batches' ring and the side are: many batches ready leave time for slow samples.
 */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What go_on() returns for a sample that should go aside. */
#define SLOW 1

/* ---- bad samples ---- */

int dl2_loader_nothing_can_be_read(struct dl2_loader *loader, struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    const char *const *texts = dl2_bad_texts(&loader->bad);
    const int status = dl2_error_set(
        error, DL2_ERR_FORMAT, "none of the %" PRIu32 " samples can be read; the first: %s",
        loader->sampler.size, texts && loader->bad.count ? texts[0] : "?");
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Is this the fault of the sample, rather than of the machine or of whoever stopped us? */
static bool is_samples_fault(int status)
{
    return status != DL2_ERR_MEMORY && status != DL2_ERR_CANCELED;
}

static int note_bad(struct dl2_loader *loader, uint32_t index, const char *text,
                    struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    const int status = dl2_bad_add(&loader->bad, index, text, error);
    if (status > 0)
        loader->stats.bad++;
    pthread_mutex_unlock(&loader->mutex);
    return status < 0 ? status : DL2_OK;
}

/* ---- one sample ---- */

/* The sample at the task's position, or in training the next good one in the epoch's order. 1: it
 * is begun; 0: there is none. */
static int begin(struct dl2_loader *loader, struct dl2_task *task)
{
    const uint32_t size = loader->sampler.size;
    const uint32_t tries = loader->config.train ? size : 1;
    while (task->tries < tries) {
        const uint64_t at = (uint64_t)task->position + task->tries++;
        const uint32_t index = loader->sampler.order[at % size];
        if (loader->config.stop_on_bad || !dl2_bad_is_known(&loader->bad, index)) {
            dl2_work_begin(&task->work, &loader->recipe, index, task->claim);
            task->begun = true;
            return 1;
        }
    }
    return 0;
}

/* Waits for a place in a batch. Not in strict order, where the task has one. */
static int wait_for_place(struct dl2_loader *loader, struct dl2_task *task)
{
    bool found = task->place.slot;
    if (found)
        return DL2_OK;
    pthread_mutex_lock(&loader->mutex);
    while (!atomic_load_explicit(&loader->canceled, memory_order_relaxed)) {
        found = dl2_batcher_take(loader, loader->next_place, &task->place);
        if (found || loader->fail_claim != DL2_NOWHERE)
            break;
        const double start = dl2_clock_wall();
        pthread_cond_wait(&loader->room, &loader->mutex);
        loader->stats.worker_wait += dl2_clock_wall() - start;
    }
    loader->next_place += found;
    pthread_mutex_unlock(&loader->mutex);
    return found ? DL2_OK : DL2_ERR_CANCELED;
}

/* Where the sample's pixels go. */
static uint8_t *pixels_of(const struct dl2_loader *loader, const struct dl2_place *place)
{
    if (!place->slot)
        return NULL;
    return place->slot->decode
               ? loader->config.decoder->ops->pixels(place->slot->decode, place->number)
               : place->slot->batch.images + place->number * loader->recipe.sample_bytes;
}

/* Writes what stands beside the pixels. A label of -1: there is no good sample for this place. */
static void label(const struct dl2_loader *loader, const struct dl2_task *task, bool good)
{
    const struct dl2_place *place = &task->place;
    const uint32_t index = good ? task->work.index : loader->sampler.order[task->position];
    struct dl2_sample sample;
    dl2_dataset_sample(loader->dataset, index, &sample);
    place->slot->batch.labels[place->number] = good ? sample.label : -1;
    place->slot->batch.indices[place->number] = index;
    place->slot->positions[place->number] = task->position;
}

/* Validation's bad sample. */
static int leave_blank(struct dl2_loader *loader, struct dl2_task *task)
{
    DL2_TRY(wait_for_place(loader, task));
    memset(pixels_of(loader, &task->place), 0, loader->recipe.sample_bytes);
    label(loader, task, false);
    return DL2_OK;
}

static int step(struct dl2_loader *loader, struct dl2_task *task, struct dl2_error *error)
{
    uint8_t *pixels = NULL;
    if (dl2_work_needs_place(&task->work, &loader->recipe)) {
        DL2_TRY(wait_for_place(loader, task));
        task->work.slot = task->place.slot->decode;
        task->work.number = task->place.number;
        if (!task->work.staged)
            pixels = pixels_of(loader, &task->place);
    }
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = dl2_work_step(&task->work, &loader->recipe, pixels, &reason);
    if (status == DL2_OK)
        return DL2_OK;
    task->begun = false;
    if (is_samples_fault(status))
        DL2_TRY(note_bad(loader, task->work.index, reason.message, error));
    if (!is_samples_fault(status) || loader->config.stop_on_bad)
        return dl2_error_set(error, status, "%s", reason.message);
    return DL2_OK;
}

/* Goes on until a sample is in its place, or, with SLOW, should go aside. */
static int go_on(struct dl2_loader *loader, struct dl2_task *task, struct dl2_error *error)
{
    for (;;) {
        if (atomic_load_explicit(&loader->canceled, memory_order_relaxed))
            return DL2_ERR_CANCELED;
        if (!task->begun && !begin(loader, task))
            return loader->config.train ? dl2_loader_nothing_can_be_read(loader, error)
                                        : leave_blank(loader, task);
        DL2_TRY(step(loader, task, error));
        if (task->begun && task->work.stage == DL2_STAGE_DONE) {
            label(loader, task, true);
            task->work.stats.images++;
            return DL2_OK;
        }
        if (task->may_leave && task->begun && !task->place.slot &&
            task->work.seconds > task->threshold && dl2_work_may_rest(&task->work))
            return SLOW;
    }
}

int dl2_worker_fill_place(struct dl2_loader *loader, struct dl2_task *task, struct dl2_error *error)
{
    task->tries = 0;
    task->begun = task->aside = task->may_leave = false;
    task->work.to_decoder = false;
    const int status = go_on(loader, task, error);
    dl2_work_drop(&task->work, &loader->recipe);
    return status;
}

/* ---- what to do next; all of this is called with the mutex held ---- */

uint32_t dl2_claim_position(const struct dl2_loader *loader, uint64_t claim)
{
    return claim < loader->pending_count
               ? loader->pending[claim]
               : (uint32_t)(loader->resumed_at + claim - loader->pending_count);
}

static bool can_claim(const struct dl2_loader *loader)
{
    if (loader->next_claim >= loader->end_claim)
        return false;
    if (loader->strict)
        return loader->next_claim < loader->fail_claim &&
               dl2_batcher_has(loader, loader->next_place);
    return loader->fail_claim == DL2_NOWHERE;
}

static bool push_aside(struct dl2_loader *loader, struct dl2_task *task, uint32_t claim)
{
    if (loader->aside_count == loader->aside_capacity ||
        atomic_load_explicit(&loader->canceled, memory_order_relaxed))
        return false;
    const unsigned end = (loader->aside_first + loader->aside_count++) % loader->aside_capacity;
    loader->aside[end] = (struct dl2_aside){task, claim};
    pthread_cond_signal(&loader->work);
    return true;
}

static struct dl2_task *begin_task(struct dl2_loader *loader, uint32_t claim)
{
    struct dl2_task *task = loader->free_tasks[--loader->free_count];
    task->claim = claim;
    task->position = dl2_claim_position(loader, claim);
    task->tries = 0;
    task->begun = task->aside = false;
    task->may_leave = loader->aware;
    task->threshold = loader->aware ? loader->pace.threshold : INFINITY;
    task->place = (struct dl2_place){NULL, 0};
    task->work.to_decoder = loader->config.decoder && dl2_finisher_wants(loader);
    return task;
}

/* NULL: the sample went aside. */
static struct dl2_task *claim_next(struct dl2_loader *loader)
{
    const uint32_t claim = (uint32_t)loader->next_claim++;
    loader->in_flight++;
    if (loader->aware) {
        const uint32_t index = loader->sampler.order[dl2_claim_position(loader, claim)];
        if (dl2_pace_was_slow(&loader->pace, index) && push_aside(loader, NULL, claim))
            return NULL;
    }
    struct dl2_task *task = begin_task(loader, claim);
    if (loader->strict)
        dl2_batcher_take(loader, loader->next_place++, &task->place);
    return task;
}

static struct dl2_task *take_aside(struct dl2_loader *loader)
{
    const struct dl2_aside aside = loader->aside[loader->aside_first];
    loader->aside_first = (loader->aside_first + 1) % loader->aside_capacity;
    loader->aside_count--;
    loader->side_active++;
    struct dl2_task *task = aside.task ? aside.task : begin_task(loader, aside.claim);
    task->aside = true;
    task->may_leave = false;
    return task;
}

void dl2_worker_drop_aside(struct dl2_loader *loader)
{
    while (loader->aside_count) {
        struct dl2_task *task = take_aside(loader);
        loader->side_active--;
        dl2_work_drop(&task->work, &loader->recipe);
        loader->free_tasks[loader->free_count++] = task;
        loader->in_flight--;
    }
}

/* NULL when the loader closes. */
static struct dl2_task *pick(struct dl2_loader *loader)
{
    while (!loader->closing) {
        const bool claimable = can_claim(loader);
        if (loader->aside_count && (!claimable || loader->side_active < loader->side_now))
            return take_aside(loader);
        if (claimable) {
            struct dl2_task *task = claim_next(loader);
            if (task)
                return task;
            continue;
        }
        const bool wanted = loader->strict && loader->next_claim < loader->end_claim;
        const double start = dl2_clock_wall();
        pthread_cond_wait(&loader->work, &loader->mutex);
        if (wanted)
            loader->stats.worker_wait += dl2_clock_wall() - start;
    }
    return NULL;
}

static void adapt(struct dl2_loader *loader)
{
    const double full = (double)dl2_batcher_ready(loader) / loader->config.depth;
    const double queue = (double)loader->aside_count / loader->aside_capacity;
    const double change = fmax(-2, fmin(2, 2 * (full - 0.5) + 2 * (queue - 0.5)));
    const long now = (long)loader->side_now + lrint(change);
    loader->side_now = now < 1                         ? 1
                       : now > (long)loader->side_most ? loader->side_most
                                                       : (unsigned)now;
}

void dl2_worker_add_stats(struct dl2_loader *loader, struct dl2_task *task)
{
    struct dl2_loader_stats *sum = &loader->stats, *part = &task->work.stats;
    sum->read += part->read;
    sum->decode += part->decode;
    sum->transform += part->transform;
    sum->operations += part->operations;
    sum->decoder_images += part->decoder_images;
    sum->images += part->images;
    sum->bytes += part->bytes;
    sum->decoded_hits += part->decoded_hits;
    *part = (struct dl2_loader_stats){0};
    const size_t memory = dl2_work_memory(&task->work, &loader->recipe);
    loader->memory += memory - task->memory;
    task->memory = memory;
    if (loader->memory > loader->stats.memory)
        loader->stats.memory = loader->memory;
}

static void finish(struct dl2_loader *loader, struct dl2_task *task, int status,
                   const struct dl2_error *error)
{
    if (loader->aware && status == DL2_OK && task->begun)
        dl2_pace_add(&loader->pace, task->work.index, task->work.seconds,
                     task->work.seconds > task->threshold);
    if (loader->config.decoder && status == DL2_OK && task->begun) {
        task->place.slot->by_decoder += task->work.staged;
        dl2_finisher_saw(loader, &task->work);
    }
    loader->side_active -= task->aside;
    loader->stats.aside += task->aside && status == DL2_OK;
    if (status == DL2_OK && dl2_batcher_fill(loader, &task->place)) {
        if (loader->aware)
            adapt(loader);
        pthread_cond_signal(&loader->progress);
    }
    if (status < 0 && status != DL2_ERR_CANCELED && task->claim < loader->fail_claim) {
        loader->fail_claim = task->claim;
        loader->error = *error;
        pthread_cond_broadcast(&loader->room);
    }
    dl2_worker_add_stats(loader, task);
    loader->free_tasks[loader->free_count++] = task;
    if (--loader->in_flight == 0)
        pthread_cond_signal(&loader->progress);
}

void *dl2_worker_run(void *context)
{
    struct dl2_loader *loader = context;
    struct dl2_task *task;
    pthread_mutex_lock(&loader->mutex);
    while ((task = pick(loader))) {
        struct dl2_error error = DL2_ERROR_INIT;
        int status;
        do {
            pthread_mutex_unlock(&loader->mutex);
            status = go_on(loader, task, &error);
            if (status != SLOW)
                dl2_work_drop(&task->work, &loader->recipe);
            pthread_mutex_lock(&loader->mutex);
            if (status == SLOW && push_aside(loader, task, task->claim))
                break;
            task->may_leave = false; /* no more fit aside: on with it */
        } while (status == SLOW);
        if (status != SLOW)
            finish(loader, task, status, &error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}
