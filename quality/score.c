/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/score.h"

#include "codec/codec.h"
#include "codec/decoder.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/stats.h"
#include "common/thread.h"
#include "dataset/write/variant_facts.h"
#include "pixels/resize_image.h"
#include "quality/score_share.h"
#include "quality/score_source.h"
#include "quality/volume_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* What a file has and its pixels here have not. */
struct score_facts {
    struct dl2_image_info info;
    struct dl2_color_space color;
    const struct dl2_codec *codec; /* of the file; NULL: not known */
    bool lossy;
    int64_t header_bytes;       /* -1: not known */
    int quality;                /* of a JPEG; 0: not known */
    struct dl2_deep_image deep; /* the image, if... */
    bool is_deep;               /* ...it has more than 8 and could be decoded at 16 bits */
};

/* The state of a worker thread. */
struct score_worker {
    struct dl2_scorer *scorer;
    struct dl2_score_lane *lane; /* NULL: the device scores nothing */
    struct dl2_image reference, variant, scratch, resized;
    struct dl2_decoder *decoder;      /* kept with external codecs */
    const struct dl2_image *shown;    /* what is compared with: `reference`, or `resized`... */
    struct dl2_resolution shown_at;   /* ...to this resolution */
    struct dl2_deep_image shown_deep; /* `shown` at 16 bits, once... */
    bool has_shown_deep;              /* ...it was needed */
    struct dl2_image_resizer resizer;
    struct score_facts reference_facts, variant_facts;
    struct dl2_bytes bytes;
    struct dl2_score_video reference_video, *videos; /* the latter by variant */
    struct dl2_volume_reference volume;              /* of the reference */
    double reference_cpu_seconds;
    double *cpu_seconds; /* by variant */
};

struct score_run {
    const struct dl2_scoring_options *options;
    struct dl2_scoring *scoring;
    struct dl2_score_source reference;
    struct dl2_score_source *variants;
    struct score_worker *workers;
    unsigned worker_count;
    size_t *todo; /* numbers of the images that this process scores */
    size_t todo_count;
    /* [unit_count + 1] the first of `todo` of each unit, which one thread scores: an image, or of
     * videos a clip, so that no two threads decode it */
    size_t *units;
    size_t unit_count;
    bool has_videos; /* the reference, or a variant */
    bool uses_device;
    int device_metrics[DL2_METRIC_COUNT]; /* by the scoring's metric: its place in the device's
                                             list, or -1 */
};

/* How the file was encoded. */
static void score_look(struct score_facts *facts, const uint8_t *data, size_t size)
{
    struct dl2_coding coding;
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    facts->codec = codec;
    facts->lossy = codec && codec->lossy;
    facts->header_bytes = -1;
    facts->quality = 0;
    if (codec && codec->coded_bytes)
        facts->header_bytes = (int64_t)(size - codec->coded_bytes(data, size));
    if (codec && codec->coding && codec->coding(data, size, &coding))
        facts->quality = coding.quality;
}

/* Decodes a frame of a video. */
static int score_decode_frame(const struct score_run *run, struct score_worker *worker,
                              const struct dl2_score_source *source, size_t index,
                              struct dl2_image *image, struct score_facts *facts,
                              struct dl2_error *error)
{
    struct dl2_score_video *open = source == &run->reference
                                       ? &worker->reference_video
                                       : &worker->videos[source - run->variants];
    DL2_TRY(dl2_score_source_frame(source, index, run->options->max_pixels, open, &worker->bytes,
                                   image, error));
    dl2_color_free(&facts->color);
    facts->color = (struct dl2_color_space){.form = DL2_COLOR_SPACE_SRGB};
    facts->info = (struct dl2_image_info){
        .width = image->width, .height = image->height, .channels = 3, .bits = 8, .orientation = 1};
    facts->codec = NULL;
    facts->lossy = true;
    facts->header_bytes = -1;
    facts->quality = 0;
    facts->is_deep = false;
    return DL2_OK;
}

