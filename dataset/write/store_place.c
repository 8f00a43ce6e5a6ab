/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/write/store_place.h"

#include "common/file.h"
#include "common/scope.h"
#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dl2_store_place {
    struct dl2_remote *remote;
    struct dl2_listing listing;
    char *folder;
};

static int make_folder(struct dl2_store_place *place, struct dl2_error *error)
{
    const char *parent = getenv("TMPDIR");
    DL2_TRY(dl2_format(&place->folder, error, "%s/dl2-upload-XXXXXX",
                       parent && *parent ? parent : "/tmp"));
    if (mkdtemp(place->folder))
        return DL2_OK;
    const int status =
        dl2_error_system(error, "%s: cannot be made; TMPDIR names another folder", place->folder);
    free(place->folder);
    place->folder = NULL;
    return status;
}

static int open_place(struct dl2_store_place *place, const char *address, struct dl2_error *error)
{
    DL2_TRY(dl2_remote_open(address, &(struct dl2_remote_options){0}, &place->remote, error));
    DL2_TRY(dl2_store_place_list(place, error));
    return make_folder(place, error);
}

int dl2_store_place_open(const char *address, struct dl2_store_place **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_store_place *place;
    DL2_TRY(DL2_NEW(&place, 1, "a dataset", error));
    const int status = open_place(place, address, error);
    if (status < 0)
        dl2_store_place_close(place);
    else
        *out = place;
    return status;
}

const char *dl2_store_place_folder(const struct dl2_store_place *place)
{
    return place->folder;
}

const char *dl2_store_place_object(const struct dl2_store_place *place, size_t number)
{
    const struct dl2_listing *listing = &place->listing;
    return number < listing->count
               ? (const char *)listing->strings.data + listing->objects[number].key
               : NULL;
}

int dl2_store_place_list(struct dl2_store_place *place, struct dl2_error *error)
{
    dl2_listing_free(&place->listing);
    return dl2_remote_list(place->remote, &place->listing, error);
}

char *dl2_store_place_shown(const struct dl2_store_place *place, const char *name)
{
    return dl2_remote_shown(place->remote, name);
}

int dl2_store_place_load(struct dl2_store_place *place, const char *name, uint64_t max_bytes,
                         struct dl2_bytes *out, struct dl2_error *error)
{
    return dl2_remote_load(place->remote, name, max_bytes, DL2_LOAD_FRESH, out, error);
}

int dl2_store_place_fetch(struct dl2_store_place *place, const char *name, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes data = DL2_BYTES_INIT;
    const struct dl2_listed_object *there = dl2_listing_find(&place->listing, name);
    if (!there)
        return DL2_OK;
    DL2_AUTO_FREE char *path = dl2_path_join(place->folder, name);
    if (!path)
        return dl2_error_memory(error, "a dataset");
    const int status = dl2_store_place_load(place, name, there->bytes, &data, error);
    DL2_TRY(status);
    return status ? dl2_file_write(path, data.data, data.size, error) : DL2_OK;
}

int dl2_store_place_send(struct dl2_store_place *place, const char *path, const char *name,
                         struct dl2_error *error)
{
    DL2_TRY(dl2_remote_store_file(place->remote, name, path, error));
    return unlink(path) == 0 ? DL2_OK : dl2_error_system(error, "%s: cannot be removed", path);
}

int dl2_store_place_remove(struct dl2_store_place *place, const char *name, struct dl2_error *error)
{
    return dl2_remote_remove(place->remote, name, error);
}

void dl2_store_place_close(struct dl2_store_place *place)
{
    if (!place)
        return;
    if (place->folder)
        dl2_remove_tree(place->folder);
    free(place->folder);
    dl2_listing_free(&place->listing);
    dl2_remote_close(place->remote);
    free(place);
}
