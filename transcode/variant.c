/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant.h"

#include "codec/external.h"
#include "codec/settings.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/quote.h"
#include "transcode/output_folder.h"
#include "transcode/sidecar_files.h"
#include "transcode/variant_state.h"

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a journal's lines may wait in memory. */
#define FLUSH_SECONDS 0.2

/* -- for both files of a variant -- */

char *dl2_variant_inside(const struct dl2_variant *variant, const char *name,
                         struct dl2_error *error)
{
    char *path = dl2_path_join(variant->root, name);
    if (!path)
        dl2_error_memory(error, "a variant");
    return path;
}

int dl2_variant_add_text(char ***list, size_t *count, char *text, struct dl2_error *error)
{
    char **grown = text ? dl2_realloc(*list, *count + 2, sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return dl2_error_memory(error, "a variant");
    }
    *list = grown;
    grown[(*count)++] = text;
    grown[*count] = NULL;
    return DL2_OK;
}

int dl2_variant_list_hidden(const struct dl2_variant *variant, const char *start, char ***names,
                            size_t *count, struct dl2_error *error)
{
    DIR *folder = opendir(variant->root);
    const struct dirent *entry;
    int status = DL2_OK;
    *names = NULL;
    *count = 0;
    if (!folder)
        return errno == ENOENT ? DL2_OK
                               : dl2_error_system(error, "%s: can't be listed", variant->root);
    while (status == DL2_OK && (entry = readdir(folder)))
        if (!strncmp(entry->d_name, start, strlen(start)))
            status = dl2_variant_add_text(names, count, strdup(entry->d_name), error);
    closedir(folder);
    if (*count)
        qsort(*names, *count, sizeof **names, dl2_compare_texts);
    if (status < 0) {
        dl2_free_list(*names);
        *names = NULL;
    }
    return status;
}

size_t dl2_variant_find_item(const struct dl2_source_items *items, const char *key)
{
    size_t low = 0, high = items->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(items->items[items->by_key[middle]].key_text, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == items->count || strcmp(items->items[items->by_key[low]].key_text, key) != 0)
        return SIZE_MAX;
    return items->by_key[low];
}

bool dl2_variant_has_key(const void *context, const char *key)
{
    return dl2_variant_find_item(context, key) != SIZE_MAX;
}

void dl2_variant_show_sum(const struct dl2_source_item *item, char out[DL2_SIDECAR_SUM_SIZE])
{
    out[0] = '\0';
    if (item->sidecar_sum)
        snprintf(out, DL2_SIDECAR_SUM_SIZE, "%016" PRIx64, item->sidecar_sum);
}

/* -- what a variant is -- */

/* `never_larger`, `settings`, `target` and `resize` are there only if they can matter, so that
 * other variants are as good as before. */
