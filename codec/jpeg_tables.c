/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg_tables.h"

#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { KINDS = 2, COEFFICIENTS = 64, MAX_STEP = 255, MAX_FAMILIES = 256 };
static const char *const kinds[KINDS] = {"luma", "chroma"};

/* ---- Reading */

/* "16 11 10 ..." */
static bool read_steps(const json_t *json, uint8_t out[COEFFICIENTS])
{
    const char *at = json_string_value(json);
    size_t k = 0;
    while (at && *at && k < COEFFICIENTS) {
        char *end;
        const unsigned long step = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;
        if (step < 1 || step > MAX_STEP)
            return false;
        out[k++] = (uint8_t)step;
        at = end + (*end == ' ');
    }
    return at && !*at && k == COEFFICIENTS;
}

static bool read_text(const json_t *json, const char *key, char *out, size_t size)
{
    const char *text = dl2_json_get_text(json, key, NULL);
    if (!text || strlen(text) >= size)
        return false;
    strcpy(out, text);
    return true;
}

static bool read_family(const json_t *json, struct dl2_jpeg_family *out)
{
    const json_t *qualities = json_object_get(json, "qualities");
    bool good = read_text(json, "resolution", out->resolution, sizeof out->resolution) &&
                read_text(json, "subsampling", out->subsampling, sizeof out->subsampling) &&
                json_array_size(qualities) == DL2_TABLES_QUALITIES;
    for (size_t q = 0; good && q < DL2_TABLES_QUALITIES; q++) {
        const json_t *one = json_array_get(qualities, q);
        for (int kind = 0; good && kind < KINDS; kind++)
            good = read_steps(json_object_get(one, kinds[kind]), out->steps[q][kind]);
    }
    return good;
}

static uint64_t sum_of(const struct dl2_jpeg_family *family)
{
    const uint64_t sum = XXH3_64bits(family->steps, sizeof family->steps);
    return XXH3_64bits_withSeed(family->subsampling, strlen(family->subsampling), sum);
}

static int read_families(struct dl2_jpeg_tables *tables, const json_t *json,
                         struct dl2_error *error)
{
    const json_t *families = json_object_get(json, "families");
    const size_t count = json_array_size(families);
    tables->families =
        count && count <= MAX_FAMILIES ? dl2_calloc(count, sizeof *tables->families) : NULL;
    if (count && count <= MAX_FAMILIES && !tables->families)
        return dl2_error_memory(error, "quantization tables");
    bool good = tables->families;
    for (size_t f = 0; good && f < count; f++) {
        good = read_family(json_array_get(families, f), &tables->families[f]);
        tables->families[f].sum = sum_of(&tables->families[f]);
    }
    tables->count = count;
    return good ? DL2_OK
                : dl2_error_set(error, DL2_ERR_FORMAT,
                                "%s is not a file of quantization tables: make it again with "
                                "dl2-transcode fit-tables",
                                tables->path);
}

/* The file's name, which becomes part of variants' names. */
static int take_name(struct dl2_jpeg_tables *tables, struct dl2_error *error)
{
    const char *slash = strrchr(tables->path, '/'), *name = slash ? slash + 1 : tables->path;
    const size_t length = strcspn(name, ".");
    bool good = length && length < sizeof tables->name && isalpha((unsigned char)*name);
    for (size_t i = 0; good && i < length; i++)
        good = isalnum((unsigned char)name[i]);
    if (!good)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: variants are named after the file of tables, which takes letters "
                             "and digits, a letter first, at most %d: rename it",
                             tables->path, DL2_TABLES_NAME_SIZE - 1);
    memcpy(tables->name, name, length);
    return DL2_OK;
}

int dl2_jpeg_tables_name(const char *path, struct dl2_jpeg_tables **out, struct dl2_error *error)
{
    struct dl2_jpeg_tables *const tables = *out = dl2_calloc(1, sizeof *tables);
    if (!tables || !(tables->path = strdup(path)))
        return dl2_error_memory(error, "quantization tables");
    return take_name(tables, error);
}

int dl2_jpeg_tables_load(struct dl2_jpeg_tables *tables, struct dl2_error *error)
{
    json_auto_t *json = NULL;
    if (tables->families)
        return DL2_OK;
    DL2_TRY(dl2_json_load(tables->path, DL2_TABLES_SCHEMA, &json, error));
    tables->about = json_incref(json_object_get(json, "about"));
    return read_families(tables, json, error);
}

void dl2_jpeg_tables_free(struct dl2_jpeg_tables *tables)
{
    if (!tables)
        return;
    json_decref(tables->about);
    free(tables->families);
    free(tables->path);
    free(tables);
}

const struct dl2_jpeg_family *dl2_jpeg_tables_find(const struct dl2_jpeg_tables *tables,
                                                   const char *resolution, const char *subsampling,
                                                   struct dl2_error *error)
{
    char known[512] = "";
    for (size_t f = 0; f < tables->count; f++) {
        const struct dl2_jpeg_family *family = &tables->families[f];
        if (!strcmp(family->resolution, resolution) && !strcmp(family->subsampling, subsampling))
            return family;
        const size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s with %s", f ? ", " : "",
                 *family->resolution ? family->resolution : "full size", family->subsampling);
    }
    dl2_error_set(error, DL2_ERR_ARGUMENT,
                  "%s has no tables for %s with chroma subsampling %s, but for %s: fit them with "
                  "dl2-transcode fit-tables and the same options",
                  tables->path, *resolution ? resolution : "full size", subsampling, known);
    return NULL;
}

/* ---- Writing */

static json_t *steps_json(const uint8_t steps[COEFFICIENTS])
{
    char text[COEFFICIENTS * 4 + 1] = "";
    size_t length = 0;
    for (size_t k = 0; k < COEFFICIENTS; k++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%u", k ? " " : "",
                                   (unsigned)steps[k]);
    return json_string(text);
}

static json_t *family_json(const struct dl2_jpeg_family *family)
{
    json_t *qualities = json_array();
    for (size_t q = 0; q < DL2_TABLES_QUALITIES; q++)
        json_array_append_new(qualities, json_pack("{s:f, s:o, s:o}", "lambda", family->lambda[q],
                                                   "luma", steps_json(family->steps[q][0]),
                                                   "chroma", steps_json(family->steps[q][1])));
    return json_pack("{s:s, s:s, s:o}", "resolution", family->resolution, "subsampling",
                     family->subsampling, "qualities", qualities);
}

int dl2_jpeg_tables_save(const char *path, const struct dl2_jpeg_family *families, size_t count,
                         json_t *about, struct dl2_error *error)
{
    json_t *all = json_array();
    for (size_t f = 0; f < count; f++)
        json_array_append_new(all, family_json(&families[f]));
    return dl2_json_save_new(
        path,
        json_pack("{s:s, s:o, s:o}", "schema", DL2_TABLES_SCHEMA, "about", about, "families", all),
        error);
}
