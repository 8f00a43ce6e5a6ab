/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/tables/fit_tables.h"

#include "codec/decoder.h"
#include "codec/jpeg_tables.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/random.h"
#include "common/scope.h"
#include "common/thread.h"
#include "dataset/tell.h"
#include "pixels/crop.h"
#include "pixels/resize_image.h"
#include "quality/image_dataset.h"
#include "transcode/tables/fit_sensitivity.h"
#include "transcode/tables/fit_steps.h"

#include <stdlib.h>
#include <string.h>

enum { PLANES = DL2_FIT_PLANES, CROPS = 4 }; /* crops of an image */

struct fit_worker {
    struct dl2_bytes bytes;
    struct dl2_image image, scratch, resized;
    struct dl2_decoder *decoder; /* kept with external codecs */
    struct dl2_image_resizer resizer;
    struct dl2_coefficient_counts *counts;
};

/* What comes of one image, until its turn. */
struct fit_slot {
    struct dl2_fit_sensitivity sensitivity;
    char *bad; /* why it cannot be read; NULL: it can */
};

struct fit {
    const struct dl2_fit_options *options;
    const struct dl2_transcode_options *common;
    struct dl2_dataset *dataset;
    struct dl2_fit_input input;
    struct dl2_encode_options encode;
    unsigned across, down;                   /* pixels of a chroma sample */
    const struct dl2_resolution *resolution; /* that is being fitted to */
    uint32_t *samples;                       /* those that are taken */
    size_t count, done, bad;
    bool tells; /* of images that cannot be read: for the first family */
    struct fit_worker *workers;
    unsigned worker_count;
    struct fit_slot *slots;
    struct dl2_fit_sensitivity sensitivity;
};

/* A family of tables is for a subsampling of chroma, and for a resolution. */
static size_t subsampling_count(void)
{
    size_t count = 0;
    while (dl2_subsamplings[count])
        count++;
    return count;
}

static size_t family_count(const struct dl2_fit_options *options)
{
    return options->resolution_count * subsampling_count();
}

/* ---- One image */

static int add_crops(const struct fit *fit, size_t sample, const struct dl2_image *image,
                     struct dl2_fit_sensitivity *sensitivity, struct dl2_error *error)
{
    /* Training's, as dl2-train draws them unless told otherwise. */
    const struct dl2_crop_config config = {.height = fit->input.height,
                                           .width = fit->input.width,
                                           .area_min = fit->options->area[0],
                                           .area_max = fit->options->area[1],
                                           .aspect_min = 3.0 / 4,
                                           .aspect_max = 4.0 / 3};
    struct dl2_random random;
    dl2_random_init(&random, 0, DL2_RANDOM_TABLES, 1, sample);
    for (int i = 0; i < CROPS; i++) {
        struct dl2_crop crop;
        dl2_crop_for_training(&config, &random, image->width, image->height, &crop);
        DL2_TRY(dl2_fit_sensitivity_add(sensitivity, &fit->input, &crop, image->width,
                                        image->height, fit->across, fit->down, error));
    }
    return DL2_OK;
}

static int take_image(const struct fit *fit, struct fit_worker *worker, size_t sample,
                      struct dl2_fit_sensitivity *sensitivity, struct dl2_error *error)
{
    const struct dl2_image *image;
    const uint8_t *data;
    size_t size;
    DL2_TRY(dl2_dataset_read(fit->dataset, sample, &worker->bytes, &data, &size, error));
    struct dl2_decode_options decode = fit->common->decode;
    decode.keep = &worker->decoder;
    DL2_TRY(dl2_image_decode(data, size, &decode, &worker->image, &worker->scratch, error));
    DL2_TRY(dl2_resize_to(&worker->resizer, &worker->image, fit->resolution, &worker->resized,
                          &image, error));
    DL2_TRY(add_crops(fit, sample, image, sensitivity, error));
    return fit->options->codec->count_coefficients(image, &fit->encode, worker->counts, error);
}

