/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes videos of a clip: decodes each frame once, resizes it once for each resolution, and hands
 * it to the encoder of every variant that lacks the clip. On any thread. */
#include "codec/video_encoder.h"
#include "common/clock.h"
#include "transcode/transcoder.h"
#include "transcode/variant/output_folder.h"

#include <stdlib.h>
#include <string.h>

/* The clip that a worker is at. */
struct source_clip {
    struct dl2_image_range frames; /* of the dataset, or of the video from 0 on */
    struct dl2_video *video;       /* NULL: the frames are images */
    struct dl2_frame_rate rate;
};

/* ---- The source */

int dl2_clips_check(const struct dl2_transcoder *run, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = run->options;
    const enum dl2_sample_kind kind = dl2_dataset_kind(run->dataset);
    if (kind != DL2_SAMPLE_CLIP && kind != DL2_SAMPLE_VIDEO)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds %s, and %s makes videos of clips (folders of numbered "
                             "frames, GulpIO, tar, videos)%s",
                             options->source, kind == DL2_SAMPLE_VOLUME ? "volumes" : "images",
                             options->targets[0].codec->name,
                             kind == DL2_SAMPLE_IMAGE
                                 ? "; if each folder of images is a clip, pass --samples clips"
                                 : "");
    for (size_t t = 0; t < options->target_count; t++) {
        const struct dl2_codec *codec = options->targets[t].codec;
        const char *missing = codec->video->missing(codec);
        if (missing)
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s: %s", codec->name, missing);
    }
    return DL2_OK;
}

static void note_video(struct dl2_transcoder *run, const struct source_clip *clip)
{
    const struct dl2_video_info *info = dl2_video_info(clip->video);
    bool even = true;
    for (size_t i = 0; even && i < info->frames; i++)
        even = dl2_video_times_before(clip->video, i, clip->rate) == i;
    pthread_mutex_lock(&run->notes.mutex);
    dl2_video_notes_add(&run->notes.videos, info);
    run->notes.uneven += !even;
    pthread_mutex_unlock(&run->notes.mutex);
}

static int open_clip(struct dl2_transcode_worker *worker, struct source_clip *clip,
                     struct dl2_error *error)
{
    const struct dl2_transcoder *run = worker->run;
    const size_t sample = worker->slot->item->sample;
    *clip = (struct source_clip){.frames = dl2_dataset_frames(run->dataset, sample),
                                 .rate = {DL2_USUAL_FRAME_RATE, 1}};
    if (dl2_dataset_kind(run->dataset) != DL2_SAMPLE_VIDEO)
        return DL2_OK;
    DL2_TRY(dl2_dataset_read(run->dataset, sample, &worker->file, &worker->source,
                             &worker->source_size, error));
    DL2_TRY(dl2_video_open(worker->source, worker->source_size, run->options->decode.max_pixels,
                           &clip->video, error));
    const struct dl2_video_info *info = dl2_video_info(clip->video);
    clip->frames = (struct dl2_image_range){0, info->frames};
    if (info->rate.numerator)
        clip->rate = info->rate;
    dl2_colors_free(&worker->colors);
    worker->colors = (struct dl2_source_colors){0};
    return DL2_OK;
}

/* Makes worker->image frame `number`, in the colors of the run's rule. */
static int read_frame(struct dl2_transcode_worker *worker, const struct source_clip *clip,
                      size_t number, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = worker->run->options;
    struct dl2_decode_options decode = options->decode;
    if (clip->video)
        return dl2_video_image(clip->video, number, NULL, &worker->raster, &worker->image, error);
    decode.info = &worker->colors.info;
    DL2_TRY(dl2_dataset_read(worker->run->dataset, clip->frames.first + number, &worker->file,
                             &worker->source, &worker->source_size, error));
    DL2_TRY(dl2_image_decode(worker->source, worker->source_size, &decode, &worker->image,
                             &worker->scratch, error));
    return dl2_colors_apply(&worker->colors, options->color, worker->source, worker->source_size,
                            &worker->image, error);
}

/* ---- What lies beside frames */

/* A mask has the size and place of a frame, and a video has neither frames nor masks as files. */
static int refuse_masks(const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    for (size_t i = 0; i < sidecars->count; i++) {
        const char *extension = sidecars->items[i].extension;
        if (!strncmp(extension, "mask.", 5) || !strncmp(extension, "seg.", 4))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "a frame has a mask (.%s), and a video cannot hold it; encode "
                                 "such clips by a codec of images",
                                 extension);
    }
    return DL2_OK;
}

