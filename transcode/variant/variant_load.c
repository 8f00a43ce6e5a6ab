/* SPDX-License-Identifier: BSD-2-Clause */
/* What earlier runs have left of a variant: which of its images are still good. */
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/sidecar_files.h"
#include "transcode/variant/variant_state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Other codecs' libraries may come and go; the one that encodes must be the same. */
static bool made_by_same_options(const struct dl2_variant *variant)
{
    static const char *const fields[] = {"codec", "quality", "options", "encoder"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!json_equal(json_object_get(variant->old, fields[i]),
                        json_object_get(variant->about, fields[i])))
            return false;
    }
    const char *codec = variant->codec->name;
    return !strcmp(dl2_json_get_text(variant->old, "container", "folder"), variant->container) &&
           json_equal(json_object_get(json_object_get(variant->old, "libraries"), codec),
                      json_object_get(json_object_get(variant->about, "libraries"), codec));
}

/* Did a run complete the variant, by these options, before this one? */
static bool was_complete(const struct dl2_variant *variant)
{
    return variant->same_options && json_is_true(json_object_get(variant->old, "complete"));
}

/* ---- Lines about images */

/* Is the source still the file that an entry is about? */
static bool is_same_file(const struct dl2_source_item *item, const json_t *entry)
{
    return (uint64_t)dl2_json_get_integer(entry, "source_bytes", -1) == item->bytes &&
           dl2_json_get_integer(entry, "source_mtime_ns", -1) == item->mtime_ns;
}

/* Does the same lie beside it? */
static bool has_same_sidecars(const struct dl2_source_item *item, const json_t *entry)
{
    char sum[DL2_SIDECAR_SUM_SIZE];
    dl2_variant_show_sum(item, sum);
    return strcmp(dl2_json_get_text(entry, "beside_sum", ""), sum) == 0;
}

/* Records that an image could not be made. */
static int set_failed(struct dl2_variant *variant, size_t index, const char *why,
                      struct dl2_error *error)
{
    free(variant->errors[index]);
    variant->errors[index] = strdup(why);
    variant->records[index].state = DL2_RECORD_FAILED;
    return variant->errors[index] ? DL2_OK : dl2_error_memory(error, "a variant");
}

/* Notes a file beside an image that a line names; a line that names anything else is damaged. */
static int take_old_sidecar(struct dl2_variant *variant, const char *key, const json_t *name,
                            struct dl2_error *error)
{
    const struct dl2_folder_keys keys = dl2_variant_keys(variant->items);
    const char *extension = json_string_value(name);
    char *path;
    if (!extension || !dl2_sidecars_can_hold(&keys, key, extension, NULL, 0))
        return DL2_OK;
    DL2_TRY(dl2_sidecars_path(keys.label_folders, key, extension, &path, error));
    return dl2_list_append(&variant->old_sidecars, &variant->old_sidecars_count, path, error);
}

/* "json/seg.png" of a line's list; false if that is damaged or a file is gone. */
static bool read_sidecars(const struct dl2_variant *variant, const char *key, const json_t *list,
                          char **out)
{
    struct dl2_bytes text = DL2_BYTES_INIT;
    size_t i;
    json_t *name;
    bool good = true;
    json_array_foreach(list, i, name)
    {
        const char *extension = json_string_value(name);
        DL2_AUTO_FREE char *path = NULL, *below = NULL;
        good = good && extension && !strchr(extension, '/') &&
               dl2_sidecars_path(variant->items->label_folders, key, extension, &below, NULL) ==
                   DL2_OK &&
               (path = dl2_path_join(variant->root, below)) && dl2_is_file(path) &&
               dl2_bytes_append(&text, i ? "/" : "", i > 0, NULL) == DL2_OK &&
               dl2_bytes_append(&text, extension, strlen(extension), NULL) == DL2_OK;
    }
    good = good && dl2_bytes_append(&text, "", 1, NULL) == DL2_OK;
    *out = good && text.size > 1 ? (char *)text.data : NULL;
    if (!*out)
        dl2_bytes_free(&text);
    return good;
}

/* Is the image of a line there? `staged`: it waits in the file that was added last. */
static bool has_image(const struct dl2_variant *variant, bool staged, size_t index,
                      const json_t *line, uint64_t bytes)
{
    const struct dl2_record *record = &variant->records[index];
    return staged ? dl2_staged_read_line(&variant->staging, line, bytes, &variant->staged[index])
                  : record->has_output && record->bytes == bytes;
}

