/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/run.h"
#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/thread.h"
#include "loader/cache.h"
#include "loader/decoded.h"
#include "loader/loader_options.h"
#include "loader/sampler.h"
#include "train/step_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Training images whose headers tell whether a dataset is gray. */
#define PROBES 32

double dl2_run_elapsed(const struct dl2_run *run)
{
    return run->elapsed_before + dl2_clock_wall() - run->config->started;
}

void dl2_run_note(struct dl2_run *run, const char *format, ...)
{
    if (!run->events.note)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->events.note(run->events.context, text);
}

void dl2_run_tell_step(const struct dl2_run *run, const char *what, uint64_t done, uint64_t total)
{
    /* Of models that are trained together, the first shows how far all are. */
    for (const struct dl2_run *before = run->stream->runs; before < run; before++)
        if (!before->over)
            return;
    if (run->events.stepped)
        run->events.stepped(run->events.context, what, done, total);
}

uint64_t dl2_run_images(const struct dl2_run *run)
{
    uint64_t images = 0;
    for (size_t i = 0; i < run->stream->stage_count; i++)
        images = run->stream->stages[i].images > images ? run->stream->stages[i].images : images;
    return images;
}

void dl2_run_tell_begun(const struct dl2_run *run)
{
    const struct dl2_device_class *ops = run->device->ops;
    const struct dl2_train_overview overview = {
        .arch = run->config->arch,
        .device = ops->name,
        .device_version = ops->version(),
        .variant = run->variant,
        .parameters = dl2_network_parameter_count(run->network),
        .images = dl2_run_images(run),
        .classes = run->stream->classes,
        .epochs_done = run->state.pass,
    };
    if (run->events.begun)
        run->events.begun(run->events.context, &overview);
}

void dl2_stream_add_bad(struct dl2_stream *stream, const char *text)
{
    json_t *key = text ? dl2_json_text(text) : NULL; /* as UTF-8 */
    const char *shown = json_string_value(key);
    if (shown && !json_object_get(stream->bad, shown)) {
        json_object_set_new(stream->bad, shown, json_true());
        dl2_run_note(&stream->runs[0], "%s", shown);
    }
    json_decref(key);
}

int dl2_stream_note_bad(struct dl2_stream *stream, const struct dl2_feed *feed,
                        struct dl2_error *error)
{
    size_t count, rank, i;
    const char *const *texts = dl2_feed_bad(feed, &count);
    json_t *own = json_array(), *all, *list, *bad;
    for (i = 0; i < count; i++)
        json_array_append_new(own, dl2_json_text(texts[i]));
    const int status = dl2_world_gather(stream->config->world, own, &all, error);
    json_array_foreach(all, rank, list) json_array_foreach(list, i, bad)
        dl2_stream_add_bad(stream, json_string_value(bad));
    json_decref(all);
    json_decref(own);
    return status;
}

int dl2_stream_agree(struct dl2_stream *stream, int status, struct dl2_error *error)
{
    status = dl2_world_agree(stream->config->world, status, error);
    stream->runs[0].common = status < 0 && status != DL2_ERR_CANCELED;
    return status;
}

/* Batches of a partition in a pass. */
static uint64_t partition_steps(const struct dl2_stream *stream, unsigned partition)
{
    const struct dl2_loader_config *loader = &stream->config->loader;
    const uint32_t *members;
    const uint32_t size =
        dl2_partition_of(stream->stages[0].dataset, partition, loader->partitions, &members);
    return stream->drops_last ? size / loader->batch : (size + loader->batch - 1) / loader->batch;
}

enum dl2_visit dl2_visit_find(const struct dl2_stream *stream, const struct dl2_run_state *state,
                              unsigned partition, uint64_t *begin, uint64_t *end)
{
    enum dl2_visit found = DL2_VISIT_NEW;
    uint64_t done = 0;
    size_t i;
    json_t *visit;
    if (state->trained) {
        *begin = *end = stream->pass_steps;
        return found;
    }
    json_array_foreach(state->visits, i, visit)
    {
        const unsigned its = (unsigned)json_integer_value(visit);
        *begin = done;
        *end = done += partition_steps(stream, its);
        if (state->batch < done)
            return its == partition ? DL2_VISIT_BEGUN : DL2_VISIT_ELSEWHERE;
        found = its == partition ? DL2_VISIT_DONE : found;
    }
    *begin = done;
    *end = done + partition_steps(stream, partition);
    return found;
}

