/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's datasets, their partitions, and the feeds of batches from them. */
#include "codec/codec.h"
#include "common/scope.h"
#include "dataset/subset_options.h"
#include "loader/decoded.h"
#include "loader/loader_options.h"
#include "loader/sample_plan.h"
#include "loader/sampler.h"
#include "network/arch.h"
#include "remote/remote_options.h"
#include "train/run.h"
#include "volumes/volume.h"

#include <stdlib.h>
#include <string.h>

/* Training images whose headers tell whether a dataset is gray. */
#define PROBES 32

/* -- datasets -- */

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

static bool any_dataset(const struct dl2_train_data *data, bool (*is)(const char *path))
{
    bool any = false;
    for (size_t i = 0; i < data->stage_count; i++)
        any = any || (data->stages[i].path && is(data->stages[i].path));
    for (size_t i = 0; i < data->joined_count; i++)
        any = any || is(data->joined[i]);
    for (size_t i = 0; i < data->val_count; i++)
        any = any || is(data->val[i]);
    return any;
}

static bool sees_volumes(const struct dl2_train_config *config)
{
    return config->loader.volume_depth;
}

/* Refuses images for a network of clips or volumes, and the reverse. */
static int check_kind(const struct dl2_train_config *config, const struct dl2_run_data *data,
                      struct dl2_error *error)
{
    const struct dl2_arch *arch = dl2_arch_find(config->arch, error);
    const enum dl2_sample_kind kind = dl2_dataset_kind(data->dataset);
    const bool clips = kind == DL2_SAMPLE_CLIP || kind == DL2_SAMPLE_VIDEO;
    struct dl2_error reason = DL2_ERROR_INIT;
    if (!arch)
        return DL2_ERR_ARGUMENT;
    if (sees_volumes(config)) /* the others' datasets have none: open_dataset() */
        return dl2_dataset_kind(data->dataset) == DL2_SAMPLE_VOLUME
                   ? DL2_OK
                   : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "%s: it holds %s, and %s sees volumes: files .npy, .nii or "
                                   ".nii.gz",
                                   data->path, clips ? "clips" : "images", arch->name);
    if (clips && config->loader.frames) /* --frames 1 makes images of clips */
        return DL2_OK;
    if (dl2_arch_check_frames(arch, clips, &reason) < 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: it holds %s, and %s", data->path,
                             clips ? "clips" : "images", reason.message);
    return DL2_OK;
}

/* Says where clips have fewer frames than are loaded of each; of videos that is known later. */
static void note_short_clips(const struct dl2_stream *stream, const struct dl2_run_data *data)
{
    const struct dl2_loader_config *loader = &stream->config->loader;
    const uint64_t wanted = dl2_loader_frame_span(loader);
    size_t count = 0;
    const bool known = dl2_dataset_kind(data->dataset) == DL2_SAMPLE_CLIP;
    for (size_t i = 0; known && loader->frames && i < data->images; i++)
        count += dl2_dataset_frames(data->dataset, i).count < wanted;
    if (count)
        dl2_run_note(&stream->runs[0],
                     "%s: %zu of %llu clips have fewer frames than the %llu that --frames reaches "
                     "over: frames of theirs are repeated",
                     data->path, count, (unsigned long long)data->images,
                     (unsigned long long)wanted);
}

/* What a stage or a validation set is opened by. */
struct opening {
    const struct dl2_stream *stream;
    const char *split;
    const struct dl2_subset *subset; /* NULL: all */
    bool tells;                      /* about each of several paths */
};