static json_t *describe_options(const struct dl2_transcode_target *target,
                                const struct dl2_decode_options *decode, bool never_larger,
                                enum dl2_colour_rule colour)
{
    const struct dl2_codec *codec = target->codec;
    const struct dl2_encode_options *encode = &target->encode;
    char background[8];
    snprintf(background, sizeof background, "#%02x%02x%02x", decode->background[0],
             decode->background[1], decode->background[2]);
    json_t *effort = encode->effort >= 0 ? json_integer(encode->effort)
                     : codec->usual_effort < 0 && codec->max_effort >= 0 ? json_string("auto")
                                                                         : json_null();
    json_t *described =
        json_pack("{s:s?, s:o, s:s?, s:s, s:s, s:I}", "subsampling",
                  codec->has_subsampling ? encode->subsampling : NULL, "effort", effort, "restart",
                  codec->has_restart ? encode->restart : NULL, "background", background, "colour",
                  dl2_colour_rules[colour], "max_pixels", (json_int_t)decode->max_pixels);
    json_t *settings = dl2_settings_json(codec, encode);
    int bad = !described || !settings;
    if (!bad && json_object_size(settings))
        bad |= json_object_set(described, "settings", settings);
    if (!bad && never_larger && codec->lossy && codec->open)
        bad |= json_object_set_new(described, "never_larger", json_true());
    if (!bad && target->target.name)
        bad |= json_object_set_new(described, "target", dl2_target_json(&target->target));
    if (!bad && !dl2_resolution_is_full(&target->resolution))
        bad |= json_object_set_new(described, "resize", dl2_resolution_json(&target->resolution));
    json_decref(settings);
    if (!bad)
        return described;
    json_decref(described);
    return NULL;
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

int dl2_variant_init(struct dl2_variant *variant, const char *dest, const char *source,
                     const struct dl2_transcode_target *target,
                     const struct dl2_decode_options *decode, bool never_larger,
                     enum dl2_colour_rule colour, const struct dl2_writer_options *pack,
                     struct dl2_error *error)
{
    const struct dl2_codec *codec = target->codec;
    const struct dl2_encode_options *encode = &target->encode;
    *variant = (struct dl2_variant){.codec = codec,
                                    .encode = *encode,
                                    .resolution = target->resolution,
                                    .target = target->target,
                                    .decode = *decode,
                                    .pack = *pack,
                                    .packed = dl2_container_is_packed(pack->container),
                                    .is_table = dl2_dataset_is_database(dest),
                                    .source = source};
    pthread_mutex_init(&variant->mutex, NULL);
    variant->name = dl2_variant_name(target);
    if (!variant->name)
        return dl2_error_memory(error, "a variant");
    variant->root = dl2_facts_place(dest, variant->name);
    json_t *libraries = dl2_codec_versions();
    if (libraries && encode->external) {
        char version[DL2_CODEC_VERSION_SIZE];
        dl2_external_version(encode->external, version);
        json_object_set_new(libraries, codec->name, dl2_json_text(version));
    }
    const bool has_quality = dl2_settings_use_quality(codec, encode) && !target->target.name;
    json_t *quality = has_quality ? json_integer(encode->quality) : json_null();
    struct dl2_encode_options shown = *encode;
    if (target->target.name)
        shown.quality = target->target.high;
    variant->about =
        json_pack("{s:s, s:o, s:o, s:o, s:o}", "codec", codec->name, "quality", quality, "options",
                  describe_options(target, decode, never_larger, colour), "encoder",
                  codec->encoder_parameters(&shown), "libraries", libraries);
    variant->decoding = describe_decoding(decode->external);
    return variant->root && variant->about && variant->decoding
               ? DL2_OK
               : dl2_error_memory(error, "a variant");
}

int dl2_variant_note_order(struct dl2_variant *variant, uint64_t seed, struct dl2_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return json_object_set_new(json_object_get(variant->about, "options"), "shuffle",
                               json_string(text)) < 0
               ? dl2_error_memory(error, "a variant")
               : DL2_OK;
}

bool dl2_variant_decodes_alike(const struct dl2_variant *variant)
{
    return json_equal(json_object_get(variant->old, "decoding"), variant->decoding) &&
           json_equal(json_object_get(variant->old, "libraries"),
                      json_object_get(variant->about, "libraries"));
}

int dl2_variant_path(const struct dl2_variant *variant, const struct dl2_source_item *item,
                     struct dl2_bytes *buffer, struct dl2_error *error)
{
    buffer->size = 0;
    DL2_TRY(dl2_bytes_append(buffer, variant->root, strlen(variant->root), error));
    DL2_TRY(dl2_bytes_append(buffer, "/", 1, error));
    DL2_TRY(dl2_bytes_append(buffer, item->key, strlen(item->key), error));
    DL2_TRY(dl2_bytes_append(buffer, ".", 1, error));
    const char *extension = variant->codec->extension;
    return dl2_bytes_append(buffer, extension, strlen(extension) + 1, error);
}

/* -- while a run is under way -- */

static int remove_inside(const struct dl2_variant *variant, const char *name,
                         struct dl2_error *error)
{
    char *path = dl2_variant_inside(variant, name, error);
    if (!path)
        return DL2_ERR_MEMORY;
    int status = DL2_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        status = dl2_error_system(error, "%s: can't be removed", path);
    free(path);
    return status;
}

/* Removes what runs that were cut short, and parts, have noted. */
static int remove_journals(const struct dl2_variant *variant, struct dl2_error *error)
{
    static const char *const starts[] = {DL2_VARIANT_JOURNAL, DL2_STAGED_IMAGES};
    int status = DL2_OK;
    for (size_t s = 0; status == DL2_OK && s < sizeof starts / sizeof *starts; s++) {
        char **names;
        size_t count;
        status = dl2_variant_list_hidden(variant, starts[s], &names, &count, error);
        for (size_t i = 0; status == DL2_OK && i < count; i++)
            status = remove_inside(variant, names[i], error);
        dl2_free_list(names);
    }
    return status;
}

/* What dl2-variant.json says: a new reference, or NULL if memory runs out. */
static json_t *summarise(const struct dl2_variant *variant, bool complete, json_t *failed,
                         size_t ignored)
{
    const struct dl2_variant_totals *totals = &variant->totals;
    double bits = totals->pixels ? 8.0 * (double)totals->bytes / (double)totals->pixels : NAN;
    json_t *summary =
        json_pack("{s:s, s:s}", "schema", DL2_VARIANT_SCHEMA, "variant", variant->name);
    if (!summary)
        return NULL;
    int bad = json_object_set(summary, "codec", json_object_get(variant->about, "codec"));
    bad |= json_object_set(summary, "quality", json_object_get(variant->about, "quality"));
    bad |= json_object_set_new(summary, "complete", json_boolean(complete));
    if (variant->packed)
        bad |= json_object_set_new(summary, "container", json_string(variant->pack.container));
    bad |= json_object_set_new(summary, "source", dl2_json_text(variant->source));
    bad |= json_object_set(summary, "options", json_object_get(variant->about, "options"));
    bad |= json_object_set(summary, "encoder", json_object_get(variant->about, "encoder"));
    bad |= json_object_set(summary, "libraries", json_object_get(variant->about, "libraries"));
    bad |= json_object_set_new(summary, "images", json_integer((json_int_t)totals->images));
    bad |= json_object_set_new(summary, "pixels", json_integer((json_int_t)totals->pixels));
    bad |= json_object_set_new(summary, "bytes", json_integer((json_int_t)totals->bytes));
    bad |= json_object_set_new(summary, "bits_per_pixel", dl2_json_real(bits));
    bad |= json_object_set_new(summary, "source_bytes",
                               json_integer((json_int_t)totals->source_bytes));
    bad |= json_object_set_new(summary, "copied", json_integer((json_int_t)totals->copied));
    bad |= json_object_set_new(summary, "copied_bytes",
                               json_integer((json_int_t)totals->copied_bytes));
    if (totals->pixels_only)
        bad |= json_object_set_new(summary, "pixels_only",
                                   json_integer((json_int_t)totals->pixels_only));
    if (variant->target.name) {
        bad |= json_object_set_new(summary, "missed", json_integer((json_int_t)totals->missed));
        bad |= json_object_set_new(summary, "probes", json_integer((json_int_t)totals->probes));
    }
    if (!dl2_resolution_is_full(&variant->resolution)) {
        bad |= json_object_set_new(summary, "resized", json_integer((json_int_t)totals->resized));
        bad |= json_object_set_new(summary, "source_pixels",
                                   json_integer((json_int_t)totals->source_pixels));
    }
    if (json_object_size(variant->losses))
        bad |= json_object_set(summary, "colours", variant->losses);
    bad |= json_object_set_new(summary, "encode_cpu_seconds", dl2_json_real(totals->encode_cpu));
    bad |= json_object_set_new(summary, "decode_cpu_seconds", dl2_json_real(totals->decode_cpu));
    bad |= json_object_set(summary, "failed", failed);
    if (json_array_size(failed))
        bad |= json_object_set(summary, "decoding", variant->decoding);
    bad |= json_object_set_new(summary, "ignored", json_integer((json_int_t)ignored));
    if (bad) {
        json_decref(summary);
        return NULL;
    }
    return summary;
}

/* Says that the variant is not complete. */
static int save_beginning(const struct dl2_variant *variant, struct dl2_error *error)
{
    json_t *nothing = json_array();
    json_t *summary = nothing ? summarise(variant, false, nothing, 0) : NULL;
    const int status = summary ? dl2_facts_save(variant->root, summary, error)
                               : dl2_error_memory(error, "a variant");
    json_decref(summary);
    json_decref(nothing);
    return status;
}

/* Opens a journal, and for a part of a packed variant the file that its images wait in. */
static int open_journal(struct dl2_variant *variant, struct dl2_error *error)
{
    char part[DL2_WORK_PART_NAME], *name = NULL, *path = NULL;
    dl2_work_part_name(&variant->part, part);
    int status = DL2_OK;
    if (variant->packed) {
        status = asprintf(&name, DL2_STAGED_IMAGES "%s", part) < 0
                     ? dl2_error_memory(error, "a variant")
                     : DL2_OK;
        path = status == DL2_OK ? dl2_variant_inside(variant, name, error) : NULL;
        status = path ? dl2_staging_begin(&variant->staging, path, error) : DL2_ERR_MEMORY;
        free(name);
        free(path);
        DL2_TRY(status);
    }
    if (asprintf(&name, DL2_VARIANT_JOURNAL "%s", part) < 0)
        return dl2_error_memory(error, "a variant");
    path = dl2_variant_inside(variant, name, error);
    free(name);
    if (!path)
        return DL2_ERR_MEMORY;
    variant->journal = fopen(path, "ae");
    /* A journal that was cut may lack its last newline. */
    if (!variant->journal || fputc('\n', variant->journal) == EOF)
        status = dl2_error_system(error, "%s: can't be written", path);
    free(path);
    return status;
}

/* Other parts at work have begun the variant already: with the same options, or they would not have
 * let this one in. */
static int join_variant(struct dl2_variant *variant, struct dl2_error *error)
{
    if (!variant->same_options || !json_is_false(json_object_get(variant->old, "complete")))
        return dl2_error_set(error, DL2_ERR_CANCELED,
                             "%s: its source has changed since other parts of the run began; run "
                             "this part again when they have ended",
                             variant->root);
    return open_journal(variant, error);
}

static int begin_variant(struct dl2_variant *variant, struct dl2_error *error)
{
    if (variant->joins)
        return join_variant(variant, error);
    if (!variant->is_table)
        DL2_TRY(dl2_make_folders(variant->root, error));
    if (variant->packed && variant->part.count)
        DL2_TRY(dl2_writer_reserve(variant->root, &variant->pack, variant->source_dataset, error));
    else if (variant->packed) /* first, since it knows what is in the way */
        DL2_TRY(dl2_writer_open_like(variant->root, &variant->pack, variant->source_dataset,
                                     &variant->writer, error));
    if (variant->is_table) /* the old table stays as it is until the end */
        return DL2_OK;
    /* Lines of other options must be gone before dl2-variant.json vouches for them; those of a
     * container go with it. */
    if (variant->packed || !variant->same_options)
        DL2_TRY(remove_inside(variant, DL2_FACTS_LINES_NAME, error));
    if (!variant->same_options)
        DL2_TRY(remove_journals(variant, error));
    DL2_TRY(save_beginning(variant, error));
    return variant->packed && !variant->part.count ? DL2_OK : open_journal(variant, error);
}

int dl2_variant_begin(struct dl2_variant *variant, struct dl2_error *error)
{
    int status = DL2_OK;
    pthread_mutex_lock(&variant->mutex);
    if (!variant->begun) {
        status = begin_variant(variant, error);
        variant->begun = status == DL2_OK;
    }
    pthread_mutex_unlock(&variant->mutex);
    return status;
}

/* `text`, which is UTF-8, as the inside of a JSON string. */
static void print_escaped(FILE *out, const char *text)
{
    for (;;) {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' && text[plain] != '\\')
            plain++;
        fwrite(text, 1, plain, out);
        text += plain;
        if (!*text)
            return;
        fprintf(out, "\\u%04x", (unsigned char)*text++);
    }
}

/* What lies beside an image and the sum that tells whether it changes. */
static void print_sidecars(const struct dl2_source_item *item, const char *sidecars, FILE *out)
{
    for (const char *at = sidecars ? sidecars : ""; *at;) {
        char extension[NAME_MAX + 1];
        const size_t length = strcspn(at, "/");
        snprintf(extension, sizeof extension, "%.*s", (int)length, at);
        fputs(at == sidecars ? ",\"beside\":[\"" : ",\"", out);
        print_escaped(out, extension);
        at += length + (at[length] == '/');
        fputs(*at ? "\"" : "\"]", out);
    }
    if (item->sidecar_sum)
        fprintf(out, ",\"beside_sum\":\"%016" PRIx64 "\"", item->sidecar_sum);
}

static void print_found(const struct dl2_target_result *found, FILE *out)
{
    fprintf(out, ",\"quality\":%d,\"score\":", found->quality);
    fprintf(out, isfinite(found->score) ? "%.9g" : "null", found->score);
    fprintf(out, ",\"probes\":%d,\"met\":%s", found->probes, found->met ? "true" : "false");
}

/*
 * Prints a line of dl2-variant.jsonl. By hand: there is one for every image of every variant, and
 * building a JSON object for each took 3% of a JPEG sweep's time.
 */
static void print_line(const struct dl2_variant *variant, const struct dl2_source_item *item,
                       const struct dl2_record *record, const struct dl2_staged_image *staged,
                       FILE *out)
{
    fputs("{\"key\":\"", out);
    print_escaped(out, item->key_text);
    fputs("\",\"path\":\"", out);
    print_escaped(out, item->key_text);
    fprintf(out, ".%s\",\"source\":\"", variant->codec->extension);
    print_escaped(out, item->name_text);
    fprintf(out,
            "\",\"width\":%" PRIu32 ",\"height\":%" PRIu32 ",\"channels\":%d,\"bytes\":%" PRIu64
            ",\"source_bytes\":%" PRIu64 ",\"source_mtime_ns\":%" PRId64
            ",\"encode_cpu_seconds\":%.6g,\"decode_cpu_seconds\":%.6g%s",
            record->width, record->height, record->channels, record->bytes, item->bytes,
            item->mtime_ns, (double)record->encode_cpu, (double)record->decode_cpu,
            record->copied ? ",\"copied\":true" : "");
    if (record->pixels_only)
        fputs(",\"pixels_only\":true", out);
    if (variant->target.name)
        print_found(&record->found, out);
    if (!dl2_resolution_is_full(&variant->resolution))
        fprintf(out, ",\"source_width\":%" PRIu32 ",\"source_height\":%" PRIu32,
                record->source_width, record->source_height);
    dl2_reduction_print(&record->reduction, out);
    print_sidecars(item, record->sidecars, out);
    if (staged)
        dl2_staged_print(staged, out);
    fputs("}\n", out);
}

/* The line of an image: a string to free; NULL if memory runs out. */
static char *line_of(const struct dl2_variant *variant, const struct dl2_source_item *item,
                     const struct dl2_record *record)
{
    char *line = NULL;
    size_t length;
    FILE *out = open_memstream(&line, &length);
    if (!out)
        return NULL;
    print_line(variant, item, record, NULL, out);
    const bool whole = !ferror(out);
    if (fclose(out) == 0 && whole)
        return line;
    free(line);
    return NULL;
}

int dl2_variant_read_staged(struct dl2_variant *variant, size_t index, struct dl2_bytes *out,
                            struct dl2_error *error)
{
    return dl2_staging_get(&variant->staging, &variant->staged[index],
                           variant->records[index].bytes, out, error);
}

int dl2_variant_pack(struct dl2_variant *variant, const struct dl2_source_item *item, size_t index,
                     const void *data, size_t size, const struct dl2_sidecars *sidecars,
                     const struct dl2_record *record, struct dl2_error *error)
{
    char *line = NULL;
    if (variant->part.count)
        return dl2_staging_put(&variant->staging, data, size, &variant->staged[index], error);
    if (variant->is_table) {
        if (!(line = line_of(variant, item, record)))
            return dl2_error_memory(error, "a variant");
        dl2_writer_set_line(variant->writer, line);
    }
    const int status =
        dl2_writer_add_with_sidecars(variant->writer, item->key, variant->codec->extension,
                                     item->label, data, size, sidecars, error);
    free(line);
    return status;
}

int dl2_variant_put_sidecars(struct dl2_variant *variant, const struct dl2_source_items *items,
                             const struct dl2_source_item *item,
                             const struct dl2_sidecars *sidecars, struct dl2_record *record,
                             struct dl2_error *error)
{
    const struct dl2_folder_keys keys = {dl2_variant_has_key, items};
    struct dl2_bytes names = DL2_BYTES_INIT;
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < sidecars->count; i++) {
        const struct dl2_sidecar *one = &sidecars->items[i];
        if (strlen(one->extension) > NAME_MAX ||
            !dl2_sidecars_can_hold(&keys, item->key, one->extension, one->bytes.data,
                                   one->bytes.size)) {
            pthread_mutex_lock(&variant->mutex);
            dl2_left_out_count(&variant->left_out, one->extension);
            pthread_mutex_unlock(&variant->mutex);
            continue;
        }
        status = dl2_sidecars_write(variant->root, item->key, one, error);
        if (status == DL2_OK)
            status = dl2_bytes_append(&names, names.size ? "/" : "", names.size > 0, error);
        if (status == DL2_OK)
            status = dl2_bytes_append(&names, one->extension, strlen(one->extension), error);
    }
    if (status == DL2_OK && names.size)
        status = dl2_bytes_append(&names, "", 1, error);
    if (status < 0)
        dl2_bytes_free(&names);
    record->sidecars = (char *)names.data;
    return status;
}

