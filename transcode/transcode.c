/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "dataset/tell.h"
#include "ranks/world.h"
#include "transcode/annotations.h"
#include "transcode/transcoder.h"
#include "transcode/variant/server_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_STRAYS_NAMED = 10, DIGEST_SIZE = 48 };

#define PARTS_STEM ".dl2-transcode.part"

/* ---- Preparing: the variants, the source, the lock of DEST */

/* Lists the resolutions of the variants. The first is full, whether a variant has it or not: its
 * place is that of what lies beside images as it is. */
static int list_resolutions(struct dl2_transcoder *run, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&run->resolutions, run->variant_count + 1, "variants", error));
    DL2_TRY(DL2_NEW(&run->resolution_of, run->variant_count, "variants", error));
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
static int check_names(const struct dl2_transcoder *run, struct dl2_error *error)
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

static int init_variants(struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    DL2_TRY(DL2_NEW(&run->variants, options->target_count, "images", error));
    for (size_t v = 0; v < options->target_count; v++) {
        run->variant_count = v + 1;
        DL2_TRY(dl2_variant_init(&run->variants[v], options, &options->targets[v], run->volumes,
                                 error));
    }
    DL2_TRY(check_names(run, error));
    return list_resolutions(run, error);
}

/* Can these variants be made of volumes? */
static int check_volumes(const struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    char able[128] = "";
    const char *unable = NULL;
    for (size_t i = 0; dl2_codec_at(i); i++)
        if (dl2_codec_at(i)->encode_gray)
            dl2_list_name(able, sizeof able, dl2_codec_at(i)->name);
    for (size_t t = 0; t < options->target_count; t++)
        if (!options->targets[t].codec->encode_gray)
            unable = options->targets[t].codec->name;
    if (options->idle_on_volumes)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--%s has no effect on volumes, which %s holds",
                             options->idle_on_volumes, options->source);
    if (run->packed)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s holds volumes, and variants of volumes are class folders: leave "
                             "out --container, and name a folder as DEST",
                             options->source);
    if (unable)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "%s holds volumes, and %s is written with 8 bits a sample, too few for "
            "their slices; codecs of up to 16 bits: %s",
            options->source, unable, *able ? able : "none in this build");
    return DL2_OK;
}

static int open_source(struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *own = run->options;
    struct dl2_dataset_options options = dl2_image_dataset_options(own->samples, &own->members);
    options.class_folders = !run->packed;
    options.decode_slice = dl2_gray_decode;
    options.by_frame = !run->makes_videos;
    options.takes_videos = run->makes_videos;
    DL2_TRY(dl2_dataset_open(own->source, &options, &run->dataset, error));
    run->volumes = dl2_dataset_kind(run->dataset) == DL2_SAMPLE_VOLUME;
    if (run->makes_videos)
        return dl2_clips_check(run, error);
    if (!run->volumes)
        return DL2_OK;
    run->progress->unit = "volumes";
    return check_volumes(run, error);
}

static int tell_source(struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *own = run->options;
    if (run->follows || run->told)
        return DL2_OK;
    /* Files in folders have the splits that the source's folders have. */
    dl2_dataset_tell(run->dataset, own->source, run->packed, run->progress);
    return dl2_output_check_source(run->dataset, own->source, own->pack.container, run->progress,
                                   error);
}

/* Words of 16 digits that differ where variants or the number of parts do. */
static int make_digest(struct dl2_transcoder *run, struct dl2_error *error)
{
    uint64_t sum = XXH3_64bits_withSeed(&run->options->samples, sizeof run->options->samples,
                                        run->options->pack.shard_bytes);
    const char *const members[] = {run->options->members.label_field,
                                   run->options->members.image_extension};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        sum = XXH3_64bits_withSeed(members[i] ? members[i] : "",
                                   members[i] ? strlen(members[i]) + 1 : 0, sum);
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_variant *variant = &run->variants[v];
        DL2_AUTO_FREE char *about = json_dumps(variant->about, JSON_COMPACT | JSON_SORT_KEYS);
        DL2_AUTO_FREE char *text = NULL;
        if (!about)
            return dl2_error_memory(error, "variants");
        DL2_TRY(dl2_format(&text, error, "%s %s %s", variant->name, variant->container, about));
        sum = XXH3_64bits_withSeed(text, strlen(text), sum);
    }
    if (run->kept)
        snprintf(run->digest, sizeof run->digest, "%016" PRIx64, sum);
    else
        snprintf(run->digest, sizeof run->digest, "%016" PRIx64 "-%u", sum, run->part.count);
    return DL2_OK;
}

