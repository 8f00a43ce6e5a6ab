/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measurements of dl2-load analyze. They go round by round through all datasets, so that a
 * disturbance of the machine affects all of them alike. Each round has the images and crops of
 * another epoch, the same for all datasets, so that the interval over rounds covers both the choice
 * of images and the machine's variation.
 */
#include "load/load_analyze.h"
#include "codec/codec.h"
#include "codec/decoder.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/machine.h"
#include "common/scope.h"
#include "common/thread.h"
#include "loader/decoded.h"
#include "loader/fetch.h"
#include "loader/loader_options.h"
#include "pixels/augment.h"
#include "pixels/resize.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* The size of the decoded images is estimated from the headers of some, and from a part of these
 * that are decoded, at all resolutions that the crops of some epochs ask for. */
#define HEADERS 64
#define DECODED 8
#define EPOCHS  30

/* ---- the device ---- */

/* The rate over the report's epochs, without the first of several, which includes setting up. */
static struct dl2_figure reported_rate(const json_t *epochs)
{
    double rates[DL2_LOAD_ANALYSIS_VALUES];
    size_t count = 0;
    const size_t all = json_array_size(epochs);
    for (size_t i = all > 1; i < all && count < sizeof rates / sizeof *rates; i++) {
        const double rate = dl2_json_get_real(json_array_get(epochs, i), "images_per_second", 0);
        if (rate > 0)
            rates[count++] = rate;
    }
    return dl2_load_analysis_summarize(rates, count);
}

static double pair_item(const json_t *pair, size_t item, double fallback)
{
    const json_t *value = json_array_get(pair, item);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

/* Sets image size, batch, channels, crops, interpolation and augmentation to those of the report's
 * run, from whose memory the text is borrowed. */
static int adopt_arguments(const json_t *arguments, struct dl2_loader_config *config,
                           struct dl2_error *error)
{
    DL2_TRY(dl2_take_image_size(json_object_get(arguments, "image-size"), config, error));
    const long long batch = dl2_json_get_integer(arguments, "batch", config->batch);
    const long long channels = dl2_json_get_integer(arguments, "channels", config->channels);
    if (batch < 1 || batch > 1048576 || channels < 1 || channels > 3)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it speaks of batches of %lld images of %lld channels", batch,
                             channels);
    config->batch = (unsigned)batch;
    config->channels = (unsigned)channels;
    const json_t *aspect = json_object_get(arguments, "crop-aspect");
    config->aspect_min = pair_item(aspect, 0, config->aspect_min);
    config->aspect_max = pair_item(aspect, 1, config->aspect_max);
    const char *augment = dl2_json_get_text(arguments, "augment", "");
    if (dl2_augmentation_names_file(augment))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "its run augments by the plug-in '%s', and a report's plug-in is not "
                             "run: pass --device-rate and --augment instead of --device-report",
                             augment);
    static const char *const shared[] = {"crop-area", "augment", "interpolation", NULL};
    for (const char *const *name = shared; *name; name++) {
        const int status = dl2_option_from_record(dl2_loader_options, config, *name,
                                                  json_object_get(arguments, *name), error);
        dl2_error_prefix(error, "%s", *name);
        DL2_TRY(status);
    }
    return DL2_OK;
}

static int read_device_report(struct dl2_load_analysis *analysis, struct dl2_error *error)
{
    struct dl2_load_analysis_device *device = &analysis->device;
    const char *path = analysis->options->device_report;
    DL2_TRY(dl2_json_load(path, "dl2-experiment/1", &device->report, error));
    const json_t *arguments = json_object_get(device->report, "arguments");
    if (strcmp(dl2_json_get_text(arguments, "loader", ""), "synthetic"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: it is of a training that waited for images; of use is one with "
                             "dl2-train --loader synthetic",
                             path);
    device->rate = reported_rate(json_object_get(device->report, "epochs"));
    if (!(device->rate.middle > 0))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no epoch has images_per_second", path);
    /* A card that was merely watched (DL2_CARD) has no precision. */
    device->shared = !json_object_get(json_object_get(device->report, "card"), "precision");
    const long long threads = dl2_json_get_integer(arguments, "threads", 0);
    if (threads > 0 && threads < device->cores)
        device->threads = (unsigned)threads;
    analysis->parameters = dl2_json_get_real(device->report, "parameters", 0);
    const char *optimizer = dl2_json_get_text(arguments, "optimizer", "sgd");
    analysis->moments = strcmp(optimizer, "sgd") == 0 ? 1 : 2;
    const int status = adopt_arguments(arguments, &analysis->config, error);
    dl2_error_prefix(error, "%s", path);
    return status;
}

static int find_device(struct dl2_load_analysis *analysis, struct dl2_error *error)
{
    struct dl2_load_analysis_device *device = &analysis->device;
    device->cores = device->threads = dl2_cpu_count();
    device->rate = (struct dl2_figure){analysis->options->device_rate, 0};
    analysis->moments = 1;
    if (analysis->options->device_report)
        DL2_TRY(read_device_report(analysis, error));
    if (isfinite(analysis->options->parameters))
        analysis->parameters = analysis->options->parameters;
    if (analysis->options->models && !(analysis->parameters > 0))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s has no number of parameters: give --parameters",
                             analysis->options->device_report);
    if (analysis->options->device != DL2_DEVICE_UNKNOWN)
        device->shared = analysis->options->device == DL2_DEVICE_SHARED;
    return DL2_OK;
}

