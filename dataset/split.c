#include "dataset/source.h"

#include "common/random.h"

#include <math.h>
#include <stdlib.h>

struct ticket {
    uint64_t hash;
    uint32_t group; /* label + 1 */
    uint32_t index;
};

static int compare_tickets(const void *left, const void *right)
{
    const struct ticket *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* FNV-1a, whose weak low bits Philox then stirs together with the seed. */
static uint64_t hash_key(uint64_t seed, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 0x100000001b3;
    struct dl2_random random;
    dl2_random_init(&random, seed, DL2_RANDOM_SPLIT, hash & 0xffffffffffff, hash >> 48);
    uint64_t high = dl2_random_u32(&random);
    return high << 32 | dl2_random_u32(&random);
}

static size_t validation_count(double fraction, size_t count)
{
    if (fraction == 0)
        return 0;
    size_t wanted = (size_t)floor(fraction * (double)count + 0.5);
    return wanted == 0 && count > 1 ? 1 : wanted;
}

int dl2_split_by_rule(const struct dl2_dataset_options *options, const char *const *keys,
                      const int *labels, size_t count, bool *is_val, struct dl2_error *error)
{
    struct ticket *tickets = dl2_realloc(NULL, count, sizeof *tickets);
    if (!tickets)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to split %zu samples", count);
    for (size_t i = 0; i < count; i++) {
        tickets[i].hash = hash_key(options->split_seed, keys[i]);
        tickets[i].group = (uint32_t)(labels[i] + 1);
        tickets[i].index = (uint32_t)i;
    }
    qsort(tickets, count, sizeof *tickets, compare_tickets);
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start; end < count && tickets[end].group == tickets[start].group;)
            end++;
        size_t val = validation_count(options->val_fraction, end - start);
        for (size_t i = start; i < end; i++)
            is_val[tickets[i].index] = i - start < val;
    }
    free(tickets);
    return DL2_OK;
}
