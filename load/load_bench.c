/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-load bench: loads all images as training would, and measures the rate. */
#include "codec/codec.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/machine.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/stats.h"
#include "load/load.h"
#include "loader/loader_options.h"
#include "pixels/augment.h"
#include "pixels/resize.h"
#include "volumes/volume.h"

#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

struct scaling {
    unsigned workers;
    struct dl2_loader *loader;
    struct dl2_load_run run; /* without the first of several epochs */
};

struct bench {
    const struct dl2_load_options *options;
    const struct dl2_dataset *dataset;
    const char *path;
    const char *name;
    uint64_t samples;
    uint64_t epoch_samples;      /* of this rank */
    struct dl2_load_run *epochs; /* [epoch_count] */
    unsigned epoch_count;
    struct dl2_load_run total;
    struct dl2_loader_stats stats;
    struct dl2_remote_stats remote; /* if is_remote; since the dataset was opened */
    bool is_remote;
    struct scaling *scaling;
    struct dl2_batch_decoder *decoder;
    struct dl2_loader_config config; /* options->loader, with the decoder */
    struct dl2_batch_decoder_stats decoded;
    struct dl2_bytes host; /* a batch that was downloaded from the decoder */
    struct dl2_error failure;
    struct dl2_bytes gaps; /* doubles: seconds from each batch of an epoch to the next; sorted at
                              the end */
    double last;           /* when the batch before came; 0: there is none in this epoch */
    json_t *bad;
    double resident;        /* with --cold: the largest part of the files that stayed in memory */
    uint64_t peak;          /* resident memory of the process before the scaling runs */
    bool digesting, noting; /* each batch: its bytes, when it came */
    uint32_t digest;
    struct dl2_progress progress;
};

static size_t sample_bytes(const struct dl2_loader_config *config)
{
    return (size_t)config->height * dl2_loader_width(config) * config->channels *
           dl2_dtype_size(config->dtype) * dl2_loader_planes(config);
}

/* What samples are called. */
static const char *noun(const struct bench *bench)
{
    const struct dl2_loader_config *config = &bench->options->loader;
    return config->volume_depth ? "volume" : config->frames ? "clip" : "image";
}

static const char *nouns(const struct bench *bench)
{
    const struct dl2_loader_config *config = &bench->options->loader;
    return config->volume_depth ? "volumes" : config->frames ? "clips" : "images";
}

/* Notes when a batch came. */
static void note_gap(struct bench *bench)
{
    const double now = dl2_clock_wall(), gap = now - bench->last;
    if (bench->last > 0 && bench->failure.status == DL2_OK)
        dl2_bytes_append(&bench->gaps, &gap, sizeof gap, &bench->failure);
    bench->last = now;
}

/* The gap that a part of all is at most; NAN without any. */
static double gap_at(const struct bench *bench, double part)
{
    const size_t count = bench->gaps.size / sizeof(double);
    return count ? dl2_percentile((const double *)bench->gaps.data, count, part) : (double)NAN;
}

static void see_batch(void *context, const struct dl2_batch *batch)
{
    struct bench *bench = context;
    if (bench->noting)
        note_gap(bench);
    if (bench->digesting) {
        const size_t size = sample_bytes(&bench->options->loader);
        const uint8_t *images = batch->images;
        if (bench->decoder) {
            if (dl2_bytes_resize(&bench->host, batch->count * size, &bench->failure) < 0 ||
                bench->decoder->ops->download(bench->decoder, bench->host.data, images,
                                              batch->count * size, &bench->failure) < 0)
                return;
            images = bench->host.data;
        }
        for (unsigned i = 0; i < batch->count; i++)
            bench->digest = (uint32_t)crc32_z(bench->digest, images + i * size, size);
        bench->digest = (uint32_t)crc32_z(bench->digest, (const Bytef *)batch->labels,
                                          batch->count * sizeof *batch->labels);
    }
    dl2_progress_update(&bench->progress, bench->progress.done + batch->count, NULL);
}