/* Takes what lies beside the first frame, and counts what lies beside others. */
static int read_beside(struct dl2_transcode_worker *worker, struct dl2_error *error)
{
    struct dl2_transcoder *run = worker->run;
    const struct dl2_image_range frames =
        dl2_dataset_frames(run->dataset, worker->slot->item->sample);
    struct dl2_sidecars *own = &worker->slot->sidecars[0], other = {0};
    DL2_TRY(dl2_dataset_read_image_sidecars(run->dataset, frames.first, own, error));
    int status = refuse_masks(own, error);
    for (size_t i = 1; status == DL2_OK && i < frames.count; i++) {
        status = dl2_dataset_read_image_sidecars(run->dataset, frames.first + i, &other, error);
        if (status == DL2_OK)
            status = refuse_masks(&other, error);
        pthread_mutex_lock(&run->notes.mutex);
        for (size_t s = 0; status == DL2_OK && s < other.count; s++)
            dl2_left_out_count(&run->notes.beside, other.items[s].extension);
        pthread_mutex_unlock(&run->notes.mutex);
        dl2_sidecars_free(&other);
    }
    return status;
}

void dl2_clips_tell(struct dl2_transcoder *run)
{
    const struct dl2_clip_notes *notes = &run->notes;
    const char *source = run->options->source;
    dl2_video_notes_tell(&notes->videos, source, "variants", run->progress);
    if (notes->uneven)
        dl2_progress_message(run->progress,
                             "%s: frames are shown equally long in variants, and are not in %zu of "
                             "its videos",
                             source, notes->uneven);
    dl2_progress_tell(run->progress, source,
                      dl2_left_out_message(&notes->beside, "left out beside frames",
                                           "a video has what lies beside its first frame"));
}

/* ---- The variants */

static double now(const struct dl2_codec *codec)
{
    return codec->video->own_threads ? dl2_clock_wall() : dl2_clock_thread_cpu();
}

/* Adds what another frame has lost to what the clip has. */
static void add_reduction(struct dl2_reduction *sum, struct dl2_reduction *frame)
{
    char *color = sum->color ? sum->color : frame->color;
    if (frame->color && color != frame->color)
        free(frame->color);
    else if (frame->color)
        sum->fate = frame->fate;
    sum->color = color;
    sum->bits = sum->bits > frame->bits ? sum->bits : frame->bits;
    sum->alpha |= frame->alpha;
    sum->cmyk |= frame->cmyk;
    sum->frames |= frame->frames;
    sum->bands |= frame->bands;
    sum->black |= frame->black;
    sum->turned |= frame->turned;
}

/* Hands worker->shown to the encoder of a variant, which begins with the first frame. */
static int add_frame(struct dl2_transcode_worker *worker, const struct source_clip *clip, size_t v,
                     struct dl2_error *error)
{
    const struct dl2_variant *variant = &worker->run->variants[v];
    const struct dl2_image *shown = worker->shown;
    struct dl2_record *record = &worker->slot->outcomes[v].record;
    struct dl2_encode_options encode = variant->encode;
    struct dl2_reduction lost;
    const double start = now(variant->codec);
    DL2_TRY(dl2_colors_fit(&worker->colors, variant->codec, shown, &encode, error));
    DL2_TRY(dl2_colors_note(&worker->colors, false, &lost, error));
    add_reduction(&record->reduction, &lost);
    if (!worker->encoders[v]) {
        record->width = shown->width;
        record->height = shown->height;
        record->source_width = worker->image.width;
        record->source_height = worker->image.height;
        record->channels = 3;
        DL2_TRY(variant->codec->video->open(variant->codec, &encode, shown->width, shown->height,
                                            clip->rate, &worker->encoders[v], error));
    }
    DL2_TRY(variant->codec->video->add(worker->encoders[v], shown, error));
    record->frames++;
    record->encode_cpu += (float)(now(variant->codec) - start);
    return DL2_OK;
}

static void close_encoder(struct dl2_transcode_worker *worker, size_t v)
{
    worker->run->variants[v].codec->video->close(worker->encoders[v]);
    worker->encoders[v] = NULL;
}

/* Fails a variant and forgets its encoder. */
static void fail_variant(struct dl2_transcode_worker *worker, size_t v,
                         const struct dl2_error *error)
{
    struct dl2_transcode_outcome *outcome = &worker->slot->outcomes[v];
    close_encoder(worker, v);
    dl2_record_free(&outcome->record);
    dl2_outcome_fail(outcome, error);
}