static uint8_t read_pixels_only(const json_t *line)
{
    const char *word = json_string_value(json_object_get(line, "pixels_only"));
    uint8_t reason = DL2_PIXELS_ONLY_COUNT - 1;
    while (reason && !(word && !strcmp(word, dl2_pixels_only_words[reason])))
        reason--;
    return reason;
}

/* A line counts if its source and what lies beside that are still the same files, and its output
 * has its size. */
static int take_line(struct dl2_variant *variant, bool staged, const json_t *line,
                     struct dl2_error *error)
{
    const char *key = dl2_json_get_text(line, "key", NULL);
    size_t index = key ? dl2_source_items_find(variant->items, key) : SIZE_MAX, i;
    variant->lines += key != NULL;
    if (index == SIZE_MAX)
        return DL2_OK;
    const struct dl2_source_item *item = &variant->items->items[index];
    struct dl2_record *record = &variant->records[index];
    const json_t *sidecars = json_object_get(line, "beside");
    record->has_line = true;
    const char *why = dl2_json_get_text(line, "error", NULL);
    json_t *name;
    if (!variant->packed)
        json_array_foreach(sidecars, i, name)
            DL2_TRY(take_old_sidecar(variant, item->key, name, error));
    if (!variant->same_options || !is_same_file(item, line) || !has_same_sidecars(item, line))
        return DL2_OK;
    if (why) /* a part has failed to make the image */
        return variant->follows ? set_failed(variant, index, why, error) : DL2_OK;
    const uint64_t bytes = (uint64_t)dl2_json_get_integer(line, "bytes", 0);
    if (!has_image(variant, staged, index, line, bytes))
        return DL2_OK;
    free(record->sidecars);
    record->sidecars = NULL;
    if (!variant->packed && !read_sidecars(variant, item->key, sidecars, &record->sidecars)) {
        record->state = DL2_RECORD_MISSING;
        return DL2_OK;
    }
    record->bytes = bytes;
    record->width = (uint32_t)dl2_json_get_integer(line, "width", 0);
    record->height = (uint32_t)dl2_json_get_integer(line, "height", 0);
    record->depth = (uint32_t)dl2_json_get_integer(line, "depth", 0);
    record->quantized = json_object_get(line, "quantization_error") != NULL;
    record->quantization_error = dl2_json_get_real(line, "quantization_error", 0);
    record->source_width = (uint32_t)dl2_json_get_integer(line, "source_width", record->width);
    record->source_height = (uint32_t)dl2_json_get_integer(line, "source_height", record->height);
    record->found =
        (struct dl2_target_result){.score = dl2_json_get_real(line, "score", NAN),
                                   .quality = (uint8_t)dl2_json_get_integer(line, "quality", 0),
                                   .probes = (uint8_t)dl2_json_get_integer(line, "probes", 0),
                                   .met = json_is_true(json_object_get(line, "met"))};
    record->channels = (uint8_t)dl2_json_get_integer(line, "channels", 0);
    record->frames = (uint32_t)dl2_json_get_integer(line, "frames", 0);
    record->encode_cpu = (float)dl2_json_get_real(line, "encode_cpu_seconds", 0);
    record->decode_cpu = (float)dl2_json_get_real(line, "decode_cpu_seconds", 0);
    record->copied = json_is_true(json_object_get(line, "copied"));
    record->pixels_only = read_pixels_only(line);
    DL2_TRY(dl2_reduction_read(&record->reduction, line, error));
    record->state = staged ? DL2_RECORD_STAGED : DL2_RECORD_VALID;
    return DL2_OK;
}

/* What isn't a line (the end of a journal that was cut) is none. */
static int take_lines(struct dl2_variant *variant, bool staged, FILE *file, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t capacity = 0;
    for (ssize_t size; (size = getline(&text, &capacity, file)) > 0;) {
        json_auto_t *line =
            text[size - 1] == '\n' ? json_loadb(text, (size_t)size - 1, 0, NULL) : NULL;
        if (json_is_object(line))
            DL2_TRY(take_line(variant, staged, line, error));
    }
    return DL2_OK;
}

/* The same of a file; one that is not there has none. */
static int take_file(struct dl2_variant *variant, bool staged, const char *name,
                     struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_variant_inside(variant, name, "", error);
    if (!path)
        return DL2_ERR_MEMORY;
    int status = DL2_OK;
    FILE *file = fopen(path, "re");
    if (file)
        status = take_lines(variant, staged, file, error);
    if (status == DL2_OK && (file ? ferror(file) : errno != ENOENT))
        status = dl2_error_system(error, "%s: can't be read", path);
    if (file)
        fclose(file);
    return status;
}