static int work(void *context, unsigned worker, size_t slot, size_t item, struct dl2_error *error)
{
    struct fit *fit = context;
    struct dl2_error own = DL2_ERROR_INIT;
    fit->slots[slot] = (struct fit_slot){.bad = NULL};
    const int status = take_image(fit, &fit->workers[worker], fit->samples[item],
                                  &fit->slots[slot].sensitivity, &own);
    if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST)
        return dl2_error_copy(error, &own);
    if (status < 0) {
        fit->slots[slot].sensitivity = (struct dl2_fit_sensitivity){.crops = 0};
        fit->slots[slot].bad = strdup(own.message);
        return fit->slots[slot].bad ? DL2_OK : dl2_error_memory(error, "a message");
    }
    return DL2_OK;
}

/* In the order of the items: sums of real numbers do not depend on the workers. */
static int add_up(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    struct fit *fit = context;
    struct fit_slot *own = &fit->slots[slot];
    struct dl2_sample sample;
    (void)error;
    for (int p = 0; p < PLANES; p++)
        for (int k = 0; k < 64; k++)
            fit->sensitivity.sums[p][k] += own->sensitivity.sums[p][k];
    fit->sensitivity.crops += own->sensitivity.crops;
    if (own->bad && fit->tells) {
        dl2_dataset_sample(fit->dataset, fit->samples[item], &sample);
        dl2_progress_message(fit->common->progress, "%s: %s", sample.path, own->bad);
        fit->bad++;
    }
    free(own->bad);
    own->bad = NULL;
    dl2_progress_update(fit->common->progress, ++fit->done, NULL);
    return DL2_OK;
}

/* ---- A family */

/* All workers' counts become the first one's. */
static struct dl2_coefficient_counts *merge_counts(const struct fit *fit)
{
    uint64_t *const all = (uint64_t *)fit->workers[0].counts;
    for (unsigned w = 1; w < fit->worker_count; w++) {
        const uint64_t *const own = (const uint64_t *)fit->workers[w].counts;
        for (size_t i = 0; i < sizeof *fit->workers[w].counts / sizeof *own; i++)
            all[i] += own[i];
    }
    return fit->workers[0].counts;
}

/* Where the network's covariance, which is measured, comes to nothing or less, a coefficient has
 * this part of what luma's mean is worth. */
#define LEAST_WEIGHT 1e-6

static int fit_family(struct fit *fit, const struct dl2_parallel *loop,
                      struct dl2_jpeg_family *family, struct dl2_error *error)
{
    double weights[PLANES][64];
    fit->sensitivity = (struct dl2_fit_sensitivity){.crops = 0};
    for (unsigned w = 0; w < fit->worker_count; w++)
        memset(fit->workers[w].counts, 0, sizeof *fit->workers[w].counts);
    DL2_TRY(dl2_parallel_run(loop, error));
    if (!fit->sensitivity.crops)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no image could be read",
                             fit->common->source);
    const double least = LEAST_WEIGHT * fit->sensitivity.sums[0][0];
    for (int p = 0; p < PLANES; p++)
        for (int k = 0; k < 64; k++) {
            const double sum = fit->sensitivity.sums[p][k];
            weights[p][k] = (sum > least ? sum : least) / (double)fit->sensitivity.crops;
        }
    dl2_resolution_name(fit->resolution, family->resolution);
    strcpy(family->subsampling, fit->encode.subsampling);
    return dl2_fit_steps(fit->options->codec, merge_counts(fit), weights, family, error);
}

static int fit_families(struct fit *fit, struct dl2_jpeg_family *families, struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = fit->common->jobs,
                                .count = fit->count,
                                .work = work,
                                .emit = add_up,
                                .context = fit};
    dl2_parallel_resolve(&loop);
    DL2_TRY(DL2_NEW(&fit->workers, loop.jobs, "quantization tables", error));
    DL2_TRY(DL2_NEW(&fit->slots, loop.window, "quantization tables", error));
    fit->worker_count = loop.jobs;
    fit->common->progress->total = fit->count * family_count(fit->options);
    for (unsigned w = 0; w < loop.jobs; w++)
        DL2_TRY(DL2_NEW(&fit->workers[w].counts, 1, "quantization tables", error));
    for (size_t f = 0; f < family_count(fit->options); f++) {
        const char *const subsampling = dl2_subsamplings[f % subsampling_count()];
        fit->resolution = &fit->options->resolutions[f / subsampling_count()];
        fit->encode.subsampling = subsampling;
        fit->across = subsampling[1] == '4' ? 1 : 2;
        fit->down = subsampling[2] == '0' ? 2 : 1;
        fit->tells = !f;
        DL2_TRY(fit_family(fit, &loop, &families[f], error));
    }
    return DL2_OK;
}