uint64_t dl2_run_steps(const struct dl2_run *run)
{
    const struct dl2_stream *stream = run->stream;
    return stream->config->loader.partitions ? stream->pass_steps
                                             : dl2_feed_steps(run->source->feed);
}

double dl2_run_position(const struct dl2_run *run)
{
    if (run->state.batch == 0)
        return run->state.pass_start;
    uint64_t steps = dl2_run_steps(run);
    if (run->state.batch >= steps)
        return run->state.pass_start + 1;
    return run->state.pass_start + (double)run->state.batch / (double)steps;
}

/* Epochs that the whole run comes to; INFINITY where only the clock will tell and it can't yet. */
static double run_length(const struct dl2_run *run)
{
    double length = 0;
    if (run->config->measure > 0)
        return run->measured >= run->config->measure ? dl2_run_position(run) : INFINITY;
    for (size_t i = 0; i < run->stream->stage_count; i++)
        length += run->config->stages[i].epochs;
    if (run->config->time_budget > 0)
        length = fmin(length,
                      dl2_budget_epochs(&run->budget, dl2_run_position(run), dl2_run_elapsed(run)));
    return length;
}

/* A device that has failed does nothing more, and so leaves out sums that the others wait for: that
 * is reported at once, and not when somebody asks for its losses. */
int dl2_run_look(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const struct dl2_error *failure = &run->device->failure;
    if (failure->status)
        return dl2_error_set(error, failure->status, "%s", failure->message);
    const bool first = dl2_world_rank(config->world) == 0;
    double seen[] = {config->stop && *config->stop, first ? run_length(run) : 0,
                     first && config->measure > 0 && run->state.seconds >= config->measure};
    DL2_TRY(dl2_world_sum(config->world, seen, 3, error));
    run->stopping = seen[0] > 0;
    run->length = seen[1];
    run->pass_over = seen[2] > 0;
    return DL2_OK;
}

unsigned dl2_run_processors(const struct dl2_run *run)
{
    const struct dl2_world *world = run->config->world;
    const unsigned processors = dl2_cpu_count(), sharers = world ? world->sharers : 1;
    return processors > sharers ? processors / sharers : 1;
}

/* Has a stage or a validation set that was opened before the same path? */
static bool was_opened(const struct dl2_stream *stream, const struct dl2_run_data *data)
{
    bool before = false;
    for (size_t i = 0; i < stream->stage_count; i++)
        before |= &stream->stages[i] != data && stream->stages[i].path &&
                  !strcmp(stream->stages[i].path, data->path);
    for (size_t i = 0; i < stream->val_count; i++)
        before |= &stream->val[i] != data && !strcmp(stream->val[i].path, data->path);
    return before;
}

static int open_dataset(const struct dl2_stream *stream, struct dl2_run_data *data,
                        const char *path, const char *split, const struct dl2_subset *subset,
                        struct dl2_error *error)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    options.val_fraction = stream->config->val_fraction;
    options.split_seed = stream->config->split_seed;
    if (subset)
        options.subset = *subset;
    options.keep = dl2_codec_is_image_file;
    data->path = path;
    data->name = dl2_dataset_variant_name(path);
    if (!data->name)
        return dl2_error_memory(error, "a training run");
    DL2_TRY(dl2_dataset_open(path, &options, &data->dataset, error));
    if (stream->runs[0].events.opened && !was_opened(stream, data))
        stream->runs[0].events.opened(stream->runs[0].events.context, path, data->dataset);
    data->images = dl2_dataset_count(data->dataset);
    data->bytes = dl2_dataset_bytes(data->dataset);
    if (dl2_dataset_class_count(data->dataset) < 2)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s has only one class; training needs at least two, as folders: "
                             "%s/train/CLASS/IMAGE or %s/CLASS/IMAGE",
                             path, path, path);
    return DL2_OK;
}

/* Labels are numbers by class name, so two datasets must have the same names. */
static int check_classes(const struct dl2_run_data *reference, const struct dl2_run_data *data,
                         struct dl2_error *error)
{
    unsigned n = dl2_dataset_class_count(reference->dataset);
    unsigned m = dl2_dataset_class_count(data->dataset);
    for (unsigned i = 0; i < n && i < m; i++) {
        const char *a = dl2_dataset_class_name(reference->dataset, i);
        const char *b = dl2_dataset_class_name(data->dataset, i);
        if (strcmp(a, b) != 0)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "the classes of %s are not those of %s: its class %u is '%s' "
                                 "where that has '%s'",
                                 data->path, reference->path, i + 1, b, a);
    }
    if (n != m)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the classes of %s are not those of %s: it has %u, that has %u",
                             data->path, reference->path, m, n);
    return DL2_OK;
}

