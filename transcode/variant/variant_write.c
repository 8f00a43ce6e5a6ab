/* SPDX-License-Identifier: BSD-2-Clause */
/* A variant while a run makes its images: the journal, what is written, what fails, and the end. */
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/sidecar_files.h"
#include "transcode/variant/variant_state.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a journal's lines may wait in memory. */
#define FLUSH_SECONDS 0.2

char *dl2_variant_path(const struct dl2_variant *variant, size_t index, struct dl2_error *error)
{
    char *path;
    dl2_format(&path, error, "%s/%s.%s", variant->root, variant->items->items[index].key,
               variant->extension);
    return path;
}

/* ---- A line */

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

/* Prints an image's line of dl2-variant.jsonl, or of a journal; `staged`: where it waits, or NULL.
 * By hand: there is a line for every image of every variant, and building a JSON object for each
 * took 3% of a JPEG sweep's time. */
static void print_line(const struct dl2_variant *variant, size_t index,
                       const struct dl2_record *record, const struct dl2_staged_image *staged,
                       FILE *out)
{
    const struct dl2_source_item *item = &variant->items->items[index];
    fputs("{\"key\":\"", out);
    print_escaped(out, item->key_text);
    fputs("\",\"path\":\"", out);
    print_escaped(out, item->key_text);
    fprintf(out, ".%s\",\"source\":\"", variant->extension);
    print_escaped(out, item->name_text);
    fprintf(out,
            "\",\"width\":%" PRIu32 ",\"height\":%" PRIu32 ",\"channels\":%d,\"bytes\":%" PRIu64
            ",\"source_bytes\":%" PRIu64 ",\"source_mtime_ns\":%" PRId64
            ",\"encode_cpu_seconds\":%.6g,\"decode_cpu_seconds\":%.6g%s",
            record->width, record->height, record->channels, record->bytes, item->bytes,
            item->mtime_ns, (double)record->encode_cpu, (double)record->decode_cpu,
            record->copied ? ",\"copied\":true" : "");
    if (record->depth)
        fprintf(out, ",\"depth\":%" PRIu32, record->depth);
    if (record->quantized)
        fprintf(out, ",\"quantization_error\":%.17g", record->quantization_error);
    if (record->frames)
        fprintf(out, ",\"frames\":%" PRIu32, record->frames);
    if (record->pixels_only)
        fprintf(out, ",\"pixels_only\":\"%s\"", dl2_pixels_only_words[record->pixels_only]);
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

/* ---- The beginning */

static int remove_file(const char *path, struct dl2_error *error)
{
    return unlink(path) == 0 || errno == ENOENT
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be removed", path);
}

static int remove_inside(const struct dl2_variant *variant, const char *name,
                         struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_variant_inside(variant, name, "", error);
    return path ? remove_file(path, error) : DL2_ERR_MEMORY;
}

/* Removes what runs that were cut short, and parts, have noted. */
static int remove_journals(const struct dl2_variant *variant, struct dl2_error *error)
{
    static const char *const starts[] = {DL2_VARIANT_JOURNAL, DL2_STAGED_IMAGES};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        DL2_AUTO_LIST char **names = NULL;
        size_t count;
        DL2_TRY(dl2_variant_list_hidden(variant, starts[s], &names, &count, error));
        for (size_t i = 0; i < count; i++)
            DL2_TRY(remove_inside(variant, names[i], error));
    }
    return DL2_OK;
}

/* Says that the variant is not complete. */
static int save_beginning(const struct dl2_variant *variant, struct dl2_error *error)
{
    json_auto_t *nothing = json_array(), *summary = dl2_variant_summarize(variant, false, nothing);
    return summary ? dl2_facts_save(variant->root, summary, error)
                   : dl2_error_memory(error, "a variant");
}

