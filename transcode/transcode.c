/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/transcode.h"

#include "codec/settings.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/random.h"
#include "common/thread.h"
#include "dataset/dataset.h"
#include "dataset/tell.h"
#include "pixels/resize.h"
#include "transcode/clip_packer.h"
#include "transcode/masks.h"
#include "transcode/output_folder.h"
#include "transcode/reuse.h"
#include "transcode/variant.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Memory that a worker keeps from image to image. */
    KEPT_IMAGE_BYTES = 64 << 20,
    MAX_STRAYS_NAMED = 10,
    /* What a search takes for each pixel: what was decoded, and files that are tried together. */
    SEARCH_BYTES = 20,
};

/* ---- Memory of the images in work */

/* Lets work through while it fits under the limit, or where nothing else is being done. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t limit, used;
};

static void gate_enter(struct gate *gate, uint64_t bytes)
{
    pthread_mutex_lock(&gate->mutex);
    while (gate->used && (bytes > gate->limit || gate->used > gate->limit - bytes))
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->used += bytes;
    pthread_mutex_unlock(&gate->mutex);
}

static void gate_leave(struct gate *gate, uint64_t bytes)
{
    pthread_mutex_lock(&gate->mutex);
    gate->used -= bytes;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

/* ---- The run */

struct worker {
    struct dl2_bytes file, taken, path;
    /* The variants that are encoded together, and what they become: [variant_count] */
    struct dl2_bytes *encoded;
    size_t *members;
    int *qualities;
    struct dl2_image image, scratch, resized;
    const struct dl2_image *shown; /* `image`, or `resized` for the variants that are made of it */
    const uint8_t *source;         /* the encoded image that is being worked on */
    size_t source_size;
    struct dl2_source_colours colours;
    struct dl2_reuse reuse; /* may variants have it as it is, if it is not resized? */
    struct dl2_image_resizer resizer;
    struct dl2_mask_resizer masks;
    struct dl2_target_searcher searcher;
};

/* Passed from work() to emit(): for each variant a new record, or why there is none. */
struct outcome {
    struct dl2_record record;
    struct dl2_bytes encoded; /* of a packed variant: to be put there in order */
    char *message;            /* of a failure */
    bool tried;
};

struct run {
    const struct dl2_transcode_options *options;
    struct dl2_progress *progress;
    struct dl2_dataset *dataset;
    struct dl2_source_items source;
    struct dl2_variant *variants;
    size_t variant_count;
    struct worker *workers;
    struct dl2_resolution *resolutions; /* of the variants, each once, full first */
    size_t resolution_count;
    size_t *resolution_of;           /* [variant_count] */
    struct dl2_target_curve *curves; /* [variant_count] of those whose targets are searched */
    struct outcome *outcomes;        /* [window][variant_count] */
    /* [window][resolution_count]: what lies beside the image, as it is, and from 1 on as far as it
     * is another at that resolution */
    struct dl2_sidecars *sidecars;
    struct dl2_unresized unresized;
    struct gate gate;
    size_t *todo; /* item numbers */
    size_t todo_count;
    int lock;
    bool packed;                   /* variants are containers, not folders of files */
    struct dl2_clip_packer *clips; /* [variant_count], of packed variants of clips; else NULL */
};

/* ---- What there is to do */

/* Refuses a DEST of which a variant's table is SOURCE itself. */
static int check_tables(const struct run *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        bool same;
        const char *root = run->variants[v].root;
        DL2_TRY(dl2_facts_same_table(run->options->source, root, &same, error));
        if (same)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: the variant %s would be written over its own source; name "
                                 "another table",
                                 root, run->variants[v].name);
    }
    return DL2_OK;
}

/*
 * Refuses a DEST that would be written over SOURCE, or that lies in it: whoever reads SOURCE later
 * would take the variants for images of it.
 */
static int check_places(const struct run *run, struct dl2_error *error)
{
    const char *source_given = run->options->source, *dest_given = run->options->dest;
    DL2_TRY(dl2_writer_check_place(dest_given, error));
    if (dl2_dataset_is_database(source_given) || dl2_dataset_is_database(dest_given))
        return check_tables(run, error);
    char *source = dl2_output_resolve(source_given);
    if (!source)
        return dl2_error_system(error, "%s: can't be read", source_given);
    char *dest = dl2_output_resolve_new(dest_given);
    int status = DL2_OK;
    if (!dest)
        status = dl2_error_system(error, "%s: can't be made", dest_given);
    else if (!strcmp(source, dest))
        status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: DEST is SOURCE itself; name another folder", dest_given);
    else if (dl2_output_lies_in(dest, source))
        status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s lies within SOURCE, whose images would then be those of the "
                               "variants, too; name a DEST elsewhere",
                               dest_given);
    for (size_t v = 0; status == DL2_OK && v < run->variant_count; v++) {
        char *root = dl2_output_resolve_new(run->variants[v].root);
        if (!root)
            status = dl2_error_system(error, "%s: can't be made", run->variants[v].root);
        else if (dl2_output_lies_in(source, root))
            status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s would be written over its own source %s; name another DEST",
                                   run->variants[v].root, source_given);
        else if (dl2_output_lies_in(root, source)) /* by a link */
            status = dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s leads into SOURCE; remove that link, or name another DEST",
                                   run->variants[v].root);
        free(root);
    }
    free(source);
    free(dest);
    return status;
}

static int compare_keys(const void *a, const void *b, void *context)
{
    const struct dl2_source_item *items = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    int order = strcmp(items[i].key_text, items[j].key_text);
    return order ? order : (i > j) - (i < j);
}

/* If several images would be written to one name, the first has it. */
static int sort_by_key(struct dl2_source_items *source, struct dl2_error *error)
{
    struct dl2_source_item *items = source->items;
    source->by_key = dl2_calloc(source->count, sizeof *source->by_key);
    if (!source->by_key)
        return dl2_error_memory(error, "images");
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

static char *text_of(const char *bytes)
{
    json_t *json = dl2_json_text(bytes);
    char *text = json ? strdup(json_string_value(json)) : NULL;
    json_decref(json);
    return text;
}

static int open_source(struct run *run, struct dl2_error *error)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.keep = dl2_codec_is_image_file;
    options.reads = dl2_codec_reads;
    options.by_frame = true;
    options.class_folders = !run->packed;
    options.samples = run->options->samples;
    DL2_TRY(dl2_dataset_open(run->options->source, &options, &run->dataset, error));
    run->source.ignored = dl2_dataset_ignored(run->dataset);
    /* Files in folders have the splits that the source's folders have. */
    dl2_dataset_tell(run->dataset, run->options->source, run->packed, run->progress);
    return dl2_output_check_source(run->dataset, run->options->source, run->options->pack.container,
                                   run->progress, error);
}

