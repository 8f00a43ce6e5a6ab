/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encodes a volume, slice by slice, for every variant that lacks it. On any thread.
 *
 * The volume is read twice: for the range of its numbers, and to be encoded. Numbers that are whole
 * and span at most 16 bits are encoded as they are, less the lowest. Others are quantized to 65,536
 * levels from the lowest to the highest.
 */
#include "common/clock.h"
#include "transcode/transcoder.h"
#include "volumes/volume.h"
#include "volumes/volume_slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 1 << DL2_GRAY_MAX_BITS,
    FILE_BYTES = 1, /* of a voxel, about, in the file of a variant */
};

/* Whole numbers of double have no gaps up to here. */
static const double most_exact = 9007199254740992.0;

/* A volume on its way. */
struct volume_work {
    struct dl2_sample_memory *memory;
    struct dl2_transcode_worker *worker;
    struct dl2_volume *volume;
    struct dl2_volume_info made; /* what the variants' files say */
    unsigned bits;
    bool exact;
    double low, step;                         /* a sample is (number - low) / step */
    double largest;                           /* error of quantization so far, of a value */
    double *stored;                           /* a slice */
    uint16_t *samples;                        /* the same as samples */
    size_t count;                             /* pixels of a slice */
    struct dl2_volume_slices_writer *writers; /* [variant_count] */
    struct dl2_bytes image;
};

/* Reads slice `number` in the order of channels and depth, and counts its time. */
static int read_slice(struct volume_work *work, size_t number, struct dl2_error *error)
{
    const double start = dl2_clock_thread_cpu();
    const size_t depth = work->made.size[0];
    const int status =
        dl2_volume_read_stored(work->volume, number / depth, number % depth, work->stored, error);
    work->worker->decode_cpu += (float)(dl2_clock_thread_cpu() - start);
    return status;
}

/* Finds what samples stand for. */
static int choose_samples(struct volume_work *work, size_t slices, struct dl2_error *error)
{
    double low = INFINITY, high = -INFINITY;
    bool whole = true;
    for (size_t s = 0; s < slices; s++) {
        DL2_TRY(read_slice(work, s, error));
        for (size_t i = 0; i < work->count; i++) {
            const double number = work->stored[i];
            low = number < low ? number : low;
            high = number > high ? number : high;
            whole &= number == nearbyint(number);
        }
    }
    struct dl2_volume_info *made = &work->made;
    work->low = low;
    work->exact = whole && high - low < LEVELS && low >= -most_exact && high <= most_exact;
    if (work->exact) {
        work->step = 1;
        work->bits = DL2_GRAY_MIN_BITS;
        while (high - low >= (double)(1u << work->bits))
            work->bits++;
        made->minimum = (int64_t)low;
        return DL2_OK;
    }
    work->bits = DL2_GRAY_MAX_BITS;
    work->step = (high - low) / (LEVELS - 1);
    if (!(work->step > 0)) /* one number, or several that differ by less than a level could */
        work->step = 1;
    made->minimum = 0;
    made->intercept += made->slope * low;
    made->slope *= work->step;
    return isfinite(work->step) && isfinite(made->slope) && isfinite(made->intercept)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_LIMIT, "its values span more than double can hold");
}

/* The slice that was read as samples. */
static void make_samples(struct volume_work *work)
{
    const double step = work->step, low = work->low;
    double largest = 0;
    for (size_t i = 0; i < work->count; i++) {
        const double level = nearbyint((work->stored[i] - low) / step);
        const double kept = level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
        const double lost = fabs(kept * step + low - work->stored[i]);
        largest = lost > largest ? lost : largest;
        work->samples[i] = (uint16_t)kept;
    }
    largest *= fabs(dl2_volume_info(work->volume)->slope);
    work->largest = largest > work->largest ? largest : work->largest;
}

/* Adds the slice to the file of variant `v`. */
static int add_slice(struct volume_work *work, size_t v, struct dl2_error *error)
{
    const struct dl2_variant *variant = &work->worker->run->variants[v];
    const struct dl2_gray image = {.samples = work->samples,
                                   .width = (uint32_t)work->made.size[2],
                                   .height = (uint32_t)work->made.size[1],
                                   .bits = work->bits};
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_gray_encode(variant->codec, &image, &variant->encode, &work->image, error));
    work->worker->slot->outcomes[v].record.encode_cpu += (float)(dl2_clock_thread_cpu() - start);
    return dl2_volume_slices_add(&work->writers[v], &work->made, &work->image, error);
}

