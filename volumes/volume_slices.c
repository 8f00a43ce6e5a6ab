/* SPDX-License-Identifier: BSD-2-Clause */
#include "volumes/volume_slices.h"

#include "common/json.h"
#include "common/scope.h"
#include "dataset/packed/tar_members.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA      "dl2-slices/1"
#define HEADER_NAME "volume.json"
#define MAX_MINIMUM 9007199254740992 /* 2^53: double holds all whole numbers up to it */
#define MAX_JSON    ((uint64_t)32 << 20)
#define MAX_PIXELS  ((uint64_t)1 << 28) /* of a slice */
#define MAX_SLICES  ((uint64_t)1 << 20)
#define SLICE_BYTES ((uint64_t)INT32_MAX)

void dl2_volume_slices_free(struct dl2_volume_slices *slices)
{
    free(slices->table);
    *slices = (struct dl2_volume_slices){0};
}

/* ---- Reading */

/* A whole number of `list`; -1: there is none. */
static int64_t slices_whole(const json_t *list, size_t index)
{
    const json_t *value = json_array_get(list, index);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : -1;
}

static int slices_bad(const char *what, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, HEADER_NAME ": %s is missing or makes no sense",
                         what);
}

/* dl2_volume_check() comes after it. */
static int slices_parse_size(const json_t *json, struct dl2_volume_info *info,
                             struct dl2_error *error)
{
    const json_t *size = json_object_get(json, "size"), *spacing = json_object_get(json, "spacing");
    const long long channels = dl2_json_get_integer(json, "channels", 0);
    if (channels < 1 || channels > DL2_VOLUME_MAX_CHANNELS)
        return slices_bad("channels", error);
    info->channels = (size_t)channels;
    for (size_t i = 0; i < 3; i++) {
        const int64_t side = json_array_size(size) == 3 ? slices_whole(size, i) : -1;
        if (side < 1 || side > INT32_MAX)
            return slices_bad("size", error);
        const double gap = json_number_value(json_array_get(spacing, i));
        if (!isfinite(gap) || gap < 0 || (spacing && json_array_size(spacing) != 3))
            return slices_bad("spacing", error);
        info->size[i] = (size_t)side;
        info->spacing[i] = (float)gap;
    }
    return (uint64_t)info->size[1] * info->size[2] <= MAX_PIXELS &&
                   (uint64_t)info->channels * info->size[0] <= MAX_SLICES
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_LIMIT,
                               HEADER_NAME ": more than %" PRIu64 " pixels in a slice, or %" PRIu64
                                           " slices",
                               MAX_PIXELS, MAX_SLICES);
}

static int slices_parse_values(const json_t *json, struct dl2_volume_info *info,
                               struct dl2_volume_slices *slices, struct dl2_error *error)
{
    const long long bits = dl2_json_get_integer(json, "bits", 0);
    const json_t *minimum = json_object_get(json, "minimum");
    info->slope = dl2_json_get_real(json, "slope", NAN);
    info->intercept = dl2_json_get_real(json, "intercept", NAN);
    info->minimum = json_integer_value(minimum);
    if (bits < DL2_GRAY_MIN_BITS || bits > DL2_GRAY_MAX_BITS)
        return slices_bad("bits", error);
    if (!isfinite(info->slope) || !isfinite(info->intercept))
        return slices_bad("slope or intercept", error);
    if (!json_is_integer(minimum) || info->minimum > MAX_MINIMUM || info->minimum < -MAX_MINIMUM)
        return slices_bad("minimum", error);
    slices->bits = (unsigned)bits;
    return DL2_OK;
}

static int slices_parse_table(const json_t *json, const struct dl2_volume_info *info,
                              uint64_t start, uint64_t end, struct dl2_volume_slices *slices,
                              struct dl2_error *error)
{
    const json_t *table = json_object_get(json, "slices"), *row;
    const size_t count = info->channels * info->size[0];
    size_t i;
    if (json_array_size(table) != count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             HEADER_NAME ": it lists %zu slices, and the volume has %zu",
                             json_array_size(table), count);
    DL2_TRY(DL2_NEW(&slices->table, count, "slices", error));
    slices->count = count;
    json_array_foreach(table, i, row)
    {
        const int64_t offset = slices_whole(row, 0), bytes = slices_whole(row, 1);
        if (offset < 0 || bytes < 1 || (uint64_t)bytes > SLICE_BYTES ||
            (uint64_t)offset > end - start || (uint64_t)bytes > end - start - (uint64_t)offset)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 HEADER_NAME ": slice %zu does not lie in the file; is it cut "
                                             "short? Copy it again",
                                 i);
        slices->table[i] = (struct dl2_volume_slice){start + (uint64_t)offset, (uint64_t)bytes};
    }
    return DL2_OK;
}