static int collect(struct run *run, struct dl2_error *error)
{
    if (run->options->shuffle)
        DL2_TRY(dl2_dataset_shuffle(run->dataset, *run->options->shuffle, error));
    size_t count = dl2_dataset_count(run->dataset);
    struct dl2_source_items *source = &run->source;
    source->dataset = run->dataset;
    source->items = dl2_calloc(count, sizeof *source->items);
    if (!source->items)
        return dl2_error_memory(error, "images");
    for (size_t i = 0; i < count; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(run->dataset, i, &sample);
        char *key_text = text_of(sample.key), *name_text = text_of(sample.name);
        const uint64_t sidecar_sum = dl2_dataset_sidecar_sum(run->dataset, i);
        source->items[source->count++] = (struct dl2_source_item){.sample = i,
                                                                  .key = sample.key,
                                                                  .name = sample.name,
                                                                  .path = sample.path,
                                                                  .key_text = key_text,
                                                                  .name_text = name_text,
                                                                  .bytes = sample.bytes,
                                                                  .mtime_ns = sample.mtime_ns,
                                                                  .label = sample.label,
                                                                  .same_key_as = SIZE_MAX,
                                                                  .sidecar_sum = sidecar_sum};
        if (!key_text || !name_text)
            return dl2_error_memory(error, "images");
    }
    return sort_by_key(source, error);
}

static void name_strays(const struct run *run)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_variant *variant = &run->variants[v];
        for (size_t i = 0; i < variant->stray_count && i < MAX_STRAYS_NAMED; i++)
            dl2_progress_message(run->progress, "%s/%s: no source image accounts for it",
                                 variant->root, variant->strays[i]);
        if (variant->stray_count > MAX_STRAYS_NAMED)
            dl2_progress_message(run->progress, "%s: and %zu more like it", variant->root,
                                 variant->stray_count - MAX_STRAYS_NAMED);
        if (variant->stray_count)
            dl2_progress_message(
                run->progress,
                "%s: such files are left alone; --prune removes those that end in .%s",
                variant->root, variant->codec->extension);
    }
}

static int prune(struct run *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        size_t removed;
        DL2_TRY(dl2_variant_prune(&run->variants[v], &removed, error));
        if (removed)
            dl2_progress_message(run->progress,
                                 "%s: %zu files that no source image accounts for were removed",
                                 run->variants[v].root, removed);
    }
    return DL2_OK;
}

/* Names a failure of an earlier run in a packed variant that is not tried again, once. */
static void tell_kept_failures(const struct run *run, size_t index)
{
    for (size_t v = 0; v < run->variant_count; v++)
        if (run->variants[v].kept && run->variants[v].errors[index]) {
            dl2_progress_message(run->progress, "%s: %s", run->source.items[index].path,
                                 run->variants[v].errors[index]);
            return;
        }
}

/* Fails what would be written to a taken name, lists the items that some variant lacks. */
static int plan_items(struct run *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++)
        DL2_TRY(dl2_variant_load(&run->variants[v], &run->source, run->options->force, error));
    if (run->options->prune)
        DL2_TRY(prune(run, error));
    else
        name_strays(run);
    run->todo = dl2_calloc(run->source.count, sizeof *run->todo);
    if (!run->todo)
        return dl2_error_memory(error, "images");
    for (size_t i = 0; i < run->source.count; i++) {
        const struct dl2_source_item *item = &run->source.items[i];
        bool needed = false;
        tell_kept_failures(run, i);
        for (size_t v = 0; v < run->variant_count; v++)
            needed = needed || run->variants[v].records[i].state == DL2_RECORD_MISSING;
        if (item->same_key_as == SIZE_MAX) {
            if (needed)
                run->todo[run->todo_count++] = i;
            continue;
        }
        const char *other = run->source.items[item->same_key_as].name;
        dl2_progress_message(run->progress,
                             "%s: would be written to the same name as %s; rename one of them",
                             item->path, other);
        for (size_t v = 0; v < run->variant_count; v++) {
            char *message;
            if (asprintf(&message, "would be written to the same name as %s", other) < 0)
                return dl2_error_memory(error, "images");
            DL2_TRY(dl2_variant_fail(&run->variants[v], item, i, message, error));
        }
    }
    return DL2_OK;
}

/* ---- One image */

static bool needs(const struct run *run, size_t v, size_t index)
{
    return run->variants[v].records[index].state == DL2_RECORD_MISSING;
}

static void set_failure(struct outcome *outcome, const struct dl2_error *error)
{
    outcome->tried = true;
    outcome->record.state = DL2_RECORD_FAILED;
    outcome->record.unread = error->status == DL2_ERR_SYSTEM || error->status == DL2_ERR_MEMORY;
    outcome->message = strdup(error->message);
}

/* An image's error message names its file once: the reader has put it in front, others have not. */
static void drop_path(struct dl2_error *error, const char *path)
{
    size_t length = strlen(path);
    if (!strncmp(error->message, path, length) && !strncmp(error->message + length, ": ", 2))
        memmove(error->message, error->message + length + 2,
                strlen(error->message + length + 2) + 1);
}