static const struct dl2_run_data *first_data(const struct dl2_stream *stream)
{
    return stream->stage_count ? &stream->stages[0] : &stream->val[0];
}

const struct dl2_run_data *dl2_run_first_data(const struct dl2_run *run)
{
    return first_data(run->stream);
}

static int open_stages(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    if (config->evaluate)
        return DL2_OK;
    stream->stages = dl2_calloc(config->stage_count, sizeof *stream->stages);
    if (!stream->stages)
        return dl2_error_memory(error, "a training run");
    double all = 0, end = 0;
    for (size_t i = 0; i < config->stage_count; i++)
        all += config->stages[i].epochs;
    for (size_t i = 0; i < config->stage_count; i++) {
        struct dl2_run_data *stage = &stream->stages[i];
        stream->stage_count = i + 1;
        struct dl2_loader_config size = config->loader;
        if (config->stages[i].image_size) {
            size.image_size = config->stages[i].image_size;
            size.image_width = config->stages[i].image_width;
        }
        stage->height = size.image_size;
        stage->width = dl2_loader_width(&size);
        end += config->stages[i].epochs;
        stage->share_end = i + 1 == config->stage_count ? 1 : end / all;
        if (!config->stages[i].path) {
            stage->name = strdup("synthetic");
            stage->images = config->synthetic_images;
            stream->classes = config->synthetic_classes;
            continue;
        }
        DL2_TRY(open_dataset(stream, stage, config->stages[i].path, config->train_split,
                             &config->subset, error));
        DL2_TRY(check_classes(&stream->stages[0], stage, error));
        stream->classes = dl2_dataset_class_count(stage->dataset);
    }
    return DL2_OK;
}

/* Counts the batches of all partitions. */
static int count_partitions(struct dl2_stream *stream, struct dl2_error *error)
{
    const unsigned partitions = stream->config->loader.partitions;
    if (!partitions)
        return DL2_OK;
    if (stream->stages[0].images < partitions || stream->stages[0].images > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: %llu training images cannot be divided into %u partitions",
                             stream->stages[0].path, (unsigned long long)stream->stages[0].images,
                             partitions);
    /* None of them may be left without a batch. */
    stream->drops_last = true;
    for (unsigned i = 0; i < partitions; i++) {
        const uint32_t *members;
        const uint32_t size = dl2_partition_of(stream->stages[0].dataset, i, partitions, &members);
        stream->drops_last = stream->drops_last && size >= stream->config->loader.batch;
    }
    for (unsigned i = 0; i < partitions; i++)
        stream->pass_steps += partition_steps(stream, i);
    return DL2_OK;
}

static bool has_key(const struct dl2_dataset *dataset, const char *key)
{
    struct dl2_sample sample;
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        dl2_dataset_sample(dataset, i, &sample);
        if (!strcmp(sample.key, key))
            return true;
    }
    return false;
}

/* Splits of a dataset have no image in common, unless they are the same one or one of them is all.
 */
static bool overlap(const struct dl2_dataset *a, const struct dl2_dataset *b)
{
    struct dl2_sample first_a, first_b;
    if (!dl2_dataset_count(a) || !dl2_dataset_count(b))
        return false;
    dl2_dataset_sample(a, 0, &first_a);
    dl2_dataset_sample(b, 0, &first_b);
    return has_key(b, first_a.key) || has_key(a, first_b.key);
}

/* Refuses to validate on images of a stage's dataset that are trained on. */
static int check_splits(const struct dl2_stream *stream, const struct dl2_run_data *val,
                        struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    if (!strcmp(config->train_split, "train") && !strcmp(config->val_split, "val"))
        return DL2_OK;
    for (size_t i = 0; i < stream->stage_count; i++)
        if (!strcmp(stream->stages[i].path, val->path) &&
            overlap(stream->stages[i].dataset, val->dataset))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: validation would be on images that are trained on: they are "
                                 "in the splits %s (--train-split) and %s (--val-split); name "
                                 "splits that are apart, or pass --skip-validation",
                                 val->path, config->train_split, config->val_split);
    return DL2_OK;
}

