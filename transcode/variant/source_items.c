/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/source_items.h"

#include "common/json.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int compare_keys(const void *a, const void *b, void *context)
{
    const struct dl2_source_item *items = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    int order = strcmp(items[i].key_text, items[j].key_text);
    return order ? order : (i > j) - (i < j);
}

static int sort_by_key(struct dl2_source_items *source, struct dl2_error *error)
{
    struct dl2_source_item *items = source->items;
    DL2_TRY(DL2_NEW(&source->by_key, source->count, "images", error));
    for (size_t i = 0; i < source->count; i++)
        source->by_key[i] = i;
    qsort_r(source->by_key, source->count, sizeof *source->by_key, compare_keys, items);
    for (size_t i = 0; i < source->count; i++) {
        struct dl2_source_item *item = &items[source->by_key[i]];
        for (size_t j = i; j-- > 0;) {
            const struct dl2_source_item *before = &items[source->by_key[j]];
            if (strcmp(before->key_text, item->key_text) != 0)
                break;
            if (!strcmp(before->key, item->key))
                item->same_key_as = source->by_key[j];
        }
    }
    return DL2_OK;
}

/* `bytes` as UTF-8: most often themselves. */
static const char *text_of(const char *bytes)
{
    json_t *json = dl2_json_text(bytes);
    const char *value = json_string_value(json), *text = NULL;
    if (value)
        text = strcmp(value, bytes) ? strdup(value) : bytes;
    json_decref(json);
    return text;
}

/* The facts of a clip: another sum and perhaps another time, where any of its frames changes, or
 * what lies beside it. */
static void take_frames(struct dl2_source_item *item, const struct dl2_dataset *dataset)
{
    const struct dl2_image_range frames = dl2_dataset_frames(dataset, item->sample);
    if (frames.count < 2)
        return;
    item->path = item->key;
    for (size_t i = 0; i < frames.count; i++) {
        struct dl2_sample frame;
        dl2_dataset_image(dataset, frames.first + i, &frame);
        if (frame.mtime_ns > item->mtime_ns)
            item->mtime_ns = frame.mtime_ns;
        const uint64_t facts[] = {
            XXH3_64bits(frame.name, strlen(frame.name)), frame.bytes, (uint64_t)frame.mtime_ns,
            dl2_dataset_image_sidecar_sum(dataset, frames.first + i), item->sidecar_sum};
        item->sidecar_sum = XXH3_64bits(facts, sizeof facts);
    }
}

int dl2_source_items_list(struct dl2_source_items *source, const struct dl2_dataset *dataset,
                          struct dl2_error *error)
{
    const size_t count = dl2_dataset_count(dataset);
    source->dataset = dataset;
    source->label_folders = dl2_dataset_has_label_folders(dataset);
    source->ignored = dl2_dataset_ignored(dataset);
    DL2_TRY(DL2_NEW(&source->items, count, "images", error));
    for (size_t i = 0; i < count; i++) {
        struct dl2_source_item *item = &source->items[source->count++];
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        *item = (struct dl2_source_item){.sample = i,
                                         .key = sample.key,
                                         .name = sample.name,
                                         .path = sample.path,
                                         .key_text = text_of(sample.key),
                                         .name_text = text_of(sample.name),
                                         .bytes = sample.bytes,
                                         .mtime_ns = sample.mtime_ns,
                                         .label = sample.label,
                                         .same_key_as = SIZE_MAX,
                                         .sidecar_sum = dl2_dataset_sidecar_sum(dataset, i)};
        if (!item->key_text || !item->name_text)
            return dl2_error_memory(error, "images");
        take_frames(item, dataset);
    }
    return sort_by_key(source, error);
}

void dl2_source_items_free(struct dl2_source_items *source)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct dl2_source_item *item = &source->items[i];
        if (item->key_text != item->key)
            free((char *)item->key_text);
        if (item->name_text != item->name)
            free((char *)item->name_text);
    }
    dl2_free_list(source->annotations);
    free(source->class_names);
    free(source->items);
    free(source->by_key);
}

/* Where the first key that is `text` in JSON is in by_key; source->count: none is. */
static size_t find_text(const struct dl2_source_items *source, const char *text)
{
    size_t low = 0, high = source->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(source->items[source->by_key[middle]].key_text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found =
        low < source->count && !strcmp(source->items[source->by_key[low]].key_text, text);
    return found ? low : source->count;
}

size_t dl2_source_items_find(const struct dl2_source_items *source, const char *text)
{
    const size_t at = find_text(source, text);
    return at < source->count ? source->by_key[at] : SIZE_MAX;
}

bool dl2_source_items_has(const struct dl2_source_items *source, const char *key)
{
    const char *text = text_of(key);
    bool found = false;
    for (size_t at = text ? find_text(source, text) : source->count; at < source->count; at++) {
        const struct dl2_source_item *item = &source->items[source->by_key[at]];
        if (found || strcmp(item->key_text, text) != 0)
            break;
        found = !strcmp(item->key, key);
    }
    if (text != key)
        free((char *)text);
    return found;
}
