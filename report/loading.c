/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/loading.h"

#include "common/file.h"
#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dl2_loading_caches(const struct dl2_loading_place *place)
{
    return strncmp(place->storage, "cache-", 6) == 0;
}

static int add_place(const char *folder, const char *storage, const char *name,
                     struct dl2_study *study, struct dl2_loading *loading, struct dl2_error *error)
{
    unsigned jobs;
    int length = 0;
    if (sscanf(name, "jobs-%u%n", &jobs, &length) != 1 || (size_t)length != strlen(name))
        return DL2_OK;
    struct dl2_loading_place *grown =
        dl2_realloc(loading->items, loading->count + 1, sizeof *grown);
    if (grown)
        loading->items = grown;
    char *copy = grown ? strdup(storage) : NULL;
    if (!copy)
        return dl2_error_memory(error, "the speeds in %s", folder);
    struct dl2_loading_place *place = &grown[loading->count++];
    *place = (struct dl2_loading_place){.storage = copy, .jobs = jobs};
    DL2_TRY(dl2_rounds_read(folder, &place->rounds, error));
    for (size_t i = place->rounds.count; i-- > 0;)
        if (dl2_study_find(study, place->rounds.items[i].variant) == study->variant_count)
            dl2_rounds_drop(&place->rounds, i);
    const struct dl2_study notes = {.broken = place->rounds.broken,
                                    .broken_count = place->rounds.broken_count};
    return dl2_study_add_notes(study, &notes, "loading", error);
}

/* What lies at the two depths: storages, numbers of jobs. `storage` is NULL at the first. */
static int walk(const char *folder, const char *storage, struct dl2_study *study,
                struct dl2_loading *loading, struct dl2_error *error)
{
    char path[4096], **names;
    DL2_TRY(dl2_list_names(folder, &names, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        status = storage ? add_place(path, storage, names[i], study, loading, error)
                         : walk(path, names[i], study, loading, error);
    }
    dl2_free_list(names);
    return status;
}

static int add_network(struct dl2_loading *loading, const char *network, struct dl2_error *error)
{
    for (size_t i = 0; i < loading->network_count; i++)
        if (strcmp(loading->networks[i], network) == 0)
            return DL2_OK;
    const char **grown =
        dl2_realloc((void *)loading->networks, loading->network_count + 1, sizeof *grown);
    if (!grown)
        return dl2_error_memory(error, "the networks of loading");
    loading->networks = grown;
    grown[loading->network_count++] = network;
    return DL2_OK;
}

int dl2_loading_collect(const char *folder, struct dl2_study *study, struct dl2_loading *loading,
                        struct dl2_error *error)
{
    char path[4096];
    *loading = (struct dl2_loading){NULL, 0, NULL, 0};
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
    *loading = (struct dl2_loading){NULL, 0, NULL, 0};
}
