/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and destroys a loader: settings, memory, threads. */
#include "loader/loader_settings.h"
#include "loader/pipeline.h"
#include "loader/sample_weights.h"

#include "codec/external.h"
#include "common/clock.h"
#include "common/scope.h"
#include "common/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* ---- settings ---- */

static int check_channel(const struct dl2_loader_config *config, unsigned c,
                         struct dl2_error *error)
{
    /* Volumes may have more channels than there are means. */
    if (config->dtype == DL2_UINT8 || config->volume_depth)
        return DL2_OK;
    const double mean = config->mean[c], std = config->std[c];
    if (!isfinite(mean))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the mean of channel %u is %g, no number", c,
                             mean);
    if (mean > 1 || (std > 1 && std <= 255))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "mean and std of channel %u are %g and %g: values are 0 to 1 here, so "
                             "divide numbers for 0 to 255 by 255",
                             c, mean, std);
    if (!(std > 0 && isfinite(std)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the std of channel %u is %g: it must be above 0", c, std);
    return DL2_OK;
}

static int check_config(const struct dl2_loader_config *config, struct dl2_error *error)
{
    const struct dl2_loader_source source = {0};
    struct dl2_loader_fault fault;
    if (dl2_loader_check(config, &source, &fault) < 0)
        return dl2_loader_explain(&fault, &source, error);
    for (unsigned c = 0; c < config->channels; c++)
        DL2_TRY(check_channel(config, c, error));
    for (unsigned i = 0; i < config->operation_count; i++)
        if (!config->operations[i].run || !config->operations[i].name)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "operation %u has no function or no name",
                                 i + 1);
    return DL2_OK;
}

/* ---- parts ---- */

int dl2_recipe_init(struct dl2_recipe *recipe, const struct dl2_loader_config *config,
                    struct dl2_error *error)
{
    recipe->planner.config = config;
    recipe->gathers = config->frames && config->batching != DL2_BATCHING_STRICT;
    recipe->image_bytes = config->height;
    if (!dl2_size_mul(recipe->image_bytes, dl2_loader_width(config), &recipe->image_bytes) ||
        !dl2_size_mul(recipe->image_bytes, config->channels, &recipe->image_bytes) ||
        !dl2_size_mul(recipe->image_bytes, dl2_dtype_size(config->dtype), &recipe->image_bytes) ||
        !dl2_size_mul(recipe->image_bytes, dl2_loader_planes(config), &recipe->sample_bytes))
        return dl2_error_memory(error, "a loader");
    if (!config->augment)
        return DL2_OK;
    int status = dl2_augmentation_parse(config->augment, &recipe->augmentation, error);
    if (status == DL2_OK)
        status = dl2_augmentation_check(recipe->augmentation, config->volume_depth > 0, error);
    dl2_error_prefix(error, "augment");
    return status;
}

static int copy_operations(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_loader_config *config = &loader->config;
    if (!config->operation_count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&loader->operations, config->operation_count, "a loader", error));
    memcpy(loader->operations, config->operations,
           config->operation_count * sizeof *loader->operations);
    config->operations = loader->operations;
    return DL2_OK;
}

static int copy_external(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_external_decoders *external = &loader->config.external;
    const int status = dl2_external_decoders_check(external, error);
    dl2_error_prefix(error, "external");
    DL2_TRY(status);
    for (size_t i = 0; external->commands[i]; i++) {
        DL2_TRY(dl2_format(&loader->external[i], error, "%s", external->commands[i]));
        external->commands[i] = loader->external[i];
    }
    return DL2_OK;
}

/* `setting` reads files beside the images. */
static int check_sidecars(const struct dl2_dataset *dataset, const char *setting,
                          struct dl2_error *error)
{
    if (dl2_dataset_has_sidecars(dataset))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s: the container '%s' holds images and labels, and nothing beside them",
                         setting, dl2_dataset_container(dataset));
}

static bool has_boxes(const struct dl2_loader *loader, size_t index, struct dl2_bytes *bytes)
{
    const struct dl2_box_source *boxes = &loader->recipe.boxes;
    struct dl2_annotated_image image;
    return boxes->coco ? dl2_coco_image(boxes->coco, index, &image)
                       : dl2_dataset_read_sidecar(loader->recipe.planner.dataset, index,
                                                  boxes->extension, bytes, NULL) != 0;
}

