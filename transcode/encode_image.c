/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes an image once, resizes it once for each resolution, and encodes it for every variant that
 * lacks it. On any thread. */
#include "codec/settings.h"
#include "common/clock.h"
#include "common/file.h"
#include "transcode/transcoder.h"

#include <stdlib.h>
#include <string.h>

/* ---- Variants that are encoded together */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* The headers by which variants may have the source's file as it is: none if it is resized. */
static const struct dl2_reuse *reuse_of(const struct dl2_transcode_worker *worker)
{
    static const struct dl2_reuse none;
    return worker->shown == &worker->image ? &worker->reuse : &none;
}

static bool has_source(const struct dl2_transcode_worker *worker, const struct dl2_variant *variant)
{
    return dl2_reuse_suffices(reuse_of(worker), variant->codec, &variant->encode);
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
static size_t gather_sweep(struct dl2_transcode_worker *worker, size_t v)
{
    const struct dl2_transcoder *run = worker->run;
    const bool alone = has_source(worker, &run->variants[v]);
    size_t count = 0;
    for (size_t other = v; other < (alone ? v + 1 : run->variant_count); other++) {
        const struct dl2_variant *const variant = &run->variants[other];
        if (other > v && (!dl2_worker_needs(worker, other) ||
                          !make_a_sweep(&run->variants[v], variant) || has_source(worker, variant)))
            continue;
        worker->members[count] = other;
        worker->qualities[count++] = variant->encode.quality;
    }
    return count;
}

/* ---- Files */

/* Makes worker->encoded[0] the file that a variant with a target has, or the source's file. */
static int search_file(struct dl2_transcode_worker *worker, size_t v,
                       struct dl2_encode_options *encode, struct dl2_record *record,
                       struct dl2_error *error)
{
    const struct dl2_variant *const variant = &worker->run->variants[v];
    struct dl2_bytes *file = worker->encoded;
    const struct dl2_target_job job = {.searcher = &worker->searcher,
                                       .target = &variant->target,
                                       .curve = &worker->run->curves[v],
                                       .codec = variant->codec,
                                       .image = worker->shown,
                                       .encode = encode,
                                       .out = file,
                                       .result = &record->found};
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_target_search(&job, error));
    record->encode_cpu = (float)(dl2_clock_thread_cpu() - start);
    encode->quality = record->found.quality;
    const bool copies = !record->found.met && variant->target.miss == DL2_MISS_COPY;
    const int taken = dl2_reuse_replace(reuse_of(worker), variant->codec, encode, copies,
                                        &worker->taken, file, error);
    if (copies && !taken)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "no quality reaches %s %g, and the source cannot be copied: it is "
                             "resized, or no %s file with these pixels",
                             variant->target.name, variant->target.value, variant->codec->name);
    record->copied = taken > 0;
    if (record->copied)
        dl2_target_take_source(&job);
    return taken < 0 ? taken : DL2_OK;
}

/* Makes worker->encoded[0] the file of one variant: it is encoded, or the source's file. */
static int make_file(struct dl2_transcode_worker *worker, const struct dl2_variant *variant,
                     struct dl2_encode_options *encode, struct dl2_record *record,
                     struct dl2_error *error)
{
    double encode_cpu = 0;
    enum dl2_pixels_only only = DL2_PIXELS_NOT_ONLY;
    encode->pixels_only = &only;
    const int taken = dl2_reuse_encode(reuse_of(worker), variant->codec, worker->shown, encode,
                                       &worker->taken, worker->encoded, &encode_cpu, error);
    record->encode_cpu = (float)encode_cpu;
    record->pixels_only = (uint8_t)only;
    record->copied = taken > 0;
    return taken < 0 ? taken : DL2_OK;
}

/* Makes worker->encoded what the members have for the image. What they take together is recorded in
 * equal parts. */
static int make_files(struct dl2_transcode_worker *worker, size_t count, struct dl2_error *error)
{
    const struct dl2_variant *const first = &worker->run->variants[worker->members[0]];
    struct dl2_transcode_outcome *outcomes = worker->slot->outcomes;
    struct dl2_record *record = &outcomes[worker->members[0]].record;
    struct dl2_encode_options encode;
    DL2_TRY(dl2_worker_options(worker, first, &encode, error));
    if (first->target.name)
        return search_file(worker, worker->members[0], &encode, record, error);
    if (count == 1)
        return make_file(worker, first, &encode, record, error);
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_image_encode_sweep(first->codec, worker->shown, &encode, worker->qualities,
                                   worker->encoded, count, error));
    const float encode_cpu = (float)((dl2_clock_thread_cpu() - start) / (double)count);
    for (size_t i = 0; i < count; i++) {
        record = &outcomes[worker->members[i]].record;
        encode.quality = worker->qualities[i];
        const int taken = dl2_reuse_replace(reuse_of(worker), first->codec, &encode, false,
                                            &worker->taken, &worker->encoded[i], error);
        DL2_TRY(taken);
        record->encode_cpu = encode_cpu;
        record->copied = taken > 0;
    }
    return DL2_OK;
}

