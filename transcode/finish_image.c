/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of an image whose variants are made, in the source's order: it is packed, and
 * recorded or failed. */
#include "transcode/transcoder.h"

#include <stdlib.h>
#include <string.h>

double dl2_finish_cost(const struct dl2_transcoder *run, size_t index)
{
    return dl2_transcoder_needs_any(run, index)
               ? (double)(run->source.items[index].bytes + DL2_IMAGE_COST)
               : DL2_IMAGE_COST / 8.0; /* it only has to be packed, which takes next to nothing */
}

/* Names a failure once, whatever number of variants it befell. */
static void tell_failures(const struct dl2_transcoder *run, const struct dl2_transcode_slot *slot)
{
    const char *said = "";
    for (size_t v = 0; v < run->variant_count; v++) {
        const char *message = slot->outcomes[v].message;
        if (!message || !strcmp(message, said))
            continue;
        dl2_progress_message(run->progress, "%s: %s", slot->item->path, message);
        said = message;
    }
}

/* Is it the image that a container cannot take, and not the disk? */
static bool is_images_fault(int status)
{
    return status == DL2_ERR_UNSUPPORTED || status == DL2_ERR_LIMIT || status == DL2_ERR_ARGUMENT;
}

/* Makes the outcome an image that a part has made. */
static int take_staged(struct dl2_variant *variant, size_t index,
                       struct dl2_transcode_outcome *outcome, struct dl2_error *error)
{
    DL2_TRY(dl2_variant_begin(variant, error));
    DL2_TRY(dl2_variant_read_staged(variant, index, &outcome->encoded, error));
    outcome->record = variant->records[index];
    outcome->record.state = DL2_RECORD_VALID;
    variant->records[index].reduction.color = NULL; /* the outcome has its strings now */
    variant->records[index].sidecars = NULL;
    variant->made--; /* by this pass it was not */
    outcome->tried = true;
    return DL2_OK;
}

/* Puts what was encoded into a container; one that can't hold the image's name fails it. */
static int pack_image(const struct dl2_transcoder *run, const struct dl2_transcode_slot *slot,
                      size_t v, struct dl2_error *error)
{
    struct dl2_transcode_outcome *outcome = &slot->outcomes[v];
    struct dl2_error own = DL2_ERROR_INIT;
    if (outcome->record.state != DL2_RECORD_VALID)
        return DL2_OK;
    const int status =
        dl2_variant_pack(&run->variants[v], slot->index, &outcome->encoded,
                         dl2_slot_sidecars(slot, run->resolution_of[v]), &outcome->record, &own);
    if (is_images_fault(status))
        dl2_outcome_fail(outcome, &own);
    else if (status < 0)
        return dl2_error_copy(error, &own);
    if (outcome->encoded.capacity > DL2_KEPT_IMAGE_BYTES)
        dl2_bytes_free(&outcome->encoded);
    return DL2_OK;
}

/* ---- Clips */

/* Fails the frames that a clip of variant `v` has, since others are missing. */
static int fail_clip(const struct dl2_transcoder *run, size_t v, struct dl2_error *error)
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
        DL2_TRY(dl2_variant_fail(variant, i, message, error));
    }
    clip->clip.count = 0;
    return DL2_OK;
}

/* The same as pack_image() for a frame: it is put into the container with the last one of its
 * clip. */
static int pack_frame(const struct dl2_transcoder *run, const struct dl2_transcode_slot *slot,
                      size_t v, struct dl2_error *error)
{
    struct dl2_clip_packer *clip = &run->clips[v];
    struct dl2_transcode_outcome *outcome = &slot->outcomes[v];
    const size_t sample = slot->item->sample;
    if (!dl2_clip_packer_expects(clip, sample)) {
        DL2_TRY(fail_clip(run, v, error)); /* whose last frame failed in an earlier run */
        dl2_clip_packer_begin(clip, run->dataset, sample);
    }
    if (outcome->record.state != DL2_RECORD_VALID)
        return DL2_OK;
    DL2_TRY(dl2_clip_packer_add_sidecars(clip, sample,
                                         dl2_slot_sidecars(slot, run->resolution_of[v]), error));
    return dl2_clip_packer_add(clip, run->variants[v].codec->extension, &outcome->encoded, error);
}

