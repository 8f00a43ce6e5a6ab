/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of batch slots and the places in them. The only file that writes a slot's state. */
#include "loader/pipeline.h"

#include <stdlib.h>

uint32_t dl2_samples_before(const struct dl2_loader *loader, uint64_t step)
{
    const uint64_t samples = step * loader->config.batch;
    const uint32_t positions = loader->order.sampler.positions;
    return samples < positions ? (uint32_t)samples : positions;
}

unsigned dl2_batch_size(const struct dl2_loader *loader, uint64_t step)
{
    return dl2_samples_before(loader, step + 1) - dl2_samples_before(loader, step);
}

struct dl2_slot *dl2_slot_of_step(const struct dl2_loader *loader, uint64_t step)
{
    struct dl2_slot *unused = NULL;
    for (unsigned i = 0; i < loader->config.depth; i++) {
        struct dl2_slot *slot = &loader->ring.slots[i];
        if (slot->state == DL2_SLOT_FREE)
            unused = unused ? unused : slot;
        else if (slot->state != DL2_SLOT_TAKEN && slot->batch.step == step)
            return slot;
    }
    return unused;
}

void dl2_slot_begin(struct dl2_loader *loader, struct dl2_slot *slot, uint64_t step)
{
    slot->batch.epoch = loader->recipe.planner.epoch;
    slot->batch.step = step;
    slot->batch.count = slot->missing = dl2_batch_size(loader, step);
    slot->by_decoder = 0;
    slot->state = slot->batch.count ? DL2_SLOT_FILLING : DL2_SLOT_READY;
    if (slot->decode_slot)
        loader->config.decoder->ops->begin(slot->decode_slot);
}

bool dl2_place_acquire(struct dl2_loader *loader, uint64_t number, struct dl2_place *place)
{
    const uint64_t step = number / loader->config.batch;
    struct dl2_slot *slot = dl2_slot_of_step(loader, step);
    if (!slot)
        return false;
    if (slot->state == DL2_SLOT_FREE)
        dl2_slot_begin(loader, slot, step);
    *place = (struct dl2_place){slot, (unsigned)(number % loader->config.batch)};
    return true;
}

bool dl2_place_fill(const struct dl2_place *place)
{
    struct dl2_slot *slot = place->slot;
    if (--slot->missing > 0)
        return false;
    slot->state = slot->decode_slot ? DL2_SLOT_STAGED : DL2_SLOT_READY;
    return true;
}

void dl2_slot_decoded(struct dl2_slot *slot)
{
    slot->state = DL2_SLOT_READY;
}

void dl2_slot_acquire(struct dl2_slot *slot)
{
    slot->state = DL2_SLOT_TAKEN;
}

void dl2_slot_release(struct dl2_slot *slot)
{
    slot->state = DL2_SLOT_FREE;
}

void dl2_slots_reset(struct dl2_loader *loader)
{
    for (unsigned i = 0; i < loader->config.depth; i++)
        if (loader->ring.slots[i].state != DL2_SLOT_TAKEN)
            loader->ring.slots[i].state = DL2_SLOT_FREE;
}

unsigned dl2_slots_ready(const struct dl2_loader *loader)
{
    unsigned ready = 0;
    for (unsigned i = 0; i < loader->config.depth; i++)
        ready += loader->ring.slots[i].state == DL2_SLOT_READY;
    return ready;
}

/* Allocates the memory of a batch's images, or has the decoder allocate it. */
static int init_images(struct dl2_loader *loader, struct dl2_slot *slot, size_t bytes,
                       struct dl2_error *error)
{
    const struct dl2_loader_config *config = &loader->config;
    if (config->decoder) {
        DL2_TRY(config->decoder->ops->slot_create(config->decoder, config->batch, config->height,
                                                  config->channels, &slot->decode_slot, error));
        slot->batch.images = config->decoder->ops->images(slot->decode_slot);
        slot->refused = dl2_calloc(config->batch, sizeof *slot->refused);
        return slot->refused ? DL2_OK : dl2_error_memory(error, "a batch");
    }
    slot->batch.images = config->slot_alloc ? config->slot_alloc(config->slot_context, bytes)
                                            : dl2_alloc_aligned(bytes, 1);
    return DL2_OK;
}