/* Memory that the largest of its resized images will take, with what making it takes. */
static uint64_t estimate_resizing(const struct run *run, size_t index, bool sampled,
                                  const struct dl2_image_info *info)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    uint64_t most = 0;
    for (size_t v = 0; v < run->variant_count; v++) {
        uint32_t w = width, h = height;
        if (!(sampled || needs(run, v, index)) ||
            !dl2_resolution_apply(&run->variants[v].resolution, &w, &h))
            continue;
        const uint64_t bytes = (uint64_t)w * h * 3 + dl2_resize_image_memory(width, height, w, 3);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Memory that item `index` will take at the most, by its header; 0 where that can't be read. One
 * that is `sampled` may take that for each variant, also for those that have it. */
static uint64_t estimate(struct run *run, size_t index, bool sampled, const uint8_t *data,
                         size_t size)
{
    struct dl2_image_info info;
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    if (!codec || dl2_image_read_info(data, size, &info, NULL) < 0 || !info.width ||
        info.height > run->options->decode.max_pixels / info.width)
        return 0;
    unsigned pixel_bytes = codec->pixel_bytes, swept = 0, searched = 0;
    for (size_t v = 0; v < run->variant_count; v++) {
        if (!sampled && !needs(run, v, index))
            continue;
        if (run->variants[v].codec->pixel_bytes > pixel_bytes)
            pixel_bytes = run->variants[v].codec->pixel_bytes;
        swept += run->variants[v].codec->encode_sweep != NULL;
        if (run->variants[v].target.name)
            searched = SEARCH_BYTES;
    }
    /* The files of a sweep are in memory together: about a byte a pixel each. */
    pixel_bytes += swept + searched;
    return (uint64_t)info.width * info.height * pixel_bytes + size +
           estimate_resizing(run, index, sampled, &info);
}

/* The options with which an image is encoded for the variant. */
static struct dl2_encode_options options_of(const struct worker *worker,
                                            const struct dl2_variant *variant)
{
    struct dl2_encode_options encode = variant->encode;
    if (worker->shown == &worker->image && dl2_colours_allow_source(&worker->colours)) {
        encode.source = worker->source;
        encode.source_size = worker->source_size;
    }
    return encode;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* The headers by which variants may have the source's file as it is: none if it is resized. */
static const struct dl2_reuse *reuse_of(const struct worker *worker)
{
    static const struct dl2_reuse none;
    return worker->shown == &worker->image ? &worker->reuse : &none;
}

/* Do they differ in quality alone, and is there something to gain from that? */
static bool make_a_sweep(const struct dl2_variant *a, const struct dl2_variant *b)
{
    return dl2_resolution_equal(&a->resolution, &b->resolution) && !a->target.name &&
           !b->target.name && a->codec == b->codec && a->codec->encode_sweep &&
           a->encode.effort == b->encode.effort && a->encode.tables == b->encode.tables &&
           a->encode.external == b->encode.external &&
           dl2_settings_equal(a->codec, &a->encode, &b->encode) &&
           same_text(a->encode.subsampling, b->encode.subsampling) &&
           same_text(a->encode.restart, b->encode.restart);
}

/* Makes worker->members of variant `v` and those that are encoded together with it. */
static size_t gather_sweep(const struct run *run, struct worker *worker, size_t v, size_t index,
                           const struct outcome *outcomes)
{
    const struct dl2_variant *const first = &run->variants[v];
    size_t count = 0;
    for (size_t other = v; other < run->variant_count; other++) {
        const struct dl2_variant *const variant = &run->variants[other];
        if (other > v &&
            (!needs(run, other, index) || outcomes[other].tried || !make_a_sweep(first, variant) ||
             dl2_reuse_suffices(reuse_of(worker), variant->codec, &variant->encode)))
            continue;
        worker->members[count] = other;
        worker->qualities[count++] = variant->encode.quality;
        if (dl2_reuse_suffices(reuse_of(worker), first->codec, &first->encode))
            break;
    }
    return count;
}

/* Makes worker->encoded[0] the file that a variant with a target has, or the source's file. */
static int search_file(struct worker *worker, const struct dl2_variant *variant,
                       const struct dl2_target_curve *curve, struct dl2_encode_options *encode,
                       struct dl2_record *record, struct dl2_error *error)
{
    struct dl2_bytes *file = worker->encoded;
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_target_search(&worker->searcher, &variant->target, curve, variant->codec,
                              worker->shown, encode, file, &record->found, error));
    record->encode_cpu = (float)(dl2_clock_thread_cpu() - start);
    encode->quality = record->found.quality;
    const bool copies = !record->found.met && variant->target.miss == DL2_MISS_COPY;
    const int taken = copies ? dl2_reuse_take(reuse_of(worker), variant->codec, encode, file, error)
                             : dl2_reuse_replace(reuse_of(worker), variant->codec, encode,
                                                 &worker->taken, file, error);
    if (copies && !taken)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "no quality reaches %s %g, and the source cannot be copied: it is "
                             "resized, or no %s file with these pixels",
                             variant->target.name, variant->target.value, variant->codec->name);
    record->copied = taken > 0;
    if (record->copied)
        dl2_target_take_source(&variant->target, worker->shown, file, &record->found);
    return taken < 0 ? taken : DL2_OK;
}

/* Makes worker->encoded what the members have for the image: each is encoded, or the source's
 * file. What they take together is recorded in equal parts. */
static int make_files(const struct run *run, struct worker *worker, size_t count,
                      struct outcome *outcomes, struct dl2_error *error)
{
    const struct dl2_variant *const variants = run->variants;
    const struct dl2_variant *const first = &variants[worker->members[0]];
    struct dl2_encode_options encode = options_of(worker, first);
    double encode_cpu = 0;
    DL2_TRY(dl2_colours_fit(&worker->colours, first->codec, worker->shown, &encode, error));
    if (first->target.name)
        return search_file(worker, first, &run->curves[worker->members[0]], &encode,
                           &outcomes[worker->members[0]].record, error);
    if (count == 1) {
        encode.pixels_only = &outcomes[worker->members[0]].record.pixels_only;
        const int taken = dl2_reuse_encode(reuse_of(worker), first->codec, worker->shown, &encode,
                                           &worker->taken, worker->encoded, &encode_cpu, error);
        outcomes[worker->members[0]].record.encode_cpu = (float)encode_cpu;
        outcomes[worker->members[0]].record.copied = taken > 0;
        return taken < 0 ? taken : DL2_OK;
    }
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_image_encode_sweep(first->codec, worker->shown, &encode, worker->qualities,
                                   worker->encoded, count, error));
    encode_cpu = (dl2_clock_thread_cpu() - start) / (double)count;
    for (size_t i = 0; i < count; i++) {
        struct outcome *const outcome = &outcomes[worker->members[i]];
        encode = options_of(worker, &variants[worker->members[i]]);
        const int taken = dl2_reuse_replace(reuse_of(worker), first->codec, &encode, &worker->taken,
                                            &worker->encoded[i], error);
        if (taken < 0)
            return taken;
        outcome->record.encode_cpu = (float)encode_cpu;
        outcome->record.copied = taken > 0;
    }
    return DL2_OK;
}