/* ---- the datasets ---- */

/* The reductions that an image is decoded at, as bits: they are powers of two. */
static unsigned reductions_of(const struct dl2_planner *planner, uint32_t index, uint32_t width,
                              uint32_t height)
{
    struct dl2_planner at = *planner;
    struct dl2_sample_plan plan = {.index = index};
    unsigned reductions = 0;
    at.sliced = false;
    for (at.epoch = 0; at.epoch < EPOCHS; at.epoch++) {
        dl2_plan_sample(&at, &plan);
        dl2_plan_set_size(&at, width, height, &plan, NULL);
        reductions |= dl2_plan_reduction(at.config, &plan.crop);
    }
    return reductions;
}

/* What --cache-decoded keeps of an image; 0 if it cannot be decoded. */
static double kept_bytes(const struct dl2_planner *planner, struct dl2_decoder *decoder,
                         uint32_t index, const uint8_t *data, size_t size)
{
    const struct dl2_loader_config *config = planner->config;
    struct dl2_image_info info;
    double sum = 0;
    unsigned kept = 0;
    if (dl2_decoder_open(decoder, data, size, config->max_pixels, &info, NULL) < 0)
        return 0;
    const uint32_t width = dl2_upright_width(&info), height = dl2_upright_height(&info);
    const unsigned reductions =
        dl2_decoder_reduces(decoder) ? reductions_of(planner, index, width, height) : 1;
    for (uint32_t reduction = 1; reduction <= reductions; reduction *= 2) {
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct dl2_raster raster;
        request.external = &config->external;
        request.drop_bands = config->drop_bands;
        request.channels = config->channels == 1 ? 1 : 0;
        request.reduction = reduction;
        request.width = width;
        request.height = height;
        if (!(reductions & reduction))
            continue;
        if (dl2_decoder_open(decoder, data, size, config->max_pixels, &info, NULL) < 0 ||
            dl2_decoder_decode(decoder, &request, &raster, NULL) < 0)
            return 0;
        /* A codec that cannot reduce the image gives it as it gave it before. */
        if (!(kept & raster.planes[0].step_x))
            sum += (double)dl2_decoded_size(&raster);
        kept |= raster.planes[0].step_x;
    }
    return sum;
}

/* Estimates what --cache-decoded needs for all images. The last one needs room as if its chroma had
 * the resolution of luma. */
static int estimate_decoded(const struct dl2_loader_config *config,
                            struct dl2_load_analysis_subject *subject, struct dl2_error *error)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_decoder *decoder;
    const struct dl2_planner planner = dl2_planner_of(subject->dataset, config);
    double pixels = 0, largest = 0, decoded_pixels = 0, decoded = 0;
    unsigned read = 0;
    DL2_TRY(dl2_decoder_create(&decoder, error));
    for (uint64_t i = 0; i < HEADERS; i++) {
        const uint8_t *data;
        size_t size;
        struct dl2_image_info info;
        const uint32_t index = (uint32_t)(i * subject->images / HEADERS);
        if (dl2_dataset_read(subject->dataset, index, &scratch, &data, &size, NULL) < 0 ||
            dl2_image_read_info(data, size, &info, NULL) < 0)
            continue;
        const double area = (double)info.width * info.height;
        pixels += area;
        largest = fmax(largest, area * (config->channels == 1 ? 1 : 3));
        const double bytes =
            read++ % (HEADERS / DECODED) ? 0 : kept_bytes(&planner, decoder, index, data, size);
        decoded += bytes;
        decoded_pixels += bytes > 0 ? area : 0;
    }
    dl2_decoder_destroy(decoder);
    dl2_bytes_free(&scratch);
    if (decoded > 0)
        subject->decoded_bytes =
            decoded / decoded_pixels * pixels / read * (double)subject->images + largest;
    return DL2_OK;
}

