/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/decoder.h"
#include "common/clock.h"
#include "transcode/transcoder.h"

#include <stdlib.h>
#include <string.h>

/* What a search takes for each pixel: what was decoded, and files that are tried together. */
enum { SEARCH_BYTES = 20 };

/* ---- Memory of the images in work */

/* Memory that the resized image of a variant will take, with what making it takes. */
static uint64_t estimate_resizing(const struct dl2_variant *variant,
                                  const struct dl2_image_info *info)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    uint32_t w = width, h = height;
    return dl2_resolution_apply(&variant->resolution, &w, &h)
               ? (uint64_t)w * h * 3 + dl2_resize_image_memory(width, height, w, 3)
               : 0;
}

/* Memory that item `index` will take at the most, by its header; 0 where that can't be read. */
static uint64_t estimate(const struct dl2_transcode_worker *worker, size_t index, bool sampled)
{
    const struct dl2_transcoder *run = worker->run;
    struct dl2_image_info info;
    const struct dl2_codec *codec = dl2_codec_sniff(worker->source, worker->source_size);
    if (!codec || dl2_image_read_info(worker->source, worker->source_size, &info, NULL) < 0 ||
        !info.width || info.height > run->options->decode.max_pixels / info.width)
        return 0;
    unsigned pixel_bytes = codec->pixel_bytes, swept = 0, searched = 0;
    uint64_t resizing = 0; /* the most of any */
    for (size_t v = 0; v < run->variant_count; v++) {
        const struct dl2_variant *variant = &run->variants[v];
        if (!sampled && !dl2_transcoder_needs(run, v, index))
            continue;
        if (variant->codec->pixel_bytes > pixel_bytes)
            pixel_bytes = variant->codec->pixel_bytes;
        swept += variant->codec->encode_sweep != NULL;
        if (variant->target.name)
            searched = SEARCH_BYTES;
        const uint64_t own = estimate_resizing(variant, &info);
        resizing = own > resizing ? own : resizing;
    }
    /* The files of a sweep are in memory together: about a byte a pixel each. */
    return (uint64_t)info.width * info.height * (pixel_bytes + swept + searched) +
           worker->source_size + resizing;
}

static void free_image_if_large(struct dl2_image *image)
{
    if (image->capacity > DL2_KEPT_IMAGE_BYTES)
        dl2_image_free(image);
}

static void release_if_large(struct dl2_transcode_worker *worker)
{
    const size_t variants = worker->run->variant_count;
    if (worker->resized.capacity + worker->resizer.narrowed.capacity > DL2_KEPT_IMAGE_BYTES) {
        dl2_image_free(&worker->resized);
        dl2_image_resizer_free(&worker->resizer);
    }
    if (worker->searcher.decoded.capacity > DL2_KEPT_IMAGE_BYTES) {
        dl2_target_searcher_free(&worker->searcher);
        worker->searcher = (struct dl2_target_searcher){0};
    }
    if (worker->masks.image.capacity > DL2_KEPT_IMAGE_BYTES)
        dl2_mask_resizer_free(&worker->masks);
    free_image_if_large(&worker->image);
    free_image_if_large(&worker->scratch);
    if (worker->file.capacity > DL2_KEPT_IMAGE_BYTES)
        dl2_bytes_free(&worker->file);
    for (size_t i = 0; i < variants; i++)
        if (worker->encoded[i].capacity > DL2_KEPT_IMAGE_BYTES / variants)
            dl2_bytes_free(&worker->encoded[i]);
    dl2_bytes_free(&worker->taken);
}

/* ---- A worker and its image */

int dl2_worker_init(struct dl2_transcode_worker *worker, struct dl2_transcoder *run,
                    struct dl2_error *error)
{
    worker->run = run;
    DL2_TRY(DL2_NEW(&worker->encoded, run->variant_count, "variants", error));
    DL2_TRY(DL2_NEW(&worker->members, run->variant_count, "variants", error));
    DL2_TRY(DL2_NEW(&worker->encoders, run->variant_count, "variants", error));
    return DL2_NEW(&worker->qualities, run->variant_count, "variants", error);
}