static int run_epoch(struct bench *bench, struct dl2_loader *loader, unsigned epoch,
                     struct dl2_load_run *run, struct dl2_error *error)
{
    double resident;
    if (bench->options->cold) {
        DL2_TRY(dl2_fetch_evict(bench->dataset, &resident, error));
        bench->resident = resident > bench->resident ? resident : bench->resident;
    }
    const double seconds = bench->options->measure;
    bench->last = 0;
    const struct dl2_load_pass pass = {.epoch = epoch,
                                       .seconds = isnan(seconds) ? 0 : seconds,
                                       .batch = see_batch,
                                       .context = bench};
    DL2_TRY(dl2_load_run(loader, &pass, run, error));
    return dl2_error_copy(error, &bench->failure);
}

static void add_run(struct dl2_load_run *sum, const struct dl2_load_run *run)
{
    sum->seconds += run->seconds;
    sum->cpu_seconds += run->cpu_seconds;
    sum->delivered += run->delivered;
    sum->images += run->images;
    sum->bytes_read += run->bytes_read;
    sum->disk_bytes += run->disk_bytes;
}

/* Have so many epochs been loaded as were asked for, or for so long after the first? */
static bool is_enough(const struct bench *bench)
{
    const double measure = bench->options->measure;
    double seconds = 0;
    if (isnan(measure))
        return bench->epoch_count == bench->options->epochs;
    for (unsigned i = 1; i < bench->epoch_count; i++)
        seconds += bench->epochs[i].seconds;
    const bool idle = bench->epoch_count && !bench->epochs[bench->epoch_count - 1].images;
    return seconds >= measure || idle; /* where nothing can be loaded, no time helps */
}

static int run_epochs(struct bench *bench, struct dl2_loader *loader, struct dl2_error *error)
{
    const unsigned expected = isnan(bench->options->measure) ? bench->options->epochs : 2;
    dl2_progress_begin(&bench->progress, "load", nouns(bench), bench->epoch_samples * expected,
                       bench->options->quiet);
    bench->digesting = bench->options->digest;
    bench->noting = true;
    int status = DL2_OK;
    while (status == DL2_OK && !is_enough(bench)) {
        bench->epochs = dl2_keep_more(bench->epochs, bench->epoch_count, sizeof *bench->epochs);
        struct dl2_load_run *epoch = &bench->epochs[bench->epoch_count];
        *epoch = (struct dl2_load_run){0};
        status = run_epoch(bench, loader, bench->epoch_count++, epoch, error);
        add_run(&bench->total, epoch);
    }
    bench->digesting = bench->noting = false;
    dl2_sort((double *)bench->gaps.data, bench->gaps.size / sizeof(double));
    dl2_progress_end(&bench->progress);
    dl2_loader_get_stats(loader, &bench->stats);
    bench->is_remote = dl2_dataset_remote_stats(bench->dataset, &bench->remote);
    if (bench->decoder)
        bench->decoder->ops->get_stats(bench->decoder, &bench->decoded);
    bench->peak = dl2_peak_rss();
    return status;
}

/* ---- Scaling: one epoch for each number of workers in turn ---- */

static int run_scaling(struct bench *bench, struct dl2_error *error)
{
    const struct dl2_load_options *options = bench->options;
    const size_t count = options->scaling_count;
    for (size_t i = 0; i < count; i++) {
        struct dl2_loader_config config = bench->config;
        config.workers = bench->scaling[i].workers = options->scaling[i];
        DL2_TRY(dl2_loader_create(bench->dataset, &config, &bench->scaling[i].loader, error));
    }
    dl2_progress_begin(&bench->progress, "scaling", nouns(bench),
                       bench->epoch_samples * options->epochs * count, options->quiet);
    int status = DL2_OK;
    for (unsigned epoch = 0; epoch < options->epochs && status == DL2_OK; epoch++)
        for (size_t i = 0; i < count && status == DL2_OK; i++) {
            struct scaling *row = &bench->scaling[i];
            struct dl2_load_run run = {0};
            status = run_epoch(bench, row->loader, epoch, &run, error);
            if (epoch > 0 || options->epochs == 1)
                add_run(&row->run, &run);
        }
    dl2_progress_end(&bench->progress);
    return status;
}