int dl2_slots_init(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_ring *ring = &loader->ring;
    const struct dl2_loader_config *config = &loader->config;
    const size_t mask_bytes = dl2_loader_mask_bytes(config);
    size_t bytes;
    ring->slots = dl2_calloc(config->depth, sizeof *ring->slots);
    if (!ring->slots || !dl2_size_mul(loader->recipe.sample_bytes, config->batch, &bytes))
        return dl2_error_memory(error, "%u batches", config->depth);
    for (unsigned i = 0; i < config->depth; i++) {
        struct dl2_slot *slot = &ring->slots[i];
        DL2_TRY(init_images(loader, slot, bytes, error));
        slot->batch.labels = dl2_calloc(config->batch, sizeof *slot->batch.labels);
        slot->batch.indices = dl2_calloc(config->batch, sizeof *slot->batch.indices);
        slot->positions = dl2_calloc(config->batch, sizeof *slot->positions);
        size_t targets;
        if (!dl2_size_mul(config->batch, loader->recipe.targets.count, &targets))
            return dl2_error_memory(error, "a batch");
        slot->targets = dl2_calloc(targets, sizeof *slot->targets);
        slot->target_bytes = dl2_calloc(targets, sizeof *slot->target_bytes);
        slot->crop_boxes = dl2_calloc(config->batch, sizeof *slot->crop_boxes);
        slot->batch.targets = slot->targets;
        slot->batch.crop_boxes = slot->crop_boxes;
        if (config->volume_depth) {
            slot->batch.patches = slot->patches = dl2_calloc(config->batch, sizeof *slot->patches);
            loader->memory += config->batch * sizeof *slot->patches;
        }
        if (config->boxes) {
            slot->batch.boxes = slot->boxes = dl2_calloc(config->batch, sizeof *slot->boxes);
            slot->box_blocks = dl2_calloc(config->batch, sizeof *slot->box_blocks);
            loader->memory += config->batch * (sizeof *slot->boxes + sizeof *slot->box_blocks);
        }
        if (config->mask)
            slot->batch.masks = dl2_alloc_aligned(mask_bytes, config->batch);
        slot->batch.target_count = loader->recipe.targets.count;
        if ((config->mask && !slot->batch.masks) || (config->volume_depth && !slot->patches) ||
            (config->boxes && (!slot->boxes || !slot->box_blocks)) || !slot->targets ||
            !slot->target_bytes || !slot->crop_boxes || !slot->batch.images ||
            !slot->batch.labels || !slot->batch.indices || !slot->positions)
            return dl2_error_memory(error, "%u batches of %u images, %zu bytes each", config->depth,
                                    config->batch, bytes);
        loader->memory +=
            config->batch * (sizeof *slot->crop_boxes + (config->mask ? mask_bytes : 0));
        loader->memory += targets * (sizeof *slot->targets + sizeof *slot->target_bytes);
        loader->memory += sizeof *slot + bytes + (uint64_t)config->batch * 3 * sizeof(uint32_t);
    }
    return DL2_OK;
}

void dl2_slots_free(struct dl2_loader *loader)
{
    struct dl2_ring *ring = &loader->ring;
    const struct dl2_loader_config *config = &loader->config;
    for (unsigned i = 0; ring->slots && i < config->depth; i++) {
        struct dl2_slot *slot = &ring->slots[i];
        if (config->decoder)
            config->decoder->ops->slot_free(slot->decode_slot);
        else if (config->slot_free && slot->batch.images)
            config->slot_free(config->slot_context, slot->batch.images);
        else if (!config->slot_free)
            free(slot->batch.images);
        free(slot->refused);
        free(slot->batch.labels);
        free(slot->batch.indices);
        free(slot->positions);
        free(slot->targets);
        free(slot->crop_boxes);
        free(slot->patches);
        free(slot->boxes);
        for (unsigned b = 0; slot->box_blocks && b < config->batch; b++)
            dl2_bytes_free(&slot->box_blocks[b]);
        free(slot->box_blocks);
        free(slot->batch.masks);
        dl2_targets_free(slot->target_bytes, (size_t)config->batch * loader->recipe.targets.count);
    }
    free(ring->slots);
    ring->slots = NULL;
}
