/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/variant.h"

#include "codec/external.h"
#include "codec/settings.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/variant_state.h"
#include "volumes/volume_slices.h"

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

char *dl2_variant_inside(const struct dl2_variant *variant, const char *name, const char *end,
                         struct dl2_error *error)
{
    char *path;
    dl2_format(&path, error, "%s/%s%s", variant->waiting ? variant->waiting : variant->root, name,
               end);
    return path;
}

int dl2_variant_list_hidden(const struct dl2_variant *variant, const char *start, char ***names,
                            size_t *count, struct dl2_error *error)
{
    const char *root = variant->waiting ? variant->waiting : variant->root;
    DIR *folder = opendir(root);
    const struct dirent *entry;
    int status = DL2_OK;
    *names = NULL;
    *count = 0;
    if (!folder)
        return errno == ENOENT ? DL2_OK : dl2_error_system(error, "%s: can't be listed", root);
    while (status == DL2_OK && (entry = readdir(folder)))
        if (!strncmp(entry->d_name, start, strlen(start)))
            status = dl2_list_append(names, count, strdup(entry->d_name), error);
    closedir(folder);
    if (*count)
        qsort(*names, *count, sizeof **names, dl2_compare_texts);
    if (status < 0) {
        dl2_free_list(*names);
        *names = NULL;
    }
    return status;
}

void dl2_record_free(struct dl2_record *record)
{
    free(record->sidecars);
    free(record->reduction.color);
    record->sidecars = record->reduction.color = NULL;
}

static bool has_key(const void *context, const char *key)
{
    return dl2_source_items_has(context, key);
}

struct dl2_folder_keys dl2_variant_keys(const struct dl2_source_items *items)
{
    return (struct dl2_folder_keys){has_key, items, items->label_folders};
}

void dl2_variant_show_sum(const struct dl2_source_item *item, char out[DL2_SIDECAR_SUM_SIZE])
{
    out[0] = '\0';
    if (item->sidecar_sum)
        snprintf(out, DL2_SIDECAR_SUM_SIZE, "%016" PRIx64, item->sidecar_sum);
}

/* -- what a variant is -- */

/* `never_larger`, `metadata`, `settings`, `target`, `resize`, `shuffle` and shards are there only
 * if they can matter, so that other variants are as good as before. */
static json_t *describe_options(const struct dl2_transcode_options *options,
                                const struct dl2_transcode_target *target)
{
    const struct dl2_codec *codec = target->codec;
    const struct dl2_encode_options *encode = &target->encode;
    const uint8_t *color = options->decode.background;
    char background[8];
    snprintf(background, sizeof background, "#%02x%02x%02x", color[0], color[1], color[2]);
    json_t *effort = encode->effort >= 0 ? json_integer(encode->effort)
                     : codec->usual_effort < 0 && codec->max_effort >= 0 ? json_string("auto")
                                                                         : json_null();
    json_t *described = json_pack(
        "{s:s?, s:o, s:s?, s:s, s:s, s:I}", "subsampling",
        codec->has_subsampling ? encode->subsampling : NULL, "effort", effort, "restart",
        codec->has_restart ? encode->restart : NULL, "background", background, "color",
        dl2_color_rules[options->color], "max_pixels", (json_int_t)options->decode.max_pixels);
    json_auto_t *settings = dl2_settings_json(codec, encode);
    bool bad = !described || !settings;
    if (json_object_size(settings))
        bad |= json_object_set(described, "settings", settings);
    if (options->never_larger && codec->lossy && codec->open)
        bad |= json_object_set_new(described, "never_larger", json_true());
    if (options->decode.drop_bands)
        bad |= json_object_set_new(described, "drop_bands", json_true());
    if (options->metadata != DL2_METADATA_USUAL)
        bad |= json_object_set_new(described, "metadata",
                                   json_string(dl2_metadata_rules[options->metadata]));
    if (target->target.name)
        bad |= json_object_set_new(described, "target", dl2_target_json(&target->target));
    if (!dl2_resolution_is_full(&target->resolution))
        bad |= json_object_set_new(described, "resize", dl2_resolution_json(&target->resolution));
    if (options->shuffle)
        bad |= json_object_set_new(described, "shuffle",
                                   json_sprintf("%llu", (unsigned long long)*options->shuffle));
    if (!bad && dl2_container_is_packed(options->pack.container))
        bad |= dl2_writer_describe(&options->pack, described, NULL) < 0;
    if (!bad)
        return described;
    json_decref(described);
    return NULL;
}

