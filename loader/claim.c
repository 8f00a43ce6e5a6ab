/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings a claimed sample to its place in a batch: through its stages (sample.c), and if it is bad,
 * on with the sample that replaces it.
 */
#include "loader/pipeline.h"

#include "common/clock.h"
#include "loader/unusual.h"

#include <inttypes.h>
#include <string.h>

/* ---- bad samples ---- */

int dl2_loader_nothing_can_be_read(struct dl2_loader *loader, struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    const char *const *texts = dl2_bad_samples_texts(&loader->bad_samples);
    const int status = dl2_error_set(
        error, DL2_ERR_FORMAT, "none of the %" PRIu32 " samples can be read; the first: %s",
        loader->order.sampler.size, texts && loader->bad_samples.count ? texts[0] : "?");
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Lack of memory, a stop and a server that is gone are not the fault of the sample. */
static bool is_samples_fault(int status)
{
    return status != DL2_ERR_MEMORY && status != DL2_ERR_CANCELED && status != DL2_ERR_LOST;
}

static int note_bad(struct dl2_loader *loader, uint32_t index, const char *text,
                    struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    struct dl2_bad_samples *list = &loader->bad_samples;
    int status = dl2_bad_samples_add(list, index, text, error);
    if (status > 0) {
        loader->stats.bad++;
        status = dl2_loader_check_bad(loader->config.max_bad, list->count,
                                      loader->order.sampler.population, text, error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return status < 0 ? status : DL2_OK;
}

/* ---- one sample ---- */

/* Begins with the sample at the claim's position, or in training with the next good one in the
 * epoch's order. Returns 1, or 0 if there is none. In training a sample that was bad is tried
 * again: a file that is damaged in part is bad by some crops and not by others, and what an epoch
 * shows must not depend on the crops before it, which a loader that resumes has not seen. */
static int begin_sample(struct dl2_loader *loader, struct dl2_claim *claim)
{
    const uint32_t size = loader->order.sampler.size;
    const uint32_t tries = loader->config.train ? size : 1;
    while (claim->tries < tries) {
        const uint64_t at = (uint64_t)claim->position + claim->tries++;
        const uint32_t index = loader->order.sampler.order[at % size];
        if (loader->config.train || loader->config.stop_on_bad ||
            !dl2_bad_samples_has(&loader->bad_samples, index)) {
            dl2_job_begin(
                &claim->job, index, claim->number,
                dl2_plan_epoch_position(loader->order.sampler.epoch_positions, claim->position));
            claim->begun = true;
            return 1;
        }
    }
    return 0;
}

/* Waits until the claim has a place in a batch. In strict order it always has one. */
static int wait_for_place(struct dl2_loader *loader, struct dl2_claim *claim)
{
    bool found = claim->place.slot;
    if (found)
        return DL2_OK;
    pthread_mutex_lock(&loader->mutex);
    while (!atomic_load_explicit(&loader->canceled, memory_order_relaxed)) {
        found = dl2_place_acquire(loader, loader->ring.next_place, &claim->place);
        if (found || loader->fail_claim != DL2_NOWHERE)
            break;
        const double start = dl2_clock_wall();
        pthread_cond_wait(&loader->ring.place_available, &loader->mutex);
        loader->stats.worker_wait += dl2_clock_wall() - start;
    }
    loader->ring.next_place += found;
    pthread_mutex_unlock(&loader->mutex);
    return found ? DL2_OK : DL2_ERR_CANCELED;
}

/* The memory for the pixels of a place; NULL without a place. */
static uint8_t *pixels_of(const struct dl2_loader *loader, const struct dl2_place *place)
{
    if (!place->slot)
        return NULL;
    return place->slot->decode_slot
               ? loader->config.decoder->ops->pixels(place->slot->decode_slot, place->number)
               : place->slot->batch.images + place->number * loader->recipe.sample_bytes;
}

static void write_mask(const struct dl2_loader *loader, struct dl2_claim *claim, bool good)
{
    const struct dl2_place *place = &claim->place;
    const size_t bytes = dl2_loader_mask_bytes(&loader->config);
    if (!loader->config.mask)
        return;
    uint8_t *to = place->slot->batch.masks + place->number * bytes;
    if (good)
        memcpy(to,
               loader->config.volume_depth ? claim->job.volume.voxels.labels
                                           : claim->job.mask.pixels.data,
               bytes);
    else
        memset(to, (int)loader->config.mask_fill, bytes);
}

static void write_boxes(struct dl2_claim *claim, bool good)
{
    const struct dl2_place *place = &claim->place;
    struct dl2_boxes *to = place->slot->boxes + place->number;
    struct dl2_bytes *block = place->slot->box_blocks + place->number;
    const size_t before = block->capacity;
    dl2_boxes_place(good ? &claim->job.boxes : NULL, block, to);
    claim->place_memory += block->capacity - before;
    claim->job.stats.boxes += to->count;
    claim->job.stats.boxes_dropped += to->dropped;
}

/* Writes label, index, targets, mask, boxes and position. The label is -1 if there is no good
 * sample for this place. */
static void write_label(const struct dl2_loader *loader, struct dl2_claim *claim, bool good)
{
    const struct dl2_target_list *list = &loader->recipe.targets;
    const struct dl2_place *place = &claim->place;
    const uint32_t index =
        good ? claim->job.plan.index : loader->order.sampler.order[claim->position];
    struct dl2_sample sample;
    dl2_dataset_sample(loader->recipe.planner.dataset, index, &sample);
    place->slot->batch.labels[place->number] = good ? sample.label : -1;
    place->slot->batch.indices[place->number] = index;
    place->slot->positions[place->number] = claim->position;
    place->slot->crop_boxes[place->number] =
        good ? dl2_job_crop_box(&claim->job) : (struct dl2_crop_box){0, 0, 0, 0, false};
    write_mask(loader, claim, good);
    if (loader->config.boxes)
        write_boxes(claim, good);
    if (place->slot->patches)
        place->slot->patches[place->number] =
            good ? claim->job.volume.patch : (struct dl2_patch){.first = {0}};
    claim->done++;
    claim->bad += !good || claim->tries > 1;
    const size_t at = (size_t)place->number * list->count;
    struct dl2_target_bytes *targets = place->slot->target_bytes + at;
    const size_t before = dl2_targets_memory(targets, list->count);
    dl2_targets_place(list, good ? claim->job.targets : NULL, targets, place->slot->targets + at);
    claim->place_memory += dl2_targets_memory(targets, list->count) - before;
}

/* In validation, nothing replaces a bad sample. */
static int leave_blank(struct dl2_loader *loader, struct dl2_claim *claim)
{
    DL2_TRY(wait_for_place(loader, claim));
    memset(pixels_of(loader, &claim->place), 0, loader->recipe.sample_bytes);
    write_label(loader, claim, false);
    return DL2_OK;
}

static int take_step(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_error *error)
{
    uint8_t *pixels = NULL;
    if (dl2_job_needs_place(&claim->job, &loader->recipe)) {
        DL2_TRY(wait_for_place(loader, claim));
        claim->job.decode_slot = claim->place.slot->decode_slot;
        claim->job.place_number = claim->place.number;
        if (!claim->job.staged)
            pixels = pixels_of(loader, &claim->place);
    }
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = dl2_job_step(&claim->job, &loader->recipe, pixels, &reason);
    if (status == DL2_OK)
        return DL2_OK;
    claim->begun = false;
    if (is_samples_fault(status))
        DL2_TRY(note_bad(loader, claim->job.plan.index, reason.message, error));
    if (!is_samples_fault(status) || loader->config.stop_on_bad) {
        reason.status = (enum dl2_status)status;
        return dl2_error_copy(error, &reason);
    }
    return DL2_OK;
}

static int run_stages(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_error *error)
{
    for (;;) {
        if (atomic_load_explicit(&loader->canceled, memory_order_relaxed))
            return DL2_ERR_CANCELED;
        if (!claim->begun && !begin_sample(loader, claim))
            return loader->config.train ? dl2_loader_nothing_can_be_read(loader, error)
                                        : leave_blank(loader, claim);
        DL2_TRY(take_step(loader, claim, error));
        if (claim->begun && claim->job.stage == DL2_STAGE_DONE) {
            write_label(loader, claim, true);
            claim->job.stats.images++;
            return DL2_OK;
        }
    }
}

/* ---- for worker.c and decode_queue.c ---- */

void dl2_claim_reset(struct dl2_claim *claim, uint32_t position)
{
    claim->position = position;
    claim->tries = 0;
    claim->begun = false;
    claim->place = (struct dl2_place){NULL, 0};
    claim->job.to_decoder = false;
}

int dl2_claim_run(struct dl2_loader *loader, struct dl2_claim *claim, struct dl2_error *error)
{
    const int status = run_stages(loader, claim, error);
    dl2_job_drop(&claim->job, &loader->recipe);
    return status;
}

void dl2_claim_add_stats(struct dl2_loader *loader, struct dl2_claim *claim)
{
    struct dl2_loader_stats *sum = &loader->stats, *part = &claim->job.stats;
    sum->read += part->read;
    sum->decode += part->decode;
    sum->transform += part->transform;
    sum->operations += part->operations;
    sum->decoder_images += part->decoder_images;
    sum->images += part->images;
    sum->frames += part->frames;
    sum->short_clips += part->short_clips;
    sum->overlapping_clips += part->overlapping_clips;
    sum->equal_clips += part->equal_clips;
    dl2_unusual_add(sum, part);
    for (int i = 0; i < DL2_AUGMENT_TIMED; i++)
        sum->augment[i] += part->augment[i];
    sum->padded += part->padded;
    sum->no_foreground += part->no_foreground;
    sum->decompressed += part->decompressed;
    sum->boxes += part->boxes;
    sum->boxes_dropped += part->boxes_dropped;
    sum->bytes += part->bytes;
    sum->decoded_hits += part->decoded_hits;
    loader->epoch_done += (uint64_t)claim->done;
    loader->epoch_bad += (uint64_t)claim->bad;
    claim->done = claim->bad = 0;
    *part = (struct dl2_loader_stats){0};
    const size_t memory = dl2_job_memory(&claim->job, &loader->recipe);
    loader->memory += memory - claim->memory + claim->place_memory;
    claim->place_memory = 0;
    claim->memory = memory;
    if (loader->memory > loader->stats.memory)
        loader->stats.memory = loader->memory;
}

void dl2_claim_fail(struct dl2_loader *loader, uint64_t number, int status,
                    const struct dl2_error *error)
{
    if (status == DL2_ERR_CANCELED || number >= loader->fail_claim)
        return;
    loader->fail_claim = number;
    loader->error = *error;
    pthread_cond_broadcast(&loader->ring.place_available);
}