void dl2_worker_free(struct dl2_transcode_worker *worker)
{
    for (size_t i = 0; worker->encoded && i < worker->run->variant_count; i++)
        dl2_bytes_free(&worker->encoded[i]);
    free(worker->encoded);
    free(worker->members);
    free(worker->encoders);
    dl2_resizer_free(&worker->raster);
    free(worker->qualities);
    dl2_bytes_free(&worker->file);
    dl2_bytes_free(&worker->taken);
    dl2_image_free(&worker->image);
    dl2_image_free(&worker->scratch);
    dl2_decoder_destroy(worker->decoder);
    dl2_image_free(&worker->resized);
    dl2_image_resizer_free(&worker->resizer);
    dl2_mask_resizer_free(&worker->masks);
    dl2_target_searcher_free(&worker->searcher);
    dl2_colors_free(&worker->colors);
}

int dl2_worker_read(struct dl2_transcode_worker *worker, size_t index, struct dl2_error *error)
{
    const struct dl2_transcoder *run = worker->run;
    return dl2_dataset_read(run->dataset, run->source.items[index].sample, &worker->file,
                            &worker->source, &worker->source_size, error);
}

void dl2_sample_memory_take(struct dl2_sample_memory *memory, uint64_t bytes)
{
    struct dl2_transcode_gate *gate = &memory->worker->run->gate;
    memory->bytes = bytes;
    pthread_mutex_lock(&gate->mutex);
    while (gate->used && (bytes > gate->limit || gate->used > gate->limit - bytes))
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->used += bytes;
    pthread_mutex_unlock(&gate->mutex);
}

void dl2_sample_memory_end(struct dl2_sample_memory *memory)
{
    struct dl2_transcode_gate *gate = &memory->worker->run->gate;
    release_if_large(memory->worker);
    pthread_mutex_lock(&gate->mutex);
    gate->used -= memory->bytes;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

int dl2_worker_decode(struct dl2_sample_memory *memory, size_t index, bool sampled,
                      struct dl2_error *error)
{
    struct dl2_transcode_worker *worker = memory->worker;
    const struct dl2_transcode_options *options = worker->run->options;
    struct dl2_decode_options decode = options->decode;
    decode.info = &worker->colors.info;
    decode.keep = &worker->decoder;
    worker->reuse = (struct dl2_reuse){0};
    dl2_sample_memory_take(memory, estimate(worker, index, sampled));
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_image_decode(worker->source, worker->source_size, &decode, &worker->image,
                             &worker->scratch, error));
    worker->decode_cpu = (float)(dl2_clock_thread_cpu() - start);
    DL2_TRY(dl2_colors_apply(&worker->colors, options->color, worker->source, worker->source_size,
                             &worker->image, error));
    DL2_TRY(dl2_colors_read_metadata(&worker->colors, options->metadata, worker->source,
                                     worker->source_size, error));
    if (options->never_larger && dl2_colors_allow_source(&worker->colors))
        dl2_reuse_look(&worker->reuse, worker->source, worker->source_size);
    return DL2_OK;
}

void dl2_outcome_fail(struct dl2_transcode_outcome *outcome, const struct dl2_error *error)
{
    outcome->tried = true;
    outcome->record.state = DL2_RECORD_FAILED;
    outcome->record.unread = error->status == DL2_ERR_SYSTEM || error->status == DL2_ERR_MEMORY;
    outcome->message = strdup(error->message);
}

int dl2_worker_options(struct dl2_transcode_worker *worker, const struct dl2_variant *variant,
                       struct dl2_encode_options *encode, struct dl2_error *error)
{
    *encode = variant->encode;
    if (worker->shown == &worker->image && dl2_colors_allow_source(&worker->colors)) {
        encode->source = worker->source;
        encode->source_size = worker->source_size;
    }
    return dl2_colors_fit(&worker->colors, variant->codec, worker->shown, encode, error);
}
