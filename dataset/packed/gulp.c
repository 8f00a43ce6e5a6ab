/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GulpIO's chunks (TwentyBN, github.com/TwentyBN/GulpIO). data_N.gulp holds frames, each padded
 * with zeros to a multiple of four bytes; meta_N.gmeta has their places, as JSON:
 *
 *   {"ID": {"frame_info": [[offset, fill, length with fill], ...], "meta_data": [{"label": ...}]}}
 *
 * What lies beside an image is an object of JSON, its metadata, or bytes in the data file. The
 * latter are an addition to the format, which GulpIO itself passes over:
 *
 *   {"ID": {"beside": {"mask.png": [offset, fill, length with fill], ...}, "frame_info": ...}}
 */
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4, DEFAULT_CHUNK_SAMPLES = 10000 };

/* ---- Reading */

/* Sets *label to the "label" of the first meta_data, which is in `text` then, or to NULL. */
static int gulp_find_label(struct dl2_scan *scan, const char *id, const json_t *item,
                           char text[DL2_LABEL_BYTES + 1], const char **label,
                           struct dl2_error *error)
{
    const json_t *meta = json_array_get(json_object_get(item, "meta_data"), 0);
    const json_t *value = json_object_get(meta, "label");
    enum dl2_field_kind kind;
    struct dl2_error why = DL2_ERROR_INIT;
    *label = NULL;
    if (!value || dl2_label_of_json(value, &kind, text, &why) == DL2_OK) {
        *label = value ? text : NULL;
        return DL2_OK;
    }
    DL2_AUTO_FREE char *first = NULL;
    DL2_TRY(dl2_format(&first, error, "%s: %s", id, why.message));
    return dl2_scan_find(scan, &scan->findings, DL2_FOUND_UNLABELED, 1, first, error);
}

/* Bytes of the data file. */
struct gulp_place {
    uint64_t offset, end; /* with the fill */
    uint32_t bytes;
};

/* Reads [offset, fill, length with fill]. */
static int gulp_read_place(const json_t *json, uint64_t data_bytes, struct gulp_place *place,
                           struct dl2_error *error)
{
    uint64_t numbers[3];
    for (size_t i = 0; i < 3; i++) {
        const json_t *number = json_array_get(json, i);
        if (json_array_size(json) != 3 || !json_is_integer(number) ||
            json_integer_value(number) < 0)
            return dl2_error_set(error, DL2_ERR_FORMAT, "not [offset, fill, length with fill]");
        numbers[i] = (uint64_t)json_integer_value(number);
    }
    const uint64_t offset = numbers[0], fill = numbers[1], length = numbers[2];
    if (offset > data_bytes || length > data_bytes - offset)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%" PRIu64 " bytes at %" PRIu64
                             " are not within the data file's %" PRIu64 ": cut short?",
                             length, offset, data_bytes);
    if (fill >= ALIGNMENT || fill > length)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%" PRIu64 " of %" PRIu64 " bytes can't be fill", fill, length);
    if (length - fill > DL2_MAX_SAMPLE_BYTES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%" PRIu64 " bytes pass 2 GiB", length - fill);
    *place = (struct gulp_place){offset, offset + length, (uint32_t)(length - fill)};
    return DL2_OK;
}

static int gulp_read_frame(const json_t *frame, uint64_t data_bytes, struct dl2_index_entry *entry,
                           uint64_t *end, struct dl2_error *error)
{
    struct gulp_place place;
    int status = gulp_read_place(frame, data_bytes, &place, error);
    if (status == DL2_OK && !place.bytes)
        status = dl2_error_set(error, DL2_ERR_FORMAT, "nothing but fill");
    dl2_error_prefix(error, "a frame");
    DL2_TRY(status);
    entry->offset = place.offset;
    entry->bytes = place.bytes;
    *end = place.end > *end ? place.end : *end;
    return DL2_OK;
}