static int score_decode(const struct score_run *run, struct score_worker *worker,
                        const struct dl2_score_source *source, size_t index,
                        struct dl2_image *image, struct score_facts *facts, uint64_t *bytes,
                        struct dl2_error *error)
{
    struct dl2_sample sample;
    const uint8_t *data;
    size_t size;
    dl2_score_source_sample(source, index, &sample);
    *bytes = sample.bytes;
    if (source->frames) {
        const int status = score_decode_frame(run, worker, source, index, image, facts, error);
        if (status < 0 && strncmp(error->message, sample.path, strlen(sample.path)) != 0)
            dl2_error_prefix(error, "%s", sample.path);
        return status;
    }
    DL2_TRY(dl2_score_source_read(source, index, &worker->bytes, &data, &size, error));
    *bytes = size;
    score_look(facts, data, size);
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = run->options->max_pixels;
    options.external = run->options->external;
    options.drop_bands = run->options->drop_bands;
    options.info = &facts->info;
    options.keep = &worker->decoder;
    memcpy(options.background, run->options->background, sizeof options.background);
    int status = dl2_image_decode(data, size, &options, image, &worker->scratch, error);
    facts->is_deep = false;
    if (status == DL2_OK && facts->info.bits > 8) {
        status = dl2_image_decode_deep(data, size, &options, &facts->deep, error);
        facts->is_deep = status > 0;
        status = status < 0 ? status : DL2_OK;
    }
    if (status == DL2_OK)
        status = dl2_image_read_color(data, size, &facts->info, &facts->color, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", sample.path);
    return status;
}

/* All that follows is compared with this image. */
static int score_show(const struct score_run *run, struct score_worker *worker,
                      const struct dl2_image *image, const struct dl2_resolution *resolution,
                      struct dl2_error *error)
{
    worker->shown = image;
    worker->shown_at = *resolution;
    worker->has_shown_deep = false;
    dl2_scorer_set_reference(worker->scorer, image);
    dl2_scorer_set_original(worker->scorer, &worker->reference);
    return worker->lane ? run->options->device->ops->set_reference(worker->lane, image, error)
                        : DL2_OK;
}

/* Shows the reference at a resolution. */
static int score_show_at(const struct score_run *run, struct score_worker *worker,
                         const struct dl2_resolution *resolution, struct dl2_error *error)
{
    uint32_t width = worker->reference.width, height = worker->reference.height;
    struct dl2_resolution wanted = *resolution;
    const bool smaller = dl2_resolution_apply(resolution, &width, &height);
    if (!smaller)
        wanted = (struct dl2_resolution){0};
    if (dl2_resolution_equal(&wanted, &worker->shown_at))
        return DL2_OK;
    if (!smaller)
        return score_show(run, worker, &worker->reference, &wanted, error);
    DL2_TRY(dl2_resize_image(&worker->resizer, &worker->reference, wanted.filter, width, height,
                             &worker->resized, error));
    return score_show(run, worker, &worker->resized, &wanted, error);
}

/* Makes shown_deep what is compared with at 16 bits. A file of more than 8 bits is resized at 16;
 * of another one, what was resized is what the encoder got. */
static int score_show_deep(struct score_worker *worker, struct dl2_error *error)
{
    const struct score_facts *facts = &worker->reference_facts;
    if (worker->has_shown_deep)
        return DL2_OK;
    if (!facts->is_deep)
        DL2_TRY(dl2_deep_of_image(&worker->shown_deep, worker->shown, error));
    else
        DL2_TRY(dl2_resize_deep(&worker->resizer, &facts->deep, worker->shown_at.filter,
                                worker->shown->width, worker->shown->height, &worker->shown_deep,
                                error));
    worker->has_shown_deep = true;
    return DL2_OK;
}

/* Scores anew, at 16 bits, what can be, if a file has more than 8. */
static int score_deep(const struct score_run *run, struct score_worker *worker,
                      struct dl2_pair *pair, struct dl2_error *error)
{
    struct score_facts *one = &worker->reference_facts, *two = &worker->variant_facts;
    const struct dl2_deep_image *reference = &one->deep;
    pair->above_8_bits = one->info.bits > 8 || two->info.bits > 8;
    pair->deep = pair->above_8_bits && (one->is_deep || one->info.bits <= 8) &&
                 (two->is_deep || two->info.bits <= 8);
    if (!pair->deep)
        return DL2_OK;
    if (!one->is_deep || pair->resized) {
        DL2_TRY(score_show_deep(worker, error));
        reference = &worker->shown_deep;
    }
    if (!two->is_deep)
        DL2_TRY(dl2_deep_of_image(&two->deep, &worker->variant, error));
    pair->identical = dl2_deep_equal(reference, &two->deep);
    for (unsigned i = 0; i < run->scoring->metric_count; i++) {
        const struct dl2_metric *metric = run->scoring->metrics[i];
        double sums[DL2_METRIC_SUMS] = {0};
        if (!metric->measure_deep)
            continue;
        metric->measure_deep(reference, &two->deep, sums);
        dl2_score_of_sums(metric, sums, worker->shown, &worker->variant, &pair->scores[i]);
    }
    return DL2_OK;
}

static int score_draw(const struct score_run *run, struct score_worker *worker, size_t item,
                      const char *variant_name, struct dl2_pair *pair, struct dl2_error *error)
{
    const struct dl2_heatmap_options *options = &run->options->heatmaps;
    if (!options->folder || item >= options->limit)
        return DL2_OK;
    const int status = dl2_heatmap_write(options, worker->scorer, &worker->variant, variant_name,
                                         run->scoring->keys[item], &worker->scratch, error);
    pair->drawn = status > 0;
    return status < 0 ? status : DL2_OK;
}

/* Decodes a variant's image and scores it against the scorer's reference. `why` becomes the reason
 * why that is not possible; other errors end the run. */
static int score_image(const struct score_run *run, struct score_worker *worker, size_t number,
                       size_t index, struct dl2_pair *pair, struct dl2_error *why,
                       struct dl2_error *error)
{
    const struct dl2_score_source *source = &run->variants[number];
    const struct dl2_image *variant = &worker->variant;
    if (score_decode(run, worker, source, index, &worker->variant, &worker->variant_facts,
                     &pair->bytes, why) < 0)
        return DL2_OK;
    DL2_TRY(score_show_at(run, worker, &run->scoring->variants[number].resolution, error));
    const struct dl2_image *reference = worker->shown;
    if (reference->width != variant->width || reference->height != variant->height) {
        struct dl2_sample sample;
        dl2_score_source_sample(source, index, &sample);
        pair->state = DL2_PAIR_MISMATCHED;
        dl2_error_set(why, DL2_ERR_ARGUMENT, "%s: is %ux%u pixels, its reference %ux%u%s",
                      sample.path, (unsigned)variant->width, (unsigned)variant->height,
                      (unsigned)reference->width, (unsigned)reference->height,
                      reference == &worker->resized ? " once resized" : "");
        return DL2_OK;
    }
    double sums[DL2_METRIC_COUNT][DL2_METRIC_SUMS];
    if (worker->lane)
        DL2_TRY(run->options->device->ops->score(worker->lane, variant, sums, error));
    const struct dl2_metric *own[DL2_METRIC_COUNT];
    for (unsigned i = 0; i < run->scoring->metric_count; i++) {
        const struct dl2_metric *metric = run->scoring->metrics[i];
        const int place = run->device_metrics[i];
        own[i] = place < 0 ? metric : NULL;
        if (place >= 0)
            dl2_score_of_sums(metric, sums[place], reference, variant, &pair->scores[i]);
    }
    DL2_TRY(dl2_scorer_score_all(worker->scorer, own, run->scoring->metric_count, variant,
                                 pair->scores, error));
    const struct score_facts *one = &worker->reference_facts, *two = &worker->variant_facts;
    pair->identical = dl2_images_equal(reference, variant);
    pair->alpha = one->info.alpha || two->info.alpha;
    pair->colors_differ = !dl2_color_equal(&one->color, &two->color);
    pair->resized = reference == &worker->resized;
    pair->header_bytes = two->header_bytes;
    pair->width = variant->width;
    pair->height = variant->height;
    pair->slices = 1;
    pair->state = DL2_PAIR_SCORED;
    return score_deep(run, worker, pair, error);
}

static int score_open_volume(const struct score_run *run, const struct dl2_score_source *source,
                             size_t index, struct dl2_volume **out, uint64_t *bytes,
                             struct dl2_error *error)
{
    const uint64_t most =
        run->options->max_pixels ? run->options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    struct dl2_sample sample;
    dl2_score_source_sample(source, index, &sample);
    *bytes = sample.bytes;
    DL2_TRY(dl2_dataset_open_volume(source->dataset, index, NULL, out, error));
    const size_t width = dl2_volume_info(*out)->size[2], height = dl2_volume_info(*out)->size[1];
    if ((uint64_t)width * height <= most)
        return DL2_OK;
    dl2_volume_close(*out);
    return dl2_error_set(error, DL2_ERR_LIMIT,
                         "%s: slices of %zux%zu pixels are more than --max-pixels", sample.path,
                         width, height);
}

/* The same of a volume. */
static void score_volume(const struct score_run *run, struct score_worker *worker, size_t number,
                         size_t index, struct dl2_pair *pair, struct dl2_error *why)
{
    const struct dl2_score_source *source = &run->variants[number];
    struct dl2_volume *volume;
    if (score_open_volume(run, source, index, &volume, &pair->bytes, why) < 0)
        return;
    const struct dl2_volume_info info = *dl2_volume_info(volume);
    const uint64_t images = dl2_volume_image_bytes(volume);
    const int status = dl2_volume_compare(&worker->volume, worker->scorer, volume, pair->scores,
                                          &pair->identical, why);
    dl2_volume_close(volume);
    if (status == DL2_ERR_ARGUMENT) {
        struct dl2_sample sample;
        dl2_score_source_sample(source, index, &sample);
        dl2_error_prefix(why, "%s", sample.path);
        pair->state = DL2_PAIR_MISMATCHED;
    }
    if (status < 0)
        return;
    pair->header_bytes = images && images <= pair->bytes ? (int64_t)(pair->bytes - images) : -1;
    pair->width = (uint32_t)info.size[2];
    pair->height = (uint32_t)info.size[1];
    pair->slices = (uint32_t)(info.channels * info.size[0]);
    pair->state = DL2_PAIR_SCORED;
}

/* Decodes the image of the reference, or opens the volume, that all variants are compared with. */
static int score_begin(const struct score_run *run, struct score_worker *worker, size_t item,
                       uint64_t *bytes, struct dl2_error *error)
{
    const struct score_facts *facts = &worker->reference_facts;
    struct dl2_sample sample;
    struct dl2_volume *volume;
    bool found;
    size_t index;
    dl2_score_source_sample(&run->reference, item, &sample);
    DL2_TRY(dl2_score_source_find(&run->reference, sample.key, &found, &index, error));
    if (run->scoring->volumes) {
        DL2_TRY(score_open_volume(run, &run->reference, item, &volume, bytes, error));
        return dl2_volume_reference_open(&worker->volume, volume, error);
    }
    DL2_TRY(score_decode(run, worker, &run->reference, item, &worker->reference,
                         &worker->reference_facts, bytes, error));
    run->scoring->files[item] = (struct dl2_reference_file){
        .codec = facts->codec, .lossy = facts->lossy, .quality = (uint8_t)facts->quality};
    return DL2_OK;
}

/* Keeps why a pair has no scores, unless that ends the run. */
static int score_fail(struct dl2_pair *pair, const struct dl2_error *why, struct dl2_error *error)
{
    if (why->status == DL2_ERR_MEMORY || why->status == DL2_ERR_LOST)
        return dl2_error_copy(error, why);
    if (pair->state != DL2_PAIR_MISMATCHED)
        pair->state = DL2_PAIR_FAILED;
    pair->error = strdup(why->message);
    return pair->error ? DL2_OK : dl2_error_memory(error, "a message");
}

/* Scores a variant's image or volume of the same key, if there is one. */
static int score_variant(const struct score_run *run, struct score_worker *worker, size_t item,
                         size_t number, struct dl2_error *error)
{
    const struct dl2_score_source *source = &run->variants[number];
    const struct dl2_scored_variant *variant = &run->scoring->variants[number];
    struct dl2_pair *pair = &variant->pairs[item];
    struct dl2_error why = DL2_ERROR_INIT;
    const char *key = source->dataset ? run->scoring->keys[item] : "";
    size_t index;
    bool found = false;
    pair->state = DL2_PAIR_MISSING;
    if (source->count)
        dl2_score_source_find(source, key, &found, &index, &why);
    if (why.status == DL2_OK && found && run->scoring->volumes)
        score_volume(run, worker, number, index, pair, &why);
    else if (why.status == DL2_OK && found)
        DL2_TRY(score_image(run, worker, number, index, pair, &why, error));
    if (why.status < 0)
        return score_fail(pair, &why, error);
    return pair->state == DL2_PAIR_SCORED
               ? score_draw(run, worker, item, variant->name, pair, error)
               : DL2_OK;
}

/* Scores an image, or a volume, of the reference against all variants. */
static int score_item(const struct score_run *run, struct score_worker *worker, size_t item,
                      struct dl2_error *error)
{
    struct dl2_error why = DL2_ERROR_INIT;
    uint64_t bytes = 0;
    double start = dl2_clock_thread_cpu(), now;
    dl2_volume_reference_close(&worker->volume);
    const int status = score_begin(run, worker, item, &bytes, &why);
    if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST)
        return dl2_error_copy(error, &why);
    if (status == DL2_OK && !run->scoring->volumes)
        DL2_TRY(score_show(run, worker, &worker->reference, &(struct dl2_resolution){0}, error));
    dl2_error_prefix(&why, "reference");
    now = dl2_clock_thread_cpu();
    worker->reference_cpu_seconds += now - start;
    for (size_t v = 0; v < run->scoring->variant_count; v++) {
        struct dl2_pair *pair = &run->scoring->variants[v].pairs[item];
        start = now;
        pair->reference_bytes = bytes;
        DL2_TRY(status < 0 ? score_fail(pair, &why, error)
                           : score_variant(run, worker, item, v, error));
        now = dl2_clock_thread_cpu();
        worker->cpu_seconds[v] += now - start;
    }
    return DL2_OK;
}