/* Waits for DEST to be free for this pass. */
static int lock_dest(struct dl2_transcoder *run, struct dl2_error *error)
{
    const char *dest = run->options->dest;
    /* Tables have locks of their own, and stores have none. */
    if (!dl2_output_is_folder(dest) || run->follows)
        return DL2_OK;
    DL2_TRY(dl2_make_folders(dest, error));
    if (!run->alone)
        return dl2_output_lock(dest, run->progress, run->lock, error);
    DL2_TRY(make_digest(run, error));
    DL2_TRY(dl2_output_lock_part(dest, run->digest, run->progress, run->lock, &run->joins, error));
    return dl2_part_file_open(&run->part_file, run->parts_stem, &run->part, error);
}

/* In a folder images, Ultralytics looks for label files elsewhere than beside the images. */
static int tell_labels(const struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_variant *variant = run->variants;
    DL2_AUTO_FREE char *within = NULL, *file = NULL, *elsewhere = NULL;
    if (!run->source.label_folders || !run->source.count || variant->packed)
        return DL2_OK;
    DL2_TRY(dl2_dataset_labels_path(run->source.items->key, &within, error));
    DL2_AUTO_FREE char *real = within ? NULL : realpath(run->options->dest, NULL);
    if (!real)
        return DL2_OK;
    DL2_TRY(dl2_format(&file, error, "%s/%s", real, variant->name));
    DL2_TRY(dl2_dataset_labels_path(file, &elsewhere, error));
    if (elsewhere)
        dl2_progress_message(run->progress,
                             "%s: it lies in a folder 'images', so Ultralytics' trainers look for "
                             "label files in %s, and not beside the images; name a DEST elsewhere "
                             "to train with them",
                             run->options->dest, elsewhere);
    return DL2_OK;
}

static int prepare(struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    DL2_TRY(open_source(run, error));
    DL2_TRY(init_variants(run, error));
    DL2_TRY(dl2_output_check_variants(options->source, options->dest, options->pack.container,
                                      run->variants, run->variant_count, error));
    DL2_TRY(tell_source(run, error));
    if (dl2_world_rank(options->world) == 0)
        DL2_TRY(lock_dest(run, error));
    if (options->shuffle)
        DL2_TRY(dl2_dataset_shuffle(run->dataset, *options->shuffle, error));
    DL2_TRY(dl2_source_items_list(&run->source, run->dataset, error));
    run->unresized.label_folders = run->source.label_folders;
    if (dl2_world_rank(options->world) == 0)
        DL2_TRY(tell_labels(run, error));
    return dl2_dataset_kind(run->dataset) == DL2_SAMPLE_IMAGE && dl2_is_folder(options->source)
               ? dl2_annotations_list(&run->source, options->source,
                                      dl2_container_is_packed(options->pack.container),
                                      run->progress, error)
               : DL2_OK;
}

/* ---- Putting in order: what is there, and what this pass has to begin */

static int load_variants(struct dl2_transcoder *run, struct dl2_error *error)
{
    const bool force = run->options->force && (!run->follows || run->options->staged) &&
                       dl2_world_rank(run->options->world) == 0;
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_variant *variant = &run->variants[v];
        variant->part = run->part;
        variant->joins = run->joins;
        variant->follows = run->follows;
        DL2_TRY(dl2_variant_load(variant, &run->source, force, error));
        const char *why = force ? NULL : dl2_variant_why_again(variant);
        if (why && !run->follows && !run->told && dl2_world_rank(run->options->world) == 0)
            dl2_progress_message(run->progress, "%s: %s; all of it is made again", variant->root,
                                 why);
    }
    return DL2_OK;
}

/* Begins what a part may have to write, whether that has to or not: once others have begun to
 * write, nothing can be put in order any more. */
static int begin_variants(struct dl2_transcoder *run, struct dl2_error *error)
{
    run->is_done = true;
    for (size_t v = 0; v < run->variant_count; v++) {
        bool needed = false;
        for (size_t i = 0; i < run->source.count && !needed; i++)
            needed =
                run->source.items[i].same_key_as == SIZE_MAX && dl2_transcoder_needs(run, v, i);
        run->is_done = run->is_done && !needed;
        if (needed)
            DL2_TRY(dl2_variant_begin(&run->variants[v], error));
    }
    return DL2_OK;
}

/* What a part, or rank 0, does while no other one writes. */
static int put_in_order(struct dl2_transcoder *run, struct dl2_error *error)
{
    DL2_TRY(load_variants(run, error));
    if (!run->part.count || run->joins)
        return DL2_OK;
    DL2_TRY(begin_variants(run, error));
    return run->alone ? dl2_output_share(run->lock, error) : DL2_OK;
}