static bool has_mask(const struct dl2_loader *loader, size_t index, struct dl2_bytes *bytes)
{
    const struct dl2_dataset *dataset = loader->recipe.planner.dataset;
    const char *mask = loader->config.mask;
    struct dl2_volume *volume = NULL;
    if (!loader->config.volume_depth)
        return dl2_dataset_read_sidecar(dataset, index, mask, bytes, NULL) != 0;
    const int status = dl2_dataset_open_volume(dataset, index, mask, &volume, NULL);
    dl2_volume_close(volume);
    return status < 0 || volume;
}

/* Refuses joined datasets of which only some `have` what a setting asks for: all samples of the
 * others would be bad, or background. */
static int check_members(const struct dl2_loader *loader, const char *setting,
                         bool (*have)(const struct dl2_loader *loader, size_t index,
                                      struct dl2_bytes *bytes),
                         struct dl2_error *error)
{
    const struct dl2_dataset *dataset = loader->recipe.planner.dataset;
    const size_t count = dl2_dataset_count(dataset), members = dl2_dataset_members(dataset);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    bool found[DL2_DATASETS_MAX] = {false};
    size_t left = members > 1 ? members : 0, lacking = 0;
    for (size_t i = 0; left && i < count; i++) {
        bool *here = &found[dl2_dataset_member_of(dataset, i)];
        if (*here || !have(loader, i, &bytes))
            continue;
        *here = true;
        left--;
    }
    while (left && found[lacking])
        lacking++;
    return left ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                "%s: no sample of %s has any; datasets with and without do not go "
                                "together",
                                setting, dl2_dataset_member_path(dataset, lacking))
                : DL2_OK;
}

static int make_targets(struct dl2_loader *loader, struct dl2_error *error)
{
    DL2_TRY(dl2_target_list_parse(&loader->recipe.targets, loader->config.targets, error));
    loader->config.targets = loader->recipe.targets.text;
    return loader->config.targets ? check_sidecars(loader->recipe.planner.dataset, "targets", error)
                                  : DL2_OK;
}

/* Weights of classes that are equally frequent; a sample without a class never comes. */
static int balance(const struct dl2_dataset *dataset, size_t count, double **weights,
                   struct dl2_error *error)
{
    const unsigned classes = dl2_dataset_class_count(dataset);
    struct dl2_sample sample;
    DL2_AUTO_FREE uint32_t *counts = NULL;
    DL2_TRY(DL2_NEW(&counts, (size_t)classes + 1, "a loader", error));
    DL2_TRY(DL2_NEW(weights, count, "a loader", error));
    for (size_t i = 0; i < count; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        counts[sample.label < 0 ? classes : (unsigned)sample.label]++;
    }
    for (size_t i = 0; i < count; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        (*weights)[i] = sample.label < 0 ? 0 : 1.0 / counts[sample.label];
    }
    return DL2_OK;
}

/* The sampler keeps of the weights what it needs. */
static int init_weighed(struct dl2_loader *loader, size_t count, struct dl2_error *error)
{
    struct dl2_loader_config *config = &loader->config;
    const struct dl2_dataset *dataset = loader->recipe.planner.dataset;
    DL2_AUTO_FREE double *made = NULL;
    if (config->balanced && !dl2_dataset_class_count(dataset))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "balanced: the dataset has no classes");
    if (config->balanced)
        DL2_TRY(balance(dataset, count, &made, error));
    else if (config->weights_file)
        DL2_TRY(dl2_sample_weights_read(config->weights_file, dataset, &made, error));
    if (made)
        config->weights = made;
    config->weights_file = NULL;
    if (config->weights && !config->balanced) {
        loader->order.weights_hash = XXH64(config->weights, count * sizeof *config->weights, 0);
        loader->order.weights_hash += !loader->order.weights_hash;
    }
    const int status = dl2_sampler_init_for(&loader->order.sampler, config, dataset, error);
    config->weights = NULL;
    return status;
}

static int make_masks(struct dl2_loader *loader, struct dl2_error *error)
{
    const char *mask = loader->config.mask;
    if (!mask)
        return DL2_OK;
    DL2_TRY(dl2_format(&loader->mask_name, error, "%s", mask));
    loader->config.mask = loader->mask_name;
    if (!*mask || *mask == '.' || strpbrk(mask, "/ ,"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "mask: '%s' is not an extension; give one, such as png or mask.png",
                             mask);
    DL2_TRY(check_sidecars(loader->recipe.planner.dataset, "mask", error));
    return check_members(loader, "mask", has_mask, error);
}

static int make_boxes(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_recipe *recipe = &loader->recipe;
    const char *mover = recipe->augmentation ? dl2_augmentation_moves(recipe->augmentation) : NULL;
    if (!loader->config.boxes)
        return DL2_OK;
    if (mover)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "boxes: the operation %s of augment moves pixels, and boxes do not "
                             "follow it",
                             mover);
    DL2_TRY(dl2_box_source_open(&recipe->boxes, &loader->config, recipe->planner.dataset, error));
    DL2_TRY(check_members(loader, "boxes", has_boxes, error));
    loader->config.boxes = recipe->boxes.text;
    loader->memory += recipe->boxes.coco ? dl2_coco_memory(recipe->boxes.coco) : 0;
    return DL2_OK;
}

