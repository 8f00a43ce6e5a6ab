/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "quality/codec_compare.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A variant's name without its quality, "jpeg@320" of "jpeg-50@320". To free; NULL: no memory. */
static char *batch_name(const struct dl2_scored_variant *variant)
{
    char quality[32];
    const int length = snprintf(quality, sizeof quality, "-%02d", variant->quality);
    char *const name = strdup(variant->name), *at = name;
    while (name && variant->quality >= 0 && (at = strstr(at, quality))) {
        char *const rest = at + length;
        if (!*rest || *rest == '@') {
            memmove(at, rest, strlen(rest) + 1);
            break;
        }
        at++;
    }
    return name;
}

/* Jansson's functions accept NULL, so one check at the end suffices. */
static void describe(json_t *list, const char *name, const char *text)
{
    json_t *entry = json_object();
    json_object_set_new(entry, name, dl2_json_text(text));
    json_array_append_new(list, entry);
}

static json_t *start_batch(const struct dl2_scoring *scoring,
                           const struct dl2_scored_variant *variant, const char *name)
{
    json_t *constants = json_array(), *values = json_array(), *fields = json_array();
    const char *const facts[][3] = {
        {"name", "Codec, settings and resolution", name},
        {"codec", "Codec", variant->codec ? variant->codec : name},
        {"version", "Library that encoded", variant->library ? variant->library : "unknown"},
        {"source_data_set", "Path of the originals", scoring->reference}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        describe(constants, facts[i][0], facts[i][1]);
        json_array_append_new(values, dl2_json_text(facts[i][2]));
    }
    describe(fields, "original_name", "Key of the image");
    describe(fields, "width", "Pixel columns of the image that was scored");
    describe(fields, "height", "Pixel rows of the image that was scored");
    if (variant->quality >= 0)
        describe(fields, "quality", "Quality given to the encoder, 1 to 100");
    describe(fields, "encoded_size", "Size of the encoded file in bytes");
    for (unsigned m = 0; m < scoring->metric_count; m++) {
        const struct dl2_metric *metric = scoring->metrics[m];
        describe(fields, metric->viewer_name ? metric->viewer_name : metric->name,
                 metric->definition);
    }
    json_t *batch = json_object();
    json_object_set_new(batch, "constant_descriptions", constants);
    json_object_set_new(batch, "constant_values", values);
    json_object_set_new(batch, "field_descriptions", fields);
    json_object_set_new(batch, "field_values", json_array());
    return batch;
}

static bool has_all_values(const struct dl2_scoring *scoring, const struct dl2_pair *pair)
{
    for (unsigned m = 0; m < scoring->metric_count; m++)
        if (isnan(pair->scores[m].value))
            return false;
    return true;
}

static void add_rows(const struct dl2_scoring *scoring, const struct dl2_scored_variant *variant,
                     json_t *batch, struct dl2_codec_compare_counts *counts)
{
    json_t *rows = json_object_get(batch, "field_values");
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_pair *pair = &variant->pairs[i];
        if (pair->state != DL2_PAIR_SCORED)
            continue;
        if (!has_all_values(scoring, pair)) {
            counts->left_out++;
            continue;
        }
        json_t *row = json_array();
        json_array_append_new(row, dl2_json_text(scoring->keys[i]));
        json_array_append_new(row, json_integer(pair->width));
        json_array_append_new(row, json_integer(pair->height));
        if (variant->quality >= 0)
            json_array_append_new(row, json_integer(variant->quality));
        json_array_append_new(row, json_integer((json_int_t)pair->bytes));
        for (unsigned m = 0; m < scoring->metric_count; m++)
            json_array_append_new(row, json_real(pair->scores[m].value));
        json_array_append_new(rows, row);
        counts->rows++;
    }
}

/* Writes FOLDER/NAME.json; its name goes into the list, if there is one. */
static int save_batch(const char *folder, const char *name, json_t *batch, json_t *list,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/%s.json", folder, name));
    if (list)
        json_array_append_new(list, json_pack("[o]", json_sprintf("%s.json", name)));
    return dl2_json_save(path, batch, error);
}

int dl2_codec_compare_write(const struct dl2_scoring *scoring, const char *folder,
                            struct dl2_codec_compare_counts *counts, struct dl2_error *error)
{
    json_auto_t *batches = json_object(), *list = json_array();
    json_t *batch;
    const char *name;
    *counts = (struct dl2_codec_compare_counts){0};
    for (size_t v = 0; v < scoring->variant_count; v++) {
        const struct dl2_scored_variant *variant = &scoring->variants[v];
        DL2_AUTO_FREE char *own = batch_name(variant);
        if (!own)
            return dl2_error_memory(error, "a name");
        if (!strcmp(own, "batches"))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: codec-compare's list has this name: rename the folder",
                                 variant->path);
        if (!json_object_get(batches, own))
            json_object_set_new(batches, own, start_batch(scoring, variant, own));
        add_rows(scoring, variant, json_object_get(batches, own), counts);
    }
    json_object_foreach(batches, name, batch)
    {
        if (!json_array_size(json_object_get(batch, "field_values")))
            continue;
        DL2_TRY(save_batch(folder, name, batch, list, error));
        counts->batches++;
    }
    return save_batch(folder, "batches", list, NULL, error);
}