/* Puts a file into its place in the variant, or for emit() into the outcome. */
static int store_file(struct run *run, struct worker *worker, size_t v, size_t index,
                      const struct dl2_sidecars *sidecars, struct dl2_bytes *encoded,
                      struct outcome *outcome, struct dl2_error *error)
{
    struct dl2_variant *variant = &run->variants[v];
    const struct dl2_source_item *item = &run->source.items[index];
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_TRY(dl2_variant_begin(variant, error));
    outcome->tried = true;
    outcome->record.bytes = encoded->size;
    outcome->record.state = DL2_RECORD_VALID;
    if (run->packed) {
        struct dl2_bytes free_now = outcome->encoded;
        outcome->encoded = *encoded;
        *encoded = free_now;
        return DL2_OK;
    }
    outcome->record.has_output = true;
    DL2_TRY(dl2_variant_path(variant, item, &worker->path, error));
    const char *path = (const char *)worker->path.data;
    int status = dl2_file_write(path, encoded->data, encoded->size, &own);
    /* Most often its folder isn't there yet. Looking for it each time would cost more. */
    if (status == DL2_ERR_SYSTEM) {
        DL2_TRY(dl2_make_folder_of(path, error));
        DL2_TRY(dl2_file_write(path, encoded->data, encoded->size, error));
    } else if (status < 0) {
        return dl2_error_copy(error, &own);
    }
    return dl2_variant_put_sidecars(variant, &run->source, item, sidecars, &outcome->record, error);
}

/* What lies beside the image of a slot in variants of a resolution. */
static const struct dl2_sidecars *sidecars_of(const struct run *run, size_t slot, size_t resolution)
{
    const struct dl2_sidecars *sidecars = run->sidecars + slot * run->resolution_count;
    return sidecars[resolution].count ? &sidecars[resolution] : &sidecars[0];
}

/* Makes worker->shown the image at a resolution, and what lies beside it there. */
static int resize(struct run *run, struct worker *worker, size_t slot, size_t number, bool first,
                  struct dl2_error *error)
{
    struct dl2_sidecars *sidecars = run->sidecars + slot * run->resolution_count;
    const struct dl2_image *image = &worker->image;
    DL2_TRY(dl2_resize_to(&worker->resizer, image, &run->resolutions[number], &worker->resized,
                          &worker->shown, error));
    if (worker->shown == image)
        return DL2_OK;
    return dl2_masks_resize(&worker->masks, &sidecars[0], image->width, image->height,
                            worker->shown->width, worker->shown->height, &sidecars[number],
                            first ? &run->unresized : NULL, error);
}

static bool needs_resolution(const struct run *run, size_t number, size_t index)
{
    for (size_t v = 0; v < run->variant_count; v++)
        if (run->resolution_of[v] == number && needs(run, v, index))
            return true;
    return false;
}

/* Fails the variants of a resolution. */
static void fail_resolution(const struct run *run, size_t number, size_t index,
                            struct outcome *outcomes, const struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++)
        if (run->resolution_of[v] == number && needs(run, v, index))
            set_failure(&outcomes[v], error);
}

/* Encodes worker->shown for the variants of a resolution. */
static int encode_resolution(struct run *run, struct worker *worker, size_t index, size_t number,
                             float decode_cpu, const struct dl2_sidecars *sidecars,
                             struct outcome *outcomes, struct dl2_error *error)
{
    const struct dl2_record record = {.width = worker->shown->width,
                                      .height = worker->shown->height,
                                      .source_width = worker->image.width,
                                      .source_height = worker->image.height,
                                      .channels = (uint8_t)worker->image.channels,
                                      .decode_cpu = decode_cpu};
    for (size_t v = 0; v < run->variant_count; v++) {
        if (run->resolution_of[v] != number || !needs(run, v, index) || outcomes[v].tried)
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const size_t count = gather_sweep(run, worker, v, index, outcomes);
        for (size_t i = 0; i < count; i++)
            outcomes[worker->members[i]].record = record;
        int status = make_files(run, worker, count, outcomes, &own);
        for (size_t i = 0; i < count; i++) {
            const size_t member = worker->members[i];
            struct dl2_record *const made = &outcomes[member].record;
            if (status == DL2_OK)
                status = dl2_colours_note(&worker->colours, made->copied, &made->reduction, &own);
            if (status < 0)
                set_failure(&outcomes[member], &own);
            else
                DL2_TRY(store_file(run, worker, member, index, sidecars, &worker->encoded[i],
                                   &outcomes[member], error));
        }
    }
    return DL2_OK;
}

/* Only what can't be written is an error here; an image that can't be encoded is an outcome. */
static int encode_all(struct run *run, struct worker *worker, size_t slot, size_t index,
                      float decode_cpu, struct outcome *outcomes, struct dl2_error *error)
{
    bool first = true; /* what lies beside an image is counted once */
    for (size_t r = 0; r < run->resolution_count; r++) {
        if (!needs_resolution(run, r, index))
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const double start = dl2_clock_thread_cpu();
        const int status = resize(run, worker, slot, r, first, &own);
        const float cpu = decode_cpu + (float)(dl2_clock_thread_cpu() - start);
        first = first && worker->shown == &worker->image;
        if (status < 0)
            fail_resolution(run, r, index, outcomes, &own);
        else
            DL2_TRY(encode_resolution(run, worker, index, r, cpu, sidecars_of(run, slot, r),
                                      outcomes, error));
    }
    return DL2_OK;
}

static void release_if_large(struct worker *worker, size_t variants)
{
    if (worker->resized.capacity + worker->resizer.narrowed.capacity > KEPT_IMAGE_BYTES) {
        dl2_image_free(&worker->resized);
        dl2_image_resizer_free(&worker->resizer);
    }
    if (worker->searcher.decoded.capacity > KEPT_IMAGE_BYTES) {
        dl2_target_searcher_free(&worker->searcher);
        worker->searcher = (struct dl2_target_searcher){0};
    }
    if (worker->masks.image.capacity > KEPT_IMAGE_BYTES)
        dl2_mask_resizer_free(&worker->masks);
    if (worker->image.capacity > KEPT_IMAGE_BYTES)
        dl2_image_free(&worker->image);
    if (worker->scratch.capacity > KEPT_IMAGE_BYTES)
        dl2_image_free(&worker->scratch);
    if (worker->file.capacity > KEPT_IMAGE_BYTES)
        dl2_bytes_free(&worker->file);
    for (size_t i = 0; i < variants; i++)
        if (worker->encoded[i].capacity > KEPT_IMAGE_BYTES / variants)
            dl2_bytes_free(&worker->encoded[i]);
    dl2_bytes_free(&worker->taken);
}