/* Opens a journal, and for a part of a packed variant the file that its images wait in. */
static int open_journal(struct dl2_variant *variant, struct dl2_error *error)
{
    char part[DL2_WORK_PART_NAME];
    dl2_work_part_name(&variant->part, part);
    if (variant->packed)
        DL2_TRY(dl2_staging_begin(
            &variant->staging, dl2_variant_inside(variant, DL2_STAGED_IMAGES, part, error), error));
    DL2_AUTO_FREE char *path = dl2_variant_inside(variant, DL2_VARIANT_JOURNAL, part, error);
    if (!path)
        return DL2_ERR_MEMORY;
    variant->journal = fopen(path, "ae");
    /* A journal that was cut may lack its last newline. */
    return variant->journal && fputc('\n', variant->journal) != EOF
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written", path);
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
    const struct dl2_writer_options *pack = &variant->options->pack;
    if (variant->joins)
        return join_variant(variant, error);
    if (!variant->on_server)
        DL2_TRY(dl2_make_folders(variant->root, error));
    if (variant->packed && variant->part.count)
        DL2_TRY(dl2_writer_reserve(variant->root, pack, variant->items->dataset, error));
    else if (variant->packed) /* first, since it knows what is in the way */
        DL2_TRY(dl2_writer_open_like(variant->root, pack, variant->items->dataset, &variant->writer,
                                     error));
    if (variant->on_server) /* an old table stays as it is until the end, in a store lies a mark */
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

/* ---- Images */

int dl2_variant_read_staged(struct dl2_variant *variant, size_t index, struct dl2_bytes *out,
                            struct dl2_error *error)
{
    return dl2_staging_get(&variant->staging, &variant->staged[index],
                           variant->records[index].bytes, out, error);
}

/* The line of an image: a string to free; NULL if memory runs out. */
static char *line_of(const struct dl2_variant *variant, size_t index,
                     const struct dl2_record *record)
{
    char *line = NULL;
    size_t length;
    FILE *out = open_memstream(&line, &length);
    if (!out)
        return NULL;
    print_line(variant, index, record, NULL, out);
    const bool whole = !ferror(out);
    if (fclose(out) == 0 && whole)
        return line;
    free(line);
    return NULL;
}

int dl2_variant_pack(struct dl2_variant *variant, size_t index, const struct dl2_bytes *file,
                     const struct dl2_sidecars *sidecars, const struct dl2_record *record,
                     struct dl2_error *error)
{
    const struct dl2_source_item *item = &variant->items->items[index];
    DL2_AUTO_FREE char *line = NULL;
    if (variant->part.count)
        return dl2_staging_put(&variant->staging, file->data, file->size, &variant->staged[index],
                               error);
    if (!dl2_writer_folder(variant->writer)) {
        if (!(line = line_of(variant, index, record)))
            return dl2_error_memory(error, "a variant");
        dl2_writer_set_line(variant->writer, line);
    }
    return dl2_writer_add_with_sidecars(variant->writer, item->key, variant->extension, item->label,
                                        file->data, file->size, sidecars, error);
}

int dl2_variant_check_sidecars(const struct dl2_variant *variant, size_t index,
                               const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    for (size_t i = 0; variant->knows_all && variant->beside && i < sidecars->count; i++) {
        const struct dl2_sidecar *item = &sidecars->items[i];
        DL2_AUTO_FREE char *name = NULL, *path = NULL;
        DL2_TRY(dl2_sidecars_path(variant->items->label_folders, variant->items->items[index].key,
                                  item->extension, &name, error));
        DL2_TRY(dl2_format(&path, error, "%s/%s", variant->root, name));
        if (!dl2_sidecars_list_has(variant->old_sidecars, variant->old_sidecars_count, name) &&
            dl2_sidecars_list_has(variant->beside, variant->beside_count, name) &&
            !dl2_file_has(path, item->bytes.data, item->bytes.size))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, DL2_OUTPUT_IN_THE_WAY, path, "");
    }
    return DL2_OK;
}

/* Writes one, and adds its extension to names; or counts it. */
static int put_sidecar(struct dl2_variant *variant, const char *key,
                       const struct dl2_sidecar *sidecar, struct dl2_bytes *names,
                       struct dl2_error *error)
{
    const struct dl2_folder_keys keys = dl2_variant_keys(variant->items);
    const char *extension = sidecar->extension;
    if (strlen(extension) > NAME_MAX ||
        !dl2_sidecars_can_hold(&keys, key, extension, sidecar->bytes.data, sidecar->bytes.size)) {
        pthread_mutex_lock(&variant->mutex);
        dl2_left_out_count(&variant->left_out, extension);
        pthread_mutex_unlock(&variant->mutex);
        return DL2_OK;
    }
    DL2_TRY(dl2_sidecars_write(variant->root, keys.label_folders, key, sidecar, error));
    DL2_TRY(dl2_bytes_append(names, names->size ? "/" : "", names->size > 0, error));
    return dl2_bytes_append(names, extension, strlen(extension), error);
}

