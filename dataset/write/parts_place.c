/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/write/parts_place.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/container.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 8 << 20 }; /* bytes of an object that are read at once */

struct dl2_parts_place {
    const struct dl2_parts_store *store;
    void *state;
};

void dl2_parts_name_run(char run[DL2_PARTS_RUN_SIZE])
{
    struct timespec now;
    char host[256] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    gethostname(host, sizeof host - 1);
    const int64_t facts[] = {now.tv_sec, now.tv_nsec, getpid()};
    snprintf(run, DL2_PARTS_RUN_SIZE, "%016" PRIx64,
             XXH3_64bits_withSeed(facts, sizeof facts, XXH3_64bits(host, strlen(host))));
}

/* ---- Objects of S3 */

struct objects {
    struct dl2_remote *remote;
    struct dl2_listing listing;
    char run[DL2_PARTS_RUN_SIZE];
};

static int objects_open(const char *dest, const char *digest, const struct dl2_work_part *part,
                        void **state, struct dl2_error *error)
{
    (void)part; /* a store has no locks */
    struct objects *objects;
    DL2_AUTO_FREE char *address = NULL;
    DL2_TRY(dl2_format(&address, error, "%s/.dl2-parts/%s", dest, digest));
    DL2_TRY(DL2_NEW(&objects, 1, "parts", error));
    *state = objects;
    dl2_parts_name_run(objects->run);
    return dl2_remote_open(address, &(struct dl2_remote_options){0}, &objects->remote, error);
}

static void objects_close(void *state)
{
    struct objects *objects = state;
    dl2_listing_free(&objects->listing);
    dl2_remote_close(objects->remote);
    free(objects);
}

static int objects_send(void *state, const char *name, const char *path, struct dl2_error *error)
{
    const struct objects *objects = state;
    return dl2_remote_store_file(objects->remote, name, path, error);
}

static int objects_claim(void *state, struct dl2_error *error)
{
    (void)state, (void)error;
    return DL2_OK;
}

static int objects_list(void *state, struct dl2_error *error)
{
    struct objects *objects = state;
    dl2_listing_free(&objects->listing);
    return dl2_remote_list(objects->remote, &objects->listing, error);
}

static bool objects_has(const void *state, const char *name)
{
    const struct objects *objects = state;
    return dl2_listing_find(&objects->listing, name);
}

/* The answer to the request that wrote the object may have been lost. */
static int is_own(const struct objects *objects, const char *name, bool *own,
                  struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    const int found = dl2_remote_load(objects->remote, name, 1024, DL2_LOAD_FRESH, &text, error);
    *own = found > 0 && text.size == strlen(objects->run) &&
           !memcmp(text.data, objects->run, text.size);
    return found < 0 ? found : DL2_OK;
}

static int objects_elect(void *state, bool *elected, struct dl2_error *error)
{
    const struct objects *objects = state;
    const char *strings = (const char *)objects->listing.strings.data;
    char name[32];
    uint64_t sum = 0;
    for (size_t i = 0; i < objects->listing.count; i++) {
        const struct dl2_listed_object *object = &objects->listing.objects[i];
        if (strncmp(strings + object->key, "part-", strlen("part-")) != 0)
            continue;
        sum = XXH3_64bits_withSeed(strings + object->key, strlen(strings + object->key), sum);
        sum = XXH3_64bits_withSeed(strings + object->etag, strlen(strings + object->etag), sum);
    }
    snprintf(name, sizeof name, "completing-%016" PRIx64, sum);
    const int written =
        dl2_remote_store_new(objects->remote, name, objects->run, strlen(objects->run), error);
    *elected = written > 0;
    return written ? (written < 0 ? written : DL2_OK) : is_own(objects, name, elected, error);
}

static int copy_object(struct dl2_remote_file *file, FILE *out, const char *path,
                       struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes piece = DL2_BYTES_INIT;
    for (uint64_t at = 0; at < file->bytes; at += piece.size) {
        const uint64_t left = file->bytes - at;
        DL2_TRY(dl2_bytes_resize(&piece, left < PIECE ? (size_t)left : PIECE, error));
        DL2_TRY(dl2_remote_read(file, 0, at, piece.data, piece.size, error));
        if (fwrite(piece.data, 1, piece.size, out) != piece.size)
            return dl2_error_system(error, "%s: cannot be written", path);
    }
    return DL2_OK;
}