/* Behind the last frame of a clip, whose outcome is recorded: writes the clip if it is whole. */
static int end_clip(const struct dl2_transcoder *run, size_t v, struct dl2_error *error)
{
    struct dl2_clip_packer *clip = &run->clips[v];
    const struct dl2_image_range range = clip->clip;
    struct dl2_error own = DL2_ERROR_INIT;
    int status = dl2_clip_packer_is_whole(clip)
                     ? dl2_clip_packer_write(clip, run->variants[v].writer, &own)
                     : DL2_ERR_LIMIT;
    if (is_images_fault(status)) {
        if (own.status < 0)
            dl2_progress_message(run->progress, "%s", own.message);
        clip->clip = range;
        status = fail_clip(run, v, &own);
    }
    return status < 0 ? dl2_error_copy(error, &own) : DL2_OK;
}

int dl2_finish_clips(struct dl2_transcoder *run, struct dl2_error *error)
{
    for (size_t v = 0; run->clips && v < run->variant_count; v++) {
        DL2_TRY(fail_clip(run, v, error));
        dl2_progress_tell(run->progress, run->variants[v].root,
                          dl2_clip_packer_left_out(&run->clips[v]));
    }
    return DL2_OK;
}

/* ---- The image */

/* Puts the image into a variant that is a container. */
static int pack(const struct dl2_transcoder *run, const struct dl2_transcode_slot *slot, size_t v,
                struct dl2_error *error)
{
    struct dl2_transcode_outcome *outcome = &slot->outcomes[v];
    if (dl2_transcoder_packs(run, v, slot->index) && !outcome->tried)
        DL2_TRY(take_staged(&run->variants[v], slot->index, outcome, error));
    if (!outcome->tried)
        return DL2_OK;
    return run->clips ? pack_frame(run, slot, v, error) : pack_image(run, slot, v, error);
}

/* Records what became of it, and takes the outcome's strings. */
static int record(struct dl2_variant *variant, size_t index, struct dl2_transcode_outcome *outcome,
                  struct dl2_error *error)
{
    const bool good = outcome->record.state == DL2_RECORD_VALID;
    if (!outcome->tried)
        return DL2_OK;
    variant->records[index].unread = outcome->record.unread;
    if (!good)
        dl2_record_free(&outcome->record);
    const int status = good ? dl2_variant_add(variant, index, &outcome->record, error)
                            : dl2_variant_fail(variant, index, outcome->message, error);
    outcome->message = NULL;
    outcome->record.sidecars = outcome->record.reduction.color = NULL;
    return status;
}

int dl2_finish_image(void *context, size_t slot_number, size_t n, struct dl2_error *error)
{
    struct dl2_transcoder *run = context;
    const struct dl2_transcode_slot *slot = &run->slots[slot_number];
    run->progress->cost_done += dl2_finish_cost(run, slot->index);
    for (size_t v = 0; run->packed && v < run->variant_count; v++)
        DL2_TRY(pack(run, slot, v, error));
    for (size_t r = 0; r < run->resolution_count; r++)
        dl2_sidecars_free(&slot->sidecars[r]);
    tell_failures(run, slot);
    int status = DL2_OK;
    for (size_t v = 0; v < run->variant_count; v++) {
        const int own = record(&run->variants[v], slot->index, &slot->outcomes[v], error);
        status = status == DL2_OK ? own : status;
    }
    for (size_t v = 0; run->clips && status == DL2_OK && v < run->variant_count; v++) {
        const struct dl2_image_range clip = run->clips[v].clip;
        if (slot->item->sample + 1 == clip.first + clip.count)
            status = end_clip(run, v, error);
    }
    dl2_progress_update(run->progress, n + 1, NULL);
    return status;
}