/* The same of volumes, to which little of that applies. */
static json_t *describe_volume_options(const struct dl2_transcode_options *options,
                                       const struct dl2_transcode_target *target)
{
    const struct dl2_encode_options *encode = &target->encode;
    json_auto_t *settings = dl2_settings_json(target->codec, encode);
    return settings ? json_pack("{s:s, s:o, s:O*, s:I}", "files", "volumes of slices", "effort",
                                encode->effort >= 0 ? json_integer(encode->effort) : json_null(),
                                "settings", json_object_size(settings) ? settings : NULL,
                                "max_pixels", (json_int_t)options->decode.max_pixels)
                    : NULL;
}

/* How sources are decoded, as far as `options` and `libraries` do not say. */
static json_t *describe_decoding(const struct dl2_external_decoders *external)
{
    json_t *commands = json_array();
    for (size_t i = 0; external && external->commands[i]; i++) {
        char version[DL2_CODEC_VERSION_SIZE];
        const char *equals = strchr(external->commands[i], '=');
        dl2_external_command_version(equals ? equals + 1 : "", version);
        json_array_append_new(commands, json_pack("{s:o, s:o}", "command",
                                                  dl2_json_text(external->commands[i]), "files",
                                                  dl2_json_text(version)));
    }
    return json_pack("{s:s, s:o, s:o}", "dl2", PACKAGE_VERSION, "decoders", commands, "timeout",
                     dl2_json_real(external ? external->timeout : 0));
}

char *dl2_variant_name(const struct dl2_transcode_target *target)
{
    const char *codec = target->name ? target->name : target->codec->name;
    char resolution[DL2_RESOLUTION_NAME_SIZE], *name;
    dl2_resolution_name(&target->resolution, resolution);
    const int length = target->target.name
                           ? asprintf(&name, "%s-%s%g%s", codec, target->target.name,
                                      target->target.value, resolution)
                       : dl2_settings_use_quality(target->codec, &target->encode)
                           ? asprintf(&name, "%s-%02d%s", codec, target->encode.quality, resolution)
                           : asprintf(&name, "%s%s", codec, resolution);
    return length < 0 ? NULL : name;
}

int dl2_variant_init(struct dl2_variant *variant, const struct dl2_transcode_options *options,
                     const struct dl2_transcode_target *target, bool volumes,
                     struct dl2_error *error)
{
    const struct dl2_codec *codec = target->codec;
    struct dl2_encode_options encode = target->encode;
    *variant = (struct dl2_variant){.options = options,
                                    .codec = codec,
                                    .encode = encode,
                                    .resolution = target->resolution,
                                    .target = target->target,
                                    .extension = volumes ? DL2_SLICES_EXTENSION : codec->extension,
                                    .container = options->pack.container,
                                    .packed = dl2_container_is_packed(options->pack.container),
                                    .on_server = !dl2_output_is_folder(options->dest)};
    pthread_mutex_init(&variant->mutex, NULL);
    variant->name = dl2_variant_name(target);
    if (!variant->name)
        return dl2_error_memory(error, "a variant");
    variant->root = dl2_facts_place(options->dest, variant->name);
    if (options->staged && !(variant->waiting = dl2_path_join(options->staged, variant->name)))
        return dl2_error_memory(error, "a variant");
    json_t *libraries = dl2_codec_versions();
    if (libraries && encode.external) {
        char version[DL2_CODEC_VERSION_SIZE];
        dl2_external_version(encode.external, version);
        json_object_set_new(libraries, codec->name, dl2_json_text(version));
    }
    if (libraries && codec->video) {
        char version[DL2_CODEC_VERSION_SIZE];
        json_object_set_new(libraries, codec->name, json_string(dl2_codec_version(codec, version)));
    }
    const bool has_quality = dl2_settings_use_quality(codec, &encode) && !target->target.name;
    json_t *quality = has_quality ? json_integer(encode.quality) : json_null();
    if (target->target.name)
        encode.quality = target->target.high;
    encode.gray = volumes;
    variant->about = json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "codec", codec->name, "quality", quality, "options",
        volumes ? describe_volume_options(options, target) : describe_options(options, target),
        "encoder", codec->encoder_parameters(&encode), "libraries", libraries);
    variant->decoding = describe_decoding(options->decode.external);
    return variant->root && variant->about && variant->decoding
               ? DL2_OK
               : dl2_error_memory(error, "a variant");
}