static int open_val_sets(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    const char *last = config->evaluate ? NULL : config->stages[config->stage_count - 1].path;
    const char *const *paths = config->val_count ? config->val : &last;
    size_t count = config->val_count ? config->val_count : 1;
    if (config->skip_validation || config->synthetic)
        return DL2_OK;
    stream->val = dl2_calloc(count, sizeof *stream->val);
    if (!stream->val)
        return dl2_error_memory(error, "a training run");
    for (size_t i = 0; i < count; i++) {
        stream->val_count = i + 1;
        DL2_TRY(open_dataset(stream, &stream->val[i], paths[i], config->val_split, NULL, error));
        DL2_TRY(check_classes(first_data(stream), &stream->val[i], error));
        DL2_TRY(check_splits(stream, &stream->val[i], error));
        stream->classes = dl2_dataset_class_count(stream->val[i].dataset);
    }
    return DL2_OK;
}

/* 1 where all of a few images of every stage are gray, else 3. Unreadable ones don't vote. An
 * evaluation looks at its first set. */
static void probe_channels(struct dl2_stream *stream)
{
    const size_t count = stream->stage_count ? stream->stage_count : 1;
    stream->channels = stream->config->loader.channels;
    if (stream->channels)
        return;
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    bool gray = false, colour = false;
    for (size_t k = 0; k < count && !colour; k++) {
        const struct dl2_run_data *stage = first_data(stream) + k;
        for (size_t i = 0; i < PROBES && stage->dataset && !colour; i++) {
            const uint8_t *data;
            size_t size;
            struct dl2_image_info info;
            size_t index = (size_t)(i * stage->images / PROBES);
            if (dl2_dataset_read(stage->dataset, index, &scratch, &data, &size, NULL) < 0 ||
                dl2_image_read_info(data, size, &info, NULL) < 0)
                continue;
            gray |= info.channels == 1;
            colour |= info.channels != 1;
        }
    }
    dl2_bytes_free(&scratch);
    stream->channels = gray && !colour ? 1 : 3;
}

/* "a" or "a+b": what the run was trained on. A new string, or NULL. */
static char *join_names(const struct dl2_run *run)
{
    const json_t *identity = json_object_get(run->config->origin, "identity");
    const json_t *trained = json_object_get(identity, "training data"); /* an evaluation's */
    const size_t count =
        run->stream->stage_count ? run->stream->stage_count : json_array_size(trained);
    char *joined = NULL;
    size_t size;
    FILE *out = open_memstream(&joined, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? "+" : "",
                run->stream->stage_count
                    ? run->stream->stages[i].name
                    : dl2_json_get_text(json_array_get(trained, i), "variant", "unknown"));
    if (count == 0)
        fputs("unknown", out);
    if (fclose(out) == 0)
        return joined;
    free(joined);
    return NULL;
}

/* The folder for a run's files, unless --out names one. A new string, or NULL. */
static char *default_folder(const struct dl2_run *run)
{
    const char *weights = run->config->evaluate;
    const char *base = weights ? dl2_path_base(weights) : NULL;
    if (!weights)
        return dl2_path_join("experiments", run->name);
    char *folder = strndup(weights, (size_t)(base - weights));
    char *out = folder ? dl2_path_join(*folder ? folder : ".", "evaluation") : NULL;
    free(folder);
    return out;
}

static int name_things(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    run->variant = join_names(run);
    if (!run->variant)
        return dl2_error_memory(error, "a training run");
    if (config->name) {
        run->name = strdup(config->name);
    } else {
        size_t size = strlen(run->variant) + strlen(config->arch) + 40;
        run->name = dl2_calloc(size, 1);
        if (run->name)
            snprintf(run->name, size, "%s-%s-seed-%llu", run->variant, config->arch,
                     (unsigned long long)config->seed);
    }
    if (run->name)
        run->out = config->out ? strdup(config->out) : default_folder(run);
    if (run->out) {
        run->report_path = dl2_path_join(run->out, config->evaluate      ? DL2_EVALUATION_FILE
                                                   : config->measure > 0 ? DL2_RATE_FILE
                                                                         : DL2_EXPERIMENT_FILE);
        run->checkpoint = config->checkpoint ? strdup(config->checkpoint)
                                             : dl2_path_join(run->out, DL2_CHECKPOINT_FILE);
        run->best = dl2_path_join(run->out, DL2_BEST_FILE);
        run->steps = dl2_path_join(run->out, DL2_STEPS_FILE);
    }
    return run->report_path && run->checkpoint && run->best && run->steps
               ? DL2_OK
               : dl2_error_memory(error, "a training run");
}