/* The lines of runs that ended. */
static int take_old_lines(struct dl2_variant *variant, struct dl2_error *error)
{
    if (!variant->on_server)
        return take_file(variant, false, DL2_FACTS_LINES_NAME, error);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_TRY(dl2_facts_load_lines(variant->root, &text, error));
    if (!text.size)
        return DL2_OK;
    FILE *file = fmemopen(text.data, text.size, "r");
    if (!file)
        return dl2_error_memory(error, "a variant");
    const int status = take_lines(variant, false, file, error);
    fclose(file);
    return status;
}

/* The lines of a run that was cut short, and of parts. */
static int take_journals(struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    size_t count;
    DL2_TRY(dl2_variant_list_hidden(variant, DL2_VARIANT_JOURNAL, &names, &count, error));
    if (variant->packed && (count || variant->part.count))
        DL2_TRY(DL2_NEW(&variant->staged, variant->items->count, "a variant", error));
    for (size_t i = 0; i < count; i++) {
        const char *part = names[i] + strlen(DL2_VARIANT_JOURNAL);
        if (variant->packed) /* its images wait there */
            DL2_TRY(dl2_staging_add_file(
                &variant->staging, dl2_variant_inside(variant, DL2_STAGED_IMAGES, part, error),
                error));
        DL2_TRY(take_file(variant, variant->packed, names[i], error));
    }
    return DL2_OK;
}

/* ---- Files that are there */

/* The item whose output is `path` below root: outputs sorted by byte value, as files are. */
struct output {
    char *path;
    size_t item;
};

static int compare_outputs(const void *a, const void *b)
{
    return strcmp(((const struct output *)a)->path, ((const struct output *)b)->path);
}

static int list_outputs(const struct dl2_variant *variant, struct output **out, size_t *count,
                        struct dl2_error *error)
{
    const struct dl2_source_items *items = variant->items;
    *count = 0;
    DL2_TRY(DL2_NEW(out, items->count, "a variant", error));
    struct output *outputs = *out;
    for (size_t i = 0; i < items->count; i++) {
        if (items->items[i].same_key_as != SIZE_MAX)
            continue;
        DL2_TRY(dl2_format(&outputs[*count].path, error, "%s.%s", items->items[i].key,
                           variant->extension));
        outputs[(*count)++].item = i;
    }
    qsort(outputs, *count, sizeof *outputs, compare_outputs);
    return DL2_OK;
}

/* Walks the sorted files beside the sorted outputs. */
static int match_files(struct dl2_variant *variant, const struct dl2_file_list *files,
                       const struct output *outputs, size_t count, struct dl2_error *error)
{
    const struct dl2_folder_keys keys = dl2_variant_keys(variant->items);
    size_t o = 0;
    for (size_t f = 0; f < files->count; f++) {
        const char *path = files->paths[f];
        while (o < count && strcmp(outputs[o].path, path) < 0)
            o++;
        if (o < count && !strcmp(outputs[o].path, path)) {
            variant->records[outputs[o].item].has_output = true;
            variant->records[outputs[o].item].bytes = files->bytes[f];
        } else if (dl2_sidecars_is_companion(&keys, path)) {
            DL2_TRY(dl2_list_append(&variant->beside, &variant->beside_count, strdup(path), error));
        } else if (strcmp(path, DL2_FACTS_SUMMARY_NAME) != 0 &&
                   strcmp(path, DL2_FACTS_LINES_NAME) != 0 &&
                   !(variant->items->class_names && !strcmp(path, "data.yaml")) &&
                   !dl2_sidecars_list_has(variant->items->annotations,
                                          variant->items->annotation_count, path)) {
            DL2_TRY(dl2_list_append(&variant->strays, &variant->stray_count, strdup(path), error));
        }
    }
    return DL2_OK;
}

static int look_at_files(struct dl2_variant *variant, struct dl2_error *error)
{
    struct dl2_file_list files = {0};
    struct output *outputs = NULL;
    size_t count = 0;
    int status = dl2_list_files(variant->root, &files, error);
    if (status == DL2_OK)
        status = list_outputs(variant, &outputs, &count, error);
    if (status == DL2_OK)
        status = match_files(variant, &files, outputs, count, error);
    for (size_t i = 0; i < count; i++)
        free(outputs[i].path);
    free(outputs);
    dl2_file_list_free(&files);
    return status;
}

/* The sizes of the images in the container that is there; *same is false where it isn't what it
 * should be. A server that can't be asked is an error, since all would be made again. */
