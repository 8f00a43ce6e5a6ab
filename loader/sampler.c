/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sampler.h"

#include "common/memory.h"
#include "common/random.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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
                             "rank %u is out of range: the world size is %u", config->rank,
                             config->world);
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

/* Does an epoch have other samples than each of them once? */
static bool has_choice(const struct dl2_loader_config *config)
{
    return config->weights || config->repeats > 1 || config->draws || config->shares.count;
}

static int count_taken(struct dl2_sampler *sampler, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    const uint64_t repeats = config->repeats ? config->repeats : 1;
    const uint64_t whole = sampler->population * repeats;
    if (!sampler->population)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the dataset is empty");
    if (whole >= UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%u samples, %u times each, are more than a loader can count",
                             sampler->population, config->repeats);
    if (!config->weights && !config->shares.count && config->draws > whole)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "draws: without weights or shares an epoch has %llu samples, not %u",
                             (unsigned long long)whole, config->draws);
    sampler->taken = config->draws ? config->draws : (uint32_t)whole;
    return DL2_OK;
}

static double weight_of(const struct dl2_sampler *sampler, uint32_t i)
{
    return sampler->config.weights[sampler->members ? sampler->members[i] : i];
}

static int sum_weights(const struct dl2_sampler *sampler, double *sum, struct dl2_error *error)
{
    *sum = 0;
    for (uint32_t i = 0; i < sampler->population; i++) {
        const double weight = weight_of(sampler, i);
        if (!(weight >= 0) || isinf(weight))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%g is not a valid weight: weights must be finite and at least 0",
                                 weight);
        *sum += weight;
    }
    if (!(*sum > 0) || isinf(*sum))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "weights: their sum is %g; it must be finite and above 0", *sum);
    return DL2_OK;
}

/* Samples below the mean weight get the rest of their room from one above it. */
static int make_aliases(struct dl2_sampler *sampler, struct dl2_error *error)
{
    double sum;
    const uint32_t count = sampler->population;
    DL2_TRY(sum_weights(sampler, &sum, error));
    DL2_AUTO_FREE uint32_t *stack = NULL;
    DL2_TRY(DL2_NEW(&stack, count, "weights", error));
    DL2_TRY(DL2_NEW(&sampler->aliases, count, "weights", error));
    struct dl2_alias *aliases = sampler->aliases;
    uint32_t small = 0, large = count; /* both kinds wait in one array */
    for (uint32_t i = 0; i < count; i++) {
        aliases[i] = (struct dl2_alias){weight_of(sampler, i) / sum * count, i};
        if (aliases[i].share < 1)
            stack[small++] = i;
        else
            stack[--large] = i;
    }
    while (small && large < count) {
        const uint32_t low = stack[--small], high = stack[large];
        aliases[low].other = high;
        aliases[high].share -= 1 - aliases[low].share;
        if (aliases[high].share < 1) {
            large++;
            stack[small++] = high;
        }
    }
    while (large < count) /* what rounding has left */
        aliases[stack[large++]].share = 1;
    while (small) {
        struct dl2_alias *alias = &aliases[stack[--small]];
        alias->share = alias->share > 0 ? 1 : 0;
    }
    return DL2_OK;
}

/* Where position `k` of this rank's part of a step is in that step's global batch. */
static uint64_t position_in_step(const struct dl2_sampler *sampler, uint32_t first, uint32_t k)
{
    const struct dl2_loader_config *config = &sampler->config;
    return config->repeats > 1 ? (uint64_t)k * config->world + config->rank : (uint64_t)first + k;
}

/* The same for all positions, where samples may come several times. */
static void find_epoch_positions(struct dl2_sampler *sampler)
{
    const struct dl2_loader_config *config = &sampler->config;
    const struct share share = share_of(sampler);
    const uint64_t global = (uint64_t)config->batch * config->world;
    uint32_t *to = sampler->epoch_positions;
    for (uint64_t step = 0; step < share.full; step++)
        for (uint32_t k = 0; k < config->batch; k++)
            *to++ = (uint32_t)(step * global +
                               position_in_step(sampler, config->rank * config->batch, k));
    for (uint32_t k = 0; k < share.count; k++)
        *to++ = (uint32_t)(share.full * global + position_in_step(sampler, share.first, k));
}

static size_t dataset_of(const struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                         uint32_t i)
{
    return dl2_dataset_member_of(dataset, sampler->members ? sampler->members[i] : i);
}