int dl2_volume_slices_parse(const char *text, size_t size, uint64_t start, uint64_t end,
                            struct dl2_volume_info *info, struct dl2_volume_slices *slices,
                            struct dl2_error *error)
{
    json_error_t why;
    *slices = (struct dl2_volume_slices){0};
    *info = (struct dl2_volume_info){.type = DL2_VOXEL_U16};
    json_auto_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        return dl2_error_set(error, DL2_ERR_FORMAT, HEADER_NAME ": line %d: %s", why.line,
                             why.text);
    if (strcmp(dl2_json_get_text(json, "schema", ""), SCHEMA) != 0)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             HEADER_NAME ": its schema is not " SCHEMA
                                         "; was it made by another version?");
    DL2_TRY(slices_parse_size(json, info, error));
    DL2_TRY(slices_parse_values(json, info, slices, error));
    return slices_parse_table(json, info, start, end, slices, error);
}

int dl2_volume_slices_read(int fd, uint64_t bytes, struct dl2_volume_info *info,
                           struct dl2_volume_slices *slices, struct dl2_error *error)
{
    const struct dl2_shard_source source = {.fd = fd};
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_CLEANUP(dl2_tar_walk_close) struct dl2_tar_walk walk;
    struct dl2_tar_member member;
    *slices = (struct dl2_volume_slices){0};
    DL2_TRY(dl2_tar_walk_open(&walk, &source, bytes, error));
    const int found = dl2_tar_next(&walk, &member, error);
    DL2_TRY(found);
    if (!found || strcmp(member.name, HEADER_NAME) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its first member is not " HEADER_NAME);
    if (member.size > MAX_JSON)
        return dl2_error_set(error, DL2_ERR_LIMIT, HEADER_NAME ": it has %" PRIu64 " bytes",
                             member.size);
    DL2_TRY(dl2_bytes_resize(&text, (size_t)member.size, error));
    DL2_TRY(dl2_tar_read_at(&source, member.offset, text.data, text.size, error));
    return dl2_volume_slices_parse((const char *)text.data, text.size, walk.at, bytes, info, slices,
                                   error);
}

/* ---- Writing */

/* Appends a member to bytes in memory; NULL: the end of the file. */
static int slices_put(struct dl2_bytes *out, const char *name, const void *data, size_t size,
                      struct dl2_error *error)
{
    char *text = NULL;
    size_t length;
    struct dl2_shard_output output = {.file = open_memstream(&text, &length), .path = "a volume"};
    if (!output.file)
        return dl2_error_memory(error, "a volume");
    int status = name ? dl2_tar_put_member(&output, name, data, size, error)
                      : dl2_tar_put_end(&output, error);
    if (fclose(output.file) != 0 && status == DL2_OK)
        status = dl2_error_memory(error, "a volume");
    if (status == DL2_OK)
        status = dl2_bytes_append(out, text, length, error);
    free(text);
    return status;
}

int dl2_volume_slices_add(struct dl2_volume_slices_writer *writer,
                          const struct dl2_volume_info *info, const struct dl2_bytes *image,
                          struct dl2_error *error)
{
    struct dl2_volume_slices *slices = &writer->slices;
    const size_t channel = slices->count / info->size[0], z = slices->count % info->size[0];
    char name[64];
    if (info->channels > 1)
        snprintf(name, sizeof name, "%zu-%04zu.%s", channel, z, writer->extension);
    else
        snprintf(name, sizeof name, "%04zu.%s", z, writer->extension);
    DL2_TRY(dl2_grow(&slices->table, slices->count, sizeof *slices->table, error));
    slices->table[slices->count++] =
        (struct dl2_volume_slice){writer->members.size + DL2_TAR_BLOCK, image->size};
    return slices_put(&writer->members, name, image->data, image->size, error);
}

static json_t *slices_describe(const struct dl2_volume_slices *slices,
                               const struct dl2_volume_info *info, const char *type)
{
    json_t *table = json_array();
    bool good = table;
    for (size_t i = 0; good && i < slices->count; i++)
        good = json_array_append_new(table, json_pack("[I, I]", (json_int_t)slices->table[i].offset,
                                                      (json_int_t)slices->table[i].bytes)) == 0;
    if (good)
        return json_pack("{s:s, s:I, s:[I, I, I], s:[f, f, f], s:s, s:i, s:I, s:f, s:f, s:o}",
                         "schema", SCHEMA, "channels", (json_int_t)info->channels, "size",
                         (json_int_t)info->size[0], (json_int_t)info->size[1],
                         (json_int_t)info->size[2], "spacing", (double)info->spacing[0],
                         (double)info->spacing[1], (double)info->spacing[2], "source_type", type,
                         "bits", (int)slices->bits, "minimum", (json_int_t)info->minimum, "slope",
                         info->slope, "intercept", info->intercept, "slices", table);
    json_decref(table);
    return NULL;
}

int dl2_volume_slices_finish(const struct dl2_volume_slices_writer *writer,
                             const struct dl2_volume_info *info, const char *type,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    json_auto_t *json = slices_describe(&writer->slices, info, type);
    DL2_AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text)
        return dl2_error_memory(error, "a volume");
    out->size = 0;
    DL2_TRY(slices_put(out, HEADER_NAME, text, strlen(text), error));
    DL2_TRY(dl2_bytes_append(out, writer->members.data, writer->members.size, error));
    return slices_put(out, NULL, NULL, 0, error);
}

void dl2_volume_slices_writer_free(struct dl2_volume_slices_writer *writer)
{
    dl2_volume_slices_free(&writer->slices);
    dl2_bytes_free(&writer->members);
}