static int open_one(void *context, const char *path, struct dl2_dataset **out,
                    struct dl2_error *error)
{
    const struct opening *opening = context;
    const struct dl2_stream *stream = opening->stream;
    const struct dl2_train_events *events = &stream->runs[0].events;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = opening->split;
    options.val_fraction = stream->config->data.val_fraction;
    options.split_seed = stream->config->data.split_seed;
    if (opening->subset)
        options.subset = *opening->subset;
    options.remote = dl2_remote_options_of(&stream->config->data.remote, path,
                                           any_dataset(&stream->config->data, dl2_is_address));
    if (dl2_members_are_chosen(&stream->config->data.members))
        options.members =
            dl2_members_of(&stream->config->data.members, path,
                           any_dataset(&stream->config->data, dl2_dataset_has_members));
    options.keep = dl2_codec_is_image_file;
    options.takes_videos = true;
    options.reads = dl2_codec_reads;
    options.samples = stream->config->data.samples;
    options.labels = stream->config->data.labels;
    options.sidecars = stream->config->loader.mask;
    options.decode_slice = sees_volumes(stream->config) ? dl2_gray_decode : NULL;
    int status = dl2_dataset_open(path, &options, out, error);
    if (status == DL2_ERR_ARGUMENT && stream->config->run.origin_splits) {
        options.val_fraction = DL2_VAL_FRACTION_UNSET; /* a split of its own needs no fraction */
        options.split_seed = 0;
        dl2_error_clear(error);
        status = dl2_dataset_open(path, &options, out, error);
    }
    if (status == DL2_OK && opening->tells && events->opened)
        events->opened(events->context, path, *out);
    return status;
}

/* The names of the network's classes, in memory of others; none if no checkpoint has them and no
 * dataset came before this one. */
static int known_classes(const struct dl2_stream *stream, const struct dl2_run_data *data,
                         const char ***names, struct dl2_known_classes *list,
                         struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    const struct dl2_run_data *first = dl2_stream_first_data(stream);
    const json_t *trained = json_object_get(
        json_object_get(config->run.evaluate ? config->run.origin : NULL, "identity"),
        "class names");
    const size_t count = json_array_size(trained);
    list->of = count ? config->run.evaluate : first->path;
    list->count = count           ? (unsigned)count
                  : first != data ? dl2_dataset_class_count(first->dataset)
                                  : 0;
    DL2_TRY(DL2_NEW(names, list->count + 1u, "classes", error));
    for (unsigned i = 0; i < list->count; i++) {
        const char *name = count ? json_string_value(json_array_get(trained, i))
                                 : dl2_dataset_class_name(first->dataset, i);
        (*names)[i] = name ? name : "?";
    }
    list->names = *names;
    return DL2_OK;
}

/* Gives labels the network's numbers. */
static int number_labels(const struct dl2_stream *stream, const struct dl2_run_data *data,
                         struct dl2_error *error)
{
    DL2_AUTO_FREE const char **names = NULL;
    struct dl2_known_classes list;
    if (stream->config->loader.mask) /* classes are those of the pixels */
        return DL2_OK;
    DL2_TRY(known_classes(stream, data, &names, &list, error));
    if (list.count)
        return dl2_dataset_use_classes(data->dataset, data->path, &list, error);
    if (stream->config->run.evaluate)
        dl2_run_note(&stream->runs[0],
                     "%s does not name its classes: they are taken for those of %s, in their order",
                     stream->config->run.evaluate, data->path);
    return dl2_dataset_class_count(data->dataset) < 2
               ? dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s has only one class; training needs at least two, as folders: "
                               "%s/train/CLASS/IMAGE or %s/CLASS/IMAGE",
                               data->path, data->path, data->path)
               : DL2_OK;
}

/* `more` paths are joined to the first. */
static int open_dataset(struct opening *opening, struct dl2_run_data *data, const char *path,
                        size_t more, struct dl2_error *error)
{
    const struct dl2_stream *stream = opening->stream;
    const struct dl2_train_events *events = &stream->runs[0].events;
    DL2_AUTO_FREE const char **paths = NULL;
    DL2_TRY(DL2_NEW(&paths, more + 1, "a training run", error));
    paths[0] = path;
    if (more)
        memcpy(paths + 1, stream->config->data.joined, more * sizeof *paths);
    opening->tells &= more > 0;
    DL2_TRY(dl2_dataset_union_open(paths, more + 1, open_one, opening, &data->all, error));
    data->dataset = data->all.dataset;
    data->path = data->all.path;
    data->name = data->all.name;
    data->images = dl2_dataset_count(data->dataset);
    data->bytes = dl2_dataset_bytes(data->dataset);
    dl2_dataset_hash(data->dataset, &data->samples, &data->times);
    const int status = number_labels(stream, data, error);
    if (events->opened && !was_opened(stream, data))
        events->opened(events->context, data->path, data->dataset);
    DL2_TRY(status);
    DL2_TRY(check_kind(stream->config, data, error));
    note_short_clips(stream, data);
    return DL2_OK;
}