static double scaling_rate(const struct scaling *row)
{
    return dl2_load_rate((double)row->run.images, row->run.seconds);
}

/* The rate per worker relative to that of the first row. */
static double efficiency(const struct bench *bench, const struct scaling *row)
{
    const double one = scaling_rate(&bench->scaling[0]) / bench->scaling[0].workers;
    return one > 0 ? scaling_rate(row) / row->workers / one : 0;
}

/* ---- Results ---- */

/* The workers' time outside all stages, waiting for a free slot or for the epoch's end. */
static double waited(const struct bench *bench)
{
    const struct dl2_loader_stats *stats = &bench->stats;
    const double rest = bench->options->loader.workers * bench->total.seconds - stats->read -
                        stats->decode - stats->transform - stats->operations;
    return rest > 0 ? rest : 0;
}

static void print_stage(FILE *out, const char *name, double seconds, const struct bench *bench)
{
    const double total = bench->options->loader.workers * bench->total.seconds;
    const double images = bench->stats.images ? (double)bench->stats.images : 1;
    fprintf(out, "  %-12s %7.2f s %7.1f %% %10.1f us a%s %s\n", name, seconds,
            total > 0 ? 100 * seconds / total : 0, 1e6 * seconds / images,
            *noun(bench) == 'i' ? "n" : "", noun(bench));
}

/* The operations on volumes, by name; NULL: there are none. The caller frees it. */
static struct dl2_augmentation *timed_augmentation(const struct bench *bench)
{
    struct dl2_augmentation *augmentation = NULL;
    const struct dl2_loader_config *config = &bench->options->loader;
    if (config->volume_depth && config->augment)
        dl2_augmentation_parse(config->augment, &augmentation, NULL);
    return augmentation;
}

static size_t timed_count(const struct dl2_augmentation *augmentation)
{
    const size_t count = augmentation ? dl2_augmentation_count(augmentation) : 0;
    return count < DL2_AUGMENT_TIMED ? count : DL2_AUGMENT_TIMED;
}

static void print_operations(FILE *out, const struct bench *bench)
{
    struct dl2_augmentation *augmentation = timed_augmentation(bench);
    char name[32];
    for (size_t i = 0; i < timed_count(augmentation); i++) {
        snprintf(name, sizeof name, "  %s", dl2_augmentation_name(augmentation, i));
        print_stage(out, name, bench->stats.augment[i], bench);
    }
    dl2_augmentation_free(augmentation);
}

static json_t *operations_json(const struct bench *bench)
{
    struct dl2_augmentation *augmentation = timed_augmentation(bench);
    json_t *list = json_array();
    for (size_t i = 0; i < timed_count(augmentation); i++)
        json_array_append_new(list, json_pack("{s:s, s:f}", "name",
                                              dl2_augmentation_name(augmentation, i), "seconds",
                                              bench->stats.augment[i]));
    dl2_augmentation_free(augmentation);
    return list;
}

static void print_rate(FILE *out, const char *what, double count, const struct bench *bench)
{
    char text[32];
    const int digits = *what == 'v'; /* volumes are few */
    fprintf(out, "  %s/s%-*s %10.*f\n", what, (int)(19 - strlen(what)), "", digits,
            dl2_load_rate(count, bench->total.seconds));
    snprintf(text, sizeof text, "%s/s a core", what);
    fprintf(out, "  %-21s %10.*f\n", text, digits, dl2_load_rate(count, bench->total.cpu_seconds));
}