/* ---- Planning: which items this pass makes */

/* Must something be done for the item in this pass? */
static bool is_needed(const struct dl2_transcoder *run, size_t index)
{
    bool needed = dl2_transcoder_needs_any(run, index);
    for (size_t v = 0; v < run->variant_count && !needed; v++)
        needed = dl2_transcoder_packs(run, v, index);
    return needed;
}

/* Makes the parts that have the items, by their bytes; *sum differs where the items do. */
static int find_owners(struct dl2_transcoder *run, uint64_t *sum, struct dl2_error *error)
{
    const size_t count = run->source.count;
    DL2_AUTO_FREE uint64_t *costs = NULL;
    DL2_TRY(DL2_NEW(&costs, count, "images", error));
    DL2_TRY(DL2_NEW(&run->owners, count, "images", error));
    for (size_t i = 0; i < count; i++) {
        const struct dl2_source_item *item = &run->source.items[i];
        const uint64_t facts[] = {XXH3_64bits(item->key, strlen(item->key)), item->bytes, *sum};
        *sum = XXH3_64bits(facts, sizeof facts);
        if (item->same_key_as == SIZE_MAX && (!run->options->world || is_needed(run, i)))
            costs[i] = item->bytes + DL2_IMAGE_COST;
    }
    return dl2_work_divide(costs, count, run->part.count, run->owners, error);
}

/* Divides the items: for ranks, by what rank 0 sees that there is to do. */
static int divide(struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_world *world = run->options->world;
    uint64_t sum = 0;
    if (!run->part.count)
        return DL2_OK;
    DL2_TRY(dl2_world_agree(world, find_owners(run, &sum, error), error));
    if (!world)
        return DL2_OK;
    uint64_t first = sum;
    DL2_TRY(world->ops->broadcast(world, 0, &first, sizeof first, error));
    const int status =
        first == sum ? DL2_OK
                     : dl2_error_set(error, DL2_ERR_CANCELED,
                                     "%s: rank %u sees other images there than rank 0; has the "
                                     "source changed just now? Run again",
                                     run->options->source, dl2_world_rank(world));
    DL2_TRY(dl2_world_agree(world, status, error));
    return world->ops->broadcast(world, 0, run->owners, run->source.count * sizeof *run->owners,
                                 error);
}

static void name_strays(const struct dl2_transcoder *run)
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
                variant->root, variant->extension);
    }
}

static int prune(struct dl2_transcoder *run, struct dl2_error *error)
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
static void tell_kept_failures(const struct dl2_transcoder *run, size_t index)
{
    for (size_t v = 0; v < run->variant_count; v++)
        if (run->variants[v].kept && run->variants[v].errors[index]) {
            dl2_progress_message(run->progress, "%s: %s", run->source.items[index].path,
                                 run->variants[v].errors[index]);
            return;
        }
}

/* Fails an item that would be written to a taken name. */
static int fail_twin(struct dl2_transcoder *run, size_t index, struct dl2_error *error)
{
    const struct dl2_source_item *item = &run->source.items[index];
    const char *other = run->source.items[item->same_key_as].name;
    if (!run->follows)
        dl2_progress_message(run->progress,
                             "%s: would be written to the same name as %s; rename one of them",
                             item->path, other);
    for (size_t v = 0; v < run->variant_count; v++) {
        char *message;
        DL2_TRY(dl2_format(&message, error, "would be written to the same name as %s", other));
        DL2_TRY(dl2_variant_fail(&run->variants[v], index, message, error));
    }
    return DL2_OK;
}

/* Fails what would be written to a taken name, lists the items that this pass has to do. */
static int plan_items(struct dl2_transcoder *run, struct dl2_error *error)
{
    if (!run->part.count && run->options->prune)
        DL2_TRY(prune(run, error));
    else if (!run->part.count)
        name_strays(run);
    DL2_TRY(DL2_NEW(&run->todo, run->source.count, "images", error));
    for (size_t i = 0; i < run->source.count; i++) {
        if (run->owners && run->owners[i] != run->part.number)
            continue;
        tell_kept_failures(run, i);
        if (run->source.items[i].same_key_as != SIZE_MAX)
            DL2_TRY(fail_twin(run, i, error));
        else if (is_needed(run, i))
            run->todo[run->todo_count++] = i;
    }
    return DL2_OK;
}

/* ---- Making */

