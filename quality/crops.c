/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/crops.h"

#include "codec/decoder.h"
#include "codec/video.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "dataset/subset_options.h"
#include "pixels/resize_image.h"
#include "quality/image_dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_METRICS = 16 };

struct crop_variant {
    const char *path;
    char *name;
    json_t *scores; /* the file */
    json_t *rows;   /* of its images, by their keys; null where several have one */
    struct dl2_dataset *dataset;
    bool resized; /* shown enlarged to the reference's size; its scores do not compare */
};

struct crop_run {
    const struct dl2_scoring_options *options;
    const char *scores, *folder;
    struct dl2_dataset *reference;
    struct crop_variant *variants;
    size_t count, scored, shown;      /* the scored come first, then the resized */
    const char *metrics[MAX_METRICS]; /* that all of those have; SSIM first, if it is among them */
    bool lower_is_better[MAX_METRICS];
    size_t metric_count;
    json_t *picks; /* keys of images, and why each was chosen: [{metric, kind}] */
    struct dl2_bytes bytes, png;
    struct dl2_resizer resizer;                /* of videos */
    struct dl2_image_resizer enlarger;         /* of resized variants */
    struct dl2_decoder *decoder;               /* kept with external codecs */
    struct dl2_image image, scratch, original; /* `original`: the reference's whole image */
    struct dl2_color_space color, original_color, fitted; /* of these two, and of a crop */
};

/* ---- Scores */

static const json_t *crop_entry(const struct crop_variant *variant)
{
    return json_array_get(json_object_get(variant->scores, "variants"), 0);
}

static int crop_read_scores(const struct crop_run *run, struct crop_variant *variant,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE char *file = NULL;
    json_t *row;
    size_t i;
    if (!(variant->name = dl2_dataset_variant_name(variant->path)))
        return dl2_error_memory(error, "%s", variant->path);
    DL2_TRY(dl2_format(&file, error, "%s/%s.json", run->scores, variant->name));
    DL2_TRY(dl2_json_load(file, "dl2-quality/1", &variant->scores, error));
    variant->rows = json_object();
    json_array_foreach(json_object_get(crop_entry(variant), "per_image"), i, row)
    {
        const char *key = dl2_json_get_text(row, "key", "");
        const bool twin = json_object_get(variant->rows, key);
        if (json_object_set_new(variant->rows, key, twin ? json_null() : json_incref(row)) != 0)
            return dl2_error_memory(error, "scores");
    }
    return DL2_OK;
}

/* The variant's score of an image; NAN: it has none. */
static double crop_score(const struct crop_run *run, size_t variant, size_t metric, const char *key)
{
    return dl2_json_get_real(json_object_get(run->variants[variant].rows, key),
                             run->metrics[metric], NAN);
}

/* The same, of which more is better. */
static double crop_merit(const struct crop_run *run, size_t variant, size_t metric, const char *key)
{
    const double score = crop_score(run, variant, metric, key);
    return run->lower_is_better[metric] ? -score : score;
}

/* ---- The choice of images */

/* Does any image of each variant have a score of this metric? */
static bool all_have(const struct crop_run *run, const char *metric)
{
    bool all = true;
    for (size_t v = 0; v < run->scored && all; v++) {
        const char *key;
        json_t *row;
        all = false;
        json_object_foreach(run->variants[v].rows, key, row)
        {
            all |= json_is_number(json_object_get(row, metric));
        }
    }
    return all;
}

static void add_metric(struct crop_run *run, const char *metric)
{
    for (size_t m = 0; m < run->metric_count; m++)
        if (strcmp(run->metrics[m], metric) == 0)
            return;
    if (run->metric_count == MAX_METRICS || !all_have(run, metric))
        return;
    run->lower_is_better[run->metric_count] =
        dl2_json_lists(json_object_get(run->variants[0].scores, "lower_is_better"), metric);
    run->metrics[run->metric_count++] = metric;
}

/* An image that has a score by a metric in all variants. */
struct candidate {
    const char *key;
    double merit; /* the sum over the variants */
};

static int compare_merits(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->merit != y->merit ? (x->merit > y->merit) - (x->merit < y->merit)
                                : strcmp(x->key, y->key);
}

