/*
 * One claimed sample's way to its place in a batch: through its stages (sample.c), and where it is
 * bad, on with what comes for it.
 */
#include "loader/pipeline.h"

#include "common/clock.h"

#include <inttypes.h>
#include <string.h>

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
    if (!is_samples_fault(status) || loader->config.stop_on_bad) {
        reason.status = (enum dl2_status)status;
        return dl2_error_copy(error, &reason);
    }
    return DL2_OK;
}

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
            return DL2_TASK_SLOW;
    }
}

/* ---- */

void dl2_task_reset(struct dl2_task *task, uint32_t position)
{
    task->position = position;
    task->tries = 0;
    task->begun = task->aside = task->may_leave = false;
    task->place = (struct dl2_place){NULL, 0};
    task->work.to_decoder = false;
}

int dl2_task_run(struct dl2_loader *loader, struct dl2_task *task, struct dl2_error *error)
{
    const int status = go_on(loader, task, error);
    if (status != DL2_TASK_SLOW)
        dl2_work_drop(&task->work, &loader->recipe);
    return status;
}

void dl2_task_add_stats(struct dl2_loader *loader, struct dl2_task *task)
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

void dl2_task_fail(struct dl2_loader *loader, uint64_t claim, int status,
                   const struct dl2_error *error)
{
    if (status == DL2_ERR_CANCELED || claim >= loader->fail_claim)
        return;
    loader->fail_claim = claim;
    loader->error = *error;
    pthread_cond_broadcast(&loader->room);
}