static unsigned count_classes(const struct dl2_train_config *config,
                              const struct dl2_run_data *data)
{
    return config->loader.mask ? config->data.synthetic_classes
                               : dl2_dataset_class_count(data->dataset);
}

const struct dl2_run_data *dl2_stream_first_data(const struct dl2_stream *stream)
{
    return stream->stage_count ? &stream->stages[0] : &stream->val[0];
}

static int open_stages(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    if (config->run.evaluate)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&stream->stages, config->data.stage_count, "a training run", error));
    double all = 0, end = 0;
    for (size_t i = 0; i < config->data.stage_count; i++)
        all += config->data.stages[i].epochs;
    for (size_t i = 0; i < config->data.stage_count; i++) {
        struct dl2_run_data *stage = &stream->stages[i];
        stream->stage_count = i + 1;
        struct dl2_loader_config size = config->loader;
        if (config->data.stages[i].height) {
            size.height = config->data.stages[i].height;
            size.width = config->data.stages[i].width;
        }
        stage->height = size.height;
        stage->width = dl2_loader_width(&size);
        end += config->data.stages[i].epochs;
        stage->share_end = i + 1 == config->data.stage_count ? 1 : end / all;
        if (!config->data.stages[i].path) {
            stage->name = "synthetic";
            stage->images = config->data.synthetic_images;
            stream->classes = config->data.synthetic_classes;
            continue;
        }
        struct opening opening = {stream, config->data.train_split, &config->data.subset, true};
        DL2_TRY(open_dataset(&opening, stage, config->data.stages[i].path,
                             config->data.joined_count, error));
        stream->classes = count_classes(config, stage);
    }
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

static const char *path_of(const struct dl2_run_data *data, size_t member)
{
    const char *path = dl2_dataset_member_path(data->dataset, member);
    return path ? path : data->path;
}

/* The same of what they join. */
static bool any_overlap(const struct dl2_run_data *a, const struct dl2_run_data *b)
{
    bool found = false;
    for (size_t i = 0; i < a->all.count; i++)
        for (size_t k = 0; !found && k < b->all.count; k++)
            found = !strcmp(path_of(a, i), path_of(b, k)) &&
                    overlap(a->all.members[i], b->all.members[k]);
    return found;
}

/* Refuses to validate on images of a stage's dataset that are trained on. */
static int check_splits(const struct dl2_stream *stream, const struct dl2_run_data *val,
                        struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    if (!strcmp(config->data.train_split, "train") && !strcmp(config->data.val_split, "val"))
        return DL2_OK;
    for (size_t i = 0; i < stream->stage_count; i++)
        if (any_overlap(&stream->stages[i], val))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: validation would be on images that are trained on: they are "
                                 "in the splits %s (--train-split) and %s (--val-split); name "
                                 "splits that are apart, or pass --skip-validation",
                                 val->path, config->data.train_split, config->data.val_split);
    return DL2_OK;
}

static int open_val_sets(struct dl2_stream *stream, struct dl2_error *error)
{
    const struct dl2_train_config *config = stream->config;
    const char *last =
        config->run.evaluate ? NULL : config->data.stages[config->data.stage_count - 1].path;
    const char *const *paths = config->data.val_count ? config->data.val : &last;
    size_t count = config->data.val_count ? config->data.val_count : 1;
    if (config->run.skip_validation || config->data.synthetic)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&stream->val, count, "a training run", error));
    for (size_t i = 0; i < count; i++) {
        stream->val_count = i + 1;
        struct opening opening = {.stream = stream, .split = config->data.val_split};
        DL2_TRY(open_dataset(&opening, &stream->val[i], paths[i],
                             config->data.val_count ? 0 : config->data.joined_count, error));
        DL2_TRY(check_splits(stream, &stream->val[i], error));
        stream->classes = count_classes(config, &stream->val[i]);
    }
    return DL2_OK;
}

