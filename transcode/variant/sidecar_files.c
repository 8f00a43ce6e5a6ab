/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/sidecar_files.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/dataset.h"
#include "transcode/variant/output_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is what stands before the last dot of `path` the name of a mask of the image `key`? */
static bool is_mask(const char *path, size_t key_length)
{
    DL2_AUTO_FREE char *key = strndup(path, dl2_path_stem_length(path));
    return key && dl2_dataset_mask_stem(key) == key_length;
}

int dl2_sidecars_path(bool label_folders, const char *key, const char *extension, char **path,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE char *beside = NULL;
    *path = NULL;
    DL2_TRY(dl2_format(&beside, error, "%s.%s", key, extension));
    if (label_folders && !strcmp(extension, "txt"))
        DL2_TRY(dl2_dataset_labels_path(beside, path, error));
    return *path ? DL2_OK : dl2_format(path, error, "%s", beside);
}

bool dl2_sidecars_is_companion(const struct dl2_folder_keys *keys, const char *path)
{
    if (keys->label_folders && dl2_dataset_is_label_file(path, keys->has, keys->context))
        return true;
    DL2_AUTO_FREE char *key = strdup(path);
    const size_t base = (size_t)(dl2_path_base(path) - path);
    for (size_t dot = key ? strlen(key) : 0; dot-- > base + 1;) {
        if (key[dot] != '.')
            continue;
        key[dot] = '\0';
        if (keys->has(keys->context, key) &&
            (!dl2_codec_is_image_extension(dl2_path_extension(path)) || is_mask(path, dot)))
            return true;
    }
    return false;
}

/* Is "KEY.a" or "KEY.a.b" of "KEY.a.b.txt" another image's name? */
static bool is_anothers(const struct dl2_folder_keys *keys, const char *path, size_t key_length)
{
    DL2_AUTO_FREE char *key = strdup(path);
    for (size_t dot = key ? strlen(key) : 0; key && --dot > key_length;) {
        if (key[dot] != '.')
            continue;
        key[dot] = '\0';
        if (keys->has(keys->context, key))
            return true;
    }
    return !key;
}

static bool is_utf8(const char *text)
{
    json_auto_t *json = json_string(text);
    return json;
}

bool dl2_sidecars_can_hold(const struct dl2_folder_keys *keys, const char *key,
                           const char *extension, const uint8_t *data, size_t size)
{
    DL2_AUTO_FREE char *path = NULL;
    if (!*extension || *extension == '.' || strchr(extension, '/') || !is_utf8(extension) ||
        dl2_format(&path, NULL, "%s.%s", key, extension) < 0)
        return false;
    const size_t key_length = strlen(key);
    const char *base = dl2_path_base(path);
    const bool image = dl2_codec_is_image_extension(dl2_path_extension(path)) ||
                       (data && dl2_codec_sniff(data, size));
    return (!image || is_mask(path, key_length)) && !is_anothers(keys, path, key_length) &&
           strcmp(base, "dl2-variant.json") && strcmp(base, "dl2-variant.jsonl");
}

int dl2_sidecars_write(const char *root, bool label_folders, const char *key,
                       const struct dl2_sidecar *item, struct dl2_error *error)
{
    DL2_AUTO_FREE char *name = NULL, *path = NULL;
    DL2_TRY(dl2_sidecars_path(label_folders, key, item->extension, &name, error));
    DL2_TRY(dl2_format(&path, error, "%s/%s", root, name));
    if (dl2_file_has(path, item->bytes.data, item->bytes.size))
        return DL2_OK;
    DL2_TRY(dl2_make_folder_of(path, error));
    return dl2_file_write(path, item->bytes.data, item->bytes.size, error);
}

static size_t sort_paths(char **paths)
{
    size_t count = 0;
    while (paths && paths[count])
        count++;
    if (count > 1)
        qsort(paths, count, sizeof *paths, dl2_compare_texts);
    return count;
}

/* Moves *list, which is sorted, on to the first path that is not before `path`; is it that? */
static bool meets(char *const **list, const char *path)
{
    while (*list && **list && strcmp(**list, path) < 0)
        (*list)++;
    return *list && **list && !strcmp(**list, path);
}

int dl2_sidecars_remove_others(const char *root, char **old, char **wanted, struct dl2_error *error)
{
    char *const *rest = wanted;
    const size_t count = sort_paths(old);
    sort_paths(wanted);
    for (size_t i = 0; i < count; i++) {
        bool removed;
        if (!meets(&rest, old[i]))
            DL2_TRY(dl2_output_remove(root, old[i], &removed, error));
    }
    return DL2_OK;
}

size_t dl2_sidecars_foreign(char *const *there, char *const *old, char *const *wanted,
                            const char **first)
{
    size_t count = 0;
    for (; there && *there; there++) {
        const bool was = meets(&old, *there), is = meets(&wanted, *there);
        if (!was && !is && !count++)
            *first = *there;
    }
    return count;
}

bool dl2_sidecars_list_has(char *const *list, size_t count, const char *path)
{
    return count && bsearch(&path, list, count, sizeof *list, dl2_compare_texts);
}