char *dl2_variant_left_out(const struct dl2_variant *variant)
{
    if (variant->packed)
        return variant->writer ? dl2_writer_left_out(variant->writer) : NULL;
    return dl2_left_out_message(&variant->left_out, DL2_LEFT_OUT,
                                dl2_container_leaves_out(variant->pack.container));
}

/* What a killed run must do again: little, and without a system call for each image. */
static int flush_journal(struct dl2_variant *variant, struct dl2_error *error)
{
    const double now = dl2_clock_wall();
    if (now - variant->flushed > FLUSH_SECONDS) {
        variant->flushed = now;
        fflush(variant->journal);
    }
    return ferror(variant->journal)
               ? dl2_error_system(error, "%s: its journal can't be written", variant->root)
               : DL2_OK;
}

int dl2_variant_add(struct dl2_variant *variant, const struct dl2_source_item *item, size_t index,
                    const struct dl2_record *record, struct dl2_error *error)
{
    free(variant->records[index].sidecars);
    free(variant->records[index].reduction.colour);
    variant->records[index] = *record;
    variant->made++;
    if (!variant->journal)
        return DL2_OK;
    print_line(variant, item, record, variant->packed ? &variant->staged[index] : NULL,
               variant->journal);
    return flush_journal(variant, error);
}