/* ---- All of them */

static int score_unit(void *context, unsigned worker, size_t slot, size_t unit,
                      struct dl2_error *error)
{
    struct score_run *run = context;
    (void)slot;
    for (size_t n = run->units[unit]; n < run->units[unit + 1]; n++)
        DL2_TRY(score_item(run, &run->workers[worker], run->todo[n], error));
    return DL2_OK;
}

static int score_show_progress(void *context, size_t slot, size_t unit, struct dl2_error *error)
{
    const struct score_run *run = context;
    (void)slot;
    (void)error;
    if (run->options->progress)
        dl2_progress_update(run->options->progress, run->units[unit + 1], NULL);
    return DL2_OK;
}

static int score_aggregate(const struct dl2_scoring *scoring,
                           const struct dl2_scored_variant *variant, unsigned metric,
                           struct dl2_aggregate *out, struct dl2_error *error)
{
    double (*const of_mse)(double) = scoring->metrics[metric]->of_mse;
    const bool lower = scoring->metrics[metric]->lower_is_better;
    DL2_AUTO_FREE double *values = NULL;
    double mse = 0;
    DL2_TRY(DL2_NEW(&values, scoring->count, "scores", error));
    *out = (struct dl2_aggregate){
        .mean = NAN, .median = NAN, .p5 = NAN, .min = NAN, .of_mean_mse = NAN};
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_score *score = &variant->pairs[i].scores[metric];
        if (variant->pairs[i].state != DL2_PAIR_SCORED)
            continue;
        if (isnan(score->value))
            out->missing++;
        else
            values[out->values++] = score->value;
        mse += score->mean;
    }
    if (out->values) {
        struct dl2_summary summary;
        dl2_summarize(values, out->values, &summary);
        out->mean = summary.mean;
        out->median = summary.median;
        out->p5 = lower ? summary.p95 : summary.p5;
        out->min = lower ? summary.max : summary.min;
        if (of_mse)
            out->of_mean_mse = of_mse(mse / (double)(out->values + out->missing));
    }
    return DL2_OK;
}