static void print_remote(FILE *out, const struct dl2_remote_stats *remote)
{
    char text[16];
    fprintf(out, "  %-21s %10s in %" PRIu64 " requests, %" PRIu64 " of them sent again\n",
            "from the server", dl2_load_bytes(text, (double)remote->bytes), remote->requests,
            remote->retries);
    if (remote->cache_hits || remote->cache_misses)
        fprintf(out, "  %-21s %10s, all of %" PRIu64 " reads of %" PRIu64 "\n", "from --cache-dir",
                dl2_load_bytes(text, (double)remote->cache_bytes), remote->cache_hits,
                remote->cache_hits + remote->cache_misses);
    if (remote->cache_damaged)
        fprintf(out, "  %-21s %10" PRIu64 " entries of --cache-dir, which were read again\n",
                "damaged", remote->cache_damaged);
    if (remote->cache_lost)
        fprintf(out, "  %-21s %10" PRIu64 " entries of --cache-dir: %s\n", "not written",
                remote->cache_lost, strerror(remote->cache_reason));
}

static json_t *remote_json(const struct bench *bench)
{
    const char *name;
    uint64_t count;
    if (!bench->is_remote)
        return json_null();
    json_t *json = json_object();
    for (size_t i = 0; (name = dl2_remote_stats_count(&bench->remote, i, &count)); i++)
        json_object_set_new(json, name, json_integer((json_int_t)count));
    return json;
}

/* What samples do not show as they should. */
static void print_unusual(FILE *out, const struct dl2_loader_stats *stats)
{
    const struct {
        uint64_t count;
        const char *what, *means;
    } rows[] = {
        {stats->short_clips, "clips too short", ", whose frames came again"},
        {stats->padded, "smaller than the patch", ", with zeros around them"},
        {stats->no_foreground, "no label above 0", ": volumes without one, with any patch"},
        {stats->decompressed, "decompressed", ": .nii.gz that --cache-volumes does not keep"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].count)
            fprintf(out, "  %-21s %10" PRIu64 " times%s\n", rows[i].what, rows[i].count,
                    rows[i].means);
    for (const struct dl2_unusual *row = dl2_unusual_rows(); row->name; row++)
        if (dl2_unusual_count(stats, row))
            fprintf(out, "  %-21s %10" PRIu64 " times: %s\n", row->title,
                    dl2_unusual_count(stats, row), row->text);
}

static void print_rates(FILE *out, const struct bench *bench)
{
    const struct dl2_loader_stats *stats = &bench->stats;
    const double images = (double)bench->total.images;
    const unsigned frames = bench->options->loader.frames;
    char text[16];
    print_rate(out, nouns(bench), images, bench);
    if (frames)
        print_rate(out, "frames", images * frames, bench);
    if (bench->options->loader.boxes)
        fprintf(out,
                "  %-21s %10" PRIu64 " in %" PRIu64 " images; %" PRIu64
                " outside the crops were dropped\n",
                "boxes", stats->boxes, stats->images, stats->boxes_dropped);
    print_unusual(out, stats);
    if (bench->gaps.size)
        fprintf(out, "  %-21s %10.2f median, 95%% %.2f, 99%% %.2f, longest %.2f\n",
                "ms between batches", 1e3 * gap_at(bench, 0.5), 1e3 * gap_at(bench, 0.95),
                1e3 * gap_at(bench, 0.99), 1e3 * gap_at(bench, 1));
    fprintf(out, "  %-21s %10.1f\n", "MB/s read",
            dl2_load_rate((double)stats->bytes_read / 1e6, bench->total.seconds));
    fprintf(out, "  %-21s %10s in %" PRIu64 " reads\n", "read",
            dl2_load_bytes(text, (double)stats->bytes_read), stats->requests);
    if (bench->resident > 0.01)
        fprintf(out, "  %-21s %9.0f%% of the files would not leave memory\n", "not quite cold",
                100 * bench->resident);
    if (bench->is_remote)
        print_remote(out, &bench->remote);
    if (stats->encoded_hits || stats->decoded_hits)
        fprintf(out, "  %-21s %10" PRIu64 " encoded, %" PRIu64 " decoded\n", "from the caches",
                stats->encoded_hits, stats->decoded_hits);
    fprintf(out, "  %-21s %10s", "peak memory", dl2_load_bytes(text, (double)bench->peak));
    if (stats->memory)
        fprintf(out, "; the loader's buffers are %s", dl2_load_bytes(text, (double)stats->memory));
    fprintf(out, "\n");
}