static int write_file(const char *path, const struct dl2_bytes *file, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    const int status = dl2_file_write(path, file->data, file->size, &own);
    if (status != DL2_ERR_SYSTEM)
        return dl2_error_copy(error, &own);
    /* Most often its folder isn't there yet. Looking for it each time would cost more. */
    DL2_TRY(dl2_make_folder_of(path, error));
    return dl2_file_write(path, file->data, file->size, error);
}

int dl2_worker_store(struct dl2_transcode_worker *worker, size_t v, struct dl2_bytes *encoded,
                     struct dl2_error *error)
{
    const struct dl2_transcode_slot *slot = worker->slot;
    struct dl2_variant *variant = &worker->run->variants[v];
    struct dl2_transcode_outcome *outcome = &slot->outcomes[v];
    DL2_TRY(dl2_variant_begin(variant, error));
    outcome->tried = true;
    outcome->record.bytes = encoded->size;
    outcome->record.state = DL2_RECORD_VALID;
    if (variant->packed) {
        dl2_bytes_swap(&outcome->encoded, encoded);
        return DL2_OK;
    }
    const struct dl2_sidecars *sidecars = dl2_slot_sidecars(slot, worker->run->resolution_of[v]);
    struct dl2_error own = DL2_ERROR_INIT;
    if (dl2_variant_check_sidecars(variant, slot->index, sidecars, &own) < 0) {
        dl2_outcome_fail(outcome, &own);
        return DL2_OK;
    }
    outcome->record.has_output = true;
    DL2_AUTO_FREE char *path = dl2_variant_path(variant, slot->index, error);
    DL2_TRY(path ? write_file(path, encoded, error) : DL2_ERR_MEMORY);
    return dl2_variant_put_sidecars(variant, slot->index, sidecars, &outcome->record, error);
}

/* ---- Resolutions */

/* Does a variant of the resolution lack the image? */
static bool is_of(const struct dl2_transcode_worker *worker, size_t v, size_t resolution)
{
    return worker->run->resolution_of[v] == resolution && dl2_worker_needs(worker, v);
}

static bool needs_resolution(const struct dl2_transcode_worker *worker, size_t resolution)
{
    bool any = false;
    for (size_t v = 0; v < worker->run->variant_count && !any; v++)
        any = is_of(worker, v, resolution);
    return any;
}

/* Makes worker->shown the image at a resolution, and what lies beside it there. */
static int resize(struct dl2_transcode_worker *worker, size_t resolution, bool first,
                  struct dl2_error *error)
{
    struct dl2_transcoder *run = worker->run;
    struct dl2_sidecars *sidecars = worker->slot->sidecars;
    const struct dl2_image *image = &worker->image;
    DL2_TRY(dl2_resize_to(&worker->resizer, image, &run->resolutions[resolution], &worker->resized,
                          &worker->shown, error));
    if (worker->shown == image)
        return DL2_OK;
    return dl2_masks_resize(&worker->masks, &sidecars[0], image->width, image->height,
                            worker->shown->width, worker->shown->height, &sidecars[resolution],
                            first ? &run->unresized : NULL, error);
}

/* Encodes worker->shown for the variants of a resolution. */
static int encode_resolution(struct dl2_transcode_worker *worker, size_t resolution,
                             float decode_cpu, struct dl2_error *error)
{
    struct dl2_transcode_outcome *outcomes = worker->slot->outcomes;
    const struct dl2_record record = {.width = worker->shown->width,
                                      .height = worker->shown->height,
                                      .source_width = worker->image.width,
                                      .source_height = worker->image.height,
                                      .channels = (uint8_t)worker->image.channels,
                                      .decode_cpu = decode_cpu};
    for (size_t v = 0; v < worker->run->variant_count; v++) {
        if (!is_of(worker, v, resolution))
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const size_t count = gather_sweep(worker, v);
        for (size_t i = 0; i < count; i++)
            outcomes[worker->members[i]].record = record;
        int status = make_files(worker, count, &own);
        for (size_t i = 0; i < count; i++) {
            struct dl2_transcode_outcome *const outcome = &outcomes[worker->members[i]];
            if (status == DL2_OK)
                status = dl2_colors_note(&worker->colors, outcome->record.copied,
                                         &outcome->record.reduction, &own);
            if (status < 0)
                dl2_outcome_fail(outcome, &own);
            else
                DL2_TRY(dl2_worker_store(worker, worker->members[i], &worker->encoded[i], error));
        }
    }
    return DL2_OK;
}