/* Tells the run that completes the variant, so that it need not try again what a part has tried. */
static int note_failure(struct dl2_variant *variant, const struct dl2_source_item *item,
                        const char *message, struct dl2_error *error)
{
    char sum[DL2_SIDECAR_SUM_SIZE];
    DL2_TRY(dl2_variant_begin(variant, error));
    dl2_variant_show_sum(item, sum);
    json_t *line = json_pack("{s:s, s:s, s:o, s:I, s:I, s:s}", "key", item->key_text, "source",
                             item->name_text, "error", dl2_json_text(message), "source_bytes",
                             (json_int_t)item->bytes, "source_mtime_ns", (json_int_t)item->mtime_ns,
                             "beside_sum", sum);
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        return dl2_error_memory(error, "a variant");
    fprintf(variant->journal, "%s\n", text);
    free(text);
    return flush_journal(variant, error);
}

int dl2_variant_fail(struct dl2_variant *variant, const struct dl2_source_item *item, size_t index,
                     char *message, struct dl2_error *error)
{
    struct dl2_record *record = &variant->records[index];
    free(variant->errors[index]);
    variant->errors[index] = message;
    record->state = DL2_RECORD_FAILED;
    if (variant->part.count && message && !record->unread && item->same_key_as == SIZE_MAX)
        DL2_TRY(note_failure(variant, item, message, error));
    if (!record->has_output || item->same_key_as != SIZE_MAX)
        return DL2_OK;
    DL2_TRY(dl2_variant_begin(variant, error));
    struct dl2_bytes path = DL2_BYTES_INIT;
    int status = dl2_variant_path(variant, item, &path, error);
    if (status == DL2_OK && unlink((const char *)path.data) != 0 && errno != ENOENT)
        status = dl2_error_system(error, "%s: can't be removed", (const char *)path.data);
    dl2_bytes_free(&path);
    record->has_output = false;
    return status;
}

