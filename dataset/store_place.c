/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/store_place.h"

#include "common/file.h"
#include "common/memory.h"
#include "dataset/packed.h"
#include "dataset/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dl2_store_place {
    struct dl2_remote *remote;
    char *address, *folder;
    char **sent; /* names of objects */
    size_t sent_count;
};

static int remove_objects(struct dl2_store_place *place, const struct dl2_listing *listing,
                          bool (*is_own)(const char *name, bool top), struct dl2_error *error)
{
    const char *strings = (const char *)listing->strings.data;
    for (size_t i = 0; i < listing->count; i++) {
        const char *name = strings + listing->objects[i].key;
        if (!is_own(dl2_path_base(name), !strchr(name, '/')))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s/%s is in the way: a packed dataset needs a prefix of its own, "
                                 "or one that dl2-transcode has packed",
                                 place->address, name);
    }
    if (listing->count)
        DL2_TRY(dl2_remote_remove(place->remote, DL2_INDEX_NAME, error));
    for (size_t i = 0; i < listing->count; i++)
        DL2_TRY(dl2_remote_remove(place->remote, strings + listing->objects[i].key, error));
    return DL2_OK;
}

static int clear(struct dl2_store_place *place, bool (*is_own)(const char *name, bool top),
                 struct dl2_error *error)
{
    struct dl2_listing listing;
    DL2_TRY(dl2_remote_list(place->remote, &listing, error));
    const int status = remove_objects(place, &listing, is_own, error);
    dl2_listing_free(&listing);
    return status;
}

static int make_folder(struct dl2_store_place *place, struct dl2_error *error)
{
    const char *parent = getenv("TMPDIR");
    if (asprintf(&place->folder, "%s/dl2-upload-XXXXXX", parent && *parent ? parent : "/tmp") < 0)
        place->folder = NULL;
    if (!place->folder)
        return dl2_error_memory(error, "a dataset");
    if (mkdtemp(place->folder))
        return DL2_OK;
    const int status =
        dl2_error_system(error, "%s: cannot be made; TMPDIR names another folder", place->folder);
    free(place->folder);
    place->folder = NULL;
    return status;
}

int dl2_store_place_open(const char *address, bool (*is_own)(const char *name, bool top),
                         struct dl2_store_place **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_store_place *place = dl2_calloc(1, sizeof *place);
    if (!place || !(place->address = strdup(address))) {
        free(place);
        return dl2_error_memory(error, "a dataset");
    }
    int status = dl2_remote_open(address, &(struct dl2_remote_options){0}, &place->remote, error);
    if (status == DL2_OK && !dl2_remote_lists(place->remote))
        status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: http:// and https:// can only be read; write to a folder, or "
                               "to s3://BUCKET/PREFIX",
                               address);
    if (status == DL2_OK)
        status = clear(place, is_own, error);
    if (status == DL2_OK)
        status = make_folder(place, error);
    if (status < 0)
        dl2_store_place_close(place, true);
    else
        *out = place;
    return status;
}

const char *dl2_store_place_folder(const struct dl2_store_place *place)
{
    return place->folder;
}

int dl2_store_place_send(struct dl2_store_place *place, const char *path, const char *name,
                         struct dl2_error *error)
{
    char **grown = dl2_realloc(place->sent, place->sent_count + 1, sizeof *grown);
    if (!grown)
        return dl2_error_memory(error, "a dataset");
    place->sent = grown;
    if (!(grown[place->sent_count] = strdup(name)))
        return dl2_error_memory(error, "a dataset");
    place->sent_count++;
    DL2_TRY(dl2_remote_store_file(place->remote, name, path, error));
    return unlink(path) == 0 ? DL2_OK : dl2_error_system(error, "%s: cannot be removed", path);
}

void dl2_store_place_close(struct dl2_store_place *place, bool complete)
{
    struct dl2_error error = DL2_ERROR_INIT; /* what stays has no index, and a rerun removes it */
    for (size_t i = 0; i < place->sent_count; i++) {
        if (!complete)
            dl2_remote_remove(place->remote, place->sent[i], &error);
        free(place->sent[i]);
    }
    free(place->sent);
    if (place->folder)
        dl2_remove_tree(place->folder);
    free(place->folder);
    free(place->address);
    dl2_remote_close(place->remote);
    free(place);
}