static void free_slot(const struct dl2_transcoder *run, struct dl2_transcode_slot *slot)
{
    for (size_t v = 0; slot->outcomes && v < run->variant_count; v++) {
        free(slot->outcomes[v].message); /* of an item that was not finished any more */
        dl2_record_free(&slot->outcomes[v].record);
        dl2_bytes_free(&slot->outcomes[v].encoded);
    }
    for (size_t r = 0; slot->sidecars && r < run->resolution_count; r++)
        dl2_sidecars_free(&slot->sidecars[r]);
    free(slot->outcomes);
    free(slot->sidecars);
}

/* Makes the memory of the workers, of `window` images in work, and of clips that are gathered. */
static int make_room(struct dl2_transcoder *run, unsigned jobs, size_t window,
                     struct dl2_error *error)
{
    const bool clips =
        run->packed && !run->part.count && dl2_dataset_kind(run->dataset) == DL2_SAMPLE_CLIP;
    DL2_TRY(DL2_NEW(&run->workers, jobs, "images", error));
    DL2_TRY(DL2_NEW(&run->slots, window, "images", error));
    DL2_TRY(DL2_NEW(&run->looks, run->source.count, "images", error));
    if (clips)
        DL2_TRY(DL2_NEW(&run->clips, run->variant_count, "images", error));
    for (unsigned i = 0; i < jobs; i++)
        DL2_TRY(dl2_worker_init(&run->workers[i], run, error));
    for (size_t i = 0; i < window; i++) {
        struct dl2_transcode_slot *slot = &run->slots[i];
        DL2_TRY(DL2_NEW(&slot->outcomes, run->variant_count, "images", error));
        DL2_TRY(DL2_NEW(&slot->sidecars, run->resolution_count, "images", error));
    }
    return DL2_OK;
}

/* Finishes an image, and ends the loop once the variants have taken as long as they may. */
static int finish_in_time(void *context, size_t slot, size_t n, struct dl2_error *error)
{
    struct dl2_transcoder *run = context;
    DL2_TRY(dl2_finish_image(run, slot, n, error));
    run->late = n + 1 < run->todo_count && dl2_clock_wall() >= run->deadline;
    return run->late ? DL2_ERR_LIMIT : DL2_OK;
}

/* What is left of the time limit begins, for the variant that has had least of it. */
static void begin_time(struct dl2_transcoder *run)
{
    double spent = INFINITY;
    for (size_t n = 0; n < run->todo_count; n++)
        for (size_t v = 0; v < run->variant_count; v++)
            if (dl2_transcoder_needs(run, v, run->todo[n]))
                spent = fmin(spent, dl2_variant_time_spent(&run->variants[v]));
    run->deadline = dl2_clock_wall() + run->options->time_limit - spent;
    run->late = spent >= run->options->time_limit;
}

static int make_all(struct dl2_transcoder *run, struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = run->options->jobs,
                                .count = run->todo_count,
                                .work = run->makes_videos ? dl2_encode_clip : dl2_encode_image,
                                .emit = run->options->time_limit > 0 ? finish_in_time
                                                                     : dl2_finish_image,
                                .context = run};
    if (!run->todo_count)
        return DL2_OK;
    if (run->options->time_limit > 0)
        begin_time(run);
    if (run->late)
        return DL2_OK;
    dl2_parallel_resolve(&loop);
    run->progress->total = run->todo_count;
    run->progress->cost = run->progress->cost_done = 0;
    for (size_t n = 0; n < run->todo_count; n++)
        run->progress->cost += dl2_finish_cost(run, run->todo[n]);
    int status = make_room(run, loop.jobs, loop.window, error);
    if (status == DL2_OK)
        status = dl2_target_curves_make(run, error);
    if (status == DL2_OK)
        status = dl2_parallel_run(&loop, error);
    if (run->late)
        status = DL2_OK;
    else if (status == DL2_OK)
        status = dl2_finish_clips(run, error);
    for (size_t v = 0; run->clips && v < run->variant_count; v++)
        dl2_clip_packer_free(&run->clips[v]);
    for (size_t i = 0; run->slots && i < loop.window; i++)
        free_slot(run, &run->slots[i]);
    for (unsigned i = 0; run->workers && i < loop.jobs; i++)
        dl2_worker_free(&run->workers[i]);
    return status;
}

/* ---- Ending */

static int end_part(struct dl2_transcoder *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++)
        DL2_TRY(dl2_variant_end_part(&run->variants[v], error));
    return run->alone ? dl2_part_file_end(&run->part_file, run->digest, error) : DL2_OK;
}