int dl2_variant_put_sidecars(struct dl2_variant *variant, size_t index,
                             const struct dl2_sidecars *sidecars, struct dl2_record *record,
                             struct dl2_error *error)
{
    const char *key = variant->items->items[index].key;
    struct dl2_bytes names = DL2_BYTES_INIT;
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < sidecars->count; i++)
        status = put_sidecar(variant, key, &sidecars->items[i], &names, error);
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
                                dl2_container_leaves_out(variant->container));
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

int dl2_variant_add(struct dl2_variant *variant, size_t index, const struct dl2_record *record,
                    struct dl2_error *error)
{
    dl2_record_free(&variant->records[index]);
    variant->records[index] = *record;
    variant->made++;
    if (!variant->journal)
        return DL2_OK;
    print_line(variant, index, record, variant->packed ? &variant->staged[index] : NULL,
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
    json_auto_t *line = json_pack("{s:s, s:s, s:o, s:I, s:I, s:s}", "key", item->key_text, "source",
                                  item->name_text, "error", dl2_json_text(message), "source_bytes",
                                  (json_int_t)item->bytes, "source_mtime_ns",
                                  (json_int_t)item->mtime_ns, "beside_sum", sum);
    if (!line ||
        (json_dumpf(line, variant->journal, JSON_COMPACT) != 0 && !ferror(variant->journal)))
        return dl2_error_memory(error, "a variant");
    fputc('\n', variant->journal);
    return flush_journal(variant, error);
}

int dl2_variant_fail(struct dl2_variant *variant, size_t index, char *message,
                     struct dl2_error *error)
{
    const struct dl2_source_item *item = &variant->items->items[index];
    struct dl2_record *record = &variant->records[index];
    free(variant->errors[index]);
    variant->errors[index] = message;
    record->state = DL2_RECORD_FAILED;
    if (item->same_key_as != SIZE_MAX)
        return DL2_OK;
    if (variant->part.count && message && !record->unread)
        DL2_TRY(note_failure(variant, item, message, error));
    if (!record->has_output)
        return DL2_OK;
    DL2_TRY(dl2_variant_begin(variant, error));
    DL2_AUTO_FREE char *path = dl2_variant_path(variant, index, error);
    record->has_output = false;
    return path ? remove_file(path, error) : DL2_ERR_MEMORY;
}

/* ---- Files that no item accounts for */

/* Is there an image among the strays that has this key? */
static bool has_stray(const void *context, const char *key)
{
    const struct dl2_variant *variant = context;
    DL2_AUTO_FREE char *path = NULL;
    return dl2_format(&path, NULL, "%s.%s", key, variant->extension) == DL2_OK &&
           bsearch(&path, variant->strays, variant->stray_count, sizeof *variant->strays,
                   dl2_compare_texts);
}

int dl2_variant_prune(struct dl2_variant *variant, size_t *removed, struct dl2_error *error)
{
    const struct dl2_folder_keys keys = {has_stray, variant, variant->items->label_folders};
    *removed = 0;
    for (size_t i = 0; i < variant->stray_count; i++) {
        if (strcmp(dl2_path_extension(variant->strays[i]), variant->extension) != 0 &&
            !dl2_sidecars_is_companion(&keys, variant->strays[i]))
            continue;
        DL2_TRY(dl2_variant_begin(variant, error));
        bool gone;
        DL2_TRY(dl2_output_remove(variant->root, variant->strays[i], &gone, error));
        *removed += gone;
    }
    return DL2_OK;
}

/* ---- The end of a run */

/* An entry of the summary's list of images that failed. */
static json_t *describe_failure(const struct dl2_variant *variant, size_t index)
{
    const struct dl2_source_item *item = &variant->items->items[index];
    const char *why = variant->errors[index] ? variant->errors[index] : "";
    char sum[DL2_SIDECAR_SUM_SIZE];
    dl2_variant_show_sum(item, sum);
    json_t *entry =
        json_pack("{s:o, s:o}", "path", dl2_json_text(item->name), "error", dl2_json_text(why));
    bool good = entry;
    if (!variant->records[index].unread)
        good &= dl2_json_add(entry, json_pack("{s:I, s:I}", "source_bytes", (json_int_t)item->bytes,
                                              "source_mtime_ns", (json_int_t)item->mtime_ns));
    if (sum[0])
        good &= dl2_json_add(entry, json_pack("{s:s}", "beside_sum", sum));
    if (good)
        return entry;
    json_decref(entry);
    return NULL;
}

static int list_failed(const struct dl2_variant *variant, json_t **out, struct dl2_error *error)
{
    *out = json_array();
    bool good = *out;
    for (size_t i = 0; good && i < variant->items->count; i++)
        if (variant->records[i].state == DL2_RECORD_FAILED)
            good = json_array_append_new(*out, describe_failure(variant, i)) == 0;
    return good ? DL2_OK : dl2_error_memory(error, "a variant");
}

static int sum_up(struct dl2_variant *variant, struct dl2_error *error)
{
    struct dl2_variant_totals totals = {0};
    bool counted = (variant->losses = json_object());
    for (size_t i = 0; i < variant->items->count; i++) {
        const struct dl2_record *record = &variant->records[i];
        if (record->state == DL2_RECORD_FAILED)
            totals.failed++;
        if (record->state != DL2_RECORD_VALID && record->state != DL2_RECORD_STAGED)
            continue;
        totals.images++;
        /* Images of the item: frames of a clip, slices of a volume. */
        const uint64_t shown = record->frames  ? record->frames
                               : record->depth ? (uint64_t)record->depth * record->channels
                                               : 1;
        totals.frames += record->frames;
        totals.pixels += shown * record->width * record->height;
        totals.missed += variant->target.name && !record->found.met;
        totals.probes += record->found.probes;
        totals.quantized += record->quantized;
        if (record->quantization_error > totals.quantization_error)
            totals.quantization_error = record->quantization_error;
        totals.source_pixels += shown * record->source_width * record->source_height;
        totals.resized +=
            record->width != record->source_width || record->height != record->source_height;
        totals.bytes += record->bytes;
        totals.source_bytes += variant->items->items[i].bytes;
        totals.copied += record->copied;
        totals.pixels_only += record->pixels_only != DL2_PIXELS_NOT_ONLY;
        totals.pixels_only_for[record->pixels_only]++;
        totals.copied_bytes += record->copied ? record->bytes : 0;
        totals.encode_cpu += (double)record->encode_cpu;
        totals.decode_cpu += (double)record->decode_cpu;
        counted = counted && dl2_reduction_count(&record->reduction, variant->losses);
    }
    variant->totals = totals;
    return counted ? DL2_OK : dl2_error_memory(error, "a variant");
}

/* Nothing was done, and what was found says all that would be said now. */
static bool says_the_same(const struct dl2_variant *variant, json_t *failed)
{
    const json_t *old = variant->old;
    const struct dl2_variant_totals *totals = &variant->totals;
    return !variant->begun && variant->same_options && variant->packed == variant->kept &&
           json_is_true(json_object_get(old, "complete")) &&
           dl2_json_get_integer(old, "images", -1) == (long long)totals->images &&
           dl2_json_get_integer(old, "bytes", -1) == (long long)totals->bytes &&
           dl2_json_get_integer(old, "source_bytes", -1) == (long long)totals->source_bytes &&
           dl2_json_get_integer(old, "ignored", -1) == (long long)variant->items->ignored &&
           json_equal(json_object_get(old, "failed"), failed) &&
           (json_object_get(old, "class_files") == variant->class_files || /* NULL */
            json_equal(json_object_get(old, "class_files"), variant->class_files)) &&
           (!json_array_size(failed) || dl2_variant_decodes_alike(variant));
}

/* Written as dl2_file_write() does, but line by line: there may be very many. */
static int save_lines(const struct dl2_variant *variant, const char *folder,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_path_join(folder, DL2_FACTS_LINES_NAME);
    DL2_AUTO_FREE char *temporary =
        dl2_path_join(folder, "." DL2_FACTS_LINES_NAME DL2_TEMPORARY_SUFFIX);
    if (!path || !temporary)
        return dl2_error_memory(error, "a variant");
    FILE *out = fopen(temporary, "we");
    for (size_t i = 0; out && i < variant->items->count; i++)
        if (variant->records[i].state == DL2_RECORD_VALID)
            print_line(variant, i, &variant->records[i], NULL, out);
    const bool whole = out && !ferror(out);
    return out && fclose(out) == 0 && whole && rename(temporary, path) == 0
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written", path);
}

/* The files beside images that the variant has now, NULL-ended. */
static int list_sidecars(const struct dl2_variant *variant, char ***out, struct dl2_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < variant->items->count; i++) {
        const struct dl2_record *record = &variant->records[i];
        const bool any = record->state == DL2_RECORD_VALID && record->sidecars;
        for (const char *at = any ? record->sidecars : ""; *at;) {
            const int length = (int)strcspn(at, "/");
            DL2_AUTO_FREE char *extension = strndup(at, (size_t)length);
            char *path;
            if (!extension)
                return dl2_error_memory(error, "a variant");
            DL2_TRY(dl2_sidecars_path(variant->items->label_folders, variant->items->items[i].key,
                                      extension, &path, error));
            DL2_TRY(dl2_list_append(out, &count, path, error));
            at += length + (at[length] == '/');
        }
    }
    return DL2_OK;
}