static int work(void *context, unsigned number, size_t slot, size_t n, struct dl2_error *error)
{
    struct run *run = context;
    struct worker *worker = &run->workers[number];
    struct outcome *outcomes = run->outcomes + slot * run->variant_count;
    size_t index = run->todo[n];
    const struct dl2_source_item *item = &run->source.items[index];
    const uint8_t *data;
    size_t size;
    struct dl2_error own = DL2_ERROR_INIT;
    for (size_t v = 0; v < run->variant_count; v++)
        outcomes[v] = (struct outcome){.encoded = outcomes[v].encoded};
    struct dl2_sidecars *sidecars = &run->sidecars[slot * run->resolution_count];
    int status = dl2_dataset_read(run->dataset, item->sample, &worker->file, &data, &size, &own);
    if (status == DL2_OK)
        status = dl2_dataset_read_sidecars(run->dataset, item->sample, sidecars, &own);
    uint64_t bytes = 0;
    if (status == DL2_OK) {
        worker->source = data;
        worker->source_size = size;
        worker->reuse = (struct dl2_reuse){0};
        if (run->options->never_larger)
            dl2_reuse_look(&worker->reuse, data, size);
        bytes = estimate(run, index, false, data, size);
        gate_enter(&run->gate, bytes);
        double start = dl2_clock_thread_cpu();
        struct dl2_decode_options decode = run->options->decode;
        decode.info = &worker->colours.info;
        status = dl2_image_decode(data, size, &decode, &worker->image, &worker->scratch, &own);
        float decode_cpu = (float)(dl2_clock_thread_cpu() - start);
        int fatal = DL2_OK;
        if (status == DL2_OK)
            status = dl2_colours_apply(&worker->colours, run->options->colour, data, size,
                                       &worker->image, &own);
        if (!dl2_colours_allow_source(&worker->colours))
            worker->reuse.codec = NULL;
        if (status == DL2_OK)
            fatal = encode_all(run, worker, slot, index, decode_cpu, outcomes, error);
        release_if_large(worker, run->variant_count);
        gate_leave(&run->gate, bytes);
        if (fatal < 0)
            return fatal;
    }
    if (status == DL2_ERR_LOST)
        return dl2_error_copy(error, &own);
    if (status < 0) {
        drop_path(&own, item->path);
        for (size_t v = 0; v < run->variant_count; v++) {
            if (needs(run, v, index))
                set_failure(&outcomes[v], &own);
        }
    }
    return DL2_OK;
}

/* ---- The mean curves of targets, of a sample of the images */

enum { SAMPLE_IMAGES = 8, SAMPLE_SHARE = 4 /* no more than one in so many */ };

struct sample {
    struct run *run;
    uint32_t *order;                     /* of all items; its first are the sample's */
    double (*evens)[DL2_TARGET_SAMPLES]; /* [images][variant_count], NAN: none */
};

static bool needs_curve(const struct run *run, size_t v)
{
    const struct dl2_quality_target *const target = &run->variants[v].target;
    bool needed = false;
    for (size_t n = 0; n < run->todo_count && !needed; n++)
        needed = needs(run, v, run->todo[n]);
    return needed && target->name && !dl2_target_is_scanned(target, run->variants[v].codec);
}

static int sample_variant(const struct dl2_variant *variant, struct worker *worker,
                          double evens[DL2_TARGET_SAMPLES], struct dl2_error *error)
{
    DL2_TRY(dl2_resize_to(&worker->resizer, &worker->image, &variant->resolution, &worker->resized,
                          &worker->shown, error));
    struct dl2_encode_options encode = options_of(worker, variant);
    DL2_TRY(dl2_colours_fit(&worker->colours, variant->codec, worker->shown, &encode, error));
    return dl2_target_sample(&worker->searcher, &variant->target, variant->codec, worker->shown,
                             &encode, evens, error);
}

/* Does an error say that the run cannot go on? Others mean that an image has no part in a curve,
 * of which work() tells. */
static bool ends_run(int status)
{
    return status == DL2_ERR_LOST || status == DL2_ERR_MEMORY;
}

static int sample_work(void *context, unsigned number, size_t slot, size_t n,
                       struct dl2_error *error)
{
    const struct sample *const sample = context;
    struct run *const run = sample->run;
    struct worker *const worker = &run->workers[number];
    const size_t index = sample->order[n];
    struct dl2_error own = DL2_ERROR_INIT;
    const uint8_t *data;
    size_t size;
    (void)slot;
    int status = dl2_dataset_read(run->dataset, run->source.items[index].sample, &worker->file,
                                  &data, &size, &own);
    if (status == DL2_OK) {
        const uint64_t bytes = estimate(run, index, true, data, size);
        struct dl2_decode_options decode = run->options->decode;
        decode.info = &worker->colours.info;
        worker->source = data;
        worker->source_size = size;
        gate_enter(&run->gate, bytes);
        status = dl2_image_decode(data, size, &decode, &worker->image, &worker->scratch, &own);
        if (status == DL2_OK)
            status = dl2_colours_apply(&worker->colours, run->options->colour, data, size,
                                       &worker->image, &own);
        for (size_t v = 0; status == DL2_OK && v < run->variant_count; v++) {
            if (!needs_curve(run, v))
                continue;
            const int one = sample_variant(&run->variants[v], worker,
                                           sample->evens[n * run->variant_count + v], &own);
            if (ends_run(one))
                status = one;
            else
                dl2_error_clear(&own);
        }
        release_if_large(worker, run->variant_count);
        gate_leave(&run->gate, bytes);
    }
    return ends_run(status) ? dl2_error_copy(error, &own) : DL2_OK;
}

/* The sample depends on the source alone, so that every run of it has the same. */
static int draw_sample(struct sample *sample, size_t count, struct dl2_error *error)
{
    const struct run *const run = sample->run;
    const size_t values = count * run->variant_count;
    struct dl2_random random;
    sample->order = dl2_calloc(run->source.count, sizeof *sample->order);
    sample->evens = dl2_calloc(values, sizeof *sample->evens);
    if (!sample->order || !sample->evens)
        return dl2_error_memory(error, "images");
    dl2_random_init(&random, 0, DL2_RANDOM_TARGET, 0, 0);
    dl2_random_permutation(&random, sample->order, (uint32_t)run->source.count);
    for (size_t i = 0; i < values; i++)
        for (int k = 0; k < DL2_TARGET_SAMPLES; k++)
            sample->evens[i][k] = NAN;
    struct dl2_parallel loop = {
        .jobs = run->options->jobs, .count = count, .work = sample_work, .context = sample};
    return dl2_parallel_run(&loop, error);
}