bool dl2_variant_decodes_alike(const struct dl2_variant *variant)
{
    return json_equal(json_object_get(variant->old, "decoding"), variant->decoding) &&
           json_equal(json_object_get(variant->old, "libraries"),
                      json_object_get(variant->about, "libraries"));
}

/* -- the summary -- */

/* A field that is left out where it does not apply. */
static json_t *count_if(bool applies, uint64_t count)
{
    return applies ? json_integer((json_int_t)count) : NULL;
}

json_t *dl2_variant_summarize(const struct dl2_variant *variant, bool complete, json_t *failed)
{
    const struct dl2_variant_totals *totals = &variant->totals;
    const json_t *about = variant->about;
    json_t *class_files =
        complete ? variant->class_files : json_object_get(variant->old, "class_files");
    const double bits = totals->pixels ? 8.0 * (double)totals->bytes / (double)totals->pixels : NAN;
    json_t *summary =
        json_pack("{s:s, s:s, s:O, s:O, s:b, s:s*, s:o, s:O, s:O, s:O}", "schema",
                  DL2_VARIANT_SCHEMA, "variant", variant->name, "codec",
                  json_object_get(about, "codec"), "quality", json_object_get(about, "quality"),
                  "complete", complete, "container", variant->packed ? variant->container : NULL,
                  "source", dl2_json_text(variant->options->source), "options",
                  json_object_get(about, "options"), "encoder", json_object_get(about, "encoder"),
                  "libraries", json_object_get(about, "libraries"));
    const bool aims = variant->target.name, resizes = !dl2_resolution_is_full(&variant->resolution);
    bool good = dl2_json_add(
        summary,
        json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, "
                  "s:o*}",
                  "images", (json_int_t)totals->images, "pixels", (json_int_t)totals->pixels,
                  "bytes", (json_int_t)totals->bytes, "bits_per_pixel", dl2_json_real(bits),
                  "source_bytes", (json_int_t)totals->source_bytes, "copied",
                  (json_int_t)totals->copied, "copied_bytes", (json_int_t)totals->copied_bytes,
                  "frames", count_if(totals->frames, totals->frames), "pixels_only",
                  count_if(totals->pixels_only, totals->pixels_only), "quantized",
                  count_if(totals->quantized, totals->quantized), "quantization_error",
                  totals->quantized ? json_real(totals->quantization_error) : NULL, "missed",
                  count_if(aims, totals->missed), "probes", count_if(aims, totals->probes),
                  "resized", count_if(resizes, totals->resized), "source_pixels",
                  count_if(resizes, totals->source_pixels)));
    good &= dl2_json_add(
        summary, json_pack("{s:O*, s:o, s:o, s:O, s:O*, s:I}", "colors",
                           json_object_size(variant->losses) ? variant->losses : NULL,
                           "encode_cpu_seconds", dl2_json_real(totals->encode_cpu),
                           "decode_cpu_seconds", dl2_json_real(totals->decode_cpu), "failed",
                           failed, "decoding", json_array_size(failed) ? variant->decoding : NULL,
                           "ignored", (json_int_t)(complete ? variant->items->ignored : 0)));
    if (good && class_files)
        good = json_object_set(summary, "class_files", class_files) == 0;
    if (good)
        return summary;
    json_decref(summary);
    return NULL;
}

void dl2_variant_free(struct dl2_variant *variant)
{
    const size_t count = variant->items ? variant->items->count : 0;
    if (variant->journal)
        fclose(variant->journal);
    dl2_writer_close(variant->writer);
    dl2_staging_free(&variant->staging);
    free(variant->staged);
    for (size_t i = 0; variant->errors && i < count; i++)
        free(variant->errors[i]);
    for (size_t i = 0; variant->records && i < count; i++)
        dl2_record_free(&variant->records[i]);
    json_decref(variant->losses);
    json_decref(variant->class_files);
    dl2_free_list(variant->strays);
    dl2_free_list(variant->old_sidecars);
    dl2_free_list(variant->beside);
    dl2_left_out_free(&variant->left_out);
    free(variant->errors);
    free(variant->records);
    json_decref(variant->about);
    json_decref(variant->decoding);
    json_decref(variant->old);
    free(variant->name);
    free(variant->root);
    free(variant->waiting);
    pthread_mutex_destroy(&variant->mutex);
}