static int make_sampler(struct dl2_loader *loader, struct dl2_error *error)
{
    const size_t count = dl2_dataset_count(loader->recipe.planner.dataset);
    if (count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%zu samples are more than a loader can count",
                             count);
    DL2_TRY(init_weighed(loader, count, error));
    const struct dl2_sampler *sampler = &loader->order.sampler;
    if (sampler->epoch_positions) { /* and the same by claim */
        DL2_TRY(DL2_NEW(&loader->order.epoch_positions, sampler->positions, "a loader", error));
        loader->memory += (uint64_t)sampler->positions * 8 + (uint64_t)sampler->taken * 4 +
                          (sampler->aliases  ? (uint64_t)sampler->population * 16
                           : sampler->rounds ? (uint64_t)sampler->population * 4
                                             : 0);
    }
    DL2_TRY(DL2_NEW(&loader->order.delivered, sampler->positions / 64 + 1, "a loader", error));
    loader->memory += (uint64_t)count * 5 + sampler->positions / 8;
    return dl2_bad_samples_init(&loader->bad_samples, (uint32_t)count, error);
}

static int make_storage(struct dl2_loader *loader, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &loader->config;
    if (config->decoded_cache_bytes)
        DL2_TRY(dl2_decoded_create(loader->order.sampler.count, config->decoded_cache_bytes,
                                   &loader->recipe.planner.decoded, error));
    struct dl2_fetch_config fetch = config->fetch;
    if (config->volume_depth)
        fetch.io = DL2_IO_DIRECT; /* only where it knows the patch a worker knows the bytes */
    if (config->volume_depth && config->volume_cache_bytes && !fetch.drop_behind)
        DL2_TRY(dl2_volume_cache_create(dl2_dataset_count(loader->recipe.planner.dataset),
                                        config->volume_cache_bytes, &loader->recipe.volumes,
                                        error));
    if (config->foreground > 0)
        DL2_TRY(dl2_foreground_create((uint32_t)dl2_dataset_count(loader->recipe.planner.dataset),
                                      config, &loader->recipe.foreground, error));
    return dl2_fetch_create(&loader->recipe.planner, &fetch, &loader->recipe.fetch, error);
}

static int make_claims(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_workers *workers = &loader->workers;
    const unsigned count = loader->config.workers;
    DL2_TRY(DL2_NEW(&workers->claims, count, "a loader", error));
    DL2_TRY(DL2_NEW(&workers->free_claims, count, "a loader", error));
    for (workers->claim_count = 0; workers->claim_count < count; workers->claim_count++) {
        struct dl2_claim *claim = &workers->claims[workers->claim_count];
        DL2_TRY(dl2_job_init(&claim->job, &loader->recipe, error));
        claim->memory = dl2_job_memory(&claim->job, &loader->recipe);
        loader->memory += claim->memory;
        workers->free_claims[workers->free_count++] = claim;
    }
    return DL2_OK;
}

static int start_threads(struct dl2_loader *loader, struct dl2_error *error)
{
    struct dl2_workers *workers = &loader->workers;
    const unsigned count = loader->config.workers;
    DL2_TRY(DL2_NEW(&workers->threads, count, "a loader", error));
    for (unsigned i = 0; i < count; i++) {
        const int reason = pthread_create(&workers->threads[i], NULL, dl2_worker_run, loader);
        if (reason)
            return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start worker %u of %u: %s", i + 1,
                                 count, strerror(reason));
        workers->thread_count++;
    }
    return DL2_OK;
}

/* ---- the whole ---- */