/* Hands worker->image, which is frame `number`, to all variants of a resolution. */
static int add_resolution(struct dl2_transcode_worker *worker, const struct source_clip *clip,
                          size_t resolution, size_t number)
{
    const struct dl2_transcoder *run = worker->run;
    struct dl2_error own = DL2_ERROR_INIT;
    int status = DL2_OK;
    bool shown = false;
    for (size_t v = 0; v < run->variant_count; v++) {
        if (run->resolution_of[v] != resolution || !dl2_worker_needs(worker, v))
            continue;
        if (!shown)
            status = dl2_resize_to(&worker->resizer, &worker->image, &run->resolutions[resolution],
                                   &worker->resized, &worker->shown, &own);
        shown = true;
        const int added = status == DL2_OK ? add_frame(worker, clip, v, &own) : status;
        if (added < 0) {
            dl2_error_prefix(&own, "frame %zu", number);
            fail_variant(worker, v, &own);
            if (status == DL2_OK)
                dl2_error_clear(&own);
        }
    }
    return DL2_OK;
}

/* Roughly what the encoders of the clip take, with a frame's images. */
static uint64_t estimate(const struct dl2_transcode_worker *worker)
{
    enum { IMAGES = 12 };
    const struct dl2_transcoder *run = worker->run;
    const uint64_t pixels = (uint64_t)worker->image.width * worker->image.height;
    uint64_t sum = IMAGES * pixels;
    for (size_t v = 0; v < run->variant_count; v++) {
        uint32_t width = worker->image.width, height = worker->image.height;
        dl2_resolution_apply(&run->variants[v].resolution, &width, &height);
        if (dl2_worker_needs(worker, v))
            sum += (uint64_t)width * height * run->variants[v].codec->video->frame_bytes;
    }
    return sum;
}

static int encode_frames(struct dl2_sample_memory *memory, const struct source_clip *clip,
                         struct dl2_error *error)
{
    struct dl2_transcode_worker *worker = memory->worker;
    const struct dl2_transcoder *run = worker->run;
    double decode_cpu = 0;
    for (size_t i = 0; i < clip->frames.count; i++) {
        const double start = dl2_clock_thread_cpu();
        const int status = read_frame(worker, clip, i, error);
        decode_cpu += dl2_clock_thread_cpu() - start;
        if (status < 0) {
            dl2_error_prefix(error, "frame %zu", i);
            return status;
        }
        if (!i)
            dl2_sample_memory_take(memory, estimate(worker));
        for (size_t r = 0; r < run->resolution_count; r++)
            DL2_TRY(add_resolution(worker, clip, r, i));
    }
    for (size_t v = 0; v < run->variant_count; v++)
        worker->slot->outcomes[v].record.decode_cpu = (float)decode_cpu;
    return DL2_OK;
}

/* Ends the videos and puts them into their places. Only what can't be written is an error. */
static int finish_videos(struct dl2_transcode_worker *worker, struct dl2_error *error)
{
    const struct dl2_transcoder *run = worker->run;
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_codec *codec = run->variants[v].codec;
        struct dl2_error own = DL2_ERROR_INIT;
        if (!dl2_worker_needs(worker, v))
            continue;
        const double start = now(codec);
        const int status = codec->video->finish(worker->encoders[v], &worker->encoded[v], &own);
        worker->slot->outcomes[v].record.encode_cpu += (float)(now(codec) - start);
        if (status < 0) {
            fail_variant(worker, v, &own);
            continue;
        }
        close_encoder(worker, v);
        DL2_TRY(dl2_worker_store(worker, v, &worker->encoded[v], error));
    }
    return DL2_OK;
}

int dl2_encode_clip(void *context, unsigned number, size_t slot_number, size_t n,
                    struct dl2_error *error)
{
    struct dl2_transcoder *run = context;
    struct dl2_transcode_worker *worker = &run->workers[number];
    struct dl2_error own = DL2_ERROR_INIT;
    struct source_clip clip = {.video = NULL};
    DL2_CLEANUP(dl2_sample_memory_end) struct dl2_sample_memory memory = {.worker = worker};
    int fatal = DL2_OK;
    const bool encodes = dl2_worker_take(worker, slot_number, n);
    int status = read_beside(worker, &own);
    if (status == DL2_OK && encodes)
        status = open_clip(worker, &clip, &own);
    if (status == DL2_OK && encodes)
        status = encode_frames(&memory, &clip, &own);
    if (status == DL2_OK && encodes)
        fatal = finish_videos(worker, error);
    if (status == DL2_OK && clip.video)
        note_video(run, &clip);
    dl2_video_close(clip.video);
    for (size_t v = 0; v < run->variant_count; v++) {
        close_encoder(worker, v);
        if (status < 0 && dl2_worker_needs(worker, v))
            dl2_record_free(&worker->slot->outcomes[v].record);
    }
    DL2_TRY(fatal);
    return status < 0 ? dl2_worker_fail(worker, encodes, &own, error) : DL2_OK;
}