/* The card's times overlap each other and those of the processors. */
static void print_decoded(FILE *out, const struct bench *bench)
{
    const struct dl2_batch_decoder_stats *decoded = &bench->decoded;
    const double images = decoded->images ? (double)decoded->images : 1;
    if (!bench->decoder)
        return;
    fprintf(out, "On the card (%s, %s, %s):\n", bench->decoder->ops->name,
            dl2_decode_mode_words[bench->options->decode.mode],
            dl2_decode_input_words[bench->options->decode.input]);
    fprintf(out,
            "  %-21s %10" PRIu64 " images, %" PRIu64 " of them by its engines; %" PRIu64
            " refused%s%s\n",
            "decoded", decoded->images, decoded->by_engines, decoded->refused,
            decoded->refusal ? ", the first: " : "", decoded->refusal ? decoded->refusal : "");
    fprintf(out, "  %-21s %10.0f\n", "images/s",
            dl2_load_rate((double)decoded->images, bench->total.seconds));
    fprintf(out, "  %-21s %10.1f of %.0f pixels an image\n", "MP/s decoded",
            dl2_load_rate((double)decoded->pixels / 1e6, bench->total.seconds),
            (double)decoded->pixels / images);
    fprintf(out, "  %-21s %10.1f of %.0f bytes an image\n", "MB/s decoded",
            dl2_load_rate((double)decoded->bytes / 1e6, bench->total.seconds),
            (double)decoded->bytes / images);
    fprintf(out, "  %-21s %10.1f us an image\n", "decode", 1e6 * decoded->decode / images);
    fprintf(out, "  %-21s %10.1f us an image\n", "transform", 1e6 * decoded->transform / images);
    fprintf(out, "  %-21s %10.1f us an image, of the %s threads that wait for the card\n", "finish",
            1e6 * bench->stats.finish / images, "two");
}

static void print_scaling(FILE *out, const struct bench *bench)
{
    if (!bench->options->scaling_count)
        return;
    char rate[16], core_rate[24];
    snprintf(rate, sizeof rate, "%s/s", nouns(bench));
    snprintf(core_rate, sizeof core_rate, "%s/s a core", nouns(bench));
    fprintf(out, "With more workers:\n  %7s %10s %16s %11s\n", "workers", rate, core_rate,
            "efficiency");
    for (size_t i = 0; i < bench->options->scaling_count; i++) {
        const struct scaling *row = &bench->scaling[i];
        fprintf(out, "  %7u %10.0f %16.0f %10.1f%%\n", row->workers, scaling_rate(row),
                dl2_load_rate((double)row->run.images, row->run.cpu_seconds),
                100 * efficiency(bench, row));
    }
}

static void print_bench(FILE *out, const struct bench *bench)
{
    const struct dl2_load_options *options = bench->options;
    const struct dl2_loader_config *config = &options->loader;
    char frames[24] = "";
    if (config->frames || config->volume_depth)
        snprintf(frames, sizeof frames, "%ux", dl2_loader_planes(config));
    fprintf(out, "%s: %" PRIu64 " %ss for %s, %s%ux%ux%u %s %s in batches of %u, %u worker%s%s\n",
            DL2_SHOWN(bench->name), bench->samples, noun(bench),
            config->train ? "training" : "validation", frames, config->height,
            dl2_loader_width(config), config->channels, dl2_dtype_words[config->dtype],
            dl2_layout_words[config->layout], config->batch, config->workers,
            config->workers == 1 ? "" : "s", options->cold ? ", cold" : "");
    for (unsigned i = 0; bench->epoch_count > 1 && i < bench->epoch_count; i++)
        fprintf(out, "  epoch %-6u %7.2f s %9.0f %ss/s\n", i + 1, bench->epochs[i].seconds,
                dl2_load_rate((double)bench->epochs[i].images, bench->epochs[i].seconds),
                noun(bench));
    print_rates(out, bench);
    fprintf(out, "Where the workers' time went:\n");
    print_stage(out, "read", bench->stats.read, bench);
    print_stage(out, "decode", bench->stats.decode, bench);
    print_stage(out, "transform", bench->stats.transform, bench);
    if (bench->stats.operations > 0)
        print_stage(out, "operations", bench->stats.operations, bench);
    print_operations(out, bench);
    print_stage(out, "wait", waited(bench), bench);
    print_decoded(out, bench);
    print_scaling(out, bench);
    if (options->digest)
        fprintf(out, "digest %08" PRIx32 "\n", bench->digest);
}