/* Puts the population in order of its datasets, each shuffled. */
static void order_rounds(struct dl2_sampler *sampler, const struct dl2_dataset *dataset)
{
    const struct dl2_loader_config *config = &sampler->config;
    const unsigned count = config->shares.count;
    struct dl2_round *rounds = sampler->by_dataset;
    struct dl2_random random;
    uint32_t ends[DL2_DATASETS_MAX];
    for (uint32_t i = 0; i < sampler->population; i++)
        rounds[dataset_of(sampler, dataset, i)].size++;
    for (unsigned d = 0; d < count; d++)
        ends[d] = rounds[d].first = d ? rounds[d - 1].first + rounds[d - 1].size : 0;
    for (uint32_t i = 0; i < sampler->population; i++)
        sampler->rounds[ends[dataset_of(sampler, dataset, i)]++] = i;
    dl2_random_init(&random, config->seed, DL2_RANDOM_ROUND, 0, config->partition);
    for (unsigned d = 0; d < count; d++)
        dl2_random_shuffle(&random, sampler->rounds + rounds[d].first, rounds[d].size);
}

/* Divides an epoch by largest remainders; of equal ones the first dataset's counts. */
static void divide_epoch(struct dl2_sampler *sampler)
{
    const struct dl2_dataset_shares *shares = &sampler->config.shares;
    double largest = 0, sum = 0, rest[DL2_DATASETS_MAX];
    uint32_t left = sampler->taken;
    for (unsigned d = 0; d < shares->count; d++)
        largest = fmax(largest, shares->of[d]);
    for (unsigned d = 0; d < shares->count; d++)
        sum += shares->of[d] / largest; /* which cannot overflow */
    for (unsigned d = 0; d < shares->count; d++) {
        const double part = shares->of[d] / largest / sum * sampler->taken;
        sampler->by_dataset[d].taken = (uint32_t)part;
        rest[d] = part - (uint32_t)part;
        left -= (uint32_t)part;
    }
    for (; left; left--) {
        unsigned most = 0;
        for (unsigned d = 1; d < shares->count; d++)
            most = rest[d] > rest[most] ? d : most;
        sampler->by_dataset[most].taken++;
        rest[most] = -1;
    }
}

static int check_rounds(const struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                        struct dl2_error *error)
{
    for (unsigned d = 0; d < sampler->config.shares.count; d++) {
        const struct dl2_round *round = &sampler->by_dataset[d];
        if (!round->size || !round->taken)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "shares: %s %s of the %u samples of %s",
                                 dl2_dataset_member_path(dataset, d),
                                 round->size ? "would have none" : "has none",
                                 round->size ? sampler->taken : sampler->population,
                                 round->size ? "an epoch: choose a larger share, or longer epochs"
                                             : "the choice or the partition");
    }
    return DL2_OK;
}

/* Says what has to come more than once an epoch. */
static int note_repeats(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                        struct dl2_error *error)
{
    size_t size = 0;
    FILE *out = open_memstream(&sampler->shares_note, &size);
    if (!out)
        return dl2_error_memory(error, "an order");
    for (unsigned d = 0; d < sampler->config.shares.count; d++) {
        const struct dl2_round *round = &sampler->by_dataset[d];
        if (round->taken > round->size)
            fprintf(out,
                    "%s%u of an epoch's %u samples are of %s, which has %u: each comes "
                    "%.3g times",
                    ftell(out) ? "; " : "", round->taken, sampler->taken,
                    dl2_dataset_member_path(dataset, d), round->size,
                    (double)round->taken / round->size);
    }
    if (fclose(out) != 0)
        return dl2_error_memory(error, "an order");
    if (!size) {
        free(sampler->shares_note);
        sampler->shares_note = NULL;
    }
    return DL2_OK;
}

static int make_rounds(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                       struct dl2_error *error)
{
    const unsigned count = sampler->config.shares.count;
    const size_t datasets = dataset ? dl2_dataset_members(dataset) : 1;
    if (datasets < 2)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "shares have no effect on one dataset: give several, or none");
    if (count != datasets)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there are %u shares for %zu datasets", count,
                             datasets);
    DL2_TRY(DL2_NEW(&sampler->by_dataset, count, "an order", error));
    DL2_TRY(DL2_NEW(&sampler->rounds, sampler->population, "an order", error));
    order_rounds(sampler, dataset);
    divide_epoch(sampler);
    DL2_TRY(check_rounds(sampler, dataset, error));
    return note_repeats(sampler, dataset, error);
}

