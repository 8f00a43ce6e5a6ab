/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/sidecar_files.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/dataset.h"
#include "transcode/output_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is what stands before the last dot of `path` the name of a mask of the image `key`? */
static bool is_mask(const char *path, size_t key_length)
{
    DL2_AUTO_FREE char *key = strndup(path, dl2_path_stem_length(path));
    return key && dl2_dataset_mask_stem(key) == key_length;
}

bool dl2_sidecars_is_companion(const struct dl2_folder_keys *keys, const char *path)
{
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

static bool is_there(const char *path, const struct dl2_bytes *wanted)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes there = DL2_BYTES_INIT;
    return dl2_is_file(path) && dl2_file_read(path, wanted->size, &there, NULL) == DL2_OK &&
           there.size == wanted->size &&
           (!there.size || !memcmp(there.data, wanted->data, there.size));
}

int dl2_sidecars_write(const char *root, const char *key, const struct dl2_sidecar *item,
                       struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/%s.%s", root, key, item->extension));
    return is_there(path, &item->bytes)
               ? DL2_OK
               : dl2_file_write(path, item->bytes.data, item->bytes.size, error);
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

int dl2_sidecars_remove_others(const char *root, char **old, char **wanted, struct dl2_error *error)
{
    const size_t old_count = sort_paths(old), wanted_count = sort_paths(wanted);
    for (size_t i = 0, w = 0; i < old_count; i++) {
        bool removed;
        while (w < wanted_count && strcmp(wanted[w], old[i]) < 0)
            w++;
        if (w == wanted_count || strcmp(wanted[w], old[i]) != 0)
            DL2_TRY(dl2_output_remove(root, old[i], &removed, error));
    }
    return DL2_OK;
}