/* Is there an image among the strays that has this key? */
static bool has_stray(const void *context, const char *key)
{
    const struct dl2_variant *variant = context;
    char *path;
    if (asprintf(&path, "%s.%s", key, variant->codec->extension) < 0)
        return false;
    const bool found = bsearch(&path, variant->strays, variant->stray_count,
                               sizeof *variant->strays, dl2_compare_texts);
    free(path);
    return found;
}

int dl2_variant_prune(struct dl2_variant *variant, size_t *removed, struct dl2_error *error)
{
    const struct dl2_folder_keys keys = {has_stray, variant};
    *removed = 0;
    for (size_t i = 0; i < variant->stray_count; i++) {
        if (strcmp(dl2_path_extension(variant->strays[i]), variant->codec->extension) != 0 &&
            !dl2_sidecars_is_companion(&keys, variant->strays[i]))
            continue;
        DL2_TRY(dl2_variant_begin(variant, error));
        bool gone;
        DL2_TRY(dl2_output_remove(variant->root, variant->strays[i], &gone, error));
        *removed += gone;
    }
    return DL2_OK;
}

/* -- the end of a run -- */

static int list_failed(const struct dl2_variant *variant, const struct dl2_source_items *items,
                       json_t **out, struct dl2_error *error)
{
    json_t *failed = json_array();
    for (size_t i = 0; failed && i < items->count; i++) {
        if (variant->records[i].state != DL2_RECORD_FAILED)
            continue;
        const struct dl2_source_item *item = &items->items[i];
        json_t *entry = json_pack("{s:o, s:o}", "path", dl2_json_text(item->name), "error",
                                  dl2_json_text(variant->errors[i] ? variant->errors[i] : ""));
        if (entry && !variant->records[i].unread &&
            json_object_update_new(entry,
                                   json_pack("{s:I, s:I}", "source_bytes", (json_int_t)item->bytes,
                                             "source_mtime_ns", (json_int_t)item->mtime_ns)) < 0) {
            json_decref(entry);
            entry = NULL;
        }
        char sum[DL2_SIDECAR_SUM_SIZE];
        dl2_variant_show_sum(item, sum);
        if (entry && sum[0] && json_object_set_new(entry, "beside_sum", json_string(sum)) < 0) {
            json_decref(entry);
            entry = NULL;
        }
        if (!entry || json_array_append_new(failed, entry) < 0) {
            json_decref(failed);
            failed = NULL;
        }
    }
    *out = failed;
    return failed ? DL2_OK : dl2_error_memory(error, "a variant");
}