static int score_sum_up(const struct dl2_scoring *scoring, struct dl2_scored_variant *variant,
                        struct dl2_error *error)
{
    bool headers_known = true;
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_pair *pair = &variant->pairs[i];
        variant->states[pair->state]++;
        if (pair->state != DL2_PAIR_SCORED)
            continue;
        variant->pixels += dl2_pair_pixels(pair);
        variant->bytes += pair->bytes;
        if (pair->header_bytes < 0)
            headers_known = false;
        else
            variant->header_bytes += pair->header_bytes;
        variant->reference_bytes += pair->reference_bytes;
        variant->identical += pair->identical;
        variant->above_8_bits += pair->above_8_bits;
        variant->deep += pair->deep;
        variant->alpha += pair->alpha;
        variant->resized += pair->resized;
        variant->colors_differ += pair->colors_differ;
    }
    if (!headers_known || !variant->states[DL2_PAIR_SCORED])
        variant->header_bytes = -1;
    for (unsigned i = 0; i < scoring->metric_count; i++)
        DL2_TRY(score_aggregate(scoring, variant, i, &variant->aggregates[i], error));
    return DL2_OK;
}

/* Reads codec, quality and resolution from the variant's dl2-variant.json, if it has one. */
static int score_describe(struct dl2_scored_variant *variant, struct dl2_error *why)
{
    struct dl2_error own = DL2_ERROR_INIT;
    json_auto_t *json = NULL;
    variant->quality = -1;
    const int loaded = dl2_facts_load(variant->path, &json, &own);
    if (loaded == DL2_ERR_LOST) /* or it would be scored as one of no quality and full size */
        return dl2_error_copy(why, &own);
    if (loaded < 0 || !json)
        return DL2_OK;
    const char *codec = dl2_json_get_text(json, "codec", NULL);
    variant->codec = codec ? strdup(codec) : NULL;
    const char *library =
        codec ? dl2_json_get_text(json_object_get(json, "libraries"), codec, NULL) : NULL;
    variant->library = library ? strdup(library) : NULL;
    variant->quality = (int)dl2_json_get_integer(json, "quality", -1);
    const json_t *resize = json_object_get(json_object_get(json, "options"), "resize");
    return dl2_resolution_from_json(resize, &variant->resolution)
               ? DL2_OK
               : dl2_error_set(why, DL2_ERR_FORMAT,
                               "%s: its dl2-variant.json has a \"resize\" that is not known here; "
                               "make the variant again",
                               variant->path);
}