static int gulp_read_item(struct dl2_scan *scan, const char *id, const json_t *item,
                          const struct dl2_shard_input *input, uint64_t *end,
                          struct dl2_error *error)
{
    const json_t *frames = json_object_get(item, "frame_info");
    const size_t count = json_array_size(frames), room = strlen(input->key_start) + strlen(id) + 24;
    if (!count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has no frames");
    if (!dl2_index_is_key(id))
        return dl2_error_set(error, DL2_ERR_FORMAT, "an id must not have empty, . or .. parts");
    char text[DL2_LABEL_BYTES + 1];
    const char *label;
    DL2_AUTO_FREE char *key = NULL;
    DL2_TRY(DL2_NEW(&key, room, "a dataset", error));
    DL2_TRY(gulp_find_label(scan, id, item, text, &label, error));
    for (size_t i = 0; i < count; i++) {
        struct dl2_index_entry entry = {.shard = scan->draft.shard_count - 1,
                                        .flags = i ? DL2_ENTRY_FURTHER : 0,
                                        .key = key,
                                        .extension = ""};
        if (count > 1)
            snprintf(key, room, "%s%s/%05zu", input->key_start, id, i);
        else
            snprintf(key, room, "%s%s", input->key_start, id);
        DL2_TRY(gulp_read_frame(json_array_get(frames, i), input->bytes, &entry, end, error));
        DL2_TRY(dl2_scan_add(scan, &entry, label, error));
    }
    return DL2_OK;
}

static int gulp_parse(const struct dl2_bytes *text, size_t flags, json_t **json,
                      struct dl2_error *error)
{
    json_error_t why;
    *json = dl2_json_parse(text->data, text->size, flags, &why);
    return *json
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT, "%d:%d: %s", why.line, why.column, why.text);
}

static int gulp_scan(struct dl2_scan *scan, const struct dl2_shard_input *input,
                     struct dl2_error *error)
{
    const struct dl2_bytes *text = &input->companion;
    if (!text->size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "empty: its chunk was never closed");
    json_auto_t *meta = NULL;
    DL2_TRY(gulp_parse(text, JSON_REJECT_DUPLICATES, &meta, error));
    uint64_t end = 0;
    if (!json_object_size(meta))
        return dl2_error_set(error, DL2_ERR_FORMAT, "it names no items");
    const char *id;
    json_t *item;
    json_object_foreach(meta, id, item)
    {
        const int status = gulp_read_item(scan, id, item, input, &end, error);
        dl2_error_prefix(error, "item \"%.200s\"", id);
        DL2_TRY(status);
    }
    return end == input->bytes
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "its frames end at %" PRIu64 ", the data file at %" PRIu64, end,
                               input->bytes);
}

/* {"rose": 0, "tulip": 1} has an order if its numbers are 0, 1, 2... */
static int gulp_read_classes(const struct dl2_bytes *text, char ***out, uint32_t *count,
                             struct dl2_error *error)
{
    json_auto_t *json = NULL;
    DL2_TRY(gulp_parse(text, JSON_REJECT_DUPLICATES, &json, error));
    *out = NULL;
    *count = (uint32_t)json_object_size(json);
    DL2_AUTO_FREE const char **names = dl2_calloc(*count, sizeof *names);
    bool ordered = names && *count;
    const char *class;
    json_t *number;
    json_object_foreach(json, class, number)
    {
        const json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
        ordered = ordered && i >= 0 && (uint64_t)i < *count && !names[i];
        if (ordered)
            names[i] = class;
    }
    if (ordered)
        *out = dl2_copy_texts(names, *count);
    return 1;
}

/* The companion of a shard, "meta_3.gmeta" of "data_3.gulp", read once. Locked. */
static int gulp_read_meta(const struct dl2_shard_place *place, struct dl2_error *error)
{
    const struct dl2_remote_file *remote = place->source.remote;
    const char *shard = remote ? remote->name : place->path, *base = dl2_path_base(shard);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = NULL;
    json_t *meta;
    if (place->kept->data)
        return DL2_OK;
    const int digits = (int)(strlen(base) - strlen("data") - strlen(".gulp"));
    DL2_TRY(dl2_format(&path, error, "%.*smeta%.*s.gmeta", (int)(base - shard), shard, digits,
                       base + strlen("data")));
    int status = remote
                     ? dl2_remote_load(remote->remote, path, DL2_MAX_SAMPLE_BYTES, 0, &text, error)
                     : dl2_file_read(path, DL2_MAX_SAMPLE_BYTES, &text, error);
    DL2_TRY(status);
    if (remote && !status)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: there is no such file", path);
    status = gulp_parse(&text, 0, &meta, error);
    dl2_error_prefix(error, "%s", path);
    place->kept->data = meta;
    return status;
}

/* The item of this id, if a frame of it begins at the offset; else NULL. */
static const json_t *gulp_item_at(const json_t *meta, const char *id, size_t length,
                                  uint64_t offset)
{
    DL2_AUTO_FREE char *name = strndup(id, length);
    const json_t *item = name ? json_object_get(meta, name) : NULL;
    const json_t *frames = json_object_get(item, "frame_info");
    for (size_t i = 0; i < json_array_size(frames); i++) {
        const json_t *at = json_array_get(json_array_get(frames, i), 0);
        if (json_is_integer(at) && (uint64_t)json_integer_value(at) == offset)
            return item;
    }
    return NULL;
}