static int sum_up(struct dl2_variant *variant, const struct dl2_source_items *items,
                  struct dl2_error *error)
{
    struct dl2_variant_totals totals = {0};
    bool counted = (variant->losses = json_object());
    for (size_t i = 0; i < items->count; i++) {
        const struct dl2_record *record = &variant->records[i];
        if (record->state == DL2_RECORD_FAILED)
            totals.failed++;
        if (record->state != DL2_RECORD_VALID && record->state != DL2_RECORD_STAGED)
            continue;
        totals.images++;
        totals.pixels += (uint64_t)record->width * record->height;
        totals.missed += variant->target.name && !record->found.met;
        totals.probes += record->found.probes;
        totals.source_pixels += (uint64_t)record->source_width * record->source_height;
        totals.resized +=
            record->width != record->source_width || record->height != record->source_height;
        totals.bytes += record->bytes;
        totals.source_bytes += items->items[i].bytes;
        totals.copied += record->copied;
        totals.pixels_only += record->pixels_only;
        totals.copied_bytes += record->copied ? record->bytes : 0;
        totals.encode_cpu += (double)record->encode_cpu;
        totals.decode_cpu += (double)record->decode_cpu;
        counted = counted && dl2_reduction_count(&record->reduction, variant->losses);
    }
    variant->totals = totals;
    return counted ? DL2_OK : dl2_error_memory(error, "a variant");
}