static int make_curves(struct run *run, struct dl2_error *error)
{
    struct sample sample = {.run = run};
    size_t count = run->source.count / SAMPLE_SHARE;
    bool any = false;
    int status = DL2_OK;
    count = count < SAMPLE_IMAGES ? count : SAMPLE_IMAGES;
    run->curves = dl2_calloc(run->variant_count, sizeof *run->curves);
    double(*const evens)[DL2_TARGET_SAMPLES] =
        dl2_calloc(SAMPLE_IMAGES, sizeof *evens); /* of one variant */
    if (!run->curves || !evens)
        status = dl2_error_memory(error, "variants");
    for (size_t v = 0; v < run->variant_count; v++)
        any = any || needs_curve(run, v);
    if (status == DL2_OK && any && run->source.count <= UINT32_MAX)
        status = draw_sample(&sample, count, error);
    for (size_t v = 0; status == DL2_OK && any && v < run->variant_count; v++) {
        for (size_t n = 0; n < count; n++)
            memcpy(evens[n], sample.evens[n * run->variant_count + v], sizeof *evens);
        if (run->variants[v].target.name)
            dl2_target_curve_make(&run->curves[v], &run->variants[v].target,
                                  (const double(*)[DL2_TARGET_SAMPLES])evens, count);
    }
    free(sample.order);
    free(sample.evens);
    free(evens);
    return status;
}

/* Names a failure once, whatever number of variants it befell. */
static void tell_failures(const struct run *run, const struct outcome *outcomes,
                          const struct dl2_source_item *item)
{
    const char *said = "";
    for (size_t v = 0; v < run->variant_count; v++) {
        const char *message = outcomes[v].message;
        if (!message || !strcmp(message, said))
            continue;
        dl2_progress_message(run->progress, "%s: %s", item->path, message);
        said = message;
    }
}

/* Puts what was encoded into the containers; one that can't hold an image's name fails it. */
static int pack(const struct run *run, const struct dl2_source_item *item, size_t slot,
                struct outcome *outcomes, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        struct outcome *outcome = &outcomes[v];
        if (!outcome->tried || outcome->record.state != DL2_RECORD_VALID)
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const int status =
            dl2_variant_pack(&run->variants[v], item, outcome->encoded.data, outcome->encoded.size,
                             sidecars_of(run, slot, run->resolution_of[v]), &outcome->record, &own);
        if (status == DL2_ERR_UNSUPPORTED || status == DL2_ERR_LIMIT || status == DL2_ERR_ARGUMENT)
            set_failure(outcome, &own);
        else if (status < 0)
            return dl2_error_copy(error, &own);
        if (outcome->encoded.capacity > KEPT_IMAGE_BYTES)
            dl2_bytes_free(&outcome->encoded);
    }
    return DL2_OK;
}

/* Fails the frames that a clip of variant `v` has, since others are missing. */
static int fail_clip(const struct run *run, size_t v, struct dl2_error *error)
{
    struct dl2_clip_packer *clip = &run->clips[v];
    struct dl2_variant *variant = &run->variants[v];
    if (!clip->clip.count)
        return DL2_OK;
    dl2_progress_message(run->progress,
                         "%s: %s: the clip is left out with all its frames, for lack of one",
                         variant->name, clip->key);
    for (size_t i = clip->clip.first; i < clip->clip.first + clip->clip.count; i++) {
        if (variant->records[i].state != DL2_RECORD_VALID)
            continue;
        char *message = strdup("another frame of its clip failed");
        if (!message)
            return dl2_error_memory(error, "images");
        DL2_TRY(dl2_variant_fail(variant, &run->source.items[i], i, message, error));
    }
    clip->clip.count = 0;
    return DL2_OK;
}

/* The same as pack() for a frame: it is put into the container with the last one of its clip. */
static int pack_frame(const struct run *run, const struct dl2_source_item *item, size_t slot,
                      struct outcome *outcomes, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_clip_packer *clip = &run->clips[v];
        struct outcome *outcome = &outcomes[v];
        if (!outcome->tried)
            continue;
        if (!dl2_clip_packer_expects(clip, item->sample)) {
            DL2_TRY(fail_clip(run, v, error)); /* whose last frame failed in an earlier run */
            dl2_clip_packer_begin(clip, run->dataset, item->sample);
        }
        if (outcome->record.state != DL2_RECORD_VALID)
            continue;
        DL2_TRY(dl2_clip_packer_add_sidecars(clip, item->sample,
                                             sidecars_of(run, slot, run->resolution_of[v]), error));
        DL2_TRY(
            dl2_clip_packer_add(clip, run->variants[v].codec->extension, &outcome->encoded, error));
    }
    return DL2_OK;
}

/* Behind a frame whose outcome is recorded: writes its clip if it is whole. */
static int end_frame(const struct run *run, const struct dl2_source_item *item,
                     struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_clip_packer *clip = &run->clips[v];
        if (item->sample + 1 != clip->clip.first + clip->clip.count)
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const struct dl2_image_range range = clip->clip;
        int status = dl2_clip_packer_is_whole(clip)
                         ? dl2_clip_packer_write(clip, run->variants[v].writer, &own)
                         : DL2_ERR_LIMIT;
        if (status == DL2_ERR_UNSUPPORTED || status == DL2_ERR_LIMIT ||
            status == DL2_ERR_ARGUMENT) {
            if (own.status < 0)
                dl2_progress_message(run->progress, "%s", own.message);
            clip->clip = range;
            status = fail_clip(run, v, &own);
        }
        if (status < 0)
            return dl2_error_copy(error, &own);
    }
    return DL2_OK;
}