/* A key is the id, with the split's folder before it and a frame's number behind it, or without. */
static const json_t *gulp_find_item(const struct dl2_shard_place *place)
{
    const json_t *meta = place->kept->data;
    const char *split_end = strchr(place->key, '/'), *frame = strrchr(place->key, '/');
    const char *const starts[] = {place->key, split_end ? split_end + 1 : NULL};
    for (int i = 0; i < 2 && starts[i]; i++) {
        const size_t whole = strlen(starts[i]);
        const size_t item = frame && frame > starts[i] ? (size_t)(frame - starts[i]) : whole;
        const json_t *found = gulp_item_at(meta, starts[i], whole, place->offset);
        if (!found)
            found = gulp_item_at(meta, starts[i], item, place->offset);
        if (found)
            return found;
    }
    return NULL;
}

static int gulp_find_data(const struct dl2_shard_place *place, const char *extension,
                          const json_t *json, struct gulp_place *data, struct dl2_error *error)
{
    if (!dl2_is_sidecar_extension(extension))
        return dl2_error_set(error, DL2_ERR_FORMAT, "sidecar \"%.200s\": not an extension",
                             extension);
    const int status = gulp_read_place(json, place->shard_bytes, data, error);
    dl2_error_prefix(error, "sidecar \"%.200s\"", extension);
    return status;
}

static int gulp_read_data(const struct dl2_shard_place *place, const struct gulp_place *data,
                          uint8_t *out, struct dl2_error *error)
{
    const int64_t got = dl2_source_read(&place->source, data->offset, out, data->bytes, error);
    if (got < 0)
        return (int)got;
    return got == data->bytes ? DL2_OK
                              : dl2_error_set(error, DL2_ERR_FORMAT,
                                              "%s: cut short since it was opened", place->path);
}

/* An object of JSON is the metadata; all else lies in the data file. */
static int gulp_read_sidecar(const struct dl2_shard_place *place, const char *extension,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    pthread_mutex_lock(&place->kept->mutex);
    int status = gulp_read_meta(place, error);
    pthread_mutex_unlock(&place->kept->mutex);
    DL2_TRY(status);
    const json_t *item = gulp_find_item(place);
    const json_t *sidecars = json_object_get(json_object_get(item, "beside"), extension);
    if (sidecars) {
        struct gulp_place data;
        DL2_TRY(gulp_find_data(place, extension, sidecars, &data, error));
        DL2_TRY(dl2_bytes_resize(out, data.bytes, error));
        DL2_TRY(gulp_read_data(place, &data, out->data, error));
        return 1;
    }
    const json_t *first = json_array_get(json_object_get(item, "meta_data"), 0);
    if (!first || strcmp(extension, "json") != 0)
        return 0;
    DL2_AUTO_FREE char *text = json_dumps(first, JSON_ENCODE_ANY);
    if (!text)
        return dl2_error_memory(error, "metadata");
    out->size = 0;
    DL2_TRY(dl2_bytes_append(out, text, strlen(text), error));
    return 1;
}

/* What the writer and the index say of every sample. */
static bool gulp_is_own_field(const char *name)
{
    return !strcmp(name, "id") || !strcmp(name, "label") || !strcmp(name, "idx");
}

static bool gulp_says_more(const json_t *meta_data)
{
    const char *name;
    json_t *value;
    if (meta_data && !json_is_object(meta_data))
        return true;
    json_object_foreach((json_t *)meta_data, name, value)
    {
        if (!gulp_is_own_field(name))
            return true;
    }
    return false;
}

/* Most chunks have nothing but classes. Such a one is read once, and nothing of it is kept. */
static int gulp_look_for_more(const struct dl2_shard_place *place, struct dl2_error *error)
{
    const char *id;
    json_t *item;
    if (place->kept->has_nothing || place->kept->data)
        return DL2_OK;
    DL2_TRY(gulp_read_meta(place, error));
    json_object_foreach((json_t *)place->kept->data, id, item)
    {
        if (json_object_get(item, "beside") ||
            gulp_says_more(json_array_get(json_object_get(item, "meta_data"), 0)))
            return DL2_OK;
    }
    json_decref(place->kept->data);
    place->kept->data = NULL;
    place->kept->has_nothing = true;
    return DL2_OK;
}