static int read_quality_file(json_t *list, const char *path, struct dl2_error *error)
{
    json_auto_t *file = NULL;
    DL2_TRY(dl2_json_load(path, "dl2-quality/1", &file, error));
    json_array_extend(list, json_object_get(file, "variants"));
    return DL2_OK;
}

static int read_quality_folder(json_t *list, const char *folder, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list files;
    DL2_TRY(dl2_list_files(folder, &files, error));
    for (size_t i = 0; i < files.count; i++) {
        if (strcmp(dl2_path_extension(files.paths[i]), "json"))
            continue;
        DL2_TRY(
            read_quality_file(list, dl2_keep_block(dl2_path_join(folder, files.paths[i])), error));
    }
    return DL2_OK;
}

static int read_quality(struct dl2_load_analysis *analysis, struct dl2_error *error)
{
    for (size_t i = 0; i < analysis->options->quality_count; i++) {
        const char *path = analysis->options->quality[i];
        DL2_TRY(dl2_is_folder(path) ? read_quality_folder(analysis->quality, path, error)
                                    : read_quality_file(analysis->quality, path, error));
    }
    return DL2_OK;
}

/* The metrics of the variant of that name, or NULL. */
static const json_t *find_quality(const struct dl2_load_analysis *analysis, const char *name)
{
    size_t i;
    const json_t *variant;
    json_array_foreach(analysis->quality, i, variant)
    {
        if (!strcmp(dl2_json_get_text(variant, "variant", ""), name))
            return json_object_get(variant, "metrics");
    }
    return NULL;
}

static int open_subject(struct dl2_load_analysis *analysis,
                        struct dl2_load_analysis_subject *subject, const char *path,
                        struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    subject->path = path;
    subject->resident = 1;
    DL2_TRY(dl2_load_open(analysis->options, &path, 1, &subject->data, error));
    subject->name = subject->data.name;
    subject->dataset = subject->data.dataset;
    if (dl2_dataset_kind(subject->dataset) == DL2_SAMPLE_CLIP)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds clips, and analyze predicts the loading of images; "
                             "--samples images takes each frame for an image",
                             path);
    subject->images = dl2_dataset_count(subject->dataset);
    subject->bytes = dl2_dataset_bytes(subject->dataset);
    DL2_TRY(estimate_decoded(config, subject, error));
    subject->quality = find_quality(analysis, subject->name);
    const double memory = (double)analysis->memory / (double)(subject->bytes + 1);
    subject->cached = memory < 1 ? memory : 1;
    DL2_TRY(dl2_sampler_init(&subject->sampler, config, (uint32_t)subject->images, error));
    return dl2_loader_create(subject->dataset, config, &subject->loader, error);
}

static void close_subject(struct dl2_load_analysis_subject *subject)
{
    dl2_loader_destroy(subject->loader);
    dl2_sampler_free(&subject->sampler);
    dl2_dataset_union_close(&subject->data);
}

/* ---- storage: reading alone, cold ---- */

struct reading {
    const struct dl2_load_analysis_subject *subject;
    struct dl2_fetch *fetch;
    struct dl2_fetched *held;   /* one per worker */
    double end;                 /* dl2_clock_wall() */
    size_t least, done;         /* number of images to read at least; number read */
    struct dl2_planner planner; /* the loader's: which bytes of each sample it needs */
    atomic_uint_fast64_t bytes;
};

static int read_one(void *context, unsigned worker, size_t slot, size_t item,
                    struct dl2_error *error)
{
    (void)slot, (void)error;
    struct reading *reading = context;
    if (item >= reading->least && dl2_clock_wall() > reading->end)
        return DL2_ERR_CANCELED;
    const uint32_t index = reading->subject->sampler.order[item];
    struct dl2_fetched *held = &reading->held[worker];
    struct dl2_sample_plan plan;
    /* The loader reports unreadable samples. */
    dl2_fetch_acquire(reading->fetch, item, index, &plan, held, NULL);
    atomic_fetch_add(&reading->bytes, held->size);
    dl2_fetch_release(reading->fetch, held);
    return DL2_OK;
}

static int count_read(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    (void)slot, (void)item, (void)error;
    struct reading *reading = context;
    reading->done++;
    return DL2_OK;
}