static int emit(void *context, size_t slot, size_t n, struct dl2_error *error)
{
    struct run *run = context;
    struct outcome *outcomes = run->outcomes + slot * run->variant_count;
    size_t index = run->todo[n];
    const struct dl2_source_item *item = &run->source.items[index];
    if (run->clips)
        DL2_TRY(pack_frame(run, item, slot, outcomes, error));
    else if (run->packed)
        DL2_TRY(pack(run, item, slot, outcomes, error));
    for (size_t r = 0; r < run->resolution_count; r++)
        dl2_sidecars_free(&run->sidecars[slot * run->resolution_count + r]);
    tell_failures(run, outcomes, item);
    int status = DL2_OK;
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_variant *variant = &run->variants[v];
        if (!outcomes[v].tried)
            continue;
        variant->records[index].unread = outcomes[v].record.unread;
        if (outcomes[v].record.state != DL2_RECORD_VALID)
            free(outcomes[v].record.reduction.colour);
        int one = outcomes[v].record.state == DL2_RECORD_VALID
                      ? dl2_variant_add(variant, item, index, &outcomes[v].record, error)
                      : dl2_variant_fail(variant, item, index, outcomes[v].message, error);
        outcomes[v].message = NULL;
        outcomes[v].record.sidecars = NULL;
        outcomes[v].record.reduction.colour = NULL;
        if (status == DL2_OK)
            status = one;
    }
    if (run->clips && status == DL2_OK)
        status = end_frame(run, item, error);
    dl2_progress_update(run->progress, n + 1, NULL);
    return status;
}

static int make_worker(struct worker *worker, size_t variants, struct dl2_error *error)
{
    worker->encoded = dl2_calloc(variants, sizeof *worker->encoded);
    worker->members = dl2_calloc(variants, sizeof *worker->members);
    worker->qualities = dl2_calloc(variants, sizeof *worker->qualities);
    return worker->encoded && worker->members && worker->qualities
               ? DL2_OK
               : dl2_error_memory(error, "variants");
}

static void free_worker(struct worker *worker, size_t variants)
{
    for (size_t i = 0; worker->encoded && i < variants; i++)
        dl2_bytes_free(&worker->encoded[i]);
    free(worker->encoded);
    free(worker->members);
    free(worker->qualities);
    dl2_bytes_free(&worker->file);
    dl2_bytes_free(&worker->taken);
    dl2_bytes_free(&worker->path);
    dl2_image_free(&worker->image);
    dl2_image_free(&worker->scratch);
    dl2_image_free(&worker->resized);
    dl2_image_resizer_free(&worker->resizer);
    dl2_mask_resizer_free(&worker->masks);
    dl2_target_searcher_free(&worker->searcher);
    dl2_colours_free(&worker->colours);
}

static int make_all(struct run *run, struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = run->options->jobs,
                                .count = run->todo_count,
                                .work = work,
                                .emit = emit,
                                .context = run};
    dl2_parallel_resolve(&loop);
    run->workers = dl2_calloc(loop.jobs, sizeof *run->workers);
    size_t outcomes = loop.window * run->variant_count;
    run->outcomes = dl2_calloc(outcomes, sizeof *run->outcomes);
    const size_t sidecars = loop.window * run->resolution_count;
    run->sidecars = dl2_calloc(sidecars, sizeof *run->sidecars);
    const bool clips = run->packed && dl2_dataset_kind(run->dataset) == DL2_SAMPLE_CLIP;
    if (clips)
        run->clips = dl2_calloc(run->variant_count, sizeof *run->clips);
    if (!run->workers || !run->outcomes || !run->sidecars || (clips && !run->clips))
        return dl2_error_memory(error, "images");
    int status = DL2_OK;
    for (unsigned i = 0; status == DL2_OK && i < loop.jobs; i++)
        status = make_worker(&run->workers[i], run->variant_count, error);
    run->progress->total = run->todo_count;
    if (status == DL2_OK)
        status = make_curves(run, error);
    if (status == DL2_OK)
        status = dl2_parallel_run(&loop, error);
    for (size_t v = 0; run->clips && v < run->variant_count; v++) {
        if (status == DL2_OK)
            status = fail_clip(run, v, error);
        char *left_out = dl2_clip_packer_left_out(&run->clips[v]);
        if (left_out)
            dl2_progress_message(run->progress, "%s: %s", run->variants[v].root, left_out);
        free(left_out);
        dl2_clip_packer_free(&run->clips[v]);
    }
    for (size_t i = 0; i < outcomes; i++) {
        free(run->outcomes[i].message); /* of items that weren't emitted any more */
        free(run->outcomes[i].record.sidecars);
        free(run->outcomes[i].record.reduction.colour);
        dl2_bytes_free(&run->outcomes[i].encoded);
    }
    for (size_t i = 0; i < sidecars; i++)
        dl2_sidecars_free(&run->sidecars[i]);
    for (unsigned i = 0; i < loop.jobs; i++)
        free_worker(&run->workers[i], run->variant_count);
    return status;
}

/* ---- Beginning and end */

/* Lists the resolutions of the variants. The first is full, whether a variant has it or not: its
 * place is that of what lies beside images as it is. */
static int list_resolutions(struct run *run, struct dl2_error *error)
{
    run->resolutions = dl2_calloc(run->variant_count + 1, sizeof *run->resolutions);
    run->resolution_of = dl2_calloc(run->variant_count, sizeof *run->resolution_of);
    if (!run->resolutions || !run->resolution_of)
        return dl2_error_memory(error, "variants");
    run->resolution_count = 1;
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_resolution *own = &run->variants[v].resolution;
        size_t number = 0;
        while (number < run->resolution_count &&
               !dl2_resolution_equal(&run->resolutions[number], own))
            number++;
        if (number == run->resolution_count)
            run->resolutions[run->resolution_count++] = *own;
        run->resolution_of[v] = number;
    }
    return DL2_OK;
}

/* Two variants in one place would overwrite each other: in tables "-" and "@" are both "_". */
static int check_names(const struct run *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++)
        for (size_t other = 0; other < v; other++)
            if (!strcmp(run->variants[v].root, run->variants[other].root))
                return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                     "%s: the variants %s and %s would both be written there; make "
                                     "them in two runs, with two DESTs",
                                     run->variants[v].root, run->variants[other].name,
                                     run->variants[v].name);
    return DL2_OK;
}

static int init_variants(struct run *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    run->variants = dl2_calloc(options->target_count, sizeof *run->variants);
    if (!run->variants)
        return dl2_error_memory(error, "images");
    for (size_t v = 0; v < options->target_count; v++) {
        const struct dl2_transcode_target *target = &options->targets[v];
        run->variant_count = v + 1;
        DL2_TRY(dl2_variant_init(&run->variants[v], options->dest, options->source, target,
                                 &options->decode, options->never_larger, options->colour,
                                 &options->pack, error));
        if (options->shuffle)
            DL2_TRY(dl2_variant_note_order(&run->variants[v], *options->shuffle, error));
    }
    DL2_TRY(check_names(run, error));
    return list_resolutions(run, error);
}

