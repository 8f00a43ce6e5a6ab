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

#include <math.h>

/* All but dl2_worker_run() is called with the mutex held. */

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
    dl2_task_reset(task, dl2_claim_position(loader, claim));
    task->claim = claim;
    task->may_leave = loader->aware;
    task->threshold = loader->aware ? loader->pace.threshold : INFINITY;
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
    if (status == DL2_OK && dl2_batcher_fill(&task->place)) {
        if (task->place.slot->decode)
            dl2_finisher_add(loader, task->place.slot);
        if (loader->aware)
            adapt(loader);
        pthread_cond_signal(&loader->progress);
    }
    if (status < 0)
        dl2_task_fail(loader, task->claim, status, error);
    dl2_task_add_stats(loader, task);
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
            status = dl2_task_run(loader, task, &error);
            pthread_mutex_lock(&loader->mutex);
            if (status == DL2_TASK_SLOW && push_aside(loader, task, task->claim))
                break;
            task->may_leave = false; /* no more fit aside: on with it */
        } while (status == DL2_TASK_SLOW);
        if (status != DL2_TASK_SLOW)
            finish(loader, task, status, &error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}
