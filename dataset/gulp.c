/*
 * GulpIO's chunks (TwentyBN, github.com/TwentyBN/GulpIO): data_N.gulp is frames one after the
 * other, each filled up with zeros to a multiple of four bytes; meta_N.gmeta says where they are:
 *
 *   {"ID": {"frame_info": [[offset, fill, length with fill], ...], "meta_data": [{"label": ...}]}}
 */
#include "common/file.h"
#include "common/json.h"
#include "dataset/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILL = 3 };

/* The first object's "label", as text; NULL where it has none. `number` is room for one. */
static const char *label_of(const json_t *item, char number[24])
{
    const json_t *meta = json_array_get(json_object_get(item, "meta_data"), 0);
    const json_t *label = json_object_get(meta, "label");
    if (json_is_string(label))
        return json_string_value(label);
    if (!json_is_integer(label))
        return NULL;
    snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(label));
    return number;
}

static int read_frame(const json_t *frame, uint64_t data_bytes, struct dl2_index_entry *entry,
                      uint64_t *end, struct dl2_error *error)
{
    int64_t numbers[3];
    for (size_t i = 0; i < 3; i++) {
        const json_t *number = json_array_get(frame, i);
        if (json_array_size(frame) != 3 || !json_is_integer(number) ||
            json_integer_value(number) < 0)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "a frame is not [offset, fill, length with fill]");
        numbers[i] = json_integer_value(number);
    }
    const uint64_t offset = (uint64_t)numbers[0], fill = (uint64_t)numbers[1];
    const uint64_t length = (uint64_t)numbers[2];
    if (offset > data_bytes || length > data_bytes - offset)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "a frame of %" PRIu64 " bytes at %" PRIu64
                             " is not within the data file's %" PRIu64 ": cut short?",
                             length, offset, data_bytes);
    if (fill > MAX_FILL || fill >= length)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%" PRIu64 " of a frame's %" PRIu64 " bytes can't be fill", fill,
                             length);
    if (length - fill > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "a frame of %" PRIu64 " bytes passes 2 GiB",
                             length);
    entry->offset = offset;
    entry->bytes = (uint32_t)(length - fill);
    if (offset + length > *end)
        *end = offset + length;
    return DL2_OK;
}

static int read_item(struct dl2_scan *scan, const char *id, const json_t *item, uint64_t data_bytes,
                     const char *key_part, uint64_t *end, struct dl2_error *error)
{
    const json_t *frames = json_object_get(item, "frame_info");
    const size_t count = json_array_size(frames), room = strlen(key_part) + strlen(id) + 24;
    if (!count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has no frames");
    if (!dl2_index_is_key(id))
        return dl2_error_set(error, DL2_ERR_FORMAT, "an id must not have empty, . or .. parts");
    char number[24], *key = dl2_calloc(room, 1);
    if (!key)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    const char *label = label_of(item, number);
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < count; i++) {
        struct dl2_index_entry entry = {.shard = scan->draft.shard_count - 1,
                                        .flags = i ? DL2_ENTRY_FURTHER : 0,
                                        .key = key,
                                        .extension = ""};
        if (count > 1)
            snprintf(key, room, "%s%s/%05zu", key_part, id, i);
        else
            snprintf(key, room, "%s%s", key_part, id);
        status = read_frame(json_array_get(frames, i), data_bytes, &entry, end, error);
        if (status == DL2_OK)
            status = dl2_scan_add(scan, &entry, label, error);
    }
    free(key);
    return status;
}

int dl2_gulp_parse(struct dl2_scan *scan, const void *text, size_t size, uint64_t data_bytes,
                   const char *key_part, struct dl2_error *error)
{
    if (!size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "empty: its chunk was never closed");
    json_error_t why;
    json_t *meta = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!meta)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%d:%d: %s", why.line, why.column, why.text);
    int status = DL2_OK;
    uint64_t end = 0;
    if (!json_object_size(meta))
        status = dl2_error_set(error, DL2_ERR_FORMAT, "it names no items");
    const char *id;
    json_t *item;
    json_object_foreach(meta, id, item)
    {
        status = read_item(scan, id, item, data_bytes, key_part, &end, error);
        if (status < 0) {
            dl2_error_prefix(error, "item \"%.200s\"", id);
            break;
        }
    }
    if (status == DL2_OK && end != data_bytes)
        status = dl2_error_set(error, DL2_ERR_FORMAT,
                               "its frames end at %" PRIu64 ", the data file at %" PRIu64, end,
                               data_bytes);
    json_decref(meta);
    return status;
}

int dl2_gulp_scan(struct dl2_scan *scan, const struct dl2_shard_files *list,
                  const struct dl2_shard_file *file, uint64_t bytes, struct dl2_error *error)
{
    char *path = dl2_path_join(list->root, file->meta);
    if (!path)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    struct dl2_bytes text = DL2_BYTES_INIT;
    int status = dl2_file_read(path, DL2_JSON_MAX_BYTES, &text, error);
    if (status == DL2_OK) {
        status = dl2_gulp_parse(scan, text.data, text.size, bytes, file->key_part, error);
        if (status < 0)
            dl2_error_prefix(error, "%s", path);
    }
    dl2_bytes_free(&text);
    free(path);
    return status;
}

/* {"rose": 0, "tulip": 1} as a list, where its numbers are 0, 1, 2...; else names without order. */
int dl2_gulp_read_classes(struct dl2_scan *scan, const char *root, const char *folder,
                          struct dl2_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%slabel2idx.json", folder);
    char *path = dl2_path_join(root, name);
    if (!path)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    json_t *json = NULL;
    int status = dl2_is_file(path) ? dl2_json_load(path, NULL, &json, error) : DL2_OK;
    free(path);
    if (!json)
        return status;
    const size_t count = json_object_size(json);
    char **names = dl2_calloc(count, sizeof *names);
    bool ordered = names && count;
    const char *class;
    json_t *number;
    json_object_foreach(json, class, number)
    {
        const json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
        ordered =
            ordered && i >= 0 && (uint64_t)i < count && !names[i] && (names[i] = strdup(class));
    }
    json_decref(json);
    for (size_t i = 0; !ordered && names && i < count; i++)
        free(names[i]);
    if (!ordered) {
        free(names);
        names = NULL;
    }
    return dl2_scan_add_classes(scan, folder, names, (uint32_t)count, error);
}