/* Opens the decoder on the card that the networks are on, so that batches are decoded in place. */
static int open_decoder(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    const struct dl2_device *device = stream->runs[0].device;
    struct dl2_loader_config loader = {.workers = config->loader.workers};
    if (config->decode.mode == DL2_DECODE_CPU || config->synthetic)
        return DL2_OK;
    if (!device->ops->is_card)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--decode %s leaves images in a card's memory, so it needs --device "
                             "cuda, not %s",
                             dl2_decode_mode_words[config->decode.mode], device->ops->name);
    if (!loader.workers)
        loader.workers = dl2_run_processors(&stream->runs[0]);
    return dl2_decode_choice_open(&config->decode, device->number, &loader, &stream->decoder,
                                  error);
}

static void keep_device_note(void *context, const char *text)
{
    struct dl2_run *run = context;
    json_array_append_new(run->device_notes, dl2_json_text(text));
    dl2_run_note(run, "warning: %s", text);
}

int dl2_run_open_device(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_train_config *config = run->config;
    const struct dl2_device_options options = {
        .threads = config->threads ? config->threads : dl2_run_processors(run),
        .precision = config->precision,
        .loss_scale = config->loss_scale,
        .deterministic = config->deterministic,
        .world = config->world,
        .note = keep_device_note,
        .note_context = run,
    };
    run->device_notes = json_array();
    return dl2_device_open(config->device, &options, &run->device, error);
}

static struct dl2_network_config network_config(const struct dl2_run *run)
{
    const struct dl2_train_config *config = run->config;
    struct dl2_network_config network = DL2_NETWORK_DEFAULTS;
    network.arch = config->arch;
    network.batch = config->loader.batch;
    network.height = config->loader.image_size;
    network.width = dl2_loader_width(&config->loader);
    network.channels = run->stream->channels;
    network.classes = run->stream->classes;
    for (int i = 0; i < 3; i++) {
        network.mean[i] = (float)config->mean[i];
        network.std[i] = (float)config->std[i];
    }
    if (run->stream->channels == 1) {
        network.mean[0] = (float)((config->mean[0] + config->mean[1] + config->mean[2]) / 3);
        network.std[0] = (float)((config->std[0] + config->std[1] + config->std[2]) / 3);
    }
    network.smoothing = (float)config->smoothing;
    network.seed = config->seed;
    network.optimizer = config->optimizer;
    network.norm_decay = config->norm_decay;
    network.average = config->average_decay > 0;
    network.train = !config->evaluate;
    network.sync_norm = config->sync_norm;
    return network;
}

/* Of a stage's images, in pixels. */
static size_t largest_width(const struct dl2_stream *stream)
{
    size_t width = 1;
    for (size_t i = 0; i < stream->stage_count; i++)
        width = stream->stages[i].width > width ? stream->stages[i].width : width;
    return width;
}

int dl2_run_open_network(struct dl2_run *run, struct dl2_error *error)
{
    const struct dl2_stream *stream = run->stream;
    const struct dl2_network_config network = network_config(run);
    DL2_TRY(dl2_network_create(run->device, &network, &run->network, error));
    /* Sizes that do not fit are found now, and not when their stage begins. */
    for (size_t i = 0; i < stream->stage_count; i++)
        DL2_TRY(dl2_network_use_size(run->network, stream->stages[i].height,
                                     stream->stages[i].width, error));
    DL2_TRY(dl2_network_use_size(run->network, network.height, network.width, error));
    run->partner = dl2_calloc(run->config->loader.batch, sizeof *run->partner);
    run->row = dl2_calloc(largest_width(run->stream), (size_t)run->stream->channels);
    return run->partner && run->row ? DL2_OK : dl2_error_memory(error, "a training run");
}

int dl2_run_plan_bytes(const struct dl2_run *run, uint64_t *bytes, struct dl2_error *error)
{
    const struct dl2_network_config network = network_config(run);
    return dl2_network_plan_bytes(run->device, &network, bytes, error);
}

/* What the caches of this process may grow to; that of encoded images no further than the images.
 * Each source has one of those, and all have that of decoded images in common. */
static double plan_caches(const struct dl2_stream *stream)
{
    const struct dl2_loader_config *loader = &stream->config->loader;
    const struct dl2_dataset *dataset = stream->stages[0].dataset;
    if (!dataset)
        return 0;
    const double most =
        (double)dl2_cache_most(dl2_dataset_count(dataset), dl2_dataset_bytes(dataset)) /
        (loader->partitions ? loader->partitions : 1);
    return (double)stream->source_count * fmin((double)loader->fetch.cache_bytes, most) +
           (double)loader->decoded_cache_bytes;
}

