/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/crops.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "dataset/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An image's scores, added up over the variants. */
struct crop_candidate {
    const char *key; /* of the first variant's JSON */
    size_t variants; /* that have a score */
    double sum;
};

struct crop_variant {
    const char *path;
    char *name;
    json_t *scores;    /* the file */
    json_t *per_image; /* borrowed from it */
    struct dl2_dataset *dataset;
};

struct crop_run {
    const struct dl2_crops_options *options;
    struct dl2_dataset *reference;
    struct crop_variant *variants;
    size_t count, scored; /* the scored come first */
    char metric[64];
    bool lower_is_better;
    struct crop_candidate *candidates;
    size_t candidate_count;
    struct dl2_bytes bytes, png;
    struct dl2_image image, scratch, original;         /* `original`: the reference's whole image */
    struct dl2_colour colour, original_colour, fitted; /* of these two, and of a crop */
};

/* ---- The scores */

static int crop_read_scores(const struct crop_run *run, struct crop_variant *variant,
                            struct dl2_error *error)
{
    char *file = NULL;
    if (!(variant->name = dl2_dataset_variant_name(variant->path)) ||
        asprintf(&file, "%s/%s.json", run->options->scores, variant->name) < 0)
        return dl2_error_memory(error, "%s", variant->path);
    const int status = dl2_json_load(file, "dl2-quality/1", &variant->scores, error);
    const json_t *entries = json_object_get(variant->scores, "variants");
    variant->per_image = json_object_get(json_array_get(entries, 0), "per_image");
    free(file);
    return status;
}

/* Does any image of the variant have a score of this metric? */
static bool crop_has_metric(const struct crop_variant *variant, const char *metric)
{
    size_t i;
    json_t *row;
    json_array_foreach(variant->per_image, i, row)
    {
        if (json_is_number(json_object_get(row, metric)))
            return true;
    }
    return false;
}

static bool crop_all_have(const struct crop_run *run, const char *metric)
{
    for (size_t v = 0; v < run->scored; v++)
        if (!crop_has_metric(&run->variants[v], metric))
            return false;
    return true;
}

static void crop_choose_metric(struct crop_run *run)
{
    const json_t *entry = json_array_get(json_object_get(run->variants[0].scores, "variants"), 0);
    const char *name;
    json_t *metric;
    json_object_foreach(json_object_get(entry, "metrics"), name, metric)
    {
        if (!run->metric[0] && strlen(name) < sizeof run->metric && crop_all_have(run, name))
            strcpy(run->metric, name);
    }
    if (crop_all_have(run, "ssim"))
        strcpy(run->metric, "ssim");
    run->lower_is_better =
        dl2_json_lists(json_object_get(run->variants[0].scores, "lower_is_better"), run->metric);
}

static int crop_compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct crop_candidate *)a)->key, ((const struct crop_candidate *)b)->key);
}

static int crop_compare_sums(const void *a, const void *b)
{
    const struct crop_candidate *x = a, *y = b;
    return x->sum != y->sum ? (x->sum > y->sum) - (x->sum < y->sum) : strcmp(x->key, y->key);
}

/* Adds up the scores of the images that the first variant has; leaves those that all have, from the
 * worst to the best. */
static int crop_list_candidates(struct crop_run *run, struct dl2_error *error)
{
    const json_t *rows = run->variants[0].per_image;
    size_t i, left = 0, all = 0;
    json_t *row;
    run->candidates = dl2_calloc(json_array_size(rows) + 1, sizeof *run->candidates);
    if (!run->candidates)
        return dl2_error_memory(error, "%zu images", json_array_size(rows));
    json_array_foreach(rows, i, row)
    {
        const char *key = dl2_json_get_text(row, "key", NULL);
        if (key)
            run->candidates[all++].key = key;
    }
    qsort(run->candidates, all, sizeof *run->candidates, crop_compare_keys);
    for (size_t v = 0; v < run->scored; v++)
        json_array_foreach(run->variants[v].per_image, i, row)
        {
            const struct crop_candidate wanted = {.key = dl2_json_get_text(row, "key", "")};
            struct crop_candidate *found =
                bsearch(&wanted, run->candidates, all, sizeof *run->candidates, crop_compare_keys);
            const double score = dl2_json_get_real(row, run->metric, NAN);
            if (found && isfinite(score)) {
                found->variants++;
                found->sum += run->lower_is_better ? -score : score;
            }
        }
    for (i = 0; i < all; i++)
        if (run->candidates[i].variants == run->scored)
            run->candidates[left++] = run->candidates[i];
    run->candidate_count = left;
    if (left)
        qsort(run->candidates, left, sizeof *run->candidates, crop_compare_sums);
    return DL2_OK;
}