static int is_gone(const char *name, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_CANCELED, "%s is gone", name);
}

static int fetch_listed(const struct objects *objects, const char *name, const char *path,
                        struct dl2_error *error)
{
    const struct dl2_listed_object *there = dl2_listing_find(&objects->listing, name);
    DL2_CLEANUP(dl2_remote_file_free) struct dl2_remote_file file = {.remote = NULL};
    if (!there)
        return is_gone(name, error);
    DL2_TRY(dl2_remote_file_init(objects->remote, name, there->bytes,
                                 (const char *)objects->listing.strings.data + there->etag, &file,
                                 error));
    FILE *out = fopen(path, "we");
    if (!out)
        return dl2_error_system(error, "%s: cannot be written", path);
    const int status = copy_object(&file, out, path, error);
    if (fclose(out) != 0 && status == DL2_OK)
        return dl2_error_system(error, "%s: cannot be written", path);
    return status;
}

/* Another process may have completed the run meanwhile. */
static int objects_fetch(void *state, const char *name, const char *path, struct dl2_error *error)
{
    struct objects *objects = state;
    struct dl2_error own = DL2_ERROR_INIT;
    if (fetch_listed(objects, name, path, &own) == DL2_OK)
        return DL2_OK;
    return objects_list(objects, NULL) == DL2_OK && !objects_has(objects, name)
               ? is_gone(name, error)
               : dl2_error_copy(error, &own);
}

static int objects_clear(void *state, struct dl2_error *error)
{
    struct objects *objects = state;
    DL2_TRY(objects_list(state, error));
    for (size_t i = 0; i < objects->listing.count; i++)
        DL2_TRY(dl2_remote_remove(
            objects->remote,
            (const char *)objects->listing.strings.data + objects->listing.objects[i].key, error));
    return DL2_OK;
}

static const struct dl2_parts_store objects_store = {.open = objects_open,
                                                     .close = objects_close,
                                                     .send = objects_send,
                                                     .claim = objects_claim,
                                                     .list = objects_list,
                                                     .has = objects_has,
                                                     .elect = objects_elect,
                                                     .fetch = objects_fetch,
                                                     .clear = objects_clear};

/* ---- Either */

static const struct dl2_parts_store *store_of(const char *dest)
{
    const struct dl2_container *container;
    for (size_t i = 0; (container = dl2_container_at(i)); i++)
        if (container->parts && container->probe(dest))
            return container->parts;
    return &objects_store;
}

int dl2_parts_place_open(const char *dest, const char *digest, const struct dl2_work_part *part,
                         struct dl2_parts_place **out, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(out, 1, "parts", error));
    (*out)->store = store_of(dest);
    return (*out)->store->open(dest, digest, part, &(*out)->state, error);
}

void dl2_parts_place_close(struct dl2_parts_place *place)
{
    if (place && place->state)
        place->store->close(place->state);
    free(place);
}

int dl2_parts_place_send(struct dl2_parts_place *place, const char *name, const char *path,
                         struct dl2_error *error)
{
    return place->store->send(place->state, name, path, error);
}

int dl2_parts_place_claim(struct dl2_parts_place *place, struct dl2_error *error)
{
    return place->store->claim(place->state, error);
}

int dl2_parts_place_list(struct dl2_parts_place *place, struct dl2_error *error)
{
    return place->store->list(place->state, error);
}

bool dl2_parts_place_has(const struct dl2_parts_place *place, const char *name)
{
    return place->store->has(place->state, name);
}

int dl2_parts_place_elect(struct dl2_parts_place *place, bool *elected, struct dl2_error *error)
{
    *elected = true;
    return place->store->elect ? place->store->elect(place->state, elected, error) : DL2_OK;
}

int dl2_parts_place_fetch(struct dl2_parts_place *place, const char *name, const char *path,
                          struct dl2_error *error)
{
    return place->store->fetch(place->state, name, path, error);
}

int dl2_parts_place_clear(struct dl2_parts_place *place, struct dl2_error *error)
{
    return place->store->clear(place->state, error);
}