static int look_into_container(struct dl2_variant *variant, size_t *count, bool *same,
                               struct dl2_error *error)
{
    const struct dl2_source_items *items = variant->items;
    const bool clips = dl2_dataset_kind(items->dataset) == DL2_SAMPLE_CLIP;
    struct dl2_dataset_options everything = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *packed;
    struct dl2_error own = DL2_ERROR_INIT;
    *same = false;
    everything.by_frame = true;
    everything.samples = clips ? DL2_SAMPLES_CLIPS : DL2_SAMPLES_IMAGES;
    int status = dl2_dataset_open(variant->root, &everything, &packed, &own);
    if (status < 0)
        return variant->on_server && status != DL2_ERR_FORMAT && status != DL2_ERR_UNSUPPORTED
                   ? dl2_error_copy(error, &own)
                   : DL2_OK;
    status = dl2_dataset_look_for_shards(packed, same, error);
    *same = *same && status == DL2_OK && dl2_dataset_same_classes(packed, items->dataset) &&
            (clips || !dl2_output_has_clips(variant->root));
    *count = dl2_dataset_count(packed);
    for (size_t i = 0; *same && i < items->count; i++) {
        size_t number, frames;
        struct dl2_sample sample;
        if (items->items[i].same_key_as != SIZE_MAX ||
            !dl2_dataset_find(packed, items->items[i].key, &number, &frames))
            continue;
        dl2_dataset_sample(packed, number, &sample);
        variant->records[i].has_output = sample.label == items->items[i].label;
        variant->records[i].bytes = sample.bytes;
    }
    dl2_dataset_close(packed);
    return status;
}

/* ---- What failed */

static bool decodes(const struct dl2_variant *variant, const uint8_t *data, size_t size,
                    struct dl2_error *error)
{
    DL2_CLEANUP(dl2_image_free)
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    return dl2_image_decode(data, size, &variant->options->decode, &image, &scratch, error) ==
           DL2_OK;
}

/*
 * What failed before, from a source that is the same and is decoded in the same way, need not be
 * tried again. What couldn't be read then has no size and time in its entry, and is tried: if that
 * fails once more, nothing is lost.
 */
static int take_failure(struct dl2_variant *variant, size_t i, const json_t *entry,
                        struct dl2_bytes *scratch, struct dl2_error *error)
{
    const struct dl2_source_item *item = &variant->items->items[i];
    const char *why = dl2_json_get_text(entry, "error", "");
    const bool unread = !json_object_get(entry, "source_bytes");
    struct dl2_error own = DL2_ERROR_INIT;
    if (!has_same_sidecars(item, entry) || (!unread && !is_same_file(item, entry)))
        return DL2_OK;
    const bool whole =
        dl2_dataset_kind(variant->items->dataset) == DL2_SAMPLE_VOLUME || variant->codec->video;
    if (whole && (unread || !dl2_variant_decodes_alike(variant)))
        return DL2_OK; /* whether it can be read now shows when it is made */
    if (unread || !dl2_variant_decodes_alike(variant)) {
        const uint8_t *data;
        size_t size;
        const int read =
            dl2_dataset_read(variant->items->dataset, item->sample, scratch, &data, &size, &own);
        variant->records[i].unread = read < 0;
        if (read == DL2_OK && (unread || decodes(variant, data, size, &own)))
            return DL2_OK;
        why = read < 0 ? why : own.message;
    }
    return set_failed(variant, i, why, error);
}

static int take_failures(struct dl2_variant *variant, struct dl2_error *error)
{
    const json_t *failed = json_object_get(variant->old, "failed");
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes scratch = DL2_BYTES_INIT;
    for (size_t f = 0; f < json_array_size(failed); f++) {
        const json_t *entry = json_array_get(failed, f);
        const char *name = dl2_json_get_text(entry, "path", "");
        for (size_t i = 0; i < variant->items->count; i++)
            if (variant->records[i].state == DL2_RECORD_MISSING &&
                !strcmp(variant->items->items[i].name_text, name))
                DL2_TRY(take_failure(variant, i, entry, &scratch, error));
    }
    return DL2_OK;
}

/* ---- The whole */

/* A damaged dl2-variant.json is as good as none: everything is made again. */
static int load_summary(struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_TRY(dl2_facts_load(variant->root, &variant->old, error));
    if (strcmp(dl2_json_get_text(variant->old, "schema", ""), DL2_VARIANT_SCHEMA) != 0) {
        json_decref(variant->old);
        variant->old = NULL;
    }
    variant->same_options = variant->old && made_by_same_options(variant);
    return DL2_OK;
}