static void tell_pixels_only(const struct dl2_transcoder *run, const struct dl2_variant *variant)
{
    const struct dl2_variant_totals *totals = &variant->totals;
    char reasons[256] = "";
    for (size_t i = 1; i < DL2_PIXELS_ONLY_COUNT; i++)
        if (totals->pixels_only_for[i]) {
            const size_t length = strlen(reasons);
            snprintf(reasons + length, sizeof reasons - length, "%s%s (%" PRIu64 ")",
                     length ? ", " : "", dl2_pixels_only_words[i], totals->pixels_only_for[i]);
        }
    dl2_progress_message(run->progress,
                         "%s: %" PRIu64 " JPEG files cannot be stored so that their bytes come "
                         "back: %s. Only their pixels are kept; dl2-variant.jsonl has the reason "
                         "of each",
                         variant->root, totals->pixels_only, reasons);
}

static int complete(struct dl2_transcoder *run, struct dl2_error *error)
{
    DL2_TRY(dl2_annotations_write(&run->source, run->variants, run->variant_count, run->progress,
                                  error));
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_variant *variant = &run->variants[v];
        DL2_TRY(dl2_variant_finish(variant, error));
        dl2_progress_tell(run->progress, variant->root, dl2_variant_left_out(variant));
        if (variant->totals.pixels_only)
            tell_pixels_only(run, variant);
    }
    if (run->parts_stem)
        dl2_part_files_remove(run->parts_stem);
    return DL2_OK;
}

/* Leaves the variants as they are. */
static int end_late(struct dl2_transcoder *run, struct dl2_error *error)
{
    for (size_t v = 0; v < run->variant_count; v++)
        DL2_TRY(dl2_variant_end_late(&run->variants[v], run->options->time_limit, error));
    return DL2_OK;
}

/* Says how many images look like masks and became photographs. */
static int tell_mask_looks(const struct dl2_transcoder *run, struct dl2_error *error)
{
    size_t found, first;
    bool lossy = false;
    for (size_t v = 0; v < run->variant_count; v++)
        lossy |=
            run->variants[v].codec->lossy || !dl2_resolution_is_full(&run->variants[v].resolution);
    if (!run->looks || !lossy)
        return DL2_OK;
    DL2_TRY(dl2_mask_looks_count(run->looks, run->source.count, &found, &first, error));
    if (found)
        dl2_progress_message(
            run->progress,
            "%s: %zu images look like masks, with at most 64 colors and the size "
            "of another image, such as %s, and were recompressed as photographs; "
            "masks are called NAME.mask.EXT beside NAME.EXT, or in a folder masks/NAME.EXT "
            "for images/NAME.EXT",
            run->options->source, found, run->source.items[first].name);
    return DL2_OK;
}

/* What the variant's images lack of their sources, in lines: a string to free, or NULL. */
static char *describe_losses(const struct dl2_variant *variant)
{
    const struct dl2_variant_totals *totals = &variant->totals;
    const struct dl2_quality_target *target = &variant->target;
    char *losses = dl2_reduction_describe(variant->losses), *all = NULL;
    size_t size;
    FILE *out = losses ? open_memstream(&all, &size) : NULL;
    if (out && !dl2_resolution_is_full(&variant->resolution))
        fprintf(out,
                "%" PRIu64 " images resized (%s); %" PRIu64 " that are no larger keep their size\n",
                totals->resized, dl2_interpolation_words[variant->resolution.filter],
                totals->images - totals->resized);
    if (out && target->name)
        fprintf(out,
                "%" PRIu64 " of %" PRIu64 " images miss the target %s %s %g at quality %d; %.1f "
                "qualities were tried for each image\n",
                totals->missed, totals->images, target->name,
                target->rule == DL2_TARGET_NEAREST                   ? "of about"
                : target->metric && !target->metric->lower_is_better ? "of at least"
                                                                     : "of at most",
                target->value, target->metric ? target->high : target->low,
                totals->images ? (double)totals->probes / (double)totals->images : 0);
    if (out && target->name && target->tolerance > 0 &&
        !dl2_target_is_scanned(target, variant->codec))
        fprintf(out,
                "searches end within a share of %g of the target (--target-tolerance), so a file "
                "may be larger than it has to be, or smaller than it could be\n",
                target->tolerance);
    if (out && totals->quantized)
        fprintf(out,
                "%" PRIu64 " of %" PRIu64 " volumes have values that 16 bits do not hold exactly: "
                "they are quantized to 65,536 levels of each volume's range, with an error of at "
                "most %.6g\n",
                totals->quantized, totals->images, totals->quantization_error);
    if (out)
        fputs(losses, out);
    free(losses);
    if (out && fclose(out) == 0)
        return all;
    free(all);
    return NULL;
}