static int gulp_read_sidecars(const struct dl2_shard_place *place, struct dl2_sidecars *out,
                              struct dl2_error *error)
{
    pthread_mutex_lock(&place->kept->mutex);
    int status = gulp_look_for_more(place, error);
    const bool has_nothing = place->kept->has_nothing;
    pthread_mutex_unlock(&place->kept->mutex);
    if (status < 0 || has_nothing)
        return status;
    const json_t *item = gulp_find_item(place), *sidecars = json_object_get(item, "beside");
    struct dl2_sidecar *added;
    const char *extension;
    json_t *json;
    json_object_foreach((json_t *)sidecars, extension, json)
    {
        struct gulp_place data;
        DL2_TRY(gulp_find_data(place, extension, json, &data, error));
        DL2_TRY(dl2_sidecars_add(out, extension, data.bytes, &added, error));
        DL2_TRY(gulp_read_data(place, &data, added->bytes.data, error));
    }
    const json_t *first = json_array_get(json_object_get(item, "meta_data"), 0);
    if (!gulp_says_more(first) || json_object_get(sidecars, "json"))
        return DL2_OK;
    DL2_AUTO_FREE char *text = json_dumps(first, JSON_ENCODE_ANY);
    if (!text)
        return dl2_error_memory(error, "metadata");
    DL2_TRY(dl2_sidecars_add(out, "json", strlen(text), &added, error));
    memcpy(added->bytes.data, text, added->bytes.size);
    return DL2_OK;
}

static void gulp_forget(void *kept)
{
    json_decref(kept);
}

/* ---- Writing */

/* The next code point of UTF-8 that is known to be valid. */
static uint32_t gulp_next_code(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    const int more = p[0] < 0x80 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    static const uint32_t masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = p[0] & masks[more];
    for (int i = 1; i <= more; i++)
        code = code << 6 | (p[i] & 0x3f);
    *text += more + 1;
    return code;
}

/* Prints a JSON string in ASCII, as Python's json.dump() writes it, which GulpIO uses. */
static void gulp_print_json(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        static const char specials[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
        const char *special = strchr(specials, *text);
        const uint32_t code = gulp_next_code(&text);
        if (special)
            fprintf(out, "\\%c", names[special - specials]);
        else if (code >= ' ' && code <= '~')
            fputc((int)code, out);
        else if (code < 0x10000)
            fprintf(out, "\\u%04" PRIx32, code);
        else
            fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((code - 0x10000) >> 10),
                    0xdc00 + (code & 0x3ff));
    }
    fputc('"', out);
}

static bool gulp_is_utf8(const char *text)
{
    json_t *json = json_string(text);
    json_decref(json);
    return json;
}

static int gulp_check(const struct dl2_new_sample *sample, struct dl2_error *error)
{
    if (!sample->size)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "GulpIO has no empty samples");
    if (gulp_is_utf8(sample->id) && (!sample->class || gulp_is_utf8(sample->class)))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "the name is not UTF-8, as names in GulpIO must be; pack it as tar, or "
                         "rename it");
}

static bool gulp_holds_sidecars(const struct dl2_new_sample *sample, const struct dl2_sidecar *item)
{
    for (size_t i = 0; i < sample->sidecars.count; i++)
        if (!strcmp(sample->sidecars.items[i].extension, item->extension))
            return false;
    return dl2_is_sidecar_extension(item->extension) && gulp_is_utf8(item->extension);
}

/* Such an item goes into the metadata. */
static bool gulp_is_object(const struct dl2_sidecar *item)
{
    if (strcmp(item->extension, "json") != 0)
        return false;
    json_auto_t *json =
        json_loadb((const char *)item->bytes.data, item->bytes.size, JSON_REJECT_DUPLICATES, NULL);
    return json_is_object(json);
}

/* Prints the fields of an object that was let through, but for the sample's own. */
static int gulp_print_fields(FILE *out, const struct dl2_bytes *object, struct dl2_error *error)
{
    json_auto_t *json = json_loadb((const char *)object->data, object->size, 0, NULL);
    json_t *value;
    const char *name;
    if (!json)
        return dl2_error_memory(error, "metadata");
    json_object_foreach(json, name, value)
    {
        if (gulp_is_own_field(name))
            continue;
        DL2_AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        if (!text)
            return dl2_error_memory(error, "metadata");
        fputs(", ", out);
        gulp_print_json(out, name);
        fprintf(out, ": %s", text);
    }
    return DL2_OK;
}