static json_t *epochs_json(const struct bench *bench)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < bench->epoch_count; i++) {
        const struct dl2_load_run *run = &bench->epochs[i];
        json_array_append_new(list, json_pack("{s:f, s:f, s:I, s:I, s:I}", "seconds", run->seconds,
                                              "cpu_seconds", run->cpu_seconds, "images",
                                              (json_int_t)run->images, "bytes_read",
                                              (json_int_t)run->bytes_read, "disk_bytes",
                                              (json_int_t)run->disk_bytes));
    }
    return list;
}

static json_t *scaling_json(const struct bench *bench)
{
    json_t *list = json_array();
    for (size_t i = 0; i < bench->options->scaling_count; i++) {
        const struct scaling *row = &bench->scaling[i];
        json_array_append_new(
            list, json_pack("{s:i, s:f, s:f, s:f}", "workers", (int)row->workers,
                            "images_per_second", scaling_rate(row), "images_per_core_second",
                            dl2_load_rate((double)row->run.images, row->run.cpu_seconds),
                            "efficiency", efficiency(bench, row)));
    }
    return list;
}

/* Adds how frames of clips were chosen. */
static void add_frames(json_t *loading, const struct dl2_loader_config *config)
{
    static const char *const names[] = {"frames", "frame-step", "frame-sampling"};
    json_auto_t *all = dl2_options_json(dl2_loader_options, config);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        json_object_set(loading, names[i], json_object_get(all, names[i]));
}

static json_t *config_json(const struct dl2_load_options *options)
{
    const struct dl2_loader_config *config = &options->loader;
    json_t *loading = json_pack(
        "{s:s, s:s, s:s, s:i, s:s, s:I, s:I, s:b, s:I, s:b, s:i, s:i, s:i, s:i, s:b, s:[f, "
        "f], "
        "s:o, s:s, s:s*, s:o}",
        "dtype", dl2_dtype_words[config->dtype], "layout", dl2_layout_words[config->layout],
        "batching", dl2_batching_words[config->batching], "depth", (int)config->depth, "io",
        dl2_io_words[config->fetch.io], "cache_bytes", (json_int_t)config->fetch.cache_bytes,
        "decoded_cache_bytes", (json_int_t)config->decoded_cache_bytes, "cold", options->cold,
        "ahead", (json_int_t)config->fetch.ahead, "whole", config->fetch.whole, "rank",
        (int)config->rank, "world", config->world ? (int)config->world : 1, "shuffle_chunk",
        (int)config->shuffle_chunk, "shuffle_window", (int)config->shuffle_window, "stop_on_bad",
        config->stop_on_bad, "crop_area", config->area_min, config->area_max, "augment",
        dl2_show_augment(&config->augment), "interpolation",
        dl2_interpolation_words[config->interpolation], "val_crop",
        config->val_crop ? dl2_val_crop_words[config->val_crop] : NULL, "measure",
        dl2_json_real(options->measure));
    json_auto_t *sampling = dl2_options_json(dl2_sampling_options, config);
    json_auto_t *volumes = dl2_options_json(dl2_volume_options, config);
    if (loading)
        json_object_update(loading, sampling);
    if (loading && config->volume_depth)
        json_object_update(loading, volumes);
    if (loading && (config->mask || config->volume_depth))
        json_object_set_new(loading, "mask",
                            config->mask ? dl2_json_text(config->mask) : json_null());
    if (loading && config->boxes)
        json_object_update_new(loading,
                               json_pack("{s:o, s:f, s:b}", "boxes", dl2_json_text(config->boxes),
                                         "min_visibility", config->min_visibility, "instance_masks",
                                         config->instance_masks));
    if (loading && config->frames)
        add_frames(loading, config);
    return loading;
}