/* The variant's score of an image. */
static double crop_score(const struct crop_run *run, size_t variant, const char *key)
{
    size_t i;
    json_t *row;
    json_array_foreach(run->variants[variant].per_image, i, row)
    {
        if (strcmp(dl2_json_get_text(row, "key", ""), key) == 0)
            return dl2_json_get_real(row, run->metric, NAN);
    }
    return NAN;
}

/* ---- Pixels */

/* The dataset's sample of this key; its number, or the dataset's count if there is none. */
static size_t crop_find(const struct dl2_dataset *dataset, const char *key,
                        struct dl2_sample *sample)
{
    const size_t count = dl2_dataset_count(dataset);
    for (size_t index = 0; index < count; index++) {
        dl2_dataset_sample(dataset, index, sample);
        if (strcmp(sample->key, key) == 0)
            return index;
    }
    return count;
}

static int crop_decode(struct crop_run *run, const struct dl2_dataset *dataset, const char *key,
                       struct dl2_image *image, struct dl2_colour *colour, struct dl2_error *error)
{
    struct dl2_sample sample;
    struct dl2_image_info info;
    const size_t index = crop_find(dataset, key, &sample);
    const uint8_t *data;
    size_t size;
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
    struct dl2_image crop = DL2_IMAGE_INIT;
    if (!codec || !codec->encode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "--crops needs a build with PNG (libpng)");
    int status = dl2_image_reshape(&crop, window->width, window->height, 3, error);
    for (uint32_t y = 0; status == DL2_OK && y < window->height; y++)
        memcpy(crop.data + y * crop.stride,
               image->data + (window->y + y) * image->stride + (size_t)3 * window->x, crop.stride);
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    if (status == DL2_OK) /* what does not fit is left out */
        status = dl2_colour_fit(colour, codec, crop.channels, &run->fitted, error);
    options.colour = &run->fitted;
    if (status >= 0)
        status = dl2_image_encode(codec, &crop, &options, &run->png, error);
    dl2_image_free(&crop);
    char *path = dl2_path_join(run->options->folder, name);
    if (status == DL2_OK && !path)
        status = dl2_error_memory(error, "%s", name);
    if (status == DL2_OK)
        status = dl2_file_write(path, run->png.data, run->png.size, error);
    free(path);
    return status;
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

static int crop_image(struct crop_run *run, const char *kind, const char *key, json_t *list,
                      struct dl2_error *error)
{
    size_t worst = 0;
    for (size_t v = 1; v < run->scored; v++) {
        const double one = crop_score(run, v, key), other = crop_score(run, worst, key);
        if (run->lower_is_better ? one > other : one < other)
            worst = v;
    }
    DL2_TRY(crop_decode(run, run->reference, key, &run->original, &run->original_colour, error));
    DL2_TRY(crop_decode_variant(run, worst, key, error));
    const struct crop_window window = crop_find_window(&run->original, &run->image);
    char name[512];
    snprintf(name, sizeof name, "%s-original.png", kind);
    DL2_TRY(crop_save(run, &window, &run->original, &run->original_colour, name, error));
    json_auto_t *files = json_array();
    json_auto_t *entry = json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:s, s:O}", "kind", kind, "key", dl2_json_text(key), "x",
        (json_int_t)window.x, "y", (json_int_t)window.y, "width", (json_int_t)window.width,
        "height", (json_int_t)window.height, "original", name, "variants", files);
    for (size_t v = 0; v < run->scored; v++) {
        snprintf(name, sizeof name, "%s-variant-%zu.png", kind, v);
        DL2_TRY(crop_decode_variant(run, v, key, error));
        DL2_TRY(crop_save(run, &window, &run->image, &run->colour, name, error));
        json_array_append_new(files, json_pack("{s:o, s:s, s:o}", "variant",
                                               dl2_json_text(run->variants[v].name), "file", name,
                                               "score", dl2_json_real(crop_score(run, v, key))));
    }
    json_array_append(list, entry);
    return DL2_OK;
}