/* What the variant's images lack of their sources, in lines: a string to free, or NULL. */
static char *describe_losses(const struct dl2_variant *variant)
{
    const struct dl2_variant_totals *totals = &variant->totals;
    const struct dl2_quality_target *target = &variant->target;
    char *losses = dl2_reduction_describe(variant->losses), *all = NULL;
    if (losses && target->name) {
        const int length = asprintf(
            &all,
            "%" PRIu64 " of %" PRIu64 " images miss the target %s %s %g at quality %d; %.1f "
            "qualities were tried for each image\n%s",
            totals->missed, totals->images, target->name,
            target->rule == DL2_TARGET_NEAREST                   ? "of about"
            : target->metric && !target->metric->lower_is_better ? "of at least"
                                                                 : "of at most",
            target->value, target->metric ? target->high : target->low,
            totals->images ? (double)totals->probes / (double)totals->images : 0, losses);
        free(losses);
        losses = length < 0 ? NULL : all;
        all = NULL;
    }
    if (!losses || dl2_resolution_is_full(&variant->resolution))
        return losses;
    if (asprintf(&all,
                 "%" PRIu64 " images resized (%s); %" PRIu64
                 " that are no larger keep their size\n%s",
                 totals->resized, dl2_interpolation_words[variant->resolution.filter],
                 totals->images - totals->resized, losses) < 0)
        all = NULL;
    free(losses);
    return all;
}

static int report(const struct run *run, struct dl2_transcode_result *result,
                  struct dl2_error *error)
{
    result->variants = dl2_calloc(run->variant_count, sizeof *result->variants);
    if (!result->variants)
        return dl2_error_memory(error, "images");
    result->sources = run->source.count;
    result->ignored = run->source.ignored;
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_variant *variant = &run->variants[v];
        const struct dl2_variant_totals *totals = &variant->totals;
        result->variant_count = v + 1;
        result->variants[v] =
            (struct dl2_transcode_variant){.name = strdup(variant->name),
                                           .path = strdup(variant->root),
                                           .losses = describe_losses(variant),
                                           .made = variant->made,
                                           .strays = run->options->prune ? 0 : variant->stray_count,
                                           .images = totals->images,
                                           .failed = totals->failed,
                                           .bytes = totals->bytes,
                                           .pixels = totals->pixels,
                                           .source_bytes = totals->source_bytes,
                                           .copied = totals->copied,
                                           .encode_cpu = totals->encode_cpu};
        if (!result->variants[v].name || !result->variants[v].path || !result->variants[v].losses)
            return dl2_error_memory(error, "images");
    }
    for (size_t i = 0; i < run->source.count; i++) {
        bool failed = false;
        for (size_t v = 0; v < run->variant_count; v++)
            failed = failed || run->variants[v].records[i].state == DL2_RECORD_FAILED;
        result->failed_sources += failed;
    }
    return DL2_OK;
}

static void tell_pixels_only(const struct run *run, const struct dl2_variant *variant)
{
    if (variant->totals.pixels_only)
        dl2_progress_message(run->progress,
                             "%s: %" PRIu64 " JPEG files are of a kind that cannot be stored so "
                             "that their bytes come back (CMYK, arithmetic codes, RGB with "
                             "subsampling): only their pixels are kept",
                             variant->root, variant->totals.pixels_only);
}

static int run_all(struct run *run, struct dl2_transcode_result *result, struct dl2_error *error)
{
    DL2_TRY(init_variants(run, error));
    DL2_TRY(check_places(run, error));
    DL2_TRY(open_source(run, error));
    if (!dl2_dataset_is_database(run->options->dest)) { /* tables have locks of their own */
        DL2_TRY(dl2_make_folders(run->options->dest, error));
        DL2_TRY(dl2_output_lock(run->options->dest, run->progress, &run->lock, error));
    }
    DL2_TRY(collect(run, error));
    DL2_TRY(plan_items(run, error));
    if (run->todo_count)
        DL2_TRY(make_all(run, error));
    for (size_t v = 0; v < run->variant_count; v++) {
        DL2_TRY(dl2_variant_finish(&run->variants[v], &run->source, error));
        char *left_out = dl2_variant_left_out(&run->variants[v]);
        if (left_out)
            dl2_progress_message(run->progress, "%s: %s", run->variants[v].root, left_out);
        free(left_out);
        tell_pixels_only(run, &run->variants[v]);
    }
    char *unresized = dl2_unresized_message(&run->unresized);
    if (unresized)
        dl2_progress_message(run->progress, "%s: %s", run->options->source, unresized);
    free(unresized);
    return report(run, result, error);
}

int dl2_transcode(const struct dl2_transcode_options *options, struct dl2_transcode_result *result,
                  struct dl2_error *error)
{
    *result = (struct dl2_transcode_result){0};
    struct run run = {.options = options,
                      .progress = options->progress,
                      .gate = {.limit = options->memory},
                      .lock = -1,
                      .packed = dl2_container_is_packed(options->pack.container)};
    pthread_mutex_init(&run.gate.mutex, NULL);
    pthread_cond_init(&run.gate.changed, NULL);
    pthread_mutex_init(&run.unresized.mutex, NULL);
    int status = run_all(&run, result, error);
    for (size_t v = 0; v < run.variant_count; v++)
        dl2_variant_free(&run.variants[v], run.source.count);
    for (size_t i = 0; i < run.source.count; i++) {
        free(run.source.items[i].key_text);
        free(run.source.items[i].name_text);
    }
    free(run.variants);
    free(run.source.items);
    free(run.source.by_key);
    free(run.workers);
    free(run.outcomes);
    free(run.clips);
    free(run.sidecars);
    free(run.resolutions);
    free(run.resolution_of);
    free(run.curves);
    dl2_left_out_free(&run.unresized.counts);
    pthread_mutex_destroy(&run.unresized.mutex);
    free(run.todo);
    if (run.dataset)
        dl2_dataset_close(run.dataset);
    if (run.lock >= 0)
        close(run.lock);
    pthread_cond_destroy(&run.gate.changed);
    pthread_mutex_destroy(&run.gate.mutex);
    return status;
}

void dl2_transcode_result_free(struct dl2_transcode_result *result)
{
    for (size_t v = 0; v < result->variant_count; v++) {
        free(result->variants[v].name);
        free(result->variants[v].path);
        free(result->variants[v].losses);
    }
    free(result->variants);
    *result = (struct dl2_transcode_result){0};
}