static json_t *decoded_json(const struct bench *bench)
{
    const struct dl2_batch_decoder_stats *decoded = &bench->decoded;
    const struct dl2_decode_choice *choice = &bench->options->decode;
    if (!bench->decoder)
        return json_null();
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:s?, s:I, s:I, s:f, s:f, s:f}", "mode",
        dl2_decode_mode_words[choice->mode], "input", dl2_decode_input_words[choice->input],
        "engine", dl2_decode_engine_words[choice->engine], "decoder",
        bench->decoder->ops->describe(bench->decoder), "images", (json_int_t)decoded->images,
        "by_engines", (json_int_t)decoded->by_engines, "refused", (json_int_t)decoded->refused,
        "refusal", decoded->refusal, "bytes", (json_int_t)decoded->bytes, "pixels",
        (json_int_t)decoded->pixels, "decode_seconds", decoded->decode, "transform_seconds",
        decoded->transform, "finish_seconds", bench->stats.finish);
}

static json_t *bench_json(const struct bench *bench)
{
    const struct dl2_loader_config *config = &bench->options->loader;
    const struct dl2_loader_stats *stats = &bench->stats;
    const double images = (double)bench->total.images;
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    json_t *json = json_pack(
        "{s:s, s:o, s:o, s:s, s:I, s:i, s:i, s:o, s:i, s:i, s:o, "
        "s:f, s:f, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f}, s:I, s:I, s:I, s:I, s:I, s:I, s:f, "
        "s:o, s:o, s:O, s:o, s:o, s:o}",
        "schema", "dl2-load/1", "variant", dl2_json_text(bench->name), "path",
        dl2_json_text(bench->path), "mode", config->train ? "train" : "val", "images",
        (json_int_t)bench->samples, "epochs", (int)bench->epoch_count, "batch", (int)config->batch,
        "image_size", dl2_show_output_size(&config->height), "channels", (int)config->channels,
        "workers", (int)config->workers, "config", config_json(bench->options), "seconds",
        bench->total.seconds, "cpu_seconds", bench->total.cpu_seconds, "images_per_second",
        dl2_load_rate(images, bench->total.seconds), "images_per_core_second",
        dl2_load_rate(images, bench->total.cpu_seconds), "stages", "read", stats->read, "decode",
        stats->decode, "transform", stats->transform, "operations", stats->operations, "wait",
        waited(bench), "bytes_read", (json_int_t)stats->bytes_read, "requests",
        (json_int_t)stats->requests, "encoded_hits", (json_int_t)stats->encoded_hits,
        "decoded_hits", (json_int_t)stats->decoded_hits, "peak_rss_bytes", (json_int_t)bench->peak,
        "loader_bytes", (json_int_t)stats->memory, "resident", bench->resident, "per_epoch",
        epochs_json(bench), "scaling", scaling_json(bench), "bad", bench->bad, "machine",
        dl2_machine_describe(), "versions", versions, "card", decoded_json(bench));
    if (config->frames)
        json_object_set_new(
            json, "clips",
            json_pack("{s:i, s:f, s:f, s:I}", "frames", (int)config->frames, "frames_per_second",
                      dl2_load_rate(images * config->frames, bench->total.seconds),
                      "frames_per_core_second",
                      dl2_load_rate(images * config->frames, bench->total.cpu_seconds),
                      "short_clips", (json_int_t)stats->short_clips));
    if (config->volume_depth)
        json_object_set_new(json, "volumes",
                            json_pack("{s:I, s:I, s:I, s:o}", "padded", (json_int_t)stats->padded,
                                      "no_foreground", (json_int_t)stats->no_foreground,
                                      "decompressed", (json_int_t)stats->decompressed, "operations",
                                      operations_json(bench)));
    if (config->boxes)
        json_object_set_new(json, "boxes",
                            json_pack("{s:I, s:I}", "loaded", (json_int_t)stats->boxes, "dropped",
                                      (json_int_t)stats->boxes_dropped));
    json_object_set_new(json, "unusual", dl2_load_unusual(stats));
    json_object_set_new(json, "batch_gaps",
                        json_pack("{s:o, s:o, s:o, s:o}", "p50", dl2_json_real(gap_at(bench, 0.5)),
                                  "p95", dl2_json_real(gap_at(bench, 0.95)), "p99",
                                  dl2_json_real(gap_at(bench, 0.99)), "max",
                                  dl2_json_real(gap_at(bench, 1))));
    json_object_set_new(json, "remote", remote_json(bench));
    return json;
}