/* The key of the first candidate from `first` on that the reference has; NULL: none. Keys that are
 * not UTF-8 are not as they were in JSON. */
static const char *crop_choose(const struct crop_run *run, size_t first)
{
    struct dl2_sample sample;
    for (size_t i = first; i < run->candidate_count; i++)
        if (crop_find(run->reference, run->candidates[i].key, &sample) <
            dl2_dataset_count(run->reference))
            return run->candidates[i].key;
    return NULL;
}

static int crop_all(struct crop_run *run, const char *reference, struct dl2_error *error)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.keep = dl2_codec_is_image_file;
    options.reads = dl2_codec_reads;
    if (dl2_is_file(reference) && dl2_codec_is_image_file(reference))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: --crops is for datasets, not for files",
                             reference);
    json_auto_t *left_out = json_array();
    size_t scored = 0; /* one that could not be opened has no images */
    for (size_t v = 0; v < run->count; v++) {
        DL2_TRY(crop_read_scores(run, &run->variants[v], error));
        const json_t *entry =
            json_array_get(json_object_get(run->variants[v].scores, "variants"), 0);
        if (json_object_get(entry, "resize")) {
            dl2_progress_message(run->options->progress,
                                 "%s: left out of the crops, because its images were resized",
                                 run->variants[v].name);
            json_array_append_new(left_out, dl2_json_text(run->variants[v].name));
        } else if (json_array_size(run->variants[v].per_image)) {
            const struct crop_variant swapped = run->variants[scored];
            run->variants[scored++] = run->variants[v];
            if (scored - 1 != v)
                run->variants[v] = swapped;
        }
    }
    run->scored = scored;
    if (scored) {
        crop_choose_metric(run);
        DL2_TRY(crop_list_candidates(run, error));
    }
    DL2_TRY(dl2_make_folders(run->options->folder, error));
    DL2_TRY(dl2_dataset_open(reference, &options, &run->reference, error));
    for (size_t v = 0; v < run->scored; v++)
        DL2_TRY(
            dl2_dataset_open(run->variants[v].path, &options, &run->variants[v].dataset, error));
    json_auto_t *crops = json_array();
    const char *typical = crop_choose(run, run->candidate_count / 2), *worst = crop_choose(run, 0);
    if (typical)
        DL2_TRY(crop_image(run, "typical", typical, crops, error));
    if (worst)
        DL2_TRY(crop_image(run, "worst", worst, crops, error));
    char *path = dl2_path_join(run->options->folder, "crops.json");
    if (!path)
        return dl2_error_memory(error, "crops.json");
    const int status =
        dl2_json_save_new(path,
                          json_pack("{s:s, s:o, s:s, s:O, s:O}", "schema", "dl2-crops/1",
                                    "reference", dl2_json_text(reference), "metric", run->metric,
                                    "left_out", left_out, "crops", crops),
                          error);
    free(path);
    return status;
}

int dl2_crops_write(const char *reference, const char *const *variants, size_t count,
                    const struct dl2_crops_options *options, struct dl2_error *error)
{
    struct crop_run run = {.options = options, .count = count};
    run.variants = dl2_calloc(count, sizeof *run.variants);
    int status = run.variants ? DL2_OK : dl2_error_memory(error, "%zu variants", count);
    for (size_t v = 0; status == DL2_OK && v < count; v++)
        run.variants[v].path = variants[v];
    if (status == DL2_OK)
        status = crop_all(&run, reference, error);
    for (size_t v = 0; run.variants && v < count; v++) {
        free(run.variants[v].name);
        json_decref(run.variants[v].scores);
        dl2_dataset_close(run.variants[v].dataset);
    }
    free(run.variants);
    free(run.candidates);
    dl2_dataset_close(run.reference);
    dl2_bytes_free(&run.bytes);
    dl2_bytes_free(&run.png);
    dl2_image_free(&run.image);
    dl2_image_free(&run.scratch);
    dl2_image_free(&run.original);
    dl2_colour_free(&run.colour);
    dl2_colour_free(&run.original_colour);
    dl2_colour_free(&run.fitted);
    return status;
}