/* Refuses networks that are too large together, or with the caches, before any takes its memory. */
static int plan_memory(const struct dl2_stream *stream, struct dl2_error *error)
{
    const double mib = 1048576;
    const uint64_t given = stream->config->memory;
    const bool is_card = stream->runs[0].device->ops->is_card;
    const uint64_t limit = given ? given : is_card ? 0 : dl2_memory_available();
    uint64_t all = 0, most = 0;
    double caches = is_card ? 0 : plan_caches(stream); /* which are not in the card's memory */
    size_t at_once = stream->run_count;
    const struct dl2_run *largest = &stream->runs[0];
    for (size_t i = 0; i < stream->run_count; i++) {
        uint64_t bytes;
        const int status = dl2_run_plan_bytes(&stream->runs[i], &bytes, error);
        if (status < 0 && stream->several)
            dl2_error_prefix(error, "%s", stream->runs[i].name);
        DL2_TRY(status);
        all += bytes;
        largest = bytes > most ? &stream->runs[i] : largest;
        most = bytes > most ? bytes : most;
    }
    if (stream->hopping) { /* one on each of the ranks that share the machine's memory */
        at_once = stream->config->trainers;
        all = most * at_once;
        caches *= (double)at_once;
    }
    if (!limit || (double)all + caches <= (double)limit)
        return DL2_OK;
    char with_caches[80] = "";
    if (caches > 0)
        snprintf(with_caches, sizeof with_caches, ", and --cache and --cache-decoded %.1f MiB",
                 caches / mib);
    return dl2_error_set(error, DL2_ERR_MEMORY,
                         "the networks of %zu models take %.1f MiB together, the largest, of %s, "
                         "%.1f MiB%s; %s %.1f MiB: train fewer at once, or choose a smaller "
                         "--batch%s",
                         at_once, (double)all / mib, largest->name, (double)most / mib, with_caches,
                         given ? "--memory allows" : "this machine has", (double)limit / mib,
                         caches > 0 ? " or cache" : "");
}

/* Watches the card that the devices are on, if they are on one. */
static int start_monitor(struct dl2_stream *stream, struct dl2_error *error)
{
    const char *pci = stream->runs[0].device->pci;
    DL2_TRY(dl2_monitor_start(1.0, *pci ? pci : NULL, &stream->monitor, error));
    for (size_t i = 0; i < stream->run_count; i++) {
        struct dl2_run *run = &stream->runs[i];
        const struct dl2_device_class *ops = run->device->ops;
        run->card = ops->describe ? ops->describe(run->device) : NULL;
        json_t *told = dl2_monitor_card(stream->monitor);
        if (told && run->card)
            json_object_update_missing(told, run->card);
        if (told) {
            json_decref(run->card);
            run->card = told;
        }
    }
    return DL2_OK;
}

/*
 * Makes the folder of the run's files, and keeps others out of it where the file system knows
 * locks: a second run would write over this one's checkpoint and report.
 */
static int claim_places(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_make_folders(run->out, error));
    run->lock = open(run->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock >= 0 && flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dl2_error_set(error, DL2_ERR_SYSTEM,
                             "%s: another dl2-train is at work there; wait for it, or name another "
                             "folder by --out",
                             run->out);
    if (run->config->evaluate || run->config->measure > 0)
        return DL2_OK;
    DL2_TRY(dl2_file_expect(run->checkpoint, error));
    return run->config->export ? dl2_file_expect(run->config->export, error) : DL2_OK;
}

/* Gives each run its source of batches, whose feed is opened later. */
static int share_sources(struct dl2_stream *stream, struct dl2_error *error)
{
    const size_t count = stream->config->own_batches ? stream->run_count : 1;
    stream->sources = dl2_calloc(count, sizeof *stream->sources);
    if (!stream->sources)
        return dl2_error_memory(error, "training runs");
    stream->source_count = count;
    for (size_t i = 0; i < stream->run_count; i++)
        stream->runs[i].source = &stream->sources[count > 1 ? i : 0];
    return DL2_OK;
}