/* Are its images frames? */
static bool score_has_clips(const struct dl2_score_source *source)
{
    const enum dl2_sample_kind kind = dl2_dataset_kind(source->dataset);
    return kind == DL2_SAMPLE_CLIP || kind == DL2_SAMPLE_VIDEO;
}

static bool score_has_volumes(const struct dl2_score_source *source)
{
    return dl2_dataset_kind(source->dataset) == DL2_SAMPLE_VOLUME;
}

static int score_open_variant(struct score_run *run, size_t index, const char *path,
                              struct dl2_error *error)
{
    struct dl2_scored_variant *variant = &run->scoring->variants[index];
    struct dl2_score_source *source = &run->variants[index];
    variant->path = path;
    variant->name = dl2_dataset_variant_name(path);
    if (!variant->name)
        return dl2_error_memory(error, "a name");
    DL2_TRY(DL2_NEW(&variant->pairs, run->scoring->count, "pairs", error));
    struct dl2_error why = DL2_ERROR_INIT;
    int status = score_describe(variant, &why);
    if (status == DL2_OK)
        status = dl2_score_source_open(source, path, run->options, &why);
    if (status == DL2_OK && !source->dataset != !run->reference.dataset)
        status = dl2_error_set(&why, DL2_ERR_ARGUMENT, "%s: is %s, the reference %s", path,
                               source->dataset ? "a dataset" : "a file",
                               source->dataset ? "a file" : "a dataset");
    else if (status == DL2_OK && source->dataset &&
             (score_has_clips(source) != score_has_clips(&run->reference) ||
              score_has_volumes(source) != score_has_volumes(&run->reference)))
        status = dl2_error_set(
            &why, DL2_ERR_ARGUMENT,
            score_has_volumes(source) || score_has_volumes(&run->reference)
                ? "%s: only one of it and the reference holds volumes"
                : "%s: only one of it and the reference is read as clips, so that frames have "
                  "other names; say --samples clips, or images",
            path);
    if (status == DL2_ERR_MEMORY)
        return dl2_error_set(error, status, "%s", why.message);
    if (status == DL2_OK)
        return dl2_score_source_extra(source, &run->reference, &variant->extra,
                                      &variant->extra_count, error);
    dl2_score_source_close(source);
    variant->error = strdup(why.message);
    return variant->error ? DL2_OK : dl2_error_memory(error, "a message");
}