/* Lists them from the worst to the best. */
static size_t rank(const struct crop_run *run, size_t metric, struct candidate *images)
{
    size_t count = 0;
    const char *key;
    json_t *row;
    json_object_foreach(run->variants[0].rows, key, row)
    {
        double merit = 0;
        for (size_t v = 0; v < run->scored; v++)
            merit += crop_merit(run, v, metric, key);
        if (isfinite(merit))
            images[count++] = (struct candidate){key, merit};
    }
    qsort(images, count, sizeof *images, compare_merits);
    return count;
}

/* Picks the candidate that the reference has and that is the nearest to `wanted`, in steps of
 * `step`, if there is one. Keys that are not UTF-8 are not as they were in JSON. */
static int add_pick(struct crop_run *run, size_t metric, const char *kind,
                    const struct candidate *images, size_t count, size_t wanted, int step,
                    struct dl2_error *error)
{
    size_t index, frames, i = wanted;
    while (i < count && !dl2_dataset_find(run->reference, images[i].key, &index, &frames))
        i += (size_t)step; /* below 0 it wraps */
    if (i >= count)
        return DL2_OK;
    if (!json_object_get(run->picks, images[i].key))
        json_object_set_new(run->picks, images[i].key, json_array());
    json_t *why = json_pack("{s:s, s:s}", "metric", run->metrics[metric], "kind", kind);
    return json_array_append_new(json_object_get(run->picks, images[i].key), why) == 0
               ? DL2_OK
               : dl2_error_memory(error, "the choice of crops");
}

/* By each metric that all variants have, the worst image, the median and the best. */
static int crop_choose(struct crop_run *run, struct dl2_error *error)
{
    DL2_AUTO_FREE struct candidate *images = NULL;
    const char *name;
    json_t *metric;
    run->picks = json_object();
    if (!run->scored)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&images, json_object_size(run->variants[0].rows), "images", error));
    add_metric(run, "ssim");
    json_object_foreach(json_object_get(crop_entry(run->variants), "metrics"), name, metric)
    {
        add_metric(run, name);
    }
    for (size_t m = 0; m < run->metric_count; m++) {
        const size_t count = rank(run, m, images);
        DL2_TRY(add_pick(run, m, "worst", images, count, 0, 1, error));
        DL2_TRY(add_pick(run, m, "median", images, count, count / 2, 1, error));
        DL2_TRY(add_pick(run, m, "best", images, count, count - 1, -1, error));
    }
    return DL2_OK;
}

/* ---- Pixels */

static int decode_frame(struct crop_run *run, const uint8_t *data, size_t size, size_t number,
                        struct dl2_image *image, struct dl2_color_space *color,
                        struct dl2_error *error)
{
    struct dl2_video *video;
    dl2_color_free(color);
    *color = (struct dl2_color_space){.form = DL2_COLOR_SPACE_SRGB};
    int status = dl2_video_open(data, size, run->options->max_pixels, &video, error);
    if (status == DL2_OK)
        status = dl2_video_image(video, number, NULL, &run->resizer, image, error);
    dl2_video_close(video);
    return status;
}

static int decode_image(struct crop_run *run, const uint8_t *data, size_t size,
                        struct dl2_image *image, struct dl2_color_space *color,
                        struct dl2_error *error)
{
    struct dl2_image_info info;
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = run->options->max_pixels;
    options.external = run->options->external;
    options.drop_bands = run->options->drop_bands;
    options.channels = 3;
    options.info = &info;
    memcpy(options.background, run->options->background, sizeof options.background);
    options.keep = &run->decoder;
    DL2_TRY(dl2_image_decode(data, size, &options, image, &run->scratch, error));
    return dl2_image_read_color(data, size, &info, color, error);
}