/* Only what can't be written is an error here; an image that can't be encoded is an outcome. */
static int encode_all(struct dl2_transcode_worker *worker, struct dl2_error *error)
{
    bool first = true; /* what lies beside an image is counted once */
    for (size_t r = 0; r < worker->run->resolution_count; r++) {
        if (!needs_resolution(worker, r))
            continue;
        struct dl2_error own = DL2_ERROR_INIT;
        const double start = dl2_clock_thread_cpu();
        const int status = resize(worker, r, first, &own);
        const float cpu = worker->decode_cpu + (float)(dl2_clock_thread_cpu() - start);
        first = first && worker->shown == &worker->image;
        if (status == DL2_OK)
            DL2_TRY(encode_resolution(worker, r, cpu, error));
        for (size_t v = 0; status < 0 && v < worker->run->variant_count; v++)
            if (is_of(worker, v, r))
                dl2_outcome_fail(&worker->slot->outcomes[v], &own);
    }
    return DL2_OK;
}

/* ---- The image */

/* Makes what lies beside images that parts have made, as the parts had it. */
static void resize_beside_staged(struct dl2_transcode_worker *worker)
{
    const struct dl2_transcoder *run = worker->run;
    const struct dl2_transcode_slot *slot = worker->slot;
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_record *record = &run->variants[v].records[slot->index];
        struct dl2_sidecars *own = &slot->sidecars[run->resolution_of[v]];
        if (!dl2_transcoder_packs(run, v, slot->index) || own->count ||
            (record->width == record->source_width && record->height == record->source_height))
            continue;
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_masks_resize(&worker->masks, &slot->sidecars[0], record->source_width,
                             record->source_height, record->width, record->height, own, NULL,
                             &error) < 0)
            dl2_outcome_fail(&slot->outcomes[v], &error);
    }
}

/* The same of a volume. */
static int make_volume(struct dl2_sample_memory *memory, struct dl2_error *own,
                       struct dl2_error *error)
{
    struct dl2_transcode_worker *worker = memory->worker;
    int status = dl2_encode_volume(memory, own), fatal = DL2_OK;
    for (size_t v = 0; status == DL2_OK && fatal == DL2_OK && v < worker->run->variant_count; v++)
        if (dl2_worker_needs(worker, v))
            fatal = dl2_worker_store(worker, v, &worker->encoded[v], error);
    return fatal;
}

/* An image's error message names its file once: the reader has put it in front, others have not. */
static void drop_path(struct dl2_error *error, const char *path)
{
    size_t length = strlen(path);
    if (!strncmp(error->message, path, length) && !strncmp(error->message + length, ": ", 2))
        memmove(error->message, error->message + length + 2,
                strlen(error->message + length + 2) + 1);
}

int dl2_worker_fail(const struct dl2_transcode_worker *worker, bool encodes, struct dl2_error *why,
                    struct dl2_error *error)
{
    const struct dl2_transcode_slot *slot = worker->slot;
    if (why->status == DL2_ERR_LOST)
        return dl2_error_copy(error, why);
    drop_path(why, slot->item->path);
    for (size_t v = 0; v < worker->run->variant_count; v++)
        if (dl2_worker_needs(worker, v) || (!encodes && !slot->outcomes[v].tried &&
                                            dl2_transcoder_packs(worker->run, v, slot->index)))
            dl2_outcome_fail(&slot->outcomes[v], why);
    return DL2_OK;
}

bool dl2_worker_take(struct dl2_transcode_worker *worker, size_t slot_number, size_t n)
{
    const struct dl2_transcoder *run = worker->run;
    struct dl2_transcode_slot *slot = worker->slot = &run->slots[slot_number];
    slot->index = run->todo[n];
    slot->item = &run->source.items[slot->index];
    for (size_t v = 0; v < run->variant_count; v++)
        slot->outcomes[v] = (struct dl2_transcode_outcome){.encoded = slot->outcomes[v].encoded};
    return dl2_transcoder_needs_any(run, slot->index);
}

int dl2_encode_image(void *context, unsigned number, size_t slot_number, size_t n,
                     struct dl2_error *error)
{
    struct dl2_transcoder *run = context;
    struct dl2_transcode_worker *worker = &run->workers[number];
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_CLEANUP(dl2_sample_memory_end) struct dl2_sample_memory memory = {.worker = worker};
    int fatal = DL2_OK;
    const bool encodes = dl2_worker_take(worker, slot_number, n);
    const struct dl2_transcode_slot *slot = worker->slot;
    int status = encodes && !run->volumes ? dl2_worker_read(worker, slot->index, &own) : DL2_OK;
    if (status == DL2_OK)
        status = dl2_dataset_read_sidecars(run->dataset, slot->item->sample, slot->sidecars, &own);
    if (status == DL2_OK && encodes && run->volumes) {
        fatal = make_volume(&memory, &own, error);
        status = own.status;
    } else if (status == DL2_OK && encodes) {
        status = dl2_worker_decode(&memory, slot->index, false, &own);
        if (status == DL2_OK) {
            run->looks[slot->index] =
                dl2_mask_look_at(worker->source, worker->source_size, &worker->image);
            fatal = encode_all(worker, error);
        }
    }
    DL2_TRY(fatal);
    if (status < 0)
        DL2_TRY(dl2_worker_fail(worker, encodes, &own, error));
    resize_beside_staged(worker);
    return DL2_OK;
}
