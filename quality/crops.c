/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/crops.h"

#include "codec/video.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "quality/crop_choice.h"
#include "quality/image_dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct crop_variant {
    const char *path;
    char *name;
    json_t *scores; /* the file */
    struct dl2_dataset *dataset;
};

struct crop_run {
    const struct dl2_crops_options *options;
    struct dl2_dataset *reference;
    struct crop_variant *variants;
    size_t count, scored; /* the scored come first */
    struct dl2_crop_choice choice;
    struct dl2_bytes bytes, png;
    struct dl2_resizer resizer;                        /* of videos */
    struct dl2_image image, scratch, original;         /* `original`: the reference's whole image */
    struct dl2_colour colour, original_colour, fitted; /* of these two, and of a crop */
};

static int crop_read_scores(const struct crop_run *run, struct crop_variant *variant,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE char *file = NULL;
    if (!(variant->name = dl2_dataset_variant_name(variant->path)))
        return dl2_error_memory(error, "%s", variant->path);
    DL2_TRY(dl2_format(&file, error, "%s/%s.json", run->options->scores, variant->name));
    return dl2_json_load(file, "dl2-quality/1", &variant->scores, error);
}

/* The variant's score of an image. */
static double crop_score(const struct crop_run *run, size_t variant, size_t metric, const char *key)
{
    return dl2_json_get_real(dl2_crop_row(run->variants[variant].scores, key),
                             run->choice.metrics[metric], NAN);
}

/* ---- Pixels */

/* A frame of a variant of videos, by its key CLIP/00007. */
static int crop_decode_frame(struct crop_run *run, const struct dl2_dataset *dataset,
                             const char *key, struct dl2_image *image, struct dl2_colour *colour,
                             struct dl2_error *error)
{
    const char *slash = strrchr(key, '/');
    DL2_AUTO_FREE char *clip = slash ? strndup(key, (size_t)(slash - key)) : strdup(key);
    struct dl2_sample sample;
    struct dl2_video *video;
    const uint8_t *data;
    size_t size;
    if (!clip)
        return dl2_error_memory(error, "a clip");
    const size_t index = dl2_crop_find(dataset, clip, &sample);
    if (!slash || index == dl2_dataset_count(dataset))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it has a score, and is not in the dataset; score it again", key);
    dl2_colour_free(colour);
    *colour = (struct dl2_colour){.form = DL2_COLOUR_SRGB};
    DL2_TRY(dl2_dataset_read(dataset, index, &run->bytes, &data, &size, error));
    int status = dl2_video_open(data, size, run->options->max_pixels, &video, error);
    if (status == DL2_OK)
        status = dl2_video_image(video, strtoul(slash + 1, NULL, 10), NULL, &run->resizer, image,
                                 error);
    dl2_video_close(video);
    if (status < 0)
        dl2_error_prefix(error, "%s", sample.path);
    return status;
}