/* All or nothing: keeps a packed variant or forgets what there is of it. */
static int load_packed(struct dl2_variant *variant, struct dl2_error *error)
{
    const struct dl2_source_items *items = variant->items;
    size_t packed = 0, valid = 0;
    bool keep = false;
    if (was_complete(variant))
        DL2_TRY(look_into_container(variant, &packed, &keep, error));
    if (keep) {
        DL2_TRY(take_old_lines(variant, error));
        DL2_TRY(take_failures(variant, error));
        for (size_t i = 0; i < items->count; i++) {
            valid += variant->records[i].state == DL2_RECORD_VALID;
            keep = keep && (variant->records[i].state != DL2_RECORD_MISSING ||
                            items->items[i].same_key_as != SIZE_MAX);
        }
        keep = keep && valid == packed;
    }
    variant->kept = keep;
    for (size_t i = 0; i < items->count; i++) {
        variant->records[i].has_output = false; /* no file of its own */
        if (keep)
            continue;
        variant->records[i].state = DL2_RECORD_MISSING;
        variant->records[i].unread = false;
        free(variant->errors[i]);
        variant->errors[i] = NULL;
    }
    if (keep || (variant->on_server && !variant->waiting))
        return DL2_OK;
    if (variant->waiting) /* parts of these options, and no others, have left it */
        variant->same_options = true;
    return take_journals(variant, error);
}

/* Refuses images that no run has made. `begun`: there is a dl2-variant.json. */
static int check_foreign(struct dl2_variant *variant, bool begun, struct dl2_error *error)
{
    size_t foreign = 0, first = 0;
    variant->knows_all =
        !begun || (json_is_true(json_object_get(variant->old, "complete")) &&
                   dl2_json_get_integer(variant->old, "images", -1) <= (long long)variant->lines);
    if (!variant->knows_all)
        return DL2_OK;
    for (size_t i = 0; i < variant->items->count; i++)
        if (variant->records[i].has_output && !variant->records[i].has_line && !foreign++)
            first = i;
    if (!foreign)
        return DL2_OK;
    DL2_AUTO_FREE char *path = dl2_variant_path(variant, first, error), *more = NULL;
    DL2_TRY(dl2_format(&more, error, " with %zu more files", foreign - 1));
    return path ? dl2_error_set(error, DL2_ERR_ARGUMENT, DL2_OUTPUT_IN_THE_WAY, path,
                                foreign > 1 ? more : "")
                : DL2_ERR_MEMORY;
}

static int load_tree(struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_AUTO_FREE char *summary = dl2_variant_inside(variant, DL2_FACTS_SUMMARY_NAME, "", error);
    if (!summary)
        return DL2_ERR_MEMORY;
    DL2_TRY(look_at_files(variant, error));
    DL2_TRY(take_old_lines(variant, error));
    DL2_TRY(take_journals(variant, error));
    if (variant->old_sidecars)
        qsort(variant->old_sidecars, variant->old_sidecars_count, sizeof *variant->old_sidecars,
              dl2_compare_texts);
    DL2_TRY(check_foreign(variant, dl2_is_file(summary), error));
    /* A part of a run that is complete has nothing to do; a run by itself tries them again. */
    return variant->part.count && was_complete(variant) ? take_failures(variant, error) : DL2_OK;
}

int dl2_variant_load(struct dl2_variant *variant, const struct dl2_source_items *items, bool force,
                     struct dl2_error *error)
{
    variant->items = items;
    DL2_TRY(DL2_NEW(&variant->records, items->count, "a variant", error));
    DL2_TRY(DL2_NEW(&variant->errors, items->count, "a variant", error));
    if (!variant->on_server && !dl2_is_folder(variant->root))
        return variant->packed ? take_journals(variant, error) : DL2_OK;
    /* A tree would be lost in a container's folder: no reader would look for it there. */
    if (!variant->packed && dl2_dataset_is_packed(variant->root))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s holds a packed variant; name another DEST, or remove it",
                             variant->root);
    DL2_TRY(load_summary(variant, error));
    if (force)
        variant->same_options = false;
    return variant->packed ? load_packed(variant, error) : load_tree(variant, error);
}

const char *dl2_variant_why_again(const struct dl2_variant *variant)
{
    if (!json_is_true(json_object_get(variant->old, "complete")))
        return NULL;
    return !variant->same_options ? "it was made by other settings, or another version of the "
                                    "codec's library"
           : variant->packed && !variant->kept ? "its source has changed, or what is there"
                                               : NULL;
}

double dl2_variant_time_spent(const struct dl2_variant *variant)
{
    return variant->same_options
               ? dl2_json_get_real(json_object_get(variant->old, "time_limit"), "seconds", 0)
               : 0;
}