uint64_t dl2_sampler_shares(const struct dl2_sampler *sampler)
{
    uint64_t hash = 0;
    for (unsigned d = 0; d < sampler->config.shares.count; d++)
        hash = XXH64(&sampler->by_dataset[d], sizeof *sampler->by_dataset, hash);
    return hash;
}

static void take_rounds(struct dl2_sampler *sampler, uint64_t epoch, struct dl2_random *random)
{
    uint32_t *to = sampler->all;
    for (unsigned d = 0; d < sampler->config.shares.count; d++) {
        const struct dl2_round *round = &sampler->by_dataset[d];
        const uint32_t *order = sampler->rounds + round->first;
        uint32_t at = (uint32_t)(epoch % round->size * round->taken % round->size);
        for (uint32_t i = 0; i < round->taken; i++, at = at + 1 < round->size ? at + 1 : 0)
            *to++ = order[at];
    }
    dl2_random_shuffle(random, sampler->all, sampler->taken);
}

static int allocate_choice(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                           struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&sampler->epoch_positions, sampler->size, "an order", error));
    DL2_TRY(sampler->config.shares.count ? make_rounds(sampler, dataset, error)
            : sampler->config.weights
                ? make_aliases(sampler, error)
                : DL2_NEW(&sampler->once, sampler->population, "an order", error));
    find_epoch_positions(sampler);
    return DL2_OK;
}

static int allocate_order(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                          struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    DL2_TRY(DL2_NEW(&sampler->all, sampler->taken, "an order", error));
    sampler->order = sampler->all;
    if (config->world > 1)
        DL2_TRY(DL2_NEW(&sampler->order, sampler->size, "an order", error));
    if (config->train && config->shuffle_chunk)
        DL2_TRY(DL2_NEW(&sampler->chunks, (sampler->population - 1) / config->shuffle_chunk + 1,
                        "an order", error));
    return has_choice(config) ? allocate_choice(sampler, dataset, error) : DL2_OK;
}

/* Which of the samples `first` to first + partitions - 1 is the partition's. */
static uint64_t member_of(uint64_t first, unsigned partition, unsigned partitions)
{
    struct dl2_random random;
    uint32_t number = partition;
    dl2_random_init(&random, 0, DL2_RANDOM_PARTITION, first / partitions, 0);
    /* Where a Fisher-Yates shuffle leaves the partition's number, without an array of all. */
    for (uint32_t i = partitions; i > 1; i--) {
        const uint32_t other = dl2_random_below(&random, i);
        number = number == i - 1 ? other : number == other ? i - 1 : number;
    }
    return first + number;
}

uint32_t dl2_partition_size(uint32_t count, unsigned partition, unsigned partitions)
{
    if (partition >= partitions)
        return 0;
    const uint32_t whole = count / partitions;
    return whole + (member_of((uint64_t)whole * partitions, partition, partitions) < count);
}

uint32_t dl2_partition_of(const struct dl2_dataset *dataset, unsigned partition,
                          unsigned partitions, const uint32_t **members)
{
    uint32_t count;
    *members = NULL;
    if (partition >= partitions || dl2_dataset_partitions(dataset) != partitions)
        return dl2_partition_size((uint32_t)dl2_dataset_count(dataset), partition, partitions);
    *members = dl2_dataset_partition(dataset, partition, &count);
    return count;
}

/* `dataset` may be NULL. */
static int choose_members(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                          struct dl2_error *error)
{
    const struct dl2_loader_config *config = &sampler->config;
    const unsigned partition = config->partition, partitions = config->partitions;
    const uint32_t *own = NULL;
    sampler->population = dataset ? dl2_partition_of(dataset, partition, partitions, &own)
                                  : dl2_partition_size(sampler->count, partition, partitions);
    if (partition >= partitions || sampler->population == 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "partition %u of %u has none of the %u samples", partition + 1,
                             partitions, sampler->count);
    DL2_TRY(DL2_NEW(&sampler->members, sampler->population, "an order", error));
    for (uint32_t i = 0; i < sampler->population; i++)
        sampler->members[i] =
            own ? own[i] : (uint32_t)member_of((uint64_t)i * partitions, partition, partitions);
    return DL2_OK;
}

