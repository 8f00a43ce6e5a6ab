/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/packed/remote_container.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/files/files.h"
#include "dataset/packed/packed.h"
#include "dataset/write/variant_facts.h"
#include "remote/address.h"

#include <stdlib.h>
#include <string.h>

/* Largest index: that of some hundred million samples. */
#define MAX_INDEX_BYTES ((uint64_t)64 << 30)
#define MAX_LIST_BYTES  ((uint64_t)1 << 30)

static const char how_to_index[] =
    "make the index where the shards lie, by dl2-transcode index FOLDER, and copy its "
    "dl2-index.bin beside them";

static int is_unfinished(const char *address, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: this dataset was not written to its end: %s lies there; copy it "
                         "again when it is complete",
                         address, DL2_UNFINISHED_NAME);
}

/* What the index says that it is of. */
static int take_index(struct dl2_dataset *dataset, const char *address, struct dl2_error *error)
{
    struct dl2_index index;
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes ignored = DL2_BYTES_INIT;
    int status =
        dl2_index_open(dataset->remote_index.data, dataset->remote_index.size, &index, NULL);
    if (status == DL2_ERR_FORMAT) /* what a network has damaged may come well another time */
        DL2_TRY(dl2_remote_load(dataset->remote, DL2_INDEX_NAME, MAX_INDEX_BYTES, DL2_LOAD_FRESH,
                                &dataset->remote_index, error));
    status = dl2_index_open(dataset->remote_index.data, dataset->remote_index.size, &index, &own);
    if (status < 0)
        return dl2_error_set(error, status, "%s/%s: %s", address, DL2_INDEX_NAME, own.message);
    if (index.is_outdated)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s/%s was made by an earlier version, which read shards otherwise; %s",
                             address, DL2_INDEX_NAME, how_to_index);
    status = dl2_remote_load(dataset->remote, DL2_UNFINISHED_NAME, 1 << 20, DL2_LOAD_OPTIONAL,
                             &ignored, error);
    if (status == 1)
        return is_unfinished(address, error);
    dataset->container = index.container;
    return status < 0 ? status : DL2_OK;
}

/* Does a name belong to a shard of some container? */
static const struct dl2_container *container_of_shard(const char *name)
{
    const struct dl2_container *container;
    const char *base = dl2_path_base(name);
    for (size_t i = 0; *base != '.' && (container = dl2_container_at(i)); i++)
        if (container->shards && container->shards->role(base) != DL2_FILE_OTHER)
            return container;
    return NULL;
}

static int take_listing(struct dl2_dataset *dataset, const char *address, struct dl2_error *error)
{
    DL2_TRY(dl2_remote_list(dataset->remote, &dataset->remote_listing, error));
    const struct dl2_listing *listing = &dataset->remote_listing;
    if (!listing->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: the store has no object below this address", address);
    for (size_t i = 0; i < listing->count; i++) {
        const char *name = (const char *)listing->strings.data + listing->objects[i].key;
        const struct dl2_container *packed = container_of_shard(name);
        if (!strcmp(name, DL2_UNFINISHED_NAME))
            return is_unfinished(address, error);
        if (packed)
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "%s: a packed dataset (%s: %s) without its %s, by which it is "
                                 "read in parts; %s",
                                 address, packed->name, name, DL2_INDEX_NAME, how_to_index);
    }
    const struct dl2_container *row;
    for (size_t i = 0; !dataset->container && (row = dl2_container_at(i)); i++)
        if (row->has_class_folders)
            dataset->container = row;
    return DL2_OK;
}

static int no_listing(const char *address, struct dl2_error *error)
{
    const char *base = dl2_path_base(address);
    if (container_of_shard(base))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: give the address of the folder that has the shards and their "
                             "%s; %s",
                             address, DL2_INDEX_NAME, how_to_index);
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: there is no %s, and HTTP cannot list a folder: pack the dataset by "
                         "dl2-transcode copy --container tar, or put it into an object store",
                         address, DL2_INDEX_NAME);
}

/* A list of images: the remote is its folder. */
static int take_list(struct dl2_dataset *dataset, const char *address,
                     const struct dl2_remote_options *options, struct dl2_error *error)
{
    const char *base = dl2_path_base(address);
    DL2_AUTO_FREE char *folder = NULL, *name = NULL;
    DL2_TRY(dl2_format(&folder, error, "%.*s", (int)(base - address), address));
    DL2_TRY(dl2_format(&name, error, "%s", base));
    DL2_TRY(dl2_remote_open(folder, options, &dataset->remote, error));
    if (!dl2_remote_lists(dataset->remote) && !dl2_percent_decode(name))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: a %% stands before two hexadecimal digits; write %%25 for it",
                             address);
    const int there =
        dl2_remote_load(dataset->remote, name, MAX_LIST_BYTES, 0, &dataset->remote_index, error);
    DL2_TRY(there);
    dataset->container = dl2_container_find("list");
    return there ? DL2_OK
                 : dl2_error_set(error, DL2_ERR_FORMAT, "%s: there is no such list", address);
}

/* Is it the address of a list, and not of a host or bucket that is called so? */
static bool is_list(const char *address)
{
    const char *base = dl2_path_base(address);
    return dl2_files_is_list(base) && base - address > 1 && base[-2] != '/';
}

int dl2_remote_find_container(struct dl2_dataset *dataset, const char *address,
                              const struct dl2_remote_options *options, struct dl2_error *error)
{
    if (is_list(address))
        return take_list(dataset, address, options, error);
    DL2_TRY(dl2_remote_open(address, options, &dataset->remote, error));
    const bool lists = dl2_remote_lists(dataset->remote);
    /* A store that may not be listed does not tell what is not there from what may not be read. */
    const int there = dl2_remote_load(dataset->remote, DL2_INDEX_NAME, MAX_INDEX_BYTES,
                                      lists ? DL2_LOAD_OPTIONAL : 0, &dataset->remote_index, error);
    DL2_TRY(there);
    return there   ? take_index(dataset, address, error)
           : lists ? take_listing(dataset, address, error)
                   : no_listing(address, error);
}

int dl2_remote_look_for_completeness(struct dl2_dataset *dataset, struct dl2_error *error)
{
    static const char *const places[] = {DL2_FACTS_SUMMARY_NAME, "../" DL2_FACTS_SUMMARY_NAME,
                                         "../../" DL2_FACTS_SUMMARY_NAME};
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int there = dl2_remote_load(dataset->remote, places[i], DL2_JSON_MAX_BYTES,
                                          DL2_LOAD_OPTIONAL, &text, error);
        DL2_TRY(there);
        json_auto_t *summary =
            there ? json_loadb((const char *)text.data, text.size, 0, NULL) : NULL;
        if (json_is_false(json_object_get(summary, "complete")))
            dataset->is_incomplete = true;
    }
    return DL2_OK;
}