/* The image of a key; a frame of a variant of videos has the key CLIP/00007. */
static int crop_decode(struct crop_run *run, const struct dl2_dataset *dataset, const char *key,
                       struct dl2_image *image, struct dl2_color_space *color,
                       struct dl2_error *error)
{
    const bool is_video = dl2_dataset_kind(dataset) == DL2_SAMPLE_VIDEO;
    const char *slash = is_video ? strrchr(key, '/') : NULL;
    DL2_AUTO_FREE char *sample_key = strndup(key, slash ? (size_t)(slash - key) : strlen(key));
    struct dl2_sample sample;
    const uint8_t *data;
    size_t size, index, frames;
    if (!sample_key)
        return dl2_error_memory(error, "a clip");
    if ((is_video && !slash) || !dl2_dataset_find(dataset, sample_key, &index, &frames))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it has a score, and is not in the dataset; score it again", key);
    DL2_TRY(dl2_dataset_read(dataset, index, &run->bytes, &data, &size, error));
    const int status =
        is_video ? decode_frame(run, data, size, strtoul(slash + 1, NULL, 10), image, color, error)
                 : decode_image(run, data, size, image, color, error);
    dl2_dataset_sample(dataset, index, &sample);
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
                     const struct dl2_image *image, const struct dl2_color_space *color,
                     const char *name, struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_find("png");
    DL2_CLEANUP(dl2_image_free) struct dl2_image crop = DL2_IMAGE_INIT;
    DL2_AUTO_FREE char *path = NULL;
    if (!codec || !codec->encode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "crops need a build with PNG (libpng)");
    DL2_TRY(dl2_image_reshape(&crop, window->width, window->height, 3, error));
    for (uint32_t y = 0; y < window->height; y++)
        memcpy(crop.data + y * crop.stride,
               image->data + (window->y + y) * image->stride + (size_t)3 * window->x, crop.stride);
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    /* What does not fit is left out. */
    DL2_TRY(dl2_color_fit(color, codec, crop.channels, &run->fitted, error));
    options.color = &run->fitted;
    DL2_TRY(dl2_image_encode(codec, &crop, &options, &run->png, error));
    DL2_TRY(dl2_format(&path, error, "%s/%s", run->folder, name));
    return dl2_file_write(path, run->png.data, run->png.size, error);
}

/* ---- One image, from the reference and all variants */

static int crop_decode_variant(struct crop_run *run, size_t variant, const char *key,
                               struct dl2_error *error)
{
    DL2_TRY(crop_decode(run, run->variants[variant].dataset, key, &run->image, &run->color, error));
    if (run->image.width == run->original.width && run->image.height == run->original.height)
        return DL2_OK;
    if (run->variants[variant].resized) {
        DL2_TRY(dl2_resize_image(&run->enlarger, &run->image, DL2_BILINEAR, run->original.width,
                                 run->original.height, &run->scratch, error));
        const struct dl2_image small = run->image;
        run->image = run->scratch;
        run->scratch = small;
        return DL2_OK;
    }
    return dl2_error_set(
        error, DL2_ERR_FORMAT, "%s in %s: is %ux%u pixels, its reference %ux%u; score it again",
        key, run->variants[variant].path, (unsigned)run->image.width, (unsigned)run->image.height,
        (unsigned)run->original.width, (unsigned)run->original.height);
}

/* The variant with the lowest score by the first metric. */
static size_t crop_worst_variant(const struct crop_run *run, const char *key)
{
    size_t worst = 0;
    for (size_t v = 1; v < run->scored; v++)
        if (crop_merit(run, v, 0, key) < crop_merit(run, worst, 0, key))
            worst = v;
    return worst;
}

static json_t *crop_scores(const struct crop_run *run, size_t variant, const char *key)
{
    json_t *scores = json_object();
    for (size_t m = 0; m < run->metric_count; m++)
        json_object_set_new(scores, run->metrics[m],
                            dl2_json_real(crop_score(run, variant, m, key)));
    return scores;
}

static int crop_image(struct crop_run *run, const char *key, json_t *of, json_t *list,
                      struct dl2_error *error)
{
    const size_t pick = json_array_size(list);
    DL2_TRY(crop_decode(run, run->reference, key, &run->original, &run->original_color, error));
    DL2_TRY(crop_decode_variant(run, crop_worst_variant(run, key), key, error));
    const struct crop_window window = crop_find_window(&run->original, &run->image);
    char name[512];
    snprintf(name, sizeof name, "image-%zu-original.png", pick);
    DL2_TRY(crop_save(run, &window, &run->original, &run->original_color, name, error));
    json_auto_t *files = json_array();
    json_auto_t *entry = json_pack(
        "{s:O, s:o, s:I, s:I, s:I, s:I, s:s, s:O}", "of", of, "key", dl2_json_text(key), "x",
        (json_int_t)window.x, "y", (json_int_t)window.y, "width", (json_int_t)window.width,
        "height", (json_int_t)window.height, "original", name, "variants", files);
    for (size_t v = 0; v < run->shown; v++) {
        snprintf(name, sizeof name, "image-%zu-variant-%zu.png", pick, v);
        DL2_TRY(crop_decode_variant(run, v, key, error));
        DL2_TRY(crop_save(run, &window, &run->image, &run->color, name, error));
        json_array_append_new(
            files,
            json_pack("{s:o, s:s, s:o}", "variant", dl2_json_text(run->variants[v].name), "file",
                      name, "scores", v < run->scored ? crop_scores(run, v, key) : json_object()));
    }
    json_array_append(list, entry);
    return DL2_OK;
}