/* What earlier runs have put beside images and this one hasn't is gone from the source. What no run
 * has put there is named. */
static int tidy_sidecars(struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_AUTO_LIST char **wanted = NULL;
    const char *first;
    if (!variant->old_sidecars && !variant->beside)
        return DL2_OK;
    DL2_TRY(list_sidecars(variant, &wanted, error));
    DL2_TRY(dl2_sidecars_remove_others(variant->root, variant->old_sidecars, wanted, error));
    const size_t foreign =
        dl2_sidecars_foreign(variant->beside, variant->old_sidecars, wanted, &first);
    if (foreign)
        dl2_progress_message(variant->options->progress, DL2_SIDECARS_FOREIGN, variant->root, first,
                             foreign);
    return DL2_OK;
}

/* What is written on a server takes the summary along; in a folder it is the last file written. */
static int complete_variant(struct dl2_variant *variant, const json_t *summary,
                            struct dl2_error *error)
{
    if (!variant->kept)
        DL2_TRY(dl2_variant_begin(variant, error));
    const char *folder = variant->writer      ? dl2_writer_folder(variant->writer)
                         : variant->on_server ? NULL
                                              : variant->root;
    if (folder)
        DL2_TRY(save_lines(variant, folder, error));
    if (variant->writer) {
        dl2_writer_set_summary(variant->writer, summary);
        DL2_TRY(dl2_writer_finish(variant->writer, error));
        if (variant->on_server)
            return DL2_OK;
    }
    return dl2_facts_save(variant->root, summary, error);
}