static int crop_decode(struct crop_run *run, const struct dl2_dataset *dataset, const char *key,
                       struct dl2_image *image, struct dl2_colour *colour, struct dl2_error *error)
{
    struct dl2_sample sample;
    struct dl2_image_info info;
    const size_t index = dl2_crop_find(dataset, key, &sample);
    const uint8_t *data;
    size_t size;
    if (dl2_dataset_kind(dataset) == DL2_SAMPLE_VIDEO)
        return crop_decode_frame(run, dataset, key, image, colour, error);
    if (index == dl2_dataset_count(dataset))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it has a score, and is not in the dataset; score it again", key);
    DL2_TRY(dl2_dataset_read(dataset, index, &run->bytes, &data, &size, error));
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = run->options->max_pixels;
    options.external = run->options->external;
    options.channels = 3;
    options.info = &info;
    memcpy(options.background, run->options->background, sizeof options.background);
    int status = dl2_image_decode(data, size, &options, image, &run->scratch, error);
    if (status == DL2_OK)
        status = dl2_image_read_colour(data, size, &info, colour, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", sample.path);
    return status;
}

struct crop_window {
    uint32_t x, y, width, height;
};

static uint64_t crop_error_in(const struct dl2_image *a, const struct dl2_image *b,
                              const struct crop_window *window)
{
    uint64_t sum = 0;
    for (uint32_t y = window->y; y < window->y + window->height; y++) {
        const uint8_t *p = a->data + y * a->stride + (size_t)3 * window->x;
        const uint8_t *q = b->data + y * b->stride + (size_t)3 * window->x;
        for (size_t i = 0; i < (size_t)3 * window->width; i++)
            sum += (uint64_t)((p[i] - q[i]) * (p[i] - q[i]));
    }
    return sum;
}

/* The window in which two images of one size differ most; it moves in steps of a quarter. */
static struct crop_window crop_find_window(const struct dl2_image *a, const struct dl2_image *b)
{
    const uint32_t step = DL2_CROP_SIDE / 4;
    struct crop_window best = {0, 0, a->width < DL2_CROP_SIDE ? a->width : DL2_CROP_SIDE,
                               a->height < DL2_CROP_SIDE ? a->height : DL2_CROP_SIDE};
    struct crop_window window = best;
    uint64_t most = 0;
    for (window.y = 0; window.y + window.height <= a->height; window.y += step)
        for (window.x = 0; window.x + window.width <= a->width; window.x += step) {
            const uint64_t own = crop_error_in(a, b, &window);
            if (own > most) {
                most = own;
                best = window;
            }
        }
    return best;
}

/* Writes the window of an image as FOLDER/NAME. */
static int crop_save(struct crop_run *run, const struct crop_window *window,
                     const struct dl2_image *image, const struct dl2_colour *colour,
                     const char *name, struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_find("png");
    DL2_CLEANUP(dl2_image_free) struct dl2_image crop = DL2_IMAGE_INIT;
    DL2_AUTO_FREE char *path = NULL;
    if (!codec || !codec->encode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "--crops needs a build with PNG (libpng)");
    DL2_TRY(dl2_image_reshape(&crop, window->width, window->height, 3, error));
    for (uint32_t y = 0; y < window->height; y++)
        memcpy(crop.data + y * crop.stride,
               image->data + (window->y + y) * image->stride + (size_t)3 * window->x, crop.stride);
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    /* What does not fit is left out. */
    DL2_TRY(dl2_colour_fit(colour, codec, crop.channels, &run->fitted, error));
    options.colour = &run->fitted;
    DL2_TRY(dl2_image_encode(codec, &crop, &options, &run->png, error));
    DL2_TRY(dl2_format(&path, error, "%s/%s", run->options->folder, name));
    return dl2_file_write(path, run->png.data, run->png.size, error);
}

/* ---- One image, from the reference and all variants */

static int crop_decode_variant(struct crop_run *run, size_t variant, const char *key,
                               struct dl2_error *error)
{
    DL2_TRY(
        crop_decode(run, run->variants[variant].dataset, key, &run->image, &run->colour, error));
    if (run->image.width == run->original.width && run->image.height == run->original.height)
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_FORMAT, "%s in %s: is %ux%u pixels, its reference %ux%u; score it again",
        key, run->variants[variant].path, (unsigned)run->image.width, (unsigned)run->image.height,
        (unsigned)run->original.width, (unsigned)run->original.height);
}

/* The variant with the lowest score by the first metric. */
static size_t crop_worst_variant(const struct crop_run *run, const char *key)
{
    size_t worst = 0;
    for (size_t v = 1; v < run->scored; v++) {
        const double one = crop_score(run, v, 0, key), other = crop_score(run, worst, 0, key);
        if (run->choice.lower_is_better[0] ? one > other : one < other)
            worst = v;
    }
    return worst;
}

static json_t *crop_scores(const struct crop_run *run, size_t variant, const char *key)
{
    json_t *scores = json_object();
    for (size_t m = 0; m < run->choice.metric_count; m++)
        json_object_set_new(scores, run->choice.metrics[m],
                            dl2_json_real(crop_score(run, variant, m, key)));
    return scores;
}

static int crop_image(struct crop_run *run, size_t pick, json_t *list, struct dl2_error *error)
{
    const char *key = run->choice.picks[pick].key;
    DL2_TRY(crop_decode(run, run->reference, key, &run->original, &run->original_colour, error));
    DL2_TRY(crop_decode_variant(run, crop_worst_variant(run, key), key, error));
    const struct crop_window window = crop_find_window(&run->original, &run->image);
    char name[512];
    snprintf(name, sizeof name, "image-%zu-original.png", pick);
    DL2_TRY(crop_save(run, &window, &run->original, &run->original_colour, name, error));
    json_auto_t *files = json_array();
    json_auto_t *entry =
        json_pack("{s:O, s:o, s:I, s:I, s:I, s:I, s:s, s:O}", "of", run->choice.picks[pick].of,
                  "key", dl2_json_text(key), "x", (json_int_t)window.x, "y", (json_int_t)window.y,
                  "width", (json_int_t)window.width, "height", (json_int_t)window.height,
                  "original", name, "variants", files);
    for (size_t v = 0; v < run->scored; v++) {
        snprintf(name, sizeof name, "image-%zu-variant-%zu.png", pick, v);
        DL2_TRY(crop_decode_variant(run, v, key, error));
        DL2_TRY(crop_save(run, &window, &run->image, &run->colour, name, error));
        json_array_append_new(files, json_pack("{s:o, s:s, s:o}", "variant",
                                               dl2_json_text(run->variants[v].name), "file", name,
                                               "scores", crop_scores(run, v, key)));
    }
    json_array_append(list, entry);
    return DL2_OK;
}