/* Nothing was done, and what was found says all that would be said now. */
static bool says_the_same(const struct dl2_variant *variant, const json_t *failed, size_t ignored)
{
    const json_t *old = variant->old;
    const struct dl2_variant_totals *totals = &variant->totals;
    return !variant->begun && variant->same_options && variant->packed == variant->kept &&
           json_is_true(json_object_get(old, "complete")) &&
           dl2_json_get_integer(old, "images", -1) == (long long)totals->images &&
           dl2_json_get_integer(old, "bytes", -1) == (long long)totals->bytes &&
           dl2_json_get_integer(old, "source_bytes", -1) == (long long)totals->source_bytes &&
           dl2_json_get_integer(old, "ignored", -1) == (long long)ignored &&
           json_equal(json_object_get(old, "failed"), (json_t *)failed) &&
           (!json_array_size(failed) || dl2_variant_decodes_alike(variant));
}

/* Written as dl2_file_write() does, but line by line: there may be very many. */
static int save_lines(const struct dl2_variant *variant, const struct dl2_source_items *items,
                      struct dl2_error *error)
{
    char *path = dl2_variant_inside(variant, DL2_FACTS_LINES_NAME, error);
    char *temporary =
        dl2_variant_inside(variant, "." DL2_FACTS_LINES_NAME DL2_TEMPORARY_SUFFIX, error);
    FILE *out = path && temporary ? fopen(temporary, "we") : NULL;
    for (size_t i = 0; out && i < items->count; i++)
        if (variant->records[i].state == DL2_RECORD_VALID)
            print_line(variant, &items->items[i], &variant->records[i], NULL, out);
    const bool whole = out && !ferror(out);
    int status = DL2_OK;
    if (!path || !temporary)
        status = DL2_ERR_MEMORY;
    else if (!out || fclose(out) != 0 || !whole || rename(temporary, path) != 0)
        status = dl2_error_system(error, "%s: can't be written", path);
    free(path);
    free(temporary);
    return status;
}