/* 1 where all of a few images of every stage are gray, else 3. Unreadable ones don't vote. Of
 * volumes: those of the first. An evaluation looks at its first set. */
static void probe_channels(struct dl2_stream *stream)
{
    const size_t count = stream->stage_count ? stream->stage_count : 1;
    stream->channels = stream->config->loader.channels;
    if (stream->channels)
        return;
    if (sees_volumes(stream->config)) {
        const struct dl2_dataset *dataset = dl2_stream_first_data(stream)->dataset;
        stream->channels = dataset ? dl2_dataset_volume_channels(dataset) : 1;
        return;
    }
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    bool gray = false, color = false;
    for (size_t k = 0; k < count && !color; k++) {
        const struct dl2_run_data *stage = dl2_stream_first_data(stream) + k;
        for (size_t i = 0; i < PROBES && stage->dataset && !color; i++) {
            const uint8_t *data;
            size_t size;
            struct dl2_image_info info;
            size_t index = i * dl2_dataset_image_count(stage->dataset) / PROBES;
            if (dl2_dataset_read(stage->dataset, index, &scratch, &data, &size, NULL) < 0 ||
                dl2_image_read_info(data, size, &info, NULL) < 0)
                continue;
            gray |= info.channels == 1;
            color |= info.channels != 1;
        }
    }
    dl2_bytes_free(&scratch);
    stream->channels = gray && !color ? 1 : 3;
}

/* -- partitions -- */

/* Batches of a partition in a pass. */
static uint64_t partition_steps(const struct dl2_run *run, unsigned partition)
{
    const struct dl2_loader_config *loader = &run->config->loader;
    const uint32_t *members;
    const uint32_t size =
        dl2_partition_of(run->stream->stages[0].dataset, partition, loader->partitions, &members);
    return run->drops_last ? size / loader->batch : (size + loader->batch - 1) / loader->batch;
}

static void count_steps(struct dl2_run *run, unsigned partitions)
{
    const struct dl2_dataset *dataset = run->stream->stages[0].dataset;
    /* None of them may be left without a batch. */
    run->drops_last = true;
    for (unsigned i = 0; i < partitions; i++) {
        const uint32_t *members;
        const uint32_t size = dl2_partition_of(dataset, i, partitions, &members);
        run->drops_last = run->drops_last && size >= run->config->loader.batch;
    }
    for (unsigned i = 0; i < partitions; i++)
        run->pass_steps += partition_steps(run, i);
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
    for (size_t i = 0; i < stream->run_count; i++)
        count_steps(&stream->runs[i], partitions);
    return DL2_OK;
}

enum dl2_visit dl2_visit_find(const struct dl2_run *run, const struct dl2_run_state *state,
                              unsigned partition, uint64_t *begin, uint64_t *end)
{
    enum dl2_visit found = DL2_VISIT_NEW;
    uint64_t done = 0;
    size_t i;
    json_t *visit;
    if (state->trained) {
        *begin = *end = run->pass_steps;
        return found;
    }
    json_array_foreach(state->visits, i, visit)
    {
        const unsigned its = (unsigned)json_integer_value(visit);
        *begin = done;
        *end = done += partition_steps(run, its);
        if (state->batch < done)
            return its == partition ? DL2_VISIT_BEGUN : DL2_VISIT_ELSEWHERE;
        found = its == partition ? DL2_VISIT_DONE : found;
    }
    *begin = done;
    *end = done + partition_steps(run, partition);
    return found;
}