/* Writes bytes with their fill to the data file, and where they are to the meta file. */
static int gulp_put(struct dl2_shard_output *output, const void *data, size_t size,
                    struct dl2_error *error)
{
    const size_t fill = -size % ALIGNMENT;
    fprintf(output->companion, "[%" PRIu64 ", %zu, %zu]", output->bytes, fill, size + fill);
    DL2_TRY(dl2_shard_put(output, data, size, error));
    return dl2_shard_put_zeros(output, fill, error);
}

/* The images come last: GulpIO's own check wants a data file to end where its last frame does. */
static int gulp_write_add(struct dl2_shard_output *output, const struct dl2_new_sample *sample,
                          uint64_t *offset, struct dl2_error *error)
{
    FILE *meta = output->companion;
    bool any = false;
    fputs(output->samples ? ", " : "{", meta);
    gulp_print_json(meta, sample->id);
    fputs(": {", meta);
    for (size_t i = 0; i < sample->sidecars.count; i++) {
        const struct dl2_sidecar *item = &sample->sidecars.items[i];
        if (gulp_is_object(item))
            continue;
        fputs(any ? ", " : "\"beside\": {", meta);
        any = true;
        gulp_print_json(meta, item->extension);
        fputs(": ", meta);
        DL2_TRY(gulp_put(output, item->bytes.data, item->bytes.size, error));
    }
    fputs(any ? "}, \"frame_info\": [" : "\"frame_info\": [", meta);
    *offset = output->bytes;
    DL2_TRY(gulp_put(output, sample->data, sample->size, error));
    for (size_t i = 1; i < sample->frame_count; i++) {
        fputs(", ", meta);
        offset[i] = output->bytes;
        DL2_TRY(gulp_put(output, sample->frames[i].data, sample->frames[i].size, error));
    }
    fputs("], \"meta_data\": [{\"id\": ", meta);
    gulp_print_json(meta, sample->id);
    if (sample->class) {
        fputs(", \"label\": ", meta);
        gulp_print_json(meta, sample->class);
        fprintf(meta, ", \"idx\": %d", sample->label);
    }
    for (size_t i = 0; i < sample->sidecars.count; i++)
        if (gulp_is_object(&sample->sidecars.items[i]))
            DL2_TRY(gulp_print_fields(meta, &sample->sidecars.items[i].bytes, error));
    fputs("}]}", meta);
    return DL2_OK;
}

static int gulp_write_end(struct dl2_shard_output *output, struct dl2_error *error)
{
    (void)error;
    fputc('}', output->companion);
    return DL2_OK;
}

/* {"rose": 0, "tulip": 1} */
static void gulp_write_classes(const char *const *names, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? ", " : "{", out);
        gulp_print_json(out, names[i]);
        fprintf(out, ": %" PRIu32, i);
    }
    fputc('}', out);
}

/* ---- The row */

static bool gulp_is_name(const char *name, const char *start, const char *end)
{
    return !strncmp(name, start, strlen(start)) && dl2_ends_with(name, end);
}

static enum dl2_file_role gulp_role(const char *name)
{
    return gulp_is_name(name, "data", ".gulp")    ? DL2_FILE_SHARD
           : gulp_is_name(name, "meta", ".gmeta") ? DL2_FILE_COMPANION
                                                  : DL2_FILE_OTHER;
}

static const struct dl2_shard_format gulp_format = {
    .index_kind = 1,
    .max_samples = DEFAULT_CHUNK_SAMPLES,
    .among_folders = true,
    .holds_clips = true,
    .shard = {"data_", ".gulp", 1, "data file (.gulp)"},
    .companion = {"meta_", ".gmeta", 1, "meta file (.gmeta)"},
    .classes_name = "label2idx.json",
    .role = gulp_role,
    .scan = gulp_scan,
    .read_classes = gulp_read_classes,
    .read_sidecar = gulp_read_sidecar,
    .read_sidecars = gulp_read_sidecars,
    .holds_sidecars = gulp_holds_sidecars,
    .forget = gulp_forget,
    .check = gulp_check,
    .write_add = gulp_write_add,
    .write_end = gulp_write_end,
    .write_classes = gulp_write_classes,
};

const struct dl2_container dl2_container_gulp = {
    .name = "gulp",
    .extensions = "gulp,gmeta",
    .summary = "GulpIO's chunks",
    .looks_for = "GulpIO chunks data_N.gulp",
    .can_write = true,
    .leaves_out = "GulpIO's chunks hold nothing of an extension that is not UTF-8",
    .reader = &dl2_packed_reader,
    .shards = &gulp_format,
};