/* Makes worker->encoded the variants' files; one that cannot be encoded fails. */
static int encode_slices(struct volume_work *work, size_t slices, struct dl2_error *error)
{
    struct dl2_transcode_worker *worker = work->worker;
    struct dl2_transcode_outcome *outcomes = worker->slot->outcomes;
    const struct dl2_volume_info *source = dl2_volume_info(work->volume);
    const size_t variants = worker->run->variant_count;
    for (size_t s = 0; s < slices; s++) {
        DL2_TRY(read_slice(work, s, error));
        make_samples(work);
        for (size_t v = 0; v < variants; v++) {
            struct dl2_error own = DL2_ERROR_INIT;
            if (dl2_worker_needs(work->worker, v) && add_slice(work, v, &own) < 0)
                dl2_outcome_fail(&outcomes[v], &own);
        }
    }
    for (size_t v = 0; v < variants; v++) {
        struct dl2_record *record = &outcomes[v].record;
        if (!dl2_worker_needs(work->worker, v))
            continue;
        DL2_TRY(dl2_volume_slices_finish(&work->writers[v], &work->made,
                                         dl2_voxel_type_name(source->type), &worker->encoded[v],
                                         error));
        record->width = record->source_width = (uint32_t)source->size[2];
        record->height = record->source_height = (uint32_t)source->size[1];
        record->depth = (uint32_t)source->size[0];
        record->channels = (uint8_t)source->channels;
        record->decode_cpu = worker->decode_cpu;
        record->quantized = work->largest > 0;
        record->quantization_error = work->largest;
    }
    return DL2_OK;
}

static uint64_t estimate(const struct volume_work *work)
{
    const struct dl2_transcoder *run = work->worker->run;
    const struct dl2_volume_info *info = &work->made;
    unsigned pixel_bytes = 0;
    uint64_t files = 0;
    for (size_t v = 0; v < run->variant_count; v++) {
        if (!dl2_worker_needs(work->worker, v))
            continue;
        files += FILE_BYTES;
        if (run->variants[v].codec->pixel_bytes > pixel_bytes)
            pixel_bytes = run->variants[v].codec->pixel_bytes;
    }
    return work->count * (pixel_bytes + sizeof *work->stored + sizeof *work->samples) +
           (uint64_t)work->count * info->channels * info->size[0] * files;
}

static int encode_volume(struct volume_work *work, struct dl2_error *error)
{
    struct dl2_transcode_worker *worker = work->worker;
    const struct dl2_transcoder *run = worker->run;
    const uint64_t most = run->options->decode.max_pixels;
    DL2_TRY(dl2_dataset_open_volume(run->dataset, worker->slot->item->sample, NULL, &work->volume,
                                    error));
    work->made = *dl2_volume_info(work->volume);
    const struct dl2_volume_info *info = &work->made;
    const size_t slices = info->channels * info->size[0];
    if (most && (uint64_t)info->size[1] * info->size[2] > most)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "slices of %zux%zu pixels are more than --max-pixels", info->size[2],
                             info->size[1]);
    work->count = info->size[1] * info->size[2];
    dl2_sample_memory_take(work->memory, estimate(work));
    DL2_TRY(DL2_NEW(&work->stored, work->count, "a slice", error));
    DL2_TRY(DL2_NEW(&work->samples, work->count, "a slice", error));
    DL2_TRY(DL2_NEW(&work->writers, run->variant_count, "variants", error));
    for (size_t v = 0; v < run->variant_count; v++)
        work->writers[v].extension = run->variants[v].codec->extension;
    worker->decode_cpu = 0;
    DL2_TRY(choose_samples(work, slices, error));
    for (size_t v = 0; v < run->variant_count; v++)
        work->writers[v].slices.bits = work->bits;
    return encode_slices(work, slices, error);
}

int dl2_encode_volume(struct dl2_sample_memory *memory, struct dl2_error *error)
{
    struct volume_work work = {.memory = memory, .worker = memory->worker};
    const int status = encode_volume(&work, error);
    for (size_t v = 0; work.writers && v < memory->worker->run->variant_count; v++)
        dl2_volume_slices_writer_free(&work.writers[v]);
    free(work.writers);
    free(work.stored);
    free(work.samples);
    dl2_bytes_free(&work.image);
    dl2_volume_close(work.volume);
    return status;
}
