/*
 * Full batches on their way through a batch decoder, on threads of their own: a finisher waits for
 * the decoder most of the time, which no worker should.
 *
 * What the decoder refuses is filled in by the processors as any sample is (task.c), so that what
 * is bad, and what comes in its place, is the same with any decoder and with none.
 *
 * Shares. Where both decode, each sample goes to one of them when it is claimed. A share f of the
 * samples keeps W workers busy for ((1 - f) p + f s) / W a sample and the decoder for f d, where p,
 * s and d are the times that are kept here; both take as long with f = p / (W d + p - s). Neither
 * gets all, so that both go on being measured.
 */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The position of a sample that isn't read in the epoch's order. */
#define OUT_OF_ORDER UINT32_MAX

#define LEAST_SHARE 0.02
/* Of a new time, beside what was there: a few dozen samples, a few batches. */
#define SAMPLE_PART 0.02
#define BATCH_PART  0.25

/* ---- shares ---- */

static void blend(double *kept, double seconds, double part)
{
    *kept += (*kept > 0 ? part : 1) * (seconds - *kept);
}

static void set_share(struct dl2_loader *loader)
{
    struct dl2_shares *shares = &loader->shares;
    if (!(shares->processor > 0 && shares->stage > 0 && shares->decoder > 0))
        return;
    const double workers = loader->config.workers;
    const double below = workers * shares->decoder + shares->processor - shares->stage;
    const double share = below > 0 ? shares->processor / below : 1;
    shares->share = fmax(LEAST_SHARE, fmin(1 - LEAST_SHARE, share));
}

bool dl2_finisher_wants(struct dl2_loader *loader)
{
    struct dl2_shares *shares = &loader->shares;
    if (!loader->config.decoder_shares)
        return true;
    shares->owed += shares->share;
    const bool wants = shares->owed >= 1;
    shares->owed -= wants;
    return wants;
}

void dl2_finisher_saw(struct dl2_loader *loader, const struct dl2_work *work)
{
    struct dl2_shares *shares = &loader->shares;
    blend(work->staged ? &shares->stage : &shares->processor, work->seconds, SAMPLE_PART);
    set_share(loader);
}

/* ---- batches ---- */

void dl2_finisher_add(struct dl2_loader *loader, struct dl2_slot *slot)
{
    const unsigned end = (loader->staged_first + loader->staged_count++) % loader->config.depth;
    loader->staged[end] = slot;
    loader->in_flight++;
    pthread_cond_signal(&loader->finish);
}

void dl2_finisher_drop(struct dl2_loader *loader)
{
    loader->in_flight -= loader->staged_count;
    loader->staged_count = 0;
    pthread_cond_broadcast(&loader->finish);
}

/* Held. NULL when the loader closes. */
static struct dl2_slot *take_staged(struct dl2_loader *loader)
{
    while (!loader->closing && !loader->staged_count)
        pthread_cond_wait(&loader->finish, &loader->mutex);
    if (loader->closing)
        return NULL;
    struct dl2_slot *slot = loader->staged[loader->staged_first];
    loader->staged_first = (loader->staged_first + 1) % loader->config.depth;
    loader->staged_count--;
    return slot;
}

/* The sample in a place, or what comes for it if it is bad. */
static int refill(struct dl2_loader *loader, struct dl2_task *task, struct dl2_slot *slot,
                  unsigned number, struct dl2_error *error)
{
    dl2_task_reset(task, slot->positions[number]);
    task->claim = OUT_OF_ORDER;
    task->place = (struct dl2_place){slot, number};
    task->work.stats.images--; /* it was counted when it was staged; where it is bad, too early */
    return dl2_task_run(loader, task, error);
}

/* *seconds: the decoder's. */
static int finish(struct dl2_loader *loader, struct dl2_task *task, struct dl2_slot *slot,
                  double *seconds, struct dl2_error *error)
{
    const struct dl2_batch_decoder_class *ops = loader->config.decoder->ops;
    const unsigned count = slot->batch.count;
    for (bool refused = true; refused;) {
        memset(slot->refused, 0, count * sizeof *slot->refused);
        const double start = dl2_clock_wall();
        const int status = ops->finish(slot->decode, count, slot->refused, error);
        *seconds += dl2_clock_wall() - start;
        DL2_TRY(status);
        refused = false;
        for (unsigned i = 0; i < count; i++)
            if (slot->refused[i]) {
                refused = true;
                DL2_TRY(refill(loader, task, slot, i, error));
            }
    }
    return DL2_OK;
}

/* Held. */
static void end(struct dl2_loader *loader, struct dl2_slot *slot, int status, double seconds,
                const struct dl2_error *error)
{
    const uint64_t first = slot->batch.step * loader->config.batch;
    const uint64_t claim = first > loader->first_place ? first - loader->first_place : 0;
    if (status == DL2_OK)
        slot->state = DL2_SLOT_READY;
    else
        dl2_task_fail(loader, claim, status, error);
    loader->stats.finish += seconds;
    if (status == DL2_OK && slot->by_decoder) {
        blend(&loader->shares.decoder, seconds / slot->by_decoder / loader->finishing, BATCH_PART);
        set_share(loader);
    }
    loader->in_flight--;
    pthread_cond_signal(&loader->progress);
}

static void *run(void *context)
{
    struct dl2_loader *loader = context;
    struct dl2_slot *slot;
    pthread_mutex_lock(&loader->mutex);
    struct dl2_task *task = &loader->finish_tasks[loader->finishers_begun++];
    while ((slot = take_staged(loader))) {
        struct dl2_error error = DL2_ERROR_INIT;
        double seconds = 0;
        loader->finishing++;
        pthread_mutex_unlock(&loader->mutex);
        const int status = finish(loader, task, slot, &seconds, &error);
        pthread_mutex_lock(&loader->mutex);
        dl2_task_add_stats(loader, task);
        end(loader, slot, status, seconds, &error);
        loader->finishing--;
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- making and unmaking ---- */

int dl2_finisher_init(struct dl2_loader *loader, struct dl2_error *error)
{
    if (!loader->config.decoder)
        return DL2_OK;
    loader->shares.share = 0.5;
    loader->staged = dl2_calloc(loader->config.depth, sizeof *loader->staged);
    loader->finish_tasks = dl2_calloc(DL2_FINISHERS, sizeof *loader->finish_tasks);
    if (!loader->staged || !loader->finish_tasks)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a loader");
    for (unsigned i = 0; i < DL2_FINISHERS; i++) {
        struct dl2_task *task = &loader->finish_tasks[i];
        DL2_TRY(dl2_work_init(&task->work, &loader->recipe, error));
        task->memory = dl2_work_memory(&task->work, &loader->recipe);
        loader->memory += task->memory;
    }
    for (unsigned i = 0; i < DL2_FINISHERS; i++) {
        const int reason = pthread_create(&loader->finishers[i], NULL, run, loader);
        if (reason)
            return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start a thread for batches: %s",
                                 strerror(reason));
        loader->finisher_count++;
    }
    return DL2_OK;
}

void dl2_finisher_free(struct dl2_loader *loader)
{
    for (unsigned i = 0; i < loader->finisher_count; i++)
        pthread_join(loader->finishers[i], NULL);
    for (unsigned i = 0; loader->finish_tasks && i < DL2_FINISHERS; i++)
        dl2_work_free(&loader->finish_tasks[i].work, &loader->recipe);
    free(loader->finish_tasks);
    free(loader->staged);
}