/* Reads all scores. The variants that crops are made of come first; `left_out` gets the names of
 * those whose images were resized. One that could not be opened has no images. */
static int crop_read_all(struct crop_run *run, json_t *left_out, struct dl2_error *error)
{
    for (size_t v = 0; v < run->count; v++) {
        DL2_TRY(crop_read_scores(run, &run->variants[v], error));
        const json_t *entry =
            json_array_get(json_object_get(run->variants[v].scores, "variants"), 0);
        if (json_object_get(entry, "resize")) {
            dl2_progress_message(run->options->progress,
                                 "%s: left out of the crops, because its images were resized",
                                 run->variants[v].name);
            json_array_append_new(left_out, dl2_json_text(run->variants[v].name));
        } else if (json_array_size(dl2_crop_rows(run->variants[v].scores))) {
            const struct crop_variant swapped = run->variants[run->scored];
            run->variants[run->scored++] = run->variants[v];
            if (run->scored - 1 != v)
                run->variants[v] = swapped;
        }
    }
    return DL2_OK;
}

static int crop_choose(struct crop_run *run, struct dl2_error *error)
{
    DL2_AUTO_FREE json_t **scores = NULL;
    DL2_TRY(DL2_NEW(&scores, run->scored + 1, "variants", error));
    for (size_t v = 0; v < run->scored; v++)
        scores[v] = run->variants[v].scores;
    return run->scored ? dl2_crop_choose(scores, run->scored, run->reference, &run->choice, error)
                       : DL2_OK;
}

static int crop_all(struct crop_run *run, const char *reference, struct dl2_error *error)
{
    struct dl2_dataset_options options = dl2_image_dataset_options(run->options->samples, NULL);
    if (dl2_is_file(reference) && !dl2_dataset_is_known(reference))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: --crops is for datasets, not for files",
                             reference);
    json_auto_t *left_out = json_array(), *crops = json_array(), *metrics = json_array();
    DL2_TRY(crop_read_all(run, left_out, error));
    DL2_TRY(dl2_make_folders(run->options->folder, error));
    DL2_TRY(dl2_dataset_open(reference, &options, &run->reference, error));
    options.takes_videos = true;
    for (size_t v = 0; v < run->scored; v++)
        DL2_TRY(
            dl2_dataset_open(run->variants[v].path, &options, &run->variants[v].dataset, error));
    DL2_TRY(crop_choose(run, error));
    for (size_t m = 0; m < run->choice.metric_count; m++)
        json_array_append_new(metrics, json_string(run->choice.metrics[m]));
    for (size_t pick = 0; pick < run->choice.count; pick++)
        DL2_TRY(crop_image(run, pick, crops, error));
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/crops.json", run->options->folder));
    return dl2_json_save_new(path,
                             json_pack("{s:s, s:o, s:O, s:O, s:O}", "schema", "dl2-crops/2",
                                       "reference", dl2_json_text(reference), "metrics", metrics,
                                       "left_out", left_out, "crops", crops),
                             error);
}

static void crop_run_free(struct crop_run *run)
{
    for (size_t v = 0; run->variants && v < run->count; v++) {
        free(run->variants[v].name);
        json_decref(run->variants[v].scores);
        dl2_dataset_close(run->variants[v].dataset);
    }
    free(run->variants);
    dl2_crop_choice_free(&run->choice);
    dl2_dataset_close(run->reference);
    dl2_bytes_free(&run->bytes);
    dl2_bytes_free(&run->png);
    dl2_resizer_free(&run->resizer);
    dl2_image_free(&run->image);
    dl2_image_free(&run->scratch);
    dl2_image_free(&run->original);
    dl2_colour_free(&run->colour);
    dl2_colour_free(&run->original_colour);
    dl2_colour_free(&run->fitted);
}

int dl2_crops_write(const char *reference, const char *const *variants, size_t count,
                    const struct dl2_crops_options *options, struct dl2_error *error)
{
    DL2_CLEANUP(crop_run_free) struct crop_run run = {.options = options, .count = count};
    DL2_TRY(DL2_NEW(&run.variants, count, "variants", error));
    for (size_t v = 0; v < count; v++)
        run.variants[v].path = variants[v];
    return crop_all(&run, reference, error);
}