/* Evicts the files unless little was read so far: another epoch's first images are still cold. */
static int make_cold(struct dl2_load_analysis_subject *subject, struct dl2_error *error)
{
    if (subject->warm_images && subject->warm_images < subject->images / 20)
        return DL2_OK;
    subject->warm_images = 0;
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = dl2_fetch_evict(subject->dataset, &subject->resident, &reason);
    if (status < 0 && status != DL2_ERR_UNSUPPORTED) /* IDX data is held in memory */
        return dl2_error_copy(error, &reason);
    return DL2_OK;
}

/* Reads images from the epoch's start until the time is over; *count are then in memory. */
static int read_for(const struct dl2_load_analysis *analysis,
                    struct dl2_load_analysis_subject *subject, unsigned round,
                    struct dl2_parallel *loop, size_t *count, struct dl2_error *error)
{
    struct reading *reading = loop->context;
    struct dl2_error ended = DL2_ERROR_INIT; /* usually canceled by the clock */
    dl2_fetch_start(reading->fetch, subject->sampler.order, loop->count);
    const double start = dl2_clock_wall();
    reading->end = start + analysis->options->seconds / DL2_LOAD_ANALYSIS_ROUNDS;
    const int status = dl2_parallel_run(loop, &ended);
    subject->runs[round].storage = dl2_load_rate((double)reading->done, dl2_clock_wall() - start);
    subject->read_images += reading->done;
    subject->warm_images += reading->done;
    subject->read_bytes += atomic_load(&reading->bytes);
    *count = reading->done;
    if (status < 0 && status != DL2_ERR_CANCELED)
        return dl2_error_copy(error, &ended);
    return DL2_OK;
}

static int run_storage(const struct dl2_load_analysis *analysis,
                       struct dl2_load_analysis_subject *subject, unsigned round, size_t *count,
                       struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    struct dl2_fetch_config how = config->fetch;
    how.cache_bytes = 0;
    struct reading reading = {.subject = subject,
                              .planner = dl2_planner_of(subject->dataset, config),
                              .least = (size_t)config->batch * (config->depth + 1)};
    reading.planner.epoch = round;
    struct dl2_parallel loop = {.jobs = config->workers,
                                .count = subject->sampler.positions,
                                .work = read_one,
                                .emit = count_read,
                                .context = &reading};
    dl2_parallel_resolve(&loop);
    dl2_sampler_set_epoch(&subject->sampler, round);
    DL2_TRY(make_cold(subject, error));
    DL2_TRY(dl2_fetch_create(&reading.planner, &how, &reading.fetch, error));
    reading.held = dl2_keep(loop.jobs, sizeof *reading.held, "%u readers", loop.jobs);
    const int status = read_for(analysis, subject, round, &loop, count, error);
    for (unsigned i = 0; i < loop.jobs; i++)
        dl2_bytes_free(&reading.held[i].scratch);
    dl2_fetch_destroy(reading.fetch);
    return status;
}

/* ---- preprocessing: the loader, with the files in memory ---- */

static int load_for(struct dl2_load_analysis_subject *subject, struct dl2_load_pass pass,
                    double seconds, struct dl2_load_run *run, struct dl2_error *error)
{
    while (run->seconds < seconds) {
        pass.seconds = seconds - run->seconds;
        const uint64_t before = run->delivered;
        DL2_TRY(dl2_load_run(subject->loader, &pass, run, error));
        if (run->delivered == before)
            break; /* not even a batch */
    }
    return DL2_OK;
}

/* Loads the epoch's first `count` images, whose files are in memory. */
static int run_warm(const struct dl2_load_analysis *analysis,
                    struct dl2_load_analysis_subject *subject, unsigned round, size_t count,
                    struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    const double seconds = analysis->options->seconds / DL2_LOAD_ANALYSIS_ROUNDS;
    /* Workers run ahead of the batches that come out; those images must be in memory too. */
    const uint64_t steps = count / config->batch;
    struct dl2_load_pass pass = {.epoch = round};
    if (count < subject->sampler.positions)
        pass.steps = steps > config->depth ? steps - config->depth : 1;
    struct dl2_load_run first = {0}, run = {0};
    if (round == 0)
        DL2_TRY(load_for(subject, pass, seconds / 4, &first, error));
    DL2_TRY(load_for(subject, pass, seconds, &run, error));
    const double processors = fmin(config->workers, analysis->device.cores);
    struct dl2_load_analysis_runs *runs = &subject->runs[round];
    runs->loader = dl2_load_rate((double)run.images, run.seconds);
    runs->cpu = run.images ? run.cpu_seconds / (double)run.images : 0;
    runs->kept = fmax(runs->cpu, run.images ? processors * run.seconds / (double)run.images : 0);
    return DL2_OK;
}