/* ---- */

static int run_bench(struct bench *bench, FILE *out, struct dl2_error *error)
{
    struct dl2_loader *loader;
    DL2_TRY(dl2_decode_choice_open(&bench->options->decode, bench->options->card, &bench->config,
                                   &bench->decoder, error));
    DL2_TRY(dl2_loader_create(bench->dataset, &bench->config, &loader, error));
    if (dl2_loader_boxes_warning(loader))
        dl2_progress_message(&bench->progress, "%s", dl2_loader_boxes_warning(loader));
    if (dl2_loader_shares_note(loader))
        dl2_progress_message(&bench->progress, "--shares: %s", dl2_loader_shares_note(loader));
    int status = run_epochs(bench, loader, error);
    const int bad = dl2_load_name_bad(loader, dl2_dataset_count(bench->dataset), bench->bad);
    dl2_loader_destroy(loader);
    if (status == DL2_OK && bench->options->scaling_count)
        status = run_scaling(bench, error);
    DL2_TRY(status);
    print_bench(out, bench);
    if (bench->options->json_path)
        DL2_TRY(dl2_json_save_new(bench->options->json_path, bench_json(bench), error));
    return bad;
}

static int bench_all(const struct dl2_load_options *given, const struct dl2_dataset_union *data,
                     FILE *out, struct dl2_error *error)
{
    struct dl2_load_options own = *given, *options = &own;
    if (options->loader.volume_depth && dl2_dataset_kind(data->dataset) == DL2_SAMPLE_VOLUME)
        options->loader.channels = dl2_dataset_volume_channels(data->dataset);
    struct bench bench = {
        .options = options,
        .dataset = data->dataset,
        .path = data->path,
        .name = options->name ? options->name : data->name,
        .samples = dl2_dataset_count(data->dataset),
        .config = options->loader,
        .scaling = dl2_keep(options->scaling_count + 1, sizeof *bench.scaling, "results"),
        .bad = dl2_keep_json(json_array()),
    };
    bench.epoch_samples = dl2_loader_epoch_samples(&options->loader, bench.samples) /
                          (options->loader.world ? options->loader.world : 1);
    const int status = run_bench(&bench, out, error);
    for (size_t i = 0; i < options->scaling_count; i++)
        dl2_loader_destroy(bench.scaling[i].loader);
    dl2_batch_decoder_close(bench.decoder);
    dl2_bytes_free(&bench.host);
    dl2_bytes_free(&bench.gaps);
    return status;
}

int dl2_load_bench(const struct dl2_load_options *given, const char *const *paths, size_t count,
                   FILE *out, struct dl2_error *error)
{
    struct dl2_dataset_union data = {0};
    int status = dl2_load_open(given, paths, count, &data, error);
    if (status == DL2_OK)
        status = bench_all(given, &data, out, error);
    dl2_dataset_union_close(&data);
    return status;
}