/* ---- The whole */

static int open_input(struct fit *fit, struct dl2_error *error)
{
    const struct dl2_fit_options *options = fit->options;
    if (options->sensitivity)
        return dl2_fit_input_load(options->sensitivity, &fit->input, error);
    dl2_fit_input_white(options->height, options->width, &fit->input);
    return fit->input.about ? DL2_OK : dl2_error_memory(error, "a sensitivity");
}

/* Draws the images: those of training, or all where there is no such split. */
static int open_samples(struct fit *fit, struct dl2_error *error)
{
    struct dl2_dataset_options all =
        dl2_image_dataset_options(fit->common->samples, &fit->common->members);
    struct dl2_random random;
    all.split = "all";
    all.val_fraction = 0;
    DL2_TRY(dl2_dataset_open(fit->common->source, &all, &fit->dataset, error));
    dl2_dataset_tell(fit->dataset, fit->common->source, false, fit->common->progress);
    const size_t count = dl2_dataset_count(fit->dataset);
    size_t taken = 0;
    DL2_AUTO_FREE uint32_t *training = NULL;
    DL2_TRY(DL2_NEW(&training, count, "quantization tables", error));
    DL2_TRY(DL2_NEW(&fit->samples, count, "quantization tables", error));
    for (size_t i = 0; i < count; i++)
        if (strcmp(dl2_dataset_split_of(fit->dataset, i), "train") == 0)
            training[taken++] = (uint32_t)i;
    if (!taken && dl2_dataset_has_parts(fit->dataset))
        dl2_progress_message(fit->common->progress,
                             "%s has no images for training: tables are fitted to all images",
                             fit->common->source);
    const size_t drawn = taken ? taken : count;
    dl2_random_init(&random, 0, DL2_RANDOM_TABLES, 0, 0);
    dl2_random_permutation(&random, fit->samples, (uint32_t)drawn);
    for (size_t i = 0; i < taken; i++)
        fit->samples[i] = training[fit->samples[i]];
    fit->count = drawn < DL2_FIT_IMAGES ? drawn : DL2_FIT_IMAGES;
    return DL2_OK;
}

static void close_fit(struct fit *fit)
{
    for (unsigned w = 0; w < fit->worker_count; w++) {
        struct fit_worker *worker = &fit->workers[w];
        dl2_bytes_free(&worker->bytes);
        dl2_image_free(&worker->image);
        dl2_image_free(&worker->scratch);
        dl2_decoder_destroy(worker->decoder);
        dl2_image_free(&worker->resized);
        dl2_image_resizer_free(&worker->resizer);
        free(worker->counts);
    }
    free(fit->workers);
    free(fit->slots);
    free(fit->samples);
    dl2_dataset_close(fit->dataset);
    json_decref(fit->input.about);
}

static int save(struct fit *fit, const char *path, const struct dl2_jpeg_family *families,
                struct dl2_error *error)
{
    json_t *about = json_copy(fit->input.about);
    json_object_set_new(about, "source", dl2_json_text(fit->common->source));
    json_object_set_new(about, "images", json_integer((json_int_t)(fit->count - fit->bad)));
    json_object_set_new(about, "crop_area",
                        json_pack("[f,f]", fit->options->area[0], fit->options->area[1]));
    return dl2_jpeg_tables_save(path, families, family_count(fit->options), about, error);
}

int dl2_fit_tables(const struct dl2_fit_options *options, const char *path, size_t *images,
                   size_t *failed, struct dl2_error *error)
{
    DL2_CLEANUP(close_fit) struct fit fit = {.options = options, .common = options->common};
    DL2_AUTO_FREE struct dl2_jpeg_family *families = NULL;
    DL2_TRY(DL2_NEW(&families, family_count(options), "tables", error));
    DL2_TRY(open_input(&fit, error));
    DL2_TRY(open_samples(&fit, error));
    DL2_TRY(fit_families(&fit, families, error));
    *images = fit.count - fit.bad;
    *failed = fit.bad;
    return save(&fit, path, families, error);
}
