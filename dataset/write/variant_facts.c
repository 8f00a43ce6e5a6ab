/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/write/variant_facts.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/container.h"
#include "dataset/postgresql/database_uri.h"

#include <stdlib.h>
#include <string.h>

/* Largest lines: those of some hundred million images. */
#define MAX_LINES_BYTES ((uint64_t)64 << 30)

/* Sets *store to what holds the facts of a place that is no folder; NULL: files. */
static int find_store(const char *place, const struct dl2_facts_store **store,
                      struct dl2_error *error)
{
    const struct dl2_container *container;
    *store = NULL;
    for (size_t i = 0; (container = dl2_container_at(i)); i++)
        if (container->facts && container->probe(place))
            *store = container->facts;
    return *store || !dl2_dataset_is_database(place) ? DL2_OK
                                                     : dl2_database_unsupported(place, error);
}

char *dl2_facts_place(const char *dest, const char *name)
{
    return dl2_dataset_is_database(dest) ? dl2_database_uri_of_variant(dest, name)
                                         : dl2_path_join(dest, name);
}

/* Reads a file of a variant that lies in a folder or behind a server: 1, or 0 where it is not
 * there.
 */
static int load_text(const char *place, const char *name, uint64_t max_bytes,
                     struct dl2_bytes *text, struct dl2_error *error)
{
    const struct dl2_remote_options defaults = {NULL, 0, 0, 0};
    struct dl2_remote *remote;
    if (dl2_is_address(place)) {
        DL2_TRY(dl2_remote_open(place, &defaults, &remote, error));
        const int status = dl2_remote_load(remote, name, max_bytes, DL2_LOAD_OPTIONAL, text, error);
        dl2_remote_close(remote);
        return status;
    }
    DL2_AUTO_FREE char *path = dl2_path_join(place, name);
    if (!path)
        return dl2_error_memory(error, "a variant");
    if (!dl2_is_file(path))
        return 0;
    DL2_TRY(dl2_file_read(path, max_bytes, text, error));
    return 1;
}

int dl2_facts_load(const char *place, json_t **summary, struct dl2_error *error)
{
    const struct dl2_facts_store *store;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    struct dl2_error own = DL2_ERROR_INIT;
    *summary = NULL;
    DL2_TRY(find_store(place, &store, error));
    if (store)
        return store->load(place, summary, error);
    const int there = load_text(place, DL2_FACTS_SUMMARY_NAME, DL2_JSON_MAX_BYTES, &text, &own);
    /* A file that can't be read counts as none. */
    if (there < 0 && (there == DL2_ERR_MEMORY || dl2_is_address(place)))
        return dl2_error_copy(error, &own);
    if (there == 1)
        *summary = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    return DL2_OK;
}

int dl2_facts_load_lines(const char *place, struct dl2_bytes *lines, struct dl2_error *error)
{
    const struct dl2_facts_store *store;
    lines->size = 0;
    DL2_TRY(find_store(place, &store, error));
    if (store)
        return store->load_lines(place, lines, error);
    const int there = load_text(place, DL2_FACTS_LINES_NAME, MAX_LINES_BYTES, lines, error);
    return there < 0 ? there : DL2_OK;
}

int dl2_facts_load_val_keys(const char *place, struct dl2_bytes *keys, size_t *count,
                            size_t *images, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes lines = DL2_BYTES_INIT;
    keys->size = *count = *images = 0;
    DL2_TRY(dl2_facts_load_lines(place, &lines, error));
    const char *line = (const char *)lines.data, *end = line + lines.size;
    for (const char *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        json_auto_t *image = json_loadb(line, (size_t)(next - line), 0, NULL);
        const char *key = dl2_json_get_text(image, "key", NULL);
        if (!key)
            continue;
        ++*images;
        const char *folder = key + dl2_part_prefix(key), *slash = strchr(folder, '/');
        if (!slash || dl2_part_of_folder(folder, (size_t)(slash - folder)) != DL2_PART_VAL)
            continue;
        DL2_TRY(dl2_bytes_append(keys, key, strlen(key) + 1, error));
        ++*count;
    }
    return DL2_OK;
}

static int store_summary(const char *address, const json_t *summary, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    struct dl2_remote *remote;
    DL2_TRY(dl2_json_append(&text, summary, error));
    DL2_TRY(dl2_remote_open(address, &(struct dl2_remote_options){0}, &remote, error));
    const int status =
        dl2_remote_store(remote, DL2_FACTS_SUMMARY_NAME, text.data, text.size, error);
    dl2_remote_close(remote);
    return status;
}

int dl2_facts_save(const char *place, const json_t *summary, struct dl2_error *error)
{
    const struct dl2_facts_store *store;
    DL2_TRY(find_store(place, &store, error));
    if (store)
        return store->save(place, summary, error);
    if (dl2_is_address(place))
        return store_summary(place, summary, error);
    DL2_AUTO_FREE char *path = dl2_path_join(place, DL2_FACTS_SUMMARY_NAME);
    return path ? dl2_json_save(path, summary, error) : dl2_error_memory(error, "a variant");
}

int dl2_facts_load_origin(const char *place, char origin[DL2_FACTS_ORIGIN_DIGITS + 1],
                          struct dl2_error *error)
{
    const struct dl2_facts_store *store;
    *origin = '\0';
    DL2_TRY(find_store(place, &store, error));
    return store ? store->load_origin(place, origin, error) : DL2_OK;
}

int dl2_facts_same_table(const char *a, const char *b, bool *same, struct dl2_error *error)
{
    const struct dl2_facts_store *store, *other;
    DL2_AUTO_FREE char *first = NULL, *second = NULL;
    *same = false;
    DL2_TRY(find_store(a, &store, error));
    DL2_TRY(find_store(b, &other, error));
    if (!store || other != store)
        return DL2_OK;
    DL2_TRY(store->identify(a, &first, error));
    DL2_TRY(store->identify(b, &second, error));
    *same = first && second && !strcmp(first, second);
    return DL2_OK;
}

/* The last part of a path as it was given; "/", "." and ".." are resolved first. */
static char *last_part(const char *path)
{
    DL2_AUTO_FREE char *given = strndup(path, (size_t)dl2_path_folder_length(path));
    DL2_AUTO_FREE char *resolved = NULL;
    const char *base = given ? dl2_path_base(given) : "";
    if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
        resolved = realpath(path, NULL);
    if (resolved)
        base = dl2_path_base(resolved);
    return strdup(*base ? base : "dataset");
}

static char *table_name(const char *path)
{
    DL2_CLEANUP(dl2_database_uri_free) struct dl2_database_uri uri;
    return strdup(dl2_database_uri_parse(path, false, &uri, NULL) == DL2_OK ? uri.table
                                                                            : "dataset");
}

char *dl2_dataset_variant_name(const char *path)
{
    json_auto_t *summary = NULL;
    dl2_facts_load(path, &summary, NULL);
    const char *name = dl2_json_get_text(summary, "variant", "");
    return *name                           ? strdup(name)
           : dl2_dataset_is_database(path) ? table_name(path)
                                           : last_part(path);
}