/* Clips are loaded as so many frames, volumes as patches with a depth, and images have neither. */
static int check_kind(const struct dl2_loader *loader, struct dl2_error *error)
{
    const bool volumes = dl2_dataset_kind(loader->recipe.planner.dataset) == DL2_SAMPLE_VOLUME;
    if (volumes != (loader->config.volume_depth > 0))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            volumes ? "the dataset holds volumes: set the size of a patch, volume_depth, height "
                      "and width (--image-size DEPTHxHEIGHTxWIDTH, in Python image_size=(depth, "
                      "height, width))"
                    : "an image size of depth, height and width is for volumes, and the dataset "
                      "holds none");
    if (volumes)
        return dl2_volumes_check(loader->recipe.planner.dataset, &loader->config, error);
    const bool videos = loader->recipe.planner.videos;
    const bool clips =
        videos || dl2_dataset_kind(loader->recipe.planner.dataset) == DL2_SAMPLE_CLIP;
    if (videos && dl2_video_missing())
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", dl2_video_missing());
    if (clips == (loader->config.frames > 0))
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_ARGUMENT,
        clips ? "the dataset holds clips: set frames (--frames N), how many of each are loaded"
              : "frames: the dataset holds images, and no clips; --samples clips "
                "(samples='clips' in Python) reads folders of numbered images as clips");
}

static int set_up_loader(struct dl2_loader *loader, struct dl2_error *error)
{
    DL2_TRY(check_kind(loader, error));
    DL2_TRY(copy_operations(loader, error));
    DL2_TRY(dl2_recipe_init(&loader->recipe, &loader->config, error));
    if (loader->recipe.augmentation)
        loader->config.augment = dl2_augmentation_text(loader->recipe.augmentation);
    DL2_TRY(copy_external(loader, error));
    DL2_TRY(make_targets(loader, error));
    DL2_TRY(make_masks(loader, error));
    DL2_TRY(make_boxes(loader, error));
    DL2_TRY(make_sampler(loader, error));
    DL2_TRY(make_storage(loader, error));
    DL2_TRY(make_claims(loader, error));
    DL2_TRY(dl2_slots_init(loader, error));
    DL2_TRY(dl2_decode_queue_init(loader, error));
    loader->stats.memory = loader->memory;
    return start_threads(loader, error);
}

/* Makes a condition whose deadlines are times of CLOCK_MONOTONIC. */
static void init_clocked(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int dl2_loader_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_loader **out, struct dl2_error *error)
{
    *out = NULL;
    DL2_TRY(check_config(config, error));
    struct dl2_loader *loader;
    DL2_TRY(DL2_NEW(&loader, 1, "a loader", error));
    loader->config = *config;
    loader->fail_claim = DL2_NOWHERE;
    if (!config->workers)
        loader->config.workers = dl2_cpu_count();
    loader->recipe.planner = dl2_planner_of(dataset, &loader->config);
    loader->strict = config->batching == DL2_BATCHING_STRICT;
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->workers.work_available, NULL);
    pthread_cond_init(&loader->ring.place_available, NULL);
    pthread_cond_init(&loader->decode.batch_staged, NULL);
    init_clocked(&loader->ring.progress);
    const int status = set_up_loader(loader, error);
    if (status < 0) {
        dl2_loader_destroy(loader);
        return status;
    }
    *out = loader;
    return DL2_OK;
}

void dl2_loader_destroy(struct dl2_loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->closing = true;
    dl2_workers_cancel(loader);
    pthread_mutex_unlock(&loader->mutex);
    for (unsigned i = 0; i < loader->workers.thread_count; i++)
        pthread_join(loader->workers.threads[i], NULL);
    dl2_decode_queue_free(loader);
    for (unsigned i = 0; i < loader->workers.claim_count; i++)
        dl2_job_free(&loader->workers.claims[i].job, &loader->recipe);
    dl2_fetch_destroy(loader->recipe.fetch);
    dl2_foreground_destroy(loader->recipe.foreground);
    dl2_volume_cache_destroy(loader->recipe.volumes);
    if (!loader->config.decoded_cache)
        dl2_decoded_destroy(loader->recipe.planner.decoded);
    dl2_augmentation_free(loader->recipe.augmentation);
    dl2_slots_free(loader);
    dl2_target_list_free(&loader->recipe.targets);
    dl2_box_source_close(&loader->recipe.boxes);
    free(loader->mask_name);
    for (size_t i = 0; loader->external[i]; i++)
        free(loader->external[i]);
    pthread_cond_destroy(&loader->ring.progress);
    pthread_cond_destroy(&loader->ring.place_available);
    pthread_cond_destroy(&loader->decode.batch_staged);
    pthread_cond_destroy(&loader->workers.work_available);
    pthread_mutex_destroy(&loader->mutex);
    dl2_sampler_free(&loader->order.sampler);
    dl2_bad_samples_free(&loader->bad_samples);
    free(loader->operations);
    free(loader->order.delivered);
    free(loader->order.pending);
    free(loader->order.queue);
    free(loader->order.epoch_positions);
    free(loader->order.missing);
    free(loader->workers.free_claims);
    free(loader->workers.claims);
    free(loader->workers.threads);
    free(loader);
}