/* Loads images that are not in memory, at most one epoch. */
static int run_cold(const struct dl2_load_analysis *analysis,
                    struct dl2_load_analysis_subject *subject, unsigned round,
                    struct dl2_error *error)
{
    DL2_TRY(make_cold(subject, error));
    const struct dl2_load_pass pass = {.epoch = DL2_LOAD_ANALYSIS_ROUNDS + round,
                                       .seconds =
                                           analysis->options->seconds / DL2_LOAD_ANALYSIS_ROUNDS};
    struct dl2_load_run run = {0};
    DL2_TRY(dl2_load_run(subject->loader, &pass, &run, error));
    subject->warm_images += run.images;
    struct dl2_load_analysis_runs *runs = &subject->runs[round];
    runs->cold = fmin(runs->loader, dl2_load_rate((double)run.images, run.seconds));
    runs->cold_cpu = fmax(runs->cpu, run.images ? run.cpu_seconds / (double)run.images : 0);
    return DL2_OK;
}

static int run_round(struct dl2_load_analysis *analysis, struct dl2_load_analysis_subject *subject,
                     unsigned round, struct dl2_progress *progress, struct dl2_error *error)
{
    size_t count = 0;
    DL2_TRY(run_storage(analysis, subject, round, &count, error));
    dl2_progress_update(progress, progress->done + 1, subject->name);
    DL2_TRY(run_warm(analysis, subject, round, count, error));
    dl2_progress_update(progress, progress->done + 1, subject->name);
    DL2_TRY(run_cold(analysis, subject, round, error));
    dl2_progress_update(progress, progress->done + 1, subject->name);
    return DL2_OK;
}

static int run_rounds(struct dl2_load_analysis *analysis, struct dl2_error *error)
{
    struct dl2_progress progress;
    dl2_progress_begin(&progress, "analyze", "runs", 3 * DL2_LOAD_ANALYSIS_ROUNDS * analysis->count,
                       analysis->options->quiet);
    int status = DL2_OK;
    for (unsigned round = 0; round < DL2_LOAD_ANALYSIS_ROUNDS && status == DL2_OK; round++)
        for (size_t i = 0; i < analysis->count && status == DL2_OK; i++)
            status = run_round(analysis, &analysis->subjects[i], round, &progress, error);
    dl2_progress_end(&progress);
    return status;
}

/* ---- */

static int prepare(struct dl2_load_analysis *analysis, const char *const *paths,
                   struct dl2_error *error)
{
    const struct dl2_load_options *options = analysis->options;
    const size_t count = analysis->count;
    analysis->config = options->loader;
    analysis->bad = dl2_keep_json(json_array());
    analysis->subjects = dl2_keep(count, sizeof *analysis->subjects, "the analysis");
    analysis->quality = dl2_keep_json(json_array());
    DL2_TRY(find_device(analysis, error));
    analysis->memory = options->memory ? options->memory : dl2_memory_available();
    DL2_TRY(read_quality(analysis, error));
    for (size_t i = 0; i < count; i++)
        DL2_TRY(open_subject(analysis, &analysis->subjects[i], paths[i], error));
    return DL2_OK;
}

static int analyze(struct dl2_load_analysis *analysis, const char *const *paths, FILE *out,
                   struct dl2_error *error)
{
    DL2_TRY(prepare(analysis, paths, error));
    const int status = run_rounds(analysis, error);
    for (size_t i = 0; i < analysis->count; i++)
        analysis->bad_count +=
            dl2_load_name_bad(analysis->subjects[i].loader,
                              dl2_dataset_count(analysis->subjects[i].dataset), analysis->bad);
    DL2_TRY(status);
    for (size_t i = 0; i < analysis->count; i++) {
        dl2_load_analysis_conclude(analysis, &analysis->subjects[i]);
        dl2_load_analysis_compare_ways(analysis, &analysis->subjects[i]);
    }
    dl2_load_analysis_choose(analysis);
    dl2_load_analysis_print(out, analysis);
    return analysis->options->json_path ? dl2_load_analysis_save(analysis, error) : DL2_OK;
}

int dl2_load_analyze(const struct dl2_load_options *options, const char *const *paths, size_t count,
                     FILE *out, struct dl2_error *error)
{
    struct dl2_load_analysis analysis = {.options = options, .count = count};
    const int status = analyze(&analysis, paths, out, error);
    for (size_t i = 0; i < count; i++)
        close_subject(&analysis.subjects[i]);
    json_decref(analysis.device.report);
    return status < 0 ? status : analysis.bad_count;
}