static int score_open_reference(struct score_run *run, struct dl2_error *error)
{
    struct dl2_scoring *scoring = run->scoring;
    int status = dl2_score_source_open(&run->reference, scoring->reference, run->options, error);
    if (status < 0) {
        dl2_error_prefix(error, "reference");
        return status;
    }
    scoring->volumes =
        run->reference.dataset && dl2_dataset_kind(run->reference.dataset) == DL2_SAMPLE_VOLUME;
    if (scoring->volumes && run->options->idle_on_volumes)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--%s has no effect on volumes, which %s holds: they are scored by "
                             "PSNR and SSIM at their own range",
                             run->options->idle_on_volumes, scoring->reference);
    DL2_TRY(DL2_NEW(&scoring->files, run->reference.count, "keys", error));
    for (size_t i = 0; i < run->reference.count; i++) {
        struct dl2_sample sample;
        dl2_score_source_sample(&run->reference, i, &sample);
        const char *name = run->reference.dataset ? sample.key : sample.name;
        DL2_TRY(dl2_list_append(&scoring->keys, &scoring->count, strdup(name), error));
    }
    return DL2_OK;
}

static int score_create_workers(struct score_run *run, unsigned count, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&run->workers, count, "workers", error));
    run->worker_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct score_worker *worker = &run->workers[i];
        DL2_TRY(DL2_NEW(&worker->cpu_seconds, run->scoring->variant_count, "a worker", error));
        DL2_TRY(DL2_NEW(&worker->videos, run->scoring->variant_count, "a worker", error));
        DL2_TRY(dl2_scorer_create(&worker->scorer, error));
        if (run->scoring->input_size)
            dl2_scorer_set_input_size(worker->scorer, run->scoring->input_size);
        if (run->uses_device)
            DL2_TRY(
                run->options->device->ops->lane_create(run->options->device, &worker->lane, error));
    }
    return DL2_OK;
}

/* Which metrics are scored, and which of them by the device. */
static void score_choose_metrics(struct score_run *run)
{
    const struct dl2_scoring_options *options = run->options;
    struct dl2_scoring *scoring = run->scoring;
    const struct dl2_metric *metric;
    for (unsigned i = 0; scoring->volumes && (metric = dl2_volume_metric_at(i)); i++)
        scoring->metrics[scoring->metric_count++] = metric;
    if (scoring->volumes)
        return;
    for (unsigned i = 0; (metric = dl2_metric_at(i)); i++) {
        if (!options->metrics[i])
            continue;
        if (metric->of_input)
            scoring->input_size = options->input_size ? options->input_size : DL2_INPUT_SIZE;
        int number = -1;
        for (int n = 0; options->device && options->device->ops->metrics[n] && number < 0; n++)
            if (options->device->ops->metrics[n] == metric)
                number = n;
        if (number >= 0)
            scoring->device = options->device->ops->name;
        run->uses_device |= number >= 0;
        scoring->by_device[scoring->metric_count] = number >= 0;
        run->device_metrics[scoring->metric_count] = number;
        scoring->metrics[scoring->metric_count++] = metric;
    }
}

