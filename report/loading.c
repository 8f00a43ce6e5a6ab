/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loading.h"

#include "common/json.h"

#include <math.h>
#include <string.h>

bool dl2_loading_caches(const struct dl2_loading_setup *setup)
{
    return strncmp(setup->storage, "cache-", 6) == 0;
}

/* What is being collected. */
struct collecting {
    struct dl2_study *study;
    struct dl2_loading *loading;
};

/* Storages and numbers of jobs. */
static bool visit(void *context, const char *path, const char *const *names, size_t depth)
{
    struct collecting *into = context;
    struct dl2_loading *loading = into->loading;
    unsigned jobs;
    int length = 0;
    if (depth == 0)
        return true;
    if (sscanf(names[1], "jobs-%u%n", &jobs, &length) != 1 || (size_t)length != strlen(names[1]))
        return false;
    loading->items = dl2_keep_more(loading->items, loading->count, sizeof *loading->items);
    struct dl2_loading_setup *setup = &loading->items[loading->count++];
    *setup = (struct dl2_loading_setup){dl2_text_copy(names[0]), jobs, dl2_rounds_read(path)};
    for (size_t i = setup->rounds.count; i-- > 0;)
        if (dl2_study_find(into->study, setup->rounds.items[i].variant) ==
            into->study->variant_count)
            dl2_rounds_drop(&setup->rounds, i);
    const struct dl2_study notes = {.broken = setup->rounds.broken};
    dl2_study_add_notes(into->study, &notes, "loading");
    return false;
}

static void add_network(struct dl2_loading *loading, const char *network)
{
    for (size_t i = 0; i < loading->network_count; i++)
        if (strcmp(loading->networks[i], network) == 0)
            return;
    loading->networks = dl2_keep_more(loading->networks, loading->network_count, sizeof network);
    loading->networks[loading->network_count++] = network;
}

struct dl2_loading dl2_loading_collect(const char *folder, struct dl2_study *study)
{
    struct dl2_loading loading = {0};
    dl2_walk(dl2_text("%s/loading", folder), visit, &(struct collecting){study, &loading});
    for (size_t i = 0; i < loading.count; i++)
        for (size_t k = 0; k < loading.items[i].rounds.count; k++)
            if (loading.items[i].rounds.items[k].network)
                add_network(&loading, loading.items[i].rounds.items[k].network);
    return loading;
}

bool dl2_loading_starts_storage(const struct dl2_loading *loading, size_t i)
{
    return i == 0 || strcmp(loading->items[i].storage, loading->items[i - 1].storage) != 0;
}

size_t dl2_loading_last_of_storage(const struct dl2_loading *loading, size_t first)
{
    while (first + 1 < loading->count && !dl2_loading_starts_storage(loading, first + 1))
        first++;
    return first;
}

double dl2_loading_resident(const struct dl2_loading *loading)
{
    double most = 0;
    for (size_t i = 0; i < loading->count; i++)
        for (size_t k = 0; k < loading->items[i].rounds.count; k++)
            most = fmax(most,
                        dl2_json_get_real(loading->items[i].rounds.items[k].report, "resident", 0));
    return most;
}

bool dl2_loading_memory(const struct dl2_loading_setup *setup, const char *variant, double *cache,
                        double *epoch)
{
    const struct dl2_round *round = dl2_rounds_first(&setup->rounds, NULL, variant);
    if (!round)
        return false;
    *cache = dl2_json_get_real(json_object_get(round->report, "config"), "cache_bytes", NAN);
    *epoch = round->image_bytes * dl2_json_get_real(round->report, "images", NAN);
    return isfinite(*cache) && isfinite(*epoch);
}

size_t dl2_loading_rounds(const struct dl2_loading *loading)
{
    size_t most = 0;
    for (size_t i = 0; i < loading->count; i++)
        most = loading->items[i].rounds.count > most ? loading->items[i].rounds.count : most;
    return most;
}