static int init_sampler(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                        uint32_t count, const struct dl2_dataset *dataset, struct dl2_error *error)
{
    *sampler = (struct dl2_sampler){.config = *config, .count = count, .population = count};
    if (!config->world)
        sampler->config.world = 1;
    if (!config->shuffle_window)
        sampler->config.shuffle_window = 1;
    int status = config->partitions ? choose_members(sampler, dataset, error) : DL2_OK;
    if (status == DL2_OK)
        status = count_taken(sampler, error);
    if (status == DL2_OK)
        status = count_steps(sampler, error);
    if (status == DL2_OK)
        status = allocate_order(sampler, dataset, error);
    sampler->config.weights = NULL; /* the caller's */
    if (status < 0)
        dl2_sampler_free(sampler);
    else
        dl2_sampler_set_epoch(sampler, 0);
    return status;
}

int dl2_sampler_init(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                     uint32_t count, struct dl2_error *error)
{
    return init_sampler(sampler, config, count, NULL, error);
}

int dl2_sampler_init_for(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                         const struct dl2_dataset *dataset, struct dl2_error *error)
{
    return init_sampler(sampler, config, (uint32_t)dl2_dataset_count(dataset), dataset, error);
}

/* Puts chunks in random order, then shuffles the samples of `window` chunks at a time. */
static void shuffle_by_chunks(const struct dl2_sampler *sampler, struct dl2_random *random,
                              uint32_t *order)
{
    const struct dl2_loader_config *config = &sampler->config;
    const uint32_t chunks = (sampler->population - 1) / config->shuffle_chunk + 1;
    dl2_random_permutation(random, sampler->chunks, chunks);
    uint32_t done = 0, window_start = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        const uint32_t first = sampler->chunks[i] * config->shuffle_chunk;
        const uint32_t left = sampler->population - first;
        const uint32_t length = left < config->shuffle_chunk ? left : config->shuffle_chunk;
        for (uint32_t k = 0; k < length; k++)
            order[done++] = first + k;
        if ((i + 1) % config->shuffle_window == 0 || i + 1 == chunks) {
            dl2_random_shuffle(random, order + window_start, done - window_start);
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
    if (sampler->epoch_positions) {
        for (uint32_t i = 0; i < sampler->size; i++)
            to[i] = sampler->all[sampler->epoch_positions[i]];
        return;
    }
    for (uint64_t step = 0; step < share.full; step++, to += config->batch)
        memcpy(to, sampler->all + step * global + (uint64_t)config->rank * config->batch,
               config->batch * sizeof *to);
    if (share.count)
        memcpy(to, sampler->all + share.full * global + share.first, share.count * sizeof *to);
}

static void draw_by_weight(struct dl2_sampler *sampler, struct dl2_random *random)
{
    for (uint32_t i = 0; i < sampler->taken; i++) {
        const uint32_t drawn = dl2_random_below(random, sampler->population);
        const struct dl2_alias *alias = &sampler->aliases[drawn];
        sampler->all[i] = dl2_random_uniform(random) < alias->share ? drawn : alias->other;
    }
}

void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch)
{
    const struct dl2_loader_config *config = &sampler->config;
    const uint32_t repeats = config->repeats ? config->repeats : 1;
    uint32_t *order = sampler->once ? sampler->once : sampler->all;
    struct dl2_random random;
    dl2_random_init(&random, config->seed, DL2_RANDOM_SHUFFLE, epoch, config->partition);
    if (sampler->aliases)
        draw_by_weight(sampler, &random);
    else if (sampler->rounds)
        take_rounds(sampler, epoch, &random);
    else if (!config->train)
        for (uint32_t i = 0; i < sampler->population; i++)
            order[i] = i;
    else if (config->shuffle_chunk)
        shuffle_by_chunks(sampler, &random, order);
    else
        dl2_random_permutation(&random, order, sampler->population);
    for (uint32_t i = 0; sampler->once && i < sampler->taken; i++)
        sampler->all[i] = sampler->once[i / repeats];
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
    free(sampler->epoch_positions);
    free(sampler->once);
    free(sampler->aliases);
    free(sampler->rounds);
    free(sampler->by_dataset);
    free(sampler->shares_note);
    sampler->rounds = NULL;
    sampler->by_dataset = NULL;
    sampler->shares_note = NULL;
    sampler->order = sampler->all = sampler->chunks = sampler->members = NULL;
    sampler->epoch_positions = sampler->once = NULL;
    sampler->aliases = NULL;
}