/* Says what the variants lack of the source's annotations. */
static void tell_annotations(const struct dl2_transcoder *run)
{
    bool resized = false;
    for (size_t v = 0; v < run->variant_count; v++)
        resized |= run->variants[v].totals.resized > 0;
    if (resized && !run->part.count)
        dl2_progress_tell(run->progress, run->options->source,
                          dl2_annotations_message(&run->source, run->variants->on_server));
}

static int report(const struct dl2_transcoder *run, struct dl2_transcode_result *result,
                  struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&result->variants, run->variant_count, "images", error));
    result->sources = run->source.count;
    result->late = run->late;
    result->ignored =
        run->source.ignored - (run->variants->on_server ? 0 : run->source.annotation_count);
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_variant *variant = &run->variants[v];
        struct dl2_transcode_variant *own = &result->variants[result->variant_count++];
        *own = (struct dl2_transcode_variant){.name = strdup(variant->name),
                                              .path = strdup(variant->root),
                                              .losses = describe_losses(variant),
                                              .made = variant->made,
                                              .totals = variant->totals};
        if (!own->name || !own->path || !own->losses)
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

/* ---- A pass */

/* Ranks take each step together, so that none waits for one that has failed. */
static int run_all(struct dl2_transcoder *run, struct dl2_transcode_result *result,
                   struct dl2_error *error)
{
    const struct dl2_world *world = run->options->world;
    const bool first = dl2_world_rank(world) == 0;
    DL2_TRY(dl2_world_agree(world, prepare(run, error), error));
    DL2_TRY(dl2_world_agree(world, first ? put_in_order(run, error) : DL2_OK, error));
    DL2_TRY(dl2_world_agree(world, first ? DL2_OK : load_variants(run, error), error));
    for (size_t v = 0; run->kept && v < run->variant_count; v++)
        run->kept[v] = run->variants[v].kept;
    if (run->kept)
        return make_digest(run, error);
    DL2_TRY(divide(run, error));
    int status = plan_items(run, error);
    if (status == DL2_OK)
        status = make_all(run, error);
    if (status == DL2_OK)
        status = run->part.count ? end_part(run, error)
                 : run->late     ? end_late(run, error)
                                 : complete(run, error);
    DL2_TRY(dl2_world_agree(world, status, error));
    dl2_progress_tell(run->progress, run->options->source, dl2_unresized_message(&run->unresized));
    dl2_clips_tell(run);
    tell_annotations(run);
    DL2_TRY(tell_mask_looks(run, error));
    return report(run, result, error);
}

static int run_pass(struct dl2_transcoder *run, struct dl2_transcode_result *result,
                    struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    *result = (struct dl2_transcode_result){0};
    run->progress = options->progress;
    run->packed = dl2_container_is_packed(options->pack.container);
    run->makes_videos = options->targets[0].codec->video;
    run->part_file.fd = -1;
    run->gate.limit = options->memory;
    pthread_mutex_init(&run->gate.mutex, NULL);
    pthread_cond_init(&run->gate.changed, NULL);
    pthread_mutex_init(&run->unresized.mutex, NULL);
    pthread_mutex_init(&run->notes.mutex, NULL);
    if (dl2_output_is_folder(options->dest))
        run->parts_stem = dl2_path_join(options->dest, PARTS_STEM);
    const int status = run_all(run, result, error);
    for (size_t v = 0; v < run->variant_count; v++) {
        struct dl2_variant *variant = &run->variants[v];
        if (status == DL2_ERR_LOST && variant->on_server && variant->writer)
            dl2_writer_leave(variant->writer);
        dl2_variant_free(variant);
    }
    dl2_source_items_free(&run->source);
    free(run->variants);
    free(run->workers);
    free(run->slots);
    free(run->resolutions);
    free(run->resolution_of);
    free(run->curves);
    free(run->clips);
    free(run->owners);
    free(run->looks);
    free(run->todo);
    free(run->parts_stem);
    dl2_left_out_free(&run->unresized.counts);
    pthread_mutex_destroy(&run->unresized.mutex);
    dl2_left_out_free(&run->notes.beside);
    pthread_mutex_destroy(&run->notes.mutex);
    dl2_dataset_close(run->dataset);
    dl2_part_file_close(&run->part_file);
    pthread_cond_destroy(&run->gate.changed);
    pthread_mutex_destroy(&run->gate.mutex);
    return status;
}

/* ---- Parts and ranks */

