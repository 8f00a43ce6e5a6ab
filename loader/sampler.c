#include "loader/sampler.h"

#include "common/memory.h"
#include "common/random.h"

#include <stdlib.h>

int dl2_sampler_init(struct dl2_sampler *sampler, uint32_t count, bool shuffle, uint64_t seed,
                     struct dl2_error *error)
{
    *sampler = (struct dl2_sampler){.count = count, .shuffle = shuffle, .seed = seed};
    sampler->order = dl2_realloc(NULL, count, sizeof *sampler->order);
    if (!sampler->order)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %u samples", count);
    for (uint32_t i = 0; i < count; i++)
        sampler->order[i] = i;
    return DL2_OK;
}

void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch)
{
    if (!sampler->shuffle)
        return;
    struct dl2_random random;
    dl2_random_init(&random, sampler->seed, DL2_RANDOM_SHUFFLE, epoch, 0);
    dl2_random_permutation(&random, sampler->order, sampler->count);
}

void dl2_sampler_free(struct dl2_sampler *sampler)
{
    free(sampler->order);
    sampler->order = NULL;
}