static int score_add_dataset(const struct dl2_score_source *source, uint64_t *sum,
                             struct dl2_error *error)
{
    uint64_t facts[] = {*sum, 0};
    if (source->dataset)
        DL2_TRY(dl2_dataset_fingerprint(source->dataset, &facts[1], error));
    *sum = XXH3_64bits(facts, sizeof facts);
    return DL2_OK;
}

/* A sum that differs where scores may: by datasets, metrics, options and versions. */
static int score_sum_facts(const struct score_run *run, uint64_t *sum, struct dl2_error *error)
{
    const struct dl2_scoring *scoring = run->scoring;
    json_auto_t *facts = json_pack(
        "{s:o, s:b, s:s, s:i, s:I, s:i, s:i, s:i, s:b, s:i, s:i, s:o}", "libraries",
        dl2_codec_versions(), "drop_bands", run->options->drop_bands, "device", scoring->device,
        "input_size", (int)scoring->input_size, "max_pixels", (json_int_t)run->options->max_pixels,
        "r", run->options->background[0], "g", run->options->background[1], "b",
        run->options->background[2], "maps", run->options->heatmaps.folder != NULL, "maps_of",
        (int)run->options->heatmaps.error, "limit", (int)run->options->heatmaps.limit, "metrics",
        json_array());
    json_t *metrics = json_object_get(facts, "metrics");
    for (unsigned i = 0; i < scoring->metric_count; i++)
        json_array_append_new(metrics, json_string(scoring->metrics[i]->name));
    if (run->has_videos)
        json_object_set_new(facts, "videos", json_string(dl2_video_version()));
    DL2_AUTO_FREE char *text = facts ? json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (!text)
        return dl2_error_memory(error, "metrics");
    *sum = XXH3_64bits(text, strlen(text));
    DL2_TRY(score_add_dataset(&run->reference, sum, error));
    for (size_t i = 0; i < scoring->variant_count; i++)
        DL2_TRY(score_add_dataset(&run->variants[i], sum, error));
    return DL2_OK;
}

/* What an image costs whatever its size, in bytes of the reference. */
enum { SCORE_IMAGE_COST = 8192 };

static int score_divide(struct score_run *run, struct dl2_error *error)
{
    struct dl2_score_share *share = run->options->share;
    const size_t count = run->scoring->count;
    DL2_AUTO_FREE uint64_t *costs = NULL;
    uint64_t sum = 0;
    DL2_TRY(DL2_NEW(&costs, count, "images", error));
    DL2_TRY(DL2_NEW(&run->todo, count, "images", error));
    if (share && !run->reference.dataset)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: an image file has no parts; parts and ranks share datasets",
                             run->scoring->reference);
    for (size_t i = 0; i < count; i++) {
        struct dl2_sample sample;
        dl2_score_source_sample(&run->reference, i, &sample);
        costs[i] = sample.bytes + SCORE_IMAGE_COST;
    }
    if (share) {
        DL2_TRY(score_sum_facts(run, &sum, error));
        DL2_TRY(dl2_score_share_begin(share, costs, count, sum, error));
    }
    for (size_t i = 0; i < count; i++)
        if (!share || dl2_score_share_has(share, i))
            run->todo[run->todo_count++] = i;
    return DL2_OK;
}

/* Are two images frames of one clip? By their keys, CLIP/00007. */
static bool score_same_clip(const char *a, const char *b)
{
    const char *end = strrchr(a, '/'), *other = strrchr(b, '/');
    return end && other && end - a == other - b && !strncmp(a, b, (size_t)(end - a));
}

static int score_make_units(struct score_run *run, struct dl2_error *error)
{
    char *const *keys = run->scoring->keys;
    DL2_TRY(DL2_NEW(&run->units, run->todo_count + 1, "images", error));
    for (size_t n = 0; n < run->todo_count; n++)
        if (!n || !run->has_videos || !score_same_clip(keys[run->todo[n]], keys[run->todo[n - 1]]))
            run->units[run->unit_count++] = n;
    run->units[run->unit_count] = run->todo_count;
    return DL2_OK;
}

/* Scores what this process has to. */
static int score_own(struct score_run *run, const char *const *variants, struct dl2_error *error)
{
    struct dl2_scoring *scoring = run->scoring;
    DL2_TRY(score_open_reference(run, error));
    score_choose_metrics(run);
    run->has_videos = run->reference.frames;
    for (size_t i = 0; i < scoring->variant_count; i++) {
        DL2_TRY(score_open_variant(run, i, variants[i], error));
        run->has_videos = run->has_videos || run->variants[i].frames;
    }
    DL2_TRY(score_divide(run, error));
    DL2_TRY(score_make_units(run, error));
    struct dl2_parallel loop = {.jobs = run->options->jobs,
                                .count = run->unit_count,
                                .work = score_unit,
                                .emit = score_show_progress,
                                .context = run};
    dl2_parallel_resolve(&loop);
    DL2_TRY(score_create_workers(run, loop.jobs, error));
    if (run->options->progress)
        run->options->progress->total = run->todo_count;
    if (run->options->progress && scoring->volumes)
        run->options->progress->unit = "volumes";
    DL2_TRY(dl2_parallel_run(&loop, error));
    for (unsigned i = 0; i < run->worker_count; i++) {
        scoring->reference_cpu_seconds += run->workers[i].reference_cpu_seconds;
        for (size_t v = 0; v < scoring->variant_count; v++)
            scoring->variants[v].cpu_seconds += run->workers[i].cpu_seconds[v];
    }
    return DL2_OK;
}