/* The pass over what parts have left. `made`: by this process or its world, of each variant. */
static int follow(const struct dl2_transcode_options *options, struct dl2_output_lock *lock,
                  const double *made, struct dl2_transcode_result *result, struct dl2_error *error)
{
    struct dl2_transcode_options own = *options;
    struct dl2_progress *progress = options->progress;
    own.world = NULL;
    own.part = (struct dl2_work_part){0};
    struct dl2_transcoder run = {.options = &own, .lock = lock, .follows = true};
    dl2_progress_end(progress);
    dl2_progress_begin(progress, "complete", progress->unit, 0, progress->quiet);
    dl2_transcode_result_free(result);
    const int status = run_pass(&run, result, error);
    for (size_t v = 0; status == DL2_OK && v < result->variant_count; v++)
        result->variants[v].made += (size_t)made[v];
    result->complete = status == DL2_OK;
    return status;
}

/* Completes the variants if the part is the last one, or there was nothing to make for any. */
static int end_if_last(const struct dl2_transcoder *part, const double *made,
                       struct dl2_transcode_result *result, struct dl2_error *error)
{
    bool alone;
    DL2_AUTO_FREE char *stem = NULL;
    DL2_TRY(dl2_output_take_over(part->lock, &alone, error));
    DL2_TRY(dl2_format(&stem, error, "%s/" PARTS_STEM, part->options->dest));
    result->parts_missing =
        dl2_part_files_missing(stem, part->part.count, part->digest, &result->first_missing);
    return alone && (part->is_done || !result->parts_missing)
               ? follow(part->options, part->lock, made, result, error)
               : DL2_OK;
}

/* Images that this process and the ranks of its world have made, of each variant: to free. */
static int count_made(const struct dl2_transcode_options *options,
                      const struct dl2_transcode_result *result, double **made,
                      struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(made, options->target_count, "variants", error));
    for (size_t v = 0; v < result->variant_count; v++)
        (*made)[v] = (double)result->variants[v].made;
    return dl2_world_sum(options->world, *made, options->target_count, error);
}

static int transcode_parts(const struct dl2_transcode_options *options,
                           struct dl2_output_lock *lock, struct dl2_transcode_result *result,
                           struct dl2_error *error)
{
    const struct dl2_world *world = options->world;
    struct dl2_transcoder run = {
        .options = options, .lock = lock, .alone = !world, .part = options->part};
    DL2_AUTO_FREE double *made = NULL;
    if (world)
        run.part = (struct dl2_work_part){dl2_world_rank(world) + 1, dl2_world_size(world)};
    DL2_TRY(run_pass(&run, result, error));
    int status = count_made(options, result, &made, error);
    if (status == DL2_OK && !world)
        status = end_if_last(&run, made, result, error);
    else if (status == DL2_OK && dl2_world_rank(world) == 0)
        status = follow(options, lock, made, result, error);
    return dl2_world_agree(world, status, error);
}

/* ---- Parts and ranks whose DEST is on a server */

/* Which variants are there as they should be; says what there is to say about the source. `digest`
 * is that of the run. */
static int look_at_server(const struct dl2_server_parts *parts, bool *kept,
                          char digest[DIGEST_SIZE], struct dl2_error *error)
{
    struct dl2_transcode_result nothing;
    struct dl2_transcode_options own = *parts->options;
    struct dl2_output_lock lock = {.fd = -1};
    const bool first = dl2_world_rank(own.world) == 0;
    own.world = NULL;
    own.part = (struct dl2_work_part){0};
    struct dl2_transcoder run = {.options = &own, .lock = &lock, .kept = kept, .told = !first};
    const int status = run_pass(&run, &nothing, error);
    dl2_transcode_result_free(&nothing);
    snprintf(digest, DIGEST_SIZE, "%s-%u", run.digest, parts->part.count);
    return status;
}

/* Makes the part of the variants that are not there in its folder, and sends it. */
static int make_part(struct dl2_server_parts *parts, const bool *kept,
                     struct dl2_transcode_result *result, struct dl2_error *error)
{
    struct dl2_transcode_options own = *parts->options;
    struct dl2_output_lock lock = {.fd = -1};
    DL2_AUTO_FREE struct dl2_transcode_target *targets = NULL;
    DL2_TRY(DL2_NEW(&targets, own.target_count, "variants", error));
    own.target_count = 0;
    for (size_t v = 0; v < parts->options->target_count; v++)
        if (!kept[v])
            targets[own.target_count++] = own.targets[v];
    own.targets = targets;
    DL2_TRY(dl2_server_parts_begin(parts, error));
    own.dest = parts->folder;
    own.world = NULL;
    own.part = parts->part;
    own.force = false;
    if (dl2_dataset_is_database(parts->options->dest))
        own.pack.container = "tar"; /* only its place in the folder */
    struct dl2_transcoder run = {
        .options = &own, .lock = &lock, .alone = true, .part = own.part, .told = true};
    const int status = run_pass(&run, result, error);
    dl2_output_unlock(&lock);
    DL2_TRY(status);
    for (size_t v = 0; v < result->variant_count; v++) {
        struct dl2_transcode_variant *made = &result->variants[v];
        free(made->path);
        if (!(made->path = dl2_facts_place(parts->options->dest, made->name)))
            return dl2_error_memory(error, "a variant");
    }
    return dl2_server_parts_send(parts, error);
}

