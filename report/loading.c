/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loading.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dl2_loading_caches(const struct dl2_loading_setup *setup)
{
    return strncmp(setup->storage, "cache-", 6) == 0;
}

static int add_setup(const char *folder, const char *storage, const char *name,
                     struct dl2_study *study, struct dl2_loading *loading, struct dl2_error *error)
{
    unsigned jobs;
    int length = 0;
    if (sscanf(name, "jobs-%u%n", &jobs, &length) != 1 || (size_t)length != strlen(name))
        return DL2_OK;
    DL2_TRY(dl2_grow(&loading->items, loading->count, sizeof *loading->items, error));
    struct dl2_loading_setup *setup = &loading->items[loading->count++];
    *setup = (struct dl2_loading_setup){.jobs = jobs};
    DL2_TRY(dl2_copy_text(storage, &setup->storage, error));
    DL2_TRY(dl2_rounds_read(folder, &setup->rounds, error));
    for (size_t i = setup->rounds.count; i-- > 0;)
        if (dl2_study_find(study, setup->rounds.items[i].variant) == study->variant_count)
            dl2_rounds_drop(&setup->rounds, i);
    const struct dl2_study notes = {.broken = setup->rounds.broken};
    return dl2_study_add_notes(study, &notes, "loading", error);
}

/* What lies at the two depths: storages, numbers of jobs. `storage` is NULL at the first. */
static int walk(const char *folder, const char *storage, struct dl2_study *study,
                struct dl2_loading *loading, struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    char path[4096];
    DL2_TRY(dl2_list_names(folder, &names, error));
    for (size_t i = 0; names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        DL2_TRY(storage ? add_setup(path, storage, names[i], study, loading, error)
                        : walk(path, names[i], study, loading, error));
    }
    return DL2_OK;
}

static int add_network(struct dl2_loading *loading, const char *network, struct dl2_error *error)
{
    for (size_t i = 0; i < loading->network_count; i++)
        if (strcmp(loading->networks[i], network) == 0)
            return DL2_OK;
    DL2_TRY(dl2_grow(&loading->networks, loading->network_count, sizeof network, error));
    loading->networks[loading->network_count++] = network;
    return DL2_OK;
}

int dl2_loading_collect(const char *folder, struct dl2_study *study, struct dl2_loading *loading,
                        struct dl2_error *error)
{
    char path[4096];
    *loading = (struct dl2_loading){0};
    snprintf(path, sizeof path, "%s/loading", folder);
    DL2_TRY(walk(path, NULL, study, loading, error));
    for (size_t i = 0; i < loading->count; i++)
        for (size_t k = 0; k < loading->items[i].rounds.count; k++)
            if (loading->items[i].rounds.items[k].network)
                DL2_TRY(add_network(loading, loading->items[i].rounds.items[k].network, error));
    return DL2_OK;
}

void dl2_loading_free(struct dl2_loading *loading)
{
    for (size_t i = 0; i < loading->count; i++) {
        free(loading->items[i].storage);
        dl2_rounds_free(&loading->items[i].rounds);
    }
    free(loading->items);
    free((void *)loading->networks);
    *loading = (struct dl2_loading){0};
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
    for (size_t i = 0; i < setup->rounds.count; i++) {
        const struct dl2_round *round = &setup->rounds.items[i];
        if (round->network || strcmp(round->variant, variant) != 0)
            continue;
        *cache = dl2_json_get_real(json_object_get(round->report, "config"), "cache_bytes", NAN);
        *epoch = round->image_bytes * dl2_json_get_real(round->report, "images", NAN);
        return isfinite(*cache) && isfinite(*epoch);
    }
    return false;
}

size_t dl2_loading_rounds(const struct dl2_loading *loading)
{
    size_t most = 0;
    for (size_t i = 0; i < loading->count; i++)
        most = loading->items[i].rounds.count > most ? loading->items[i].rounds.count : most;
    return most;
}