/* -- feeds -- */

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
    if (config->run.validate_every > 0) /* else there is one validation, at the end */
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
    const struct dl2_train_config *config = train ? run->config : stream->config;
    struct dl2_device *device = stream->runs[0].device;
    struct dl2_loader_config loader = config->loader;
    loader.channels = stream->channels;
    loader.train = train;
    loader.rank = dl2_world_rank(config->world);
    loader.world = dl2_world_size(config->world);
    if (!loader.workers && loader.world > 1)
        loader.workers = dl2_run_processors(&stream->runs[0]);
    loader.mask_fill = loader.mask ? DL2_MASK_IGNORED : 0; /* what lies outside, and bad images */
    loader.decoder = stream->decoder;
    loader.decoder_shares = config->decode.mode == DL2_DECODE_HYBRID;
    loader.decoder_splices = config->decode.input == DL2_DECODE_SPLICED;
    if (device->ops->host_alloc) {
        loader.slot_alloc = slot_alloc;
        loader.slot_free = slot_free;
        loader.slot_context = device;
    }
    dl2_loader_clear_idle(&loader);
    if (loader.val_crop == DL2_VAL_SQUASH)
        loader.resize = 0;
    if (train) {
        loader.height = stage->height;
        loader.width = stage->width;
        loader.decoded_cache_bytes = cache_share(stream, stage);
    } else { /* opened anew for each validation: caches of its own would be of no use */
        loader.batching = DL2_BATCHING_STRICT;
        if (loader.frame_sampling == DL2_FRAMES_RANDOM)
            loader.frame_sampling = DL2_FRAMES_AUTO; /* the center */
        const unsigned clips = dl2_loader_clips(&loader);
        loader.batch = loader.batch > clips ? loader.batch / clips : 1;
        loader.partition = loader.partitions = 0;
        loader.fetch.cache_bytes = loader.decoded_cache_bytes = 0;
    }
    return loader;
}

/* Several sources take the images from one cache, and share out the workers. */
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
    config.drop_last = config.partitions ? run->drops_last
                                         : dl2_loader_epoch_samples(&config, data->images) >=
                                               (uint64_t)config.batch * config.world;
    int status =
        run->config->data.synthetic
            ? dl2_feed_create_synthetic(data->images, stream->classes, dl2_run_labels_pixels(run),
                                        &config, &source->feed, error)
            : dl2_feed_create(data->dataset, &config, &source->feed, error);
    const char *note = status == DL2_OK ? dl2_feed_shares_note(source->feed) : NULL;
    if (note && source == stream->sources)
        dl2_run_note(run, "--shares: %s", note);
    return dl2_stream_agree(stream, status, error);
}

struct dl2_loader_config dl2_stream_val_config(const struct dl2_stream *stream)
{
    return loader_config(&stream->runs[0], NULL);
}

int dl2_stream_open_val(struct dl2_stream *stream, size_t set, struct dl2_feed **out,
                        struct dl2_error *error)
{
    struct dl2_run_data *data = &stream->val[set];
    struct dl2_loader_config config = dl2_stream_val_config(stream);
    const uint64_t cache = cache_share(stream, data);
    int status = DL2_OK;
    *out = NULL;
    if (cache && stream->config->run.validate_every > 0 && !data->decoded)
        status = dl2_decoded_create(data->images, cache, &data->decoded, error);
    config.decoded_cache = data->decoded;
    if (status == DL2_OK)
        status = dl2_feed_create(data->dataset, &config, out, error);
    status = dl2_stream_agree(stream, status, error);
    if (status < 0)
        dl2_feed_destroy(*out);
    return status;
}

int dl2_stream_open_crops(struct dl2_stream *stream, size_t set, struct dl2_feed **out,
                          struct dl2_error *error)
{
    struct dl2_loader_config config = loader_config(&stream->runs[0], NULL);
    config.train = true;
    dl2_loader_clear_idle(&config);
    config.drop_last = stream->val[set].images >= config.batch;
    return dl2_feed_create(stream->val[set].dataset, &config, out, error);
}

/* -- opening and closing -- */

int dl2_stream_open_data(struct dl2_stream *stream, struct dl2_error *error)
{
    DL2_TRY(open_stages(stream, error));
    DL2_TRY(count_partitions(stream, error));
    DL2_TRY(open_val_sets(stream, error));
    probe_channels(stream);
    return DL2_OK;
}

static void close_data(struct dl2_run_data *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dl2_decoded_destroy(data[i].decoded);
        dl2_dataset_union_close(&data[i].all);
    }
    free(data);
}

void dl2_stream_close_data(struct dl2_stream *stream)
{
    close_data(stream->stages, stream->stage_count);
    close_data(stream->val, stream->val_count);
}