/* Images that this process and the ranks of its world have made, of each variant: to free. */
static int count_sent(const struct dl2_transcode_options *options, const bool *kept,
                      const struct dl2_transcode_result *result, double **made,
                      struct dl2_error *error)
{
    size_t next = 0;
    DL2_TRY(DL2_NEW(made, options->target_count, "variants", error));
    for (size_t v = 0; v < options->target_count; v++)
        if (!kept[v] && next < result->variant_count)
            (*made)[v] = (double)result->variants[next++].made;
    return dl2_world_sum(options->world, *made, options->target_count, error);
}

/* Completes the variants if no part is missing. */
static int end_on_server(struct dl2_server_parts *parts, const double *made,
                         struct dl2_transcode_result *result, struct dl2_error *error)
{
    struct dl2_transcode_options own = *parts->options;
    struct dl2_output_lock lock = {.fd = -1};
    bool elected;
    DL2_TRY(dl2_server_parts_count(parts, &result->parts_missing, &result->first_missing,
                                   &result->complete, &elected, error));
    if (!elected)
        return DL2_OK;
    DL2_TRY(dl2_server_parts_take(parts, error));
    own.staged = parts->folder;
    DL2_TRY(follow(&own, &lock, made, result, error));
    return dl2_server_parts_clear(parts, error);
}

/* `kept` are the same for all ranks. */
static int share_on_server(struct dl2_server_parts *parts, const bool *kept, const char *digest,
                           struct dl2_transcode_result *result, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = parts->options;
    const struct dl2_world *world = options->world;
    struct dl2_output_lock lock = {.fd = -1};
    DL2_AUTO_FREE double *made = NULL;
    size_t there = 0;
    for (size_t v = 0; v < options->target_count; v++)
        there += kept[v];
    const bool all = there == options->target_count;
    int status = all ? DL2_OK : dl2_server_parts_meet(parts, digest, error);
    if (status == DL2_OK && !all)
        status = make_part(parts, kept, result, error);
    DL2_TRY(dl2_world_agree(world, status, error));
    DL2_TRY(count_sent(options, kept, result, &made, error));
    if (dl2_world_rank(world) == 0)
        status = all ? follow(options, &lock, made, result, error)
                     : end_on_server(parts, made, result, error);
    return dl2_world_agree(world, status, error);
}

static int transcode_on_server(const struct dl2_transcode_options *options,
                               struct dl2_transcode_result *result, struct dl2_error *error)
{
    const struct dl2_world *world = options->world;
    struct dl2_server_parts parts = {.options = options, .part = options->part};
    DL2_AUTO_FREE bool *kept = NULL;
    char digest[DIGEST_SIZE];
    *result = (struct dl2_transcode_result){0};
    if (world)
        parts.part = (struct dl2_work_part){dl2_world_rank(world) + 1, dl2_world_size(world)};
    DL2_TRY(DL2_NEW(&kept, options->target_count, "variants", error));
    DL2_TRY(dl2_world_agree(world, look_at_server(&parts, kept, digest, error), error));
    if (world) /* as rank 0 sees them */
        DL2_TRY(world->ops->broadcast(world, 0, kept, options->target_count * sizeof *kept, error));
    const int status = share_on_server(&parts, kept, digest, result, error);
    dl2_server_parts_close(&parts);
    return status;
}

int dl2_transcode(const struct dl2_transcode_options *options, struct dl2_transcode_result *result,
                  struct dl2_error *error)
{
    struct dl2_output_lock lock = {.fd = -1};
    int status;
    if ((options->part.count || options->world) && !dl2_output_is_folder(options->dest)) {
        status = transcode_on_server(options, result, error);
    } else if (options->part.count || options->world) {
        status = transcode_parts(options, &lock, result, error);
    } else {
        struct dl2_transcoder run = {.options = options, .lock = &lock};
        status = run_pass(&run, result, error);
        result->complete = status == DL2_OK && !result->late;
    }
    dl2_output_unlock(&lock);
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
