/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sampler.h"

#include "common/memory.h"
#include "common/random.h"

#include <stdlib.h>
#include <string.h>

/* The number of steps that are full on every rank, and this rank's part of the step after them. */
struct share {
    uint64_t full;
    uint32_t first, count; /* within the last global batch */
};

static struct share share_of(const struct dl2_sampler *sampler)
{
    const struct dl2_loader_config *config = &sampler->config;
    const uint64_t global = (uint64_t)config->batch * config->world;
    struct share share = {.full = sampler->taken / global};
    const uint64_t rest = sampler->taken % global;
    if (config->train) { /* equal parts */
        share.count = (uint32_t)(rest / config->world);
        share.first = config->rank * share.count;
    } else {
        share.first = (uint32_t)(rest * config->rank / config->world);
        share.count = (uint32_t)(rest * (config->rank + 1) / config->world) - share.first;
    }
    return share;
}

static int count_steps(struct dl2_sampler *sampler, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    if (config->rank >= config->world)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "there is no rank %u among %u: they count from 0", config->rank,
                             config->world);
    if (sampler->taken == 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the dataset is empty");
    if (config->train && sampler->taken < config->world)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%u samples are too few for %u ranks",
                             sampler->taken, config->world);
    const struct share share = share_of(sampler);
    const uint64_t global = (uint64_t)config->batch * config->world;
    const bool part = config->train ? share.count > 0 : sampler->taken % global > 0;
    sampler->steps = share.full + (part && !config->drop_last);
    sampler->size = (uint32_t)(share.full * config->batch) + share.count;
    sampler->positions = config->drop_last ? sampler->size - share.count : sampler->size;
    if (sampler->steps == 0)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "%u samples make no full batch of %u%s, and the last is to be left out", sampler->taken,
            config->batch, config->world > 1 ? " on every rank" : "");
    return DL2_OK;
}

static int allocate_order(struct dl2_sampler *sampler, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    sampler->all = dl2_realloc(NULL, sampler->taken, sizeof *sampler->all);
    sampler->order = config->world == 1
                         ? sampler->all
                         : dl2_calloc(sampler->size ? sampler->size : 1, sizeof *sampler->order);
    if (config->train && config->shuffle_chunk)
        sampler->chunks =
            dl2_calloc((sampler->taken - 1) / config->shuffle_chunk + 1, sizeof *sampler->chunks);
    if (!sampler->all || !sampler->order ||
        (config->train && config->shuffle_chunk && !sampler->chunks))
        return dl2_error_memory(error, "%u samples", sampler->taken);
    return DL2_OK;
}

/* Which of the samples `first` to first + partitions - 1 is the partition's. */
static uint64_t member_of(uint64_t first, unsigned partition, unsigned partitions)
{
    struct dl2_random random;
    uint32_t place = partition;
    dl2_random_init(&random, 0, DL2_RANDOM_PARTITION, first / partitions, 0);
    /* Where a Fisher-Yates shuffle leaves the partition's place, without an array of all. */
    for (uint32_t i = partitions; i > 1; i--) {
        const uint32_t other = dl2_random_below(&random, i);
        place = place == i - 1 ? other : place == other ? i - 1 : place;
    }
    return first + place;
}

uint32_t dl2_partition_size(uint32_t count, unsigned partition, unsigned partitions)
{
    if (partition >= partitions)
        return 0;
    const uint32_t whole = count / partitions;
    return whole + (member_of((uint64_t)whole * partitions, partition, partitions) < count);
}

static int choose_members(struct dl2_sampler *sampler, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    const unsigned partition = config->partition, partitions = config->partitions;
    sampler->taken = dl2_partition_size(sampler->count, partition, partitions);
    if (partition >= partitions || sampler->taken == 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "partition %u of %u has none of the %u samples", partition + 1,
                             partitions, sampler->count);
    sampler->members = dl2_calloc(sampler->taken, sizeof *sampler->members);
    if (!sampler->members)
        return dl2_error_memory(error, "%u samples", sampler->taken);
    for (uint32_t i = 0; i < sampler->taken; i++)
        sampler->members[i] = (uint32_t)member_of((uint64_t)i * partitions, partition, partitions);
    return DL2_OK;
}

int dl2_sampler_init(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                     uint32_t count, struct dl2_error *error)
{
    *sampler = (struct dl2_sampler){.config = *config, .count = count, .taken = count};
    if (!config->world)
        sampler->config.world = 1;
    if (!config->shuffle_window)
        sampler->config.shuffle_window = 1;
    int status = config->partitions ? choose_members(sampler, error) : DL2_OK;
    if (status == DL2_OK)
        status = count_steps(sampler, error);
    if (status == DL2_OK)
        status = allocate_order(sampler, error);
    if (status < 0)
        dl2_sampler_free(sampler);
    else
        dl2_sampler_set_epoch(sampler, 0);
    return status;
}

static void shuffle(struct dl2_random *random, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = dl2_random_below(random, i);
        const uint32_t item = items[i - 1];
        items[i - 1] = items[other];
        items[other] = item;
    }
}

/* Puts chunks in random order, then shuffles the samples of `window` chunks at a time. */
static void shuffle_by_chunks(struct dl2_sampler *sampler, struct dl2_random *random)
{
    const struct dl2_loader_config *config = &sampler->config;
    const uint32_t chunks = (sampler->taken - 1) / config->shuffle_chunk + 1;
    dl2_random_permutation(random, sampler->chunks, chunks);
    uint32_t done = 0, window_start = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        const uint32_t first = sampler->chunks[i] * config->shuffle_chunk;
        const uint32_t left = sampler->taken - first;
        const uint32_t length = left < config->shuffle_chunk ? left : config->shuffle_chunk;
        for (uint32_t k = 0; k < length; k++)
            sampler->all[done++] = first + k;
        if ((i + 1) % config->shuffle_window == 0 || i + 1 == chunks) {
            shuffle(random, sampler->all + window_start, done - window_start);
            window_start = done;
        }
    }
}

static void take_share(struct dl2_sampler *sampler)
{
    const struct dl2_loader_config *config = &sampler->config;
    const struct share share = share_of(sampler);
    const uint64_t global = (uint64_t)config->batch * config->world;
    uint32_t *to = sampler->order;
    for (uint64_t step = 0; step < share.full; step++, to += config->batch)
        memcpy(to, sampler->all + step * global + (uint64_t)config->rank * config->batch,
               config->batch * sizeof *to);
    if (share.count)
        memcpy(to, sampler->all + share.full * global + share.first, share.count * sizeof *to);
}

void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch)
{
    const struct dl2_loader_config *config = &sampler->config;
    struct dl2_random random;
    dl2_random_init(&random, config->seed, DL2_RANDOM_SHUFFLE, epoch, config->partition);
    if (!config->train)
        for (uint32_t i = 0; i < sampler->taken; i++)
            sampler->all[i] = i;
    else if (config->shuffle_chunk)
        shuffle_by_chunks(sampler, &random);
    else
        dl2_random_permutation(&random, sampler->all, sampler->taken);
    for (uint32_t i = 0; sampler->members && i < sampler->taken; i++)
        sampler->all[i] = sampler->members[sampler->all[i]];
    if (config->world > 1)
        take_share(sampler);
}

void dl2_sampler_free(struct dl2_sampler *sampler)
{
    if (sampler->order != sampler->all)
        free(sampler->order);
    free(sampler->all);
    free(sampler->chunks);
    free(sampler->members);
    sampler->order = sampler->all = sampler->chunks = sampler->members = NULL;
}
