/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes a stream and its runs: folders, devices, networks, decoder, monitor. */
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "loader/cache.h"
#include "loader/decoded.h"
#include "loader/loader_options.h"
#include "network/arch.h"
#include "train/run.h"
#include "train/step_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

/* -- names and folders -- */

/* "a" or "a+b": what the run was trained on. A new string, or NULL. */
static char *join_names(const struct dl2_run *run)
{
    const json_t *identity = json_object_get(run->config->run.origin, "identity");
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
    const char *weights = run->config->run.evaluate;
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
    const bool saves = !config->run.evaluate && !(config->run.measure > 0);
    run->variant = join_names(run);
    if (!run->variant)
        return dl2_error_memory(error, "a training run");
    if (config->run.name) {
        run->name = strdup(config->run.name);
    } else {
        size_t size = strlen(run->variant) + strlen(config->arch) + 40;
        run->name = dl2_calloc(size, 1);
        if (run->name)
            snprintf(run->name, size, "%s-%s-seed-%llu", run->variant, config->arch,
                     (unsigned long long)config->seed);
    }
    if (run->name)
        run->out = config->run.out ? strdup(config->run.out) : default_folder(run);
    if (run->out) {
        run->report_path = dl2_path_join(run->out, config->run.evaluate      ? DL2_EVALUATION_FILE
                                                   : config->run.measure > 0 ? DL2_RATE_FILE
                                                                             : DL2_EXPERIMENT_FILE);
        if (saves)
            run->checkpoint = config->run.checkpoint ? strdup(config->run.checkpoint)
                                                     : dl2_path_join(run->out, DL2_CHECKPOINT_FILE);
        run->best = dl2_path_join(run->out, DL2_BEST_FILE);
        run->steps = dl2_path_join(run->out, DL2_STEPS_FILE);
    }
    return run->report_path && (run->checkpoint || !saves) && run->best && run->steps
               ? DL2_OK
               : dl2_error_memory(error, "a training run");
}

/*
 * Makes the folder of the run's files, and keeps others out of it where the file system knows
 * locks: a second run would write over this one's checkpoint and report.
 */
int dl2_run_claim_folder(struct dl2_run *run, struct dl2_error *error)
{
    DL2_TRY(dl2_make_folders(run->out, error));
    run->lock = open(run->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock >= 0 && flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dl2_error_set(error, DL2_ERR_SYSTEM,
                             "%s: another dl2-train is at work there; wait for it, or name another "
                             "folder by --out",
                             run->out);
    if (!run->checkpoint)
        return DL2_OK;
    DL2_TRY(dl2_file_expect(run->checkpoint, error));
    return run->config->run.export ? dl2_file_expect(run->config->run.export, error) : DL2_OK;
}

/* -- devices and networks -- */

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
    const struct dl2_arch *arch = dl2_arch_find(config->arch, NULL); /* unknown: create() tells */
    network.arch = config->arch;
    network.frames = arch && arch->frames ? dl2_loader_planes(&config->loader) : 0;
    network.floats = config->loader.dtype == DL2_FLOAT32;
    network.batch = config->loader.batch;
    network.height = config->loader.height;
    network.width = dl2_loader_width(&config->loader);
    network.channels = run->stream->channels;
    network.classes = run->stream->classes;
    for (int i = 0; i < 3; i++) {
        network.mean[i] = (float)config->data.mean[i];
        network.std[i] = (float)config->data.std[i];
    }
    if (run->stream->channels == 1) {
        network.mean[0] =
            (float)((config->data.mean[0] + config->data.mean[1] + config->data.mean[2]) / 3);
        network.std[0] =
            (float)((config->data.std[0] + config->data.std[1] + config->data.std[2]) / 3);
    }
    network.smoothing = (float)config->optimizer.smoothing;
    network.seed = config->seed;
    network.optimizer = config->optimizer.kind;
    network.norm_decay = config->optimizer.norm_decay;
    network.average = config->optimizer.average_decay > 0;
    network.train = !config->run.evaluate || config->run.sensitivity;
    network.images_gradient = config->run.sensitivity != NULL;
    network.sync_norm = config->sync_norm;
    return network;
}

/* The largest width of the stages' images, in pixels. */
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

static bool has_compressed_volumes(const struct dl2_dataset *dataset)
{
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        const size_t length = strlen(sample.path);
        if (length > 3 && !strcasecmp(sample.path + length - 3, ".gz"))
            return true;
    }
    return false;
}

/* What the caches of this process may grow to; that of encoded images no further than the images.
 * Each source has one of those, and all have that of decoded images in common. */
static double plan_caches(const struct dl2_stream *stream)
{
    const struct dl2_loader_config *loader = &stream->config->loader;
    const struct dl2_dataset *dataset = stream->stages[0].dataset;
    if (!dataset)
        return 0;
    if (loader->volume_depth) /* how large they are, decompressed, is not known yet */
        return has_compressed_volumes(dataset) ? (double)loader->volume_cache_bytes : 0;
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
        at_once = stream->config->run.trainers;
        all = most * at_once;
        caches *= (double)at_once;
    }
    if (!limit || (double)all + caches <= (double)limit)
        return DL2_OK;
    char with_caches[80] = "";
    if (caches > 0)
        snprintf(with_caches, sizeof with_caches, ", and %s %.1f MiB",
                 stream->config->loader.volume_depth ? "--cache-volumes"
                                                     : "--cache and --cache-decoded",
                 caches / mib);
    return dl2_error_set(error, DL2_ERR_MEMORY,
                         "the networks of %zu models take %.1f MiB together, the largest, of %s, "
                         "%.1f MiB%s; %s %.1f MiB: train fewer at once, or choose a smaller "
                         "--batch%s",
                         at_once, (double)all / mib, largest->name, (double)most / mib, with_caches,
                         given ? "--memory allows" : "this machine has", (double)limit / mib,
                         caches > 0 ? " or cache" : "");
}

/* Opens the decoder on the card that the networks are on, so that batches are decoded in place. */
static int open_decoder(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    const struct dl2_device *device = stream->runs[0].device;
    struct dl2_loader_config loader = {.workers = config->loader.workers};
    if (config->decode.mode == DL2_DECODE_CPU || config->data.synthetic)
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

/* Watches the card that the devices are on, if they are on one. */
static int start_monitor(struct dl2_stream *stream, struct dl2_error *error)
{
    const char *pci = stream->runs[0].device->pci;
    DL2_TRY(dl2_monitor_start(1.0, *pci ? pci : NULL,
                              stream->config->run.in_database ? "postgres" : NULL, &stream->monitor,
                              error));
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

/* -- a stream -- */

/* Gives each run its source of batches, whose feed is opened later. */
static int share_sources(struct dl2_stream *stream, struct dl2_error *error)
{
    const size_t count = stream->config->data.own_batches ? stream->run_count : 1;
    DL2_TRY(DL2_NEW(&stream->sources, count, "training runs", error));
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
    DL2_TRY(dl2_stream_open_data(stream, error));
    for (size_t i = 0; i < stream->run_count; i++) {
        DL2_TRY(name_things(&stream->runs[i], error));
        if (dl2_world_rank(stream->config->world) == 0 && !stream->hopping)
            DL2_TRY(dl2_run_claim_folder(&stream->runs[i], error));
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

static void close_run(struct dl2_run *run)
{
    dl2_step_log_close(run->log);
    dl2_network_destroy(run->network);
    if (run->device)
        dl2_device_close(run->device);
    free(run->partner);
    free(run->row);
    free(run->labels);
    json_decref(run->pixels);
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
    dl2_stream_close_data(stream);
    json_decref(stream->bad);
}