int dl2_variant_end_part(struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_TRY(sum_up(variant, error));
    DL2_TRY(dl2_staging_end(&variant->staging, error));
    const bool whole = !variant->journal || fclose(variant->journal) == 0;
    variant->journal = NULL;
    return whole ? DL2_OK
                 : dl2_error_system(error, "%s: its journal can't be written", variant->root);
}

int dl2_variant_end_late(struct dl2_variant *variant, double seconds, struct dl2_error *error)
{
    json_auto_t *failed = NULL, *summary = NULL;
    bool missing = false;
    for (size_t i = 0; i < variant->items->count && !missing; i++)
        missing = variant->records[i].state == DL2_RECORD_MISSING;
    DL2_TRY(dl2_variant_end_part(variant, error));
    if (!missing && !variant->begun) /* an earlier run has completed it */
        return DL2_OK;
    DL2_TRY(list_failed(variant, &failed, error));
    summary = dl2_variant_summarize(variant, false, failed);
    if (!summary || json_object_set_new(summary, "time_limit",
                                        json_pack("{s:f, s:I}", "seconds", seconds, "images",
                                                  (json_int_t)variant->items->count)) != 0)
        return dl2_error_memory(error, "a variant");
    return dl2_facts_save(variant->root, summary, error);
}

int dl2_variant_finish(struct dl2_variant *variant, struct dl2_error *error)
{
    json_auto_t *failed = NULL;
    DL2_TRY(sum_up(variant, error));
    DL2_TRY(tidy_sidecars(variant, error));
    DL2_TRY(list_failed(variant, &failed, error));
    if (!says_the_same(variant, failed)) {
        json_auto_t *summary = dl2_variant_summarize(variant, true, failed);
        DL2_TRY(summary ? complete_variant(variant, summary, error)
                        : dl2_error_memory(error, "a variant"));
    }
    /* Also if nothing was to be done: a run may have been killed before it came to this. */
    return variant->on_server ? DL2_OK : remove_journals(variant, error);
}