/* The files beside images that the variant has now, NULL-ended. */
static int list_sidecars(const struct dl2_variant *variant, const struct dl2_source_items *items,
                         char ***out, struct dl2_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < items->count; i++) {
        const struct dl2_record *record = &variant->records[i];
        const bool any = record->state == DL2_RECORD_VALID && record->sidecars;
        for (const char *at = any ? record->sidecars : ""; *at;) {
            const size_t length = strcspn(at, "/");
            char *path;
            if (asprintf(&path, "%s.%.*s", items->items[i].key, (int)length, at) < 0)
                path = NULL;
            DL2_TRY(dl2_variant_add_text(out, &count, path, error));
            at += length + (at[length] == '/');
        }
    }
    return DL2_OK;
}

/* What earlier runs have put beside images and this one hasn't is gone from the source. */
static int remove_old_sidecars(struct dl2_variant *variant, const struct dl2_source_items *items,
                               struct dl2_error *error)
{
    char **wanted = NULL;
    if (!variant->old_sidecars)
        return DL2_OK;
    int status = list_sidecars(variant, items, &wanted, error);
    if (status == DL2_OK)
        status = dl2_sidecars_remove_others(variant->root, variant->old_sidecars, wanted, error);
    dl2_free_list(wanted);
    return status;
}

/* A table that is being written takes the summary along; otherwise it is the last file written. */
static int complete_variant(struct dl2_variant *variant, const struct dl2_source_items *items,
                            const json_t *summary, struct dl2_error *error)
{
    if (!variant->kept)
        DL2_TRY(dl2_variant_begin(variant, error));
    if (variant->writer) {
        dl2_writer_set_summary(variant->writer, summary);
        DL2_TRY(dl2_writer_finish(variant->writer, error));
    }
    if (variant->is_table)
        return variant->writer ? DL2_OK : dl2_facts_save(variant->root, summary, error);
    DL2_TRY(save_lines(variant, items, error));
    return dl2_facts_save(variant->root, summary, error);
}

int dl2_variant_end_part(struct dl2_variant *variant, const struct dl2_source_items *items,
                         struct dl2_error *error)
{
    DL2_TRY(sum_up(variant, items, error));
    DL2_TRY(dl2_staging_end(&variant->staging, error));
    const bool whole = !variant->journal || fclose(variant->journal) == 0;
    variant->journal = NULL;
    return whole ? DL2_OK
                 : dl2_error_system(error, "%s: its journal can't be written", variant->root);
}

int dl2_variant_finish(struct dl2_variant *variant, const struct dl2_source_items *items,
                       struct dl2_error *error)
{
    DL2_TRY(sum_up(variant, items, error));
    DL2_TRY(remove_old_sidecars(variant, items, error));
    json_t *failed;
    DL2_TRY(list_failed(variant, items, &failed, error));
    int status = DL2_OK;
    if (!says_the_same(variant, failed, items->ignored)) {
        json_t *summary = summarise(variant, true, failed, items->ignored);
        status = summary ? complete_variant(variant, items, summary, error)
                         : dl2_error_memory(error, "a variant");
        json_decref(summary);
    }
    json_decref(failed);
    /* Also if nothing was to be done: a run may have been killed before it came to this. */
    if (status == DL2_OK && !variant->is_table)
        status = remove_journals(variant, error);
    return status;
}

void dl2_variant_free(struct dl2_variant *variant, size_t items)
{
    if (variant->journal)
        fclose(variant->journal);
    dl2_writer_close(variant->writer);
    dl2_staging_free(&variant->staging);
    free(variant->staged);
    for (size_t i = 0; variant->errors && i < items; i++)
        free(variant->errors[i]);
    for (size_t i = 0; variant->records && i < items; i++) {
        free(variant->records[i].sidecars);
        free(variant->records[i].reduction.colour);
    }
    json_decref(variant->losses);
    dl2_free_list(variant->strays);
    dl2_free_list(variant->old_sidecars);
    dl2_left_out_free(&variant->left_out);
    free(variant->errors);
    free(variant->records);
    json_decref(variant->about);
    json_decref(variant->decoding);
    json_decref(variant->old);
    free(variant->name);
    free(variant->root);
    pthread_mutex_destroy(&variant->mutex);
}