int dl2_stream_open(struct dl2_stream *stream, struct dl2_error *error)
{
    stream->config = stream->runs[0].config;
    stream->bad = json_object();
    DL2_TRY(share_sources(stream, error));
    for (size_t i = 0; i < stream->run_count; i++) {
        stream->runs[i].stream = stream;
        stream->runs[i].lock = -1;
        stream->runs[i].state.epochs = json_array();
    }
    DL2_TRY(open_stages(stream, error));
    DL2_TRY(count_partitions(stream, error));
    DL2_TRY(open_val_sets(stream, error));
    probe_channels(stream);
    for (size_t i = 0; i < stream->run_count; i++) {
        DL2_TRY(name_things(&stream->runs[i], error));
        if (dl2_world_rank(stream->config->world) == 0 && !stream->hopping)
            DL2_TRY(claim_places(&stream->runs[i], error));
        DL2_TRY(dl2_run_open_device(&stream->runs[i], error));
    }
    if (stream->several)
        DL2_TRY(plan_memory(stream, error));
    DL2_TRY(open_decoder(stream, error));
    for (size_t i = 0; i < stream->run_count && !stream->hopping; i++) {
        const int status = dl2_run_open_network(&stream->runs[i], error);
        if (status < 0 && stream->several)
            dl2_error_prefix(error, "%s, model %zu of %zu", stream->runs[i].name, i + 1,
                             stream->run_count);
        DL2_TRY(status);
    }
    return start_monitor(stream, error);
}

int dl2_run_enter(struct dl2_run *run, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    size_t i;
    json_t *bad;
    dl2_run_state_free(&run->state);
    run->state.epochs = json_array();
    run->stopped = run->stopping = run->interrupted = run->diverged = run->training = false;
    DL2_TRY(claim_places(run, error));
    /* What other ranks could not read belongs to the report, too. */
    if (dl2_json_load(run->report_path, DL2_EXPERIMENT_SCHEMA, &report, NULL) == DL2_OK)
        json_array_foreach(json_object_get(report, "bad"), i, bad) if (json_is_string(bad))
            json_object_set_new(run->stream->bad, json_string_value(bad), json_true());
    return dl2_run_open_network(run, error);
}

void dl2_run_leave(struct dl2_run *run)
{
    run->over = true;
    dl2_step_log_close(run->log);
    run->log = NULL;
    dl2_network_destroy(run->network);
    run->network = NULL;
    free(run->partner);
    free(run->row);
    run->partner = NULL;
    run->row = NULL;
    json_decref(run->arguments);
    json_decref(run->identity);
    json_decref(run->report);
    run->arguments = run->identity = run->report = NULL;
    if (run->lock >= 0)
        close(run->lock);
    run->lock = -1;
}

static void close_data(struct dl2_run_data *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(data[i].name);
        dl2_decoded_destroy(data[i].decoded);
        if (data[i].dataset)
            dl2_dataset_close(data[i].dataset);
    }
    free(data);
}

static void close_run(struct dl2_run *run)
{
    dl2_step_log_close(run->log);
    dl2_network_destroy(run->network);
    if (run->device)
        dl2_device_close(run->device);
    free(run->partner);
    free(run->row);
    free(run->variant);
    free(run->name);
    free(run->out);
    free(run->checkpoint);
    free(run->report_path);
    free(run->best);
    free(run->steps);
    json_decref(run->arguments);
    json_decref(run->identity);
    json_decref(run->report);
    json_decref(run->card);
    json_decref(run->device_notes);
    dl2_run_state_free(&run->state);
    if (run->lock >= 0)
        close(run->lock);
}

void dl2_stream_close(struct dl2_stream *stream)
{
    dl2_monitor_stop(stream->monitor);
    for (size_t i = 0; i < stream->source_count; i++)
        dl2_feed_destroy(stream->sources[i].feed); /* with memory of the first run's device */
    free(stream->sources);
    dl2_decoded_destroy(stream->decoded);
    dl2_batch_decoder_close(stream->decoder);
    for (size_t i = 0; i < stream->run_count; i++)
        close_run(&stream->runs[i]);
    close_data(stream->stages, stream->stage_count);
    close_data(stream->val, stream->val_count);
    json_decref(stream->bad);
}

static void *slot_alloc(void *context, size_t bytes)
{
    struct dl2_device *device = context;
    return device->ops->host_alloc(device, bytes);
}

static void slot_free(void *context, void *slot)
{
    struct dl2_device *device = context;
    device->ops->host_free(device, slot);
}

/* What of the cache of decoded images is for a stage or a validation set: as much for each image.
 */
static uint64_t cache_share(const struct dl2_stream *stream, const struct dl2_run_data *data)
{
    const struct dl2_train_config *config = stream->config;
    uint64_t all = 0;
    for (size_t i = 0; i < stream->stage_count; i++) /* one has a cache at a time */
        if (stream->stages[i].images > all)
            all = stream->stages[i].images;
    if (config->validate_every > 0) /* else there is one validation, at the end */
        for (size_t i = 0; i < stream->val_count; i++)
            all += stream->val[i].images;
    return (uint64_t)((double)config->loader.decoded_cache_bytes * (double)data->images /
                      (double)(all ? all : 1));
}