static void crop_move(struct crop_run *run, size_t from, size_t to)
{
    const struct crop_variant moved = run->variants[from];
    memmove(&run->variants[to + 1], &run->variants[to], (from - to) * sizeof moved);
    run->variants[to] = moved;
}

/* Reads all scores. The scored variants come first, then the resized. One that could not be opened
 * has no images, and `left_out` gets its name. */
static int crop_read_all(struct crop_run *run, json_t *left_out, struct dl2_error *error)
{
    for (size_t v = 0; v < run->count; v++) {
        struct crop_variant *variant = &run->variants[v];
        DL2_TRY(crop_read_scores(run, variant, error));
        variant->resized = json_object_get(crop_entry(variant), "resize");
        if (!json_object_size(variant->rows)) {
            json_array_append_new(left_out, dl2_json_text(variant->name));
            continue;
        }
        crop_move(run, v, variant->resized ? run->shown : run->scored++);
        run->shown++;
    }
    return DL2_OK;
}

static int crop_all(struct crop_run *run, const char *reference, struct dl2_error *error)
{
    const struct dl2_member_choice members =
        dl2_members_of(&run->options->members, reference, run->options->any_has_members);
    struct dl2_dataset_options options = dl2_image_dataset_options(run->options->samples, &members);
    const char *key;
    json_t *of;
    if (dl2_is_file(reference) && !dl2_dataset_is_known(reference))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: crops are of datasets, not of files",
                             reference);
    json_auto_t *left_out = json_array(), *crops = json_array(), *metrics = json_array();
    DL2_TRY(crop_read_all(run, left_out, error));
    DL2_TRY(dl2_make_folders(run->folder, error));
    DL2_TRY(dl2_dataset_open(reference, &options, &run->reference, error));
    options.takes_videos = true;
    for (size_t v = 0; v < run->shown; v++)
        DL2_TRY(
            dl2_dataset_open(run->variants[v].path, &options, &run->variants[v].dataset, error));
    for (size_t v = 0; !run->scored && v < run->shown; v++) /* no image can be chosen */
        json_array_append_new(left_out, dl2_json_text(run->variants[v].name));
    DL2_TRY(crop_choose(run, error));
    for (size_t m = 0; m < run->metric_count; m++)
        json_array_append_new(metrics, json_string(run->metrics[m]));
    json_object_foreach(run->picks, key, of)
    {
        DL2_TRY(crop_image(run, key, of, crops, error));
    }
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/crops.json", run->folder));
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
        json_decref(run->variants[v].rows);
        dl2_dataset_close(run->variants[v].dataset);
    }
    free(run->variants);
    json_decref(run->picks);
    dl2_dataset_close(run->reference);
    dl2_bytes_free(&run->bytes);
    dl2_bytes_free(&run->png);
    dl2_resizer_free(&run->resizer);
    dl2_image_resizer_free(&run->enlarger);
    dl2_image_free(&run->image);
    dl2_image_free(&run->scratch);
    dl2_decoder_destroy(run->decoder);
    dl2_image_free(&run->original);
    dl2_color_free(&run->color);
    dl2_color_free(&run->original_color);
    dl2_color_free(&run->fitted);
}

int dl2_crops_write(const char *reference, const char *const *variants, size_t count,
                    const char *scores, const char *folder,
                    const struct dl2_scoring_options *options, struct dl2_error *error)
{
    DL2_CLEANUP(crop_run_free)
    struct crop_run run = {.options = options, .scores = scores, .folder = folder, .count = count};
    DL2_TRY(DL2_NEW(&run.variants, count, "variants", error));
    for (size_t v = 0; v < count; v++)
        run.variants[v].path = variants[v];
    return crop_all(&run, reference, error);
}