static int score_all(struct score_run *run, const char *const *variants, size_t count,
                     struct dl2_error *error)
{
    struct dl2_scoring *scoring = run->scoring;
    struct dl2_score_share *share = run->options->share;
    DL2_TRY(DL2_NEW(&scoring->variants, count, "variants", error));
    DL2_TRY(DL2_NEW(&run->variants, count, "variants", error));
    scoring->variant_count = count;
    int status = score_own(run, variants, error);
    if (share)
        status = dl2_score_share_end(share, scoring, status, error);
    if (status < 0 || (share && !share->complete))
        return status;
    for (size_t i = 0; i < scoring->variant_count; i++)
        DL2_TRY(score_sum_up(scoring, &scoring->variants[i], error));
    return DL2_OK;
}

static void score_run_free(struct score_run *run)
{
    for (unsigned i = 0; i < run->worker_count; i++) {
        struct score_worker *worker = &run->workers[i];
        dl2_scorer_free(worker->scorer);
        if (run->uses_device)
            run->options->device->ops->lane_free(worker->lane);
        dl2_image_free(&worker->reference);
        dl2_image_free(&worker->variant);
        dl2_image_free(&worker->scratch);
        dl2_decoder_destroy(worker->decoder);
        dl2_image_free(&worker->resized);
        dl2_image_resizer_free(&worker->resizer);
        dl2_color_free(&worker->reference_facts.color);
        dl2_color_free(&worker->variant_facts.color);
        dl2_bytes_free(&worker->reference_facts.deep.bytes);
        dl2_bytes_free(&worker->variant_facts.deep.bytes);
        dl2_bytes_free(&worker->shown_deep.bytes);
        dl2_bytes_free(&worker->bytes);
        dl2_score_video_free(&worker->reference_video);
        dl2_volume_reference_close(&worker->volume);
        for (size_t v = 0; worker->videos && v < run->scoring->variant_count; v++)
            dl2_score_video_free(&worker->videos[v]);
        free(worker->videos);
        free(worker->cpu_seconds);
    }
    free(run->workers);
    free(run->todo);
    free(run->units);
    if (run->options->share)
        dl2_score_share_free(run->options->share);
    for (size_t i = 0; run->variants && i < run->scoring->variant_count; i++)
        dl2_score_source_close(&run->variants[i]);
    free(run->variants);
    dl2_score_source_close(&run->reference);
}

int dl2_scoring_run(const char *reference, const char *const *variants, size_t variant_count,
                    const struct dl2_scoring_options *options, struct dl2_scoring *scoring,
                    struct dl2_error *error)
{
    *scoring = (struct dl2_scoring){.reference = reference, .device = "cpu"};
    struct score_run run = {.options = options, .scoring = scoring};
    const int status = score_all(&run, variants, variant_count, error);
    score_run_free(&run);
    if (status < 0)
        dl2_scoring_free(scoring);
    return status;
}

void dl2_scoring_free(struct dl2_scoring *scoring)
{
    for (size_t i = 0; i < scoring->variant_count; i++) {
        struct dl2_scored_variant *variant = &scoring->variants[i];
        for (size_t p = 0; variant->pairs && p < scoring->count; p++)
            free(variant->pairs[p].error);
        free(variant->pairs);
        dl2_free_list(variant->extra);
        free(variant->name);
        free(variant->codec);
        free(variant->library);
        free(variant->error);
    }
    dl2_free_list(scoring->keys);
    free(scoring->files);
    free(scoring->variants);
    *scoring = (struct dl2_scoring){.count = 0};
}

bool dl2_score_is_worse(const struct dl2_metric *metric, const struct dl2_score *score,
                        double bound)
{
    return metric->lower_is_better ? score->value > bound : score->value < bound;
}

bool dl2_scoring_has_faults(const struct dl2_scoring *scoring)
{
    for (size_t i = 0; i < scoring->variant_count; i++) {
        const struct dl2_scored_variant *variant = &scoring->variants[i];
        if (variant->error || variant->extra_count ||
            variant->states[DL2_PAIR_SCORED] != scoring->count)
            return true;
    }
    return false;
}