/* For a stage, or NULL for validation. */
static struct dl2_loader_config loader_config(const struct dl2_run *run,
                                              const struct dl2_run_data *stage)
{
    const bool train = stage != NULL;
    const struct dl2_stream *stream = run->stream;
    const struct dl2_train_config *config = run->config;
    struct dl2_device *device = stream->runs[0].device;
    struct dl2_loader_config loader = config->loader;
    loader.channels = stream->channels;
    loader.train = train;
    loader.rank = dl2_world_rank(config->world);
    loader.world = dl2_world_size(config->world);
    if (!loader.workers && loader.world > 1)
        loader.workers = dl2_run_processors(&stream->runs[0]);
    loader.decoder = stream->decoder;
    loader.decoder_shares = config->decode.mode == DL2_DECODE_HYBRID;
    loader.decoder_splices = config->decode.input == DL2_DECODE_SPLICED;
    if (device->ops->host_alloc) {
        loader.slot_alloc = slot_alloc;
        loader.slot_free = slot_free;
        loader.slot_context = device;
    }
    if (train || config->loader.val_crop == DL2_VAL_SQUASH)
        loader.resize = 0;
    if (train) {
        loader.val_crop = DL2_VAL_CENTER;
        loader.image_size = stage->height;
        loader.image_width = stage->width;
        loader.decoded_cache_bytes = cache_share(stream, stage);
    } else { /* opened anew for each validation: caches of its own would be of no use */
        loader.augment = NULL;
        loader.batching = DL2_BATCHING_STRICT;
        loader.shuffle_chunk = loader.shuffle_window = 0;
        loader.partition = loader.partitions = 0;
        loader.weights_file = NULL;
        loader.balanced = false;
        loader.repeats = loader.draws = 0;
        loader.fetch.cache_bytes = loader.decoded_cache_bytes = 0;
    }
    return loader;
}

/* Of several sources, all take the images from one cache, and share out the workers. */
static int share_images(struct dl2_run *run, const struct dl2_run_data *data,
                        struct dl2_loader_config *config, struct dl2_error *error)
{
    struct dl2_stream *stream = run->stream;
    const unsigned count = (unsigned)stream->source_count;
    if (count == 1)
        return DL2_OK;
    if (config->decoded_cache_bytes && !stream->decoded && data->dataset)
        DL2_TRY(
            dl2_decoded_create(data->images, config->decoded_cache_bytes, &stream->decoded, error));
    config->decoded_cache = stream->decoded;
    config->decoded_cache_bytes = 0;
    const unsigned workers = config->workers ? config->workers : dl2_run_processors(run);
    config->workers = workers > count ? workers / count : 1;
    return DL2_OK;
}

int dl2_run_open_feed(struct dl2_run *run, size_t stage, struct dl2_error *error)
{
    struct dl2_stream *stream = run->stream;
    struct dl2_source *source = run->source;
    if (source->feed && source->stage == stage)
        return DL2_OK;
    dl2_feed_destroy(source->feed);
    source->feed = NULL;
    source->stage = stage;
    const struct dl2_run_data *data = &stream->stages[stage];
    struct dl2_loader_config config = loader_config(run, data);
    DL2_TRY(share_images(run, data, &config, error));
    /* A last batch of a few images would make batch norm's statistics poor. */
    config.drop_last = config.partitions ? stream->drops_last
                                         : dl2_loader_epoch_samples(&config, data->images) >=
                                               (uint64_t)config.batch * config.world;
    int status = run->config->synthetic
                     ? dl2_feed_create_synthetic(data->images, stream->classes, &config,
                                                 &source->feed, error)
                     : dl2_feed_create(data->dataset, &config, &source->feed, error);
    return dl2_stream_agree(stream, status, error);
}

int dl2_stream_open_val(struct dl2_stream *stream, size_t set, struct dl2_feed **out,
                        struct dl2_error *error)
{
    struct dl2_run_data *data = &stream->val[set];
    struct dl2_loader_config config = loader_config(&stream->runs[0], NULL);
    const uint64_t cache = cache_share(stream, data);
    int status = DL2_OK;
    *out = NULL;
    if (cache && stream->config->validate_every > 0 && !data->decoded)
        status = dl2_decoded_create(data->images, cache, &data->decoded, error);
    config.decoded_cache = data->decoded;
    if (status == DL2_OK)
        status = dl2_feed_create(data->dataset, &config, out, error);
    status = dl2_stream_agree(stream, status, error);
    if (status < 0)
        dl2_feed_destroy(*out);
    return status;
}
