/*
 * dl2-load analyze: what would training from each of several datasets come to on this machine, and
 * what would it wait for?
 *
 * The three differential runs of DS-Analyzer (Mohan et al., "Analyzing and mitigating data stalls
 * in DNN training", VLDB 2021, section 3.3), and reading alone:
 *
 *     device         D   images/s that training takes when data cost nothing: told, not measured
 *     preprocessing  P   images/s of the whole loader, the files in memory; c: CPU seconds an image
 *     cold           L   the same with the files taken out of the page cache before; e: its c
 *     storage        S   images/s of reading alone, cold
 *
 * From the second epoch on, memory holds a part x of the files; images from memory and from storage
 * follow each other as they come, so the loader does p = 1 / (x / P + (1 - x) / L) images/s at
 * x c + (1 - x) e CPU seconds each.
 *
 *     separate device    min(D, p, S / (1 - x))
 *     shared processors  the same, and no more than the n processors can do: training takes t / D
 *                        CPU seconds of an image (t: the device's threads), so n divided by those
 *                        and the loader's. D was told in wall time, in which others may have had
 *                        a part of the processors; so the loader's are taken as what its workers
 *                        kept busy or were kept from, min(workers, n) / P, where that is more
 *
 * Runs go round by round through all datasets, each round with the images and crops of another
 * epoch, the same for all: so what disturbs the machine for a while disturbs all alike, and the
 * interval over rounds holds the choice of images as well as the machine's moods.
 */
#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/stats.h"
#include "common/thread.h"
#include "loader/load.h"
#include "loader/sample.h"
#include "loader/sampler.h"

#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5
/* Headers that tell how large the decoded images are. */
#define HEADERS 64
/* A stage that makes an epoch longer by less is not worth a word. */
#define WORTH 0.02

/* What the runs of one dataset came to, in a round or in the middle of them. */
struct runs {
    double storage, loader, cold; /* S, P, L: images/s */
    double cpu, cold_cpu;         /* c, e: CPU seconds an image */
    double kept;                  /* processor seconds an image that nobody else could have */
};

struct figure {
    double middle; /* the median: on a busy machine some rounds are far off */
    double half;   /* of the mean's 95% interval; INFINITY where it can't be told */
};

struct device {
    struct figure rate;
    bool shared;
    unsigned threads, cores;
    json_t *report; /* NULL: the rate was given */
};

/* What limits training, for predict(). */
struct limits {
    double device, threads, cores; /* threads 0: the device is separate */
    double loader, cpu;            /* images/s; CPU seconds an image */
    double storage;                /* images/s with what memory keeps; INFINITY: all of it */
};

struct advice {
    char text[160];
    double rate;
};

struct subject { /* one dataset */
    const char *path;
    char *name;
    struct dl2_dataset *dataset;
    struct dl2_loader *loader;
    struct dl2_sampler sampler;
    uint64_t images, bytes;
    double decoded_bytes; /* of all images, estimated */
    double cached;        /* the part of the files that memory keeps */
    const json_t *quality;

    struct runs runs[ROUNDS];
    struct runs middle; /* medians */
    double rate[ROUNDS], first[ROUNDS];
    uint64_t read_images, read_bytes;
    uint64_t warm_images; /* that were read since the files were evicted */
    double resident;      /* the part of the files that eviction left in memory */
    struct dl2_loader_stats stats;
    struct figure storage_figure, loader_figure, cold_figure, cpu_figure, rate_figure, first_figure;
    double device_share, loader_share, storage_share; /* of an epoch */
    const char *bottleneck;                           /* "device", "preprocessing", "storage" */
    struct advice advice;                             /* what helps most; rate 0: nothing */
};

struct analysis {
    const struct dl2_load_options *options;
    struct dl2_loader_config config;
    struct device device;
    uint64_t memory;
    struct subject *subjects;
    size_t count, fastest, smallest; /* smallest: of those that are nearly as fast */
    json_t *quality;                 /* the variants of all files of dl2-quality, in one array */
    json_t *bad;
    int bad_count;
};

/* ---- the device ---- */

static struct figure summarize(const double *values, size_t count)
{
    double sorted[ROUNDS > 64 ? ROUNDS : 64];
    struct dl2_summary summary;
    count = count < sizeof sorted / sizeof *sorted ? count : sizeof sorted / sizeof *sorted;
    memcpy(sorted, values, count * sizeof *values);
    dl2_summarize(sorted, count, &summary);
    return (struct figure){summary.median, dl2_confidence95(summary.stddev, count)};
}

/* The report's rates, without the first epoch's where there are more: that one makes plans. */
static struct figure reported_rate(const json_t *epochs)
{
    double rates[64];
    size_t count = 0;
    const size_t all = json_array_size(epochs);
    for (size_t i = all > 1; i < all && count < sizeof rates / sizeof *rates; i++) {
        const double rate = dl2_json_get_real(json_array_get(epochs, i), "images_per_second", 0);
        if (rate > 0)
            rates[count++] = rate;
    }
    return summarize(rates, count);
}

static double pair_item(const json_t *pair, size_t item, double fallback)
{
    const json_t *value = json_array_get(pair, item);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

/* Images come as they did, or would have come, in that run. */
static int adopt_arguments(const json_t *arguments, struct dl2_loader_config *config,
                           struct dl2_error *error)
{
    const long long size = dl2_json_get_integer(arguments, "image-size", config->image_size);
    const long long batch = dl2_json_get_integer(arguments, "batch", config->batch);
    const long long channels = dl2_json_get_integer(arguments, "channels", config->channels);
    if (size < 1 || size > 65536 || batch < 1 || batch > 1048576 || channels < 1 || channels > 3)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it speaks of batches of %lld images of %lld pixels and %lld channels",
                             batch, size, channels);
    config->image_size = (unsigned)size;
    config->batch = (unsigned)batch;
    config->channels = (unsigned)channels;
    const json_t *area = json_object_get(arguments, "crop-area");
    const json_t *aspect = json_object_get(arguments, "crop-aspect");
    config->area_min = pair_item(area, 0, config->area_min);
    config->area_max = pair_item(area, 1, config->area_max);
    config->aspect_min = pair_item(aspect, 0, config->aspect_min);
    config->aspect_max = pair_item(aspect, 1, config->aspect_max);
    return DL2_OK;
}

static int read_device_report(struct analysis *analysis, struct dl2_error *error)
{
    struct device *device = &analysis->device;
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
    const char *name = dl2_json_get_text(device->report, "device", "");
    device->shared = !strcmp(name, "cpu") || !strcmp(name, "ref");
    const long long threads = dl2_json_get_integer(arguments, "threads", 0);
    if (threads > 0 && threads < device->cores)
        device->threads = (unsigned)threads;
    if (!strcmp(name, "ref"))
        device->threads = 1;
    const int status = adopt_arguments(arguments, &analysis->config, error);
    dl2_error_prefix(error, "%s", path);
    return status;
}

static int find_device(struct analysis *analysis, struct dl2_error *error)
{
    struct device *device = &analysis->device;
    device->cores = device->threads = dl2_cpu_count();
    device->rate = (struct figure){analysis->options->device_rate, 0};
    if (analysis->options->device_report)
        DL2_TRY(read_device_report(analysis, error));
    if (analysis->options->device != DL2_DEVICE_UNKNOWN)
        device->shared = analysis->options->device == DL2_DEVICE_SHARED;
    return DL2_OK;
}

/* ---- the datasets ---- */

/* What the images take decoded, from the headers of a few. */
static double decoded_bytes(const struct subject *subject)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    double sum = 0;
    unsigned read = 0;
    for (uint64_t i = 0; i < HEADERS; i++) {
        const uint8_t *data;
        size_t size;
        struct dl2_image_info info;
        const size_t index = (size_t)(i * subject->images / HEADERS);
        if (dl2_dataset_read(subject->dataset, index, &scratch, &data, &size, NULL) < 0 ||
            dl2_image_read_info(data, size, &info, NULL) < 0)
            continue;
        sum += (double)info.width * info.height * info.channels;
        read++;
    }
    dl2_bytes_free(&scratch);
    return read ? sum / read * (double)subject->images : 0;
}

static int read_quality_file(json_t *list, const char *path, struct dl2_error *error)
{
    json_t *file;
    DL2_TRY(dl2_json_load(path, "dl2-quality/1", &file, error));
    json_array_extend(list, json_object_get(file, "variants"));
    json_decref(file);
    return DL2_OK;
}

static int read_quality_folder(json_t *list, const char *folder, struct dl2_error *error)
{
    struct dl2_file_list files;
    DL2_TRY(dl2_list_files(folder, &files, error));
    int status = DL2_OK;
    for (size_t i = 0; i < files.count && status == DL2_OK; i++) {
        if (strcmp(dl2_path_extension(files.paths[i]), "json"))
            continue;
        char *path = dl2_path_join(folder, files.paths[i]);
        status = path ? read_quality_file(list, path, error)
                      : dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
        free(path);
    }
    dl2_file_list_free(&files);
    return status;
}

static int read_quality(struct analysis *analysis, struct dl2_error *error)
{
    for (size_t i = 0; i < analysis->options->quality_count; i++) {
        const char *path = analysis->options->quality[i];
        DL2_TRY(dl2_is_folder(path) ? read_quality_folder(analysis->quality, path, error)
                                    : read_quality_file(analysis->quality, path, error));
    }
    return DL2_OK;
}

/* The metrics of the variant of that name, or NULL. */
static const json_t *find_quality(const struct analysis *analysis, const char *name)
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

static double mean_of(const json_t *metrics, const char *name)
{
    return dl2_json_get_real(json_object_get(metrics, name), "mean", NAN);
}

static int open_subject(struct analysis *analysis, struct subject *subject, const char *path,
                        struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    subject->path = path;
    subject->resident = 1;
    subject->name = dl2_dataset_variant_name(path);
    if (!subject->name)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    DL2_TRY(dl2_dataset_open(path, &analysis->options->dataset, &subject->dataset, error));
    subject->images = dl2_dataset_count(subject->dataset);
    for (size_t i = 0; i < subject->images; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(subject->dataset, i, &sample);
        subject->bytes += sample.bytes;
    }
    subject->decoded_bytes = decoded_bytes(subject);
    subject->quality = find_quality(analysis, subject->name);
    const double memory = (double)analysis->memory / (double)(subject->bytes + 1);
    subject->cached = memory < 1 ? memory : 1;
    const struct dl2_sampler_config order =
        dl2_sampler_config_of(config, (uint32_t)subject->images);
    DL2_TRY(dl2_sampler_init(&subject->sampler, &order, error));
    return dl2_loader_create(subject->dataset, config, &subject->loader, error);
}

static void close_subject(struct subject *subject)
{
    dl2_loader_destroy(subject->loader);
    dl2_sampler_free(&subject->sampler);
    if (subject->dataset)
        dl2_dataset_close(subject->dataset);
    free(subject->name);
}

/* ---- storage: reading alone, cold ---- */

struct reading {
    const struct subject *subject;
    struct dl2_fetch *fetch;
    struct dl2_fetched *held; /* a worker each */
    double end;               /* dl2_clock_wall() */
    size_t least, done;       /* at least so many are read; so many were */
    struct dl2_recipe recipe; /* of the loader: it says what is needed of each sample */
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
    struct dl2_slice_range slices;
    const bool sliced =
        reading->recipe.sliced && dl2_sample_slices(&reading->recipe, index, &slices);
    /* A bad one is the loader's to tell. */
    dl2_fetch_take(reading->fetch, item, index, sliced ? &slices : NULL, held, NULL);
    atomic_fetch_add(&reading->bytes, held->size);
    dl2_fetch_give(reading->fetch, held);
    return DL2_OK;
}

static int count_read(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    (void)slot, (void)item, (void)error;
    struct reading *reading = context;
    reading->done++;
    return DL2_OK;
}

/* Where little was read so far, another epoch's first images are others, and cold as they are. */
static int make_cold(struct subject *subject, struct dl2_error *error)
{
    if (subject->warm_images && subject->warm_images < subject->images / 20)
        return DL2_OK;
    subject->warm_images = 0;
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = dl2_fetch_evict(subject->dataset, &subject->resident, &reason);
    if (status < 0 && status != DL2_ERR_UNSUPPORTED) /* IDX: memory is where it lies */
        return dl2_error_set(error, reason.status, "%s", reason.message);
    return DL2_OK;
}

/* Reads the first images of the epoch for a while; *count are in memory then. */
static int read_for(const struct analysis *analysis, struct subject *subject, unsigned round,
                    struct dl2_parallel *loop, size_t *count, struct dl2_error *error)
{
    struct reading *reading = loop->context;
    struct dl2_error ended = DL2_ERROR_INIT; /* by the clock, mostly */
    dl2_fetch_start(reading->fetch, subject->sampler.order, loop->count);
    const double start = dl2_clock_wall();
    reading->end = start + analysis->options->seconds / ROUNDS;
    const int status = dl2_parallel_run(loop, &ended);
    subject->runs[round].storage = dl2_load_rate((double)reading->done, dl2_clock_wall() - start);
    subject->read_images += reading->done;
    subject->warm_images += reading->done;
    subject->read_bytes += atomic_load(&reading->bytes);
    *count = reading->done;
    if (status < 0 && status != DL2_ERR_CANCELED)
        return dl2_error_set(error, ended.status, "%s", ended.message);
    return DL2_OK;
}

static int run_storage(const struct analysis *analysis, struct subject *subject, unsigned round,
                       size_t *count, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    struct dl2_fetch_config how = config->fetch;
    how.cache_bytes = 0;
    struct reading reading = {.subject = subject,
                              .recipe = {.dataset = subject->dataset,
                                         .config = config,
                                         .sliced = dl2_recipe_may_slice(config),
                                         .epoch = round},
                              .least = (size_t)config->batch * (config->depth + 1)};
    if (reading.recipe.sliced) {
        how.slices = dl2_sample_slices;
        how.context = &reading.recipe;
    }
    struct dl2_parallel loop = {.jobs = config->workers,
                                .count = subject->sampler.positions,
                                .work = read_one,
                                .emit = count_read,
                                .context = &reading};
    dl2_parallel_resolve(&loop);
    dl2_sampler_set_epoch(&subject->sampler, round);
    DL2_TRY(make_cold(subject, error));
    DL2_TRY(dl2_fetch_create(subject->dataset, &how, &reading.fetch, error));
    reading.held = dl2_calloc(loop.jobs, sizeof *reading.held);
    const int status = reading.held ? read_for(analysis, subject, round, &loop, count, error)
                                    : dl2_error_set(error, DL2_ERR_MEMORY,
                                                    "out of memory for %u readers", loop.jobs);
    for (unsigned i = 0; reading.held && i < loop.jobs; i++)
        dl2_bytes_free(&reading.held[i].scratch);
    free(reading.held);
    dl2_fetch_destroy(reading.fetch);
    return status;
}

/* ---- preprocessing: the loader, with the files in memory ---- */

static int load_for(struct subject *subject, struct dl2_load_pass pass, double seconds,
                    struct dl2_load_run *run, struct dl2_error *error)
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

/* `count` images from the epoch's beginning on are in memory. */
static int run_warm(const struct analysis *analysis, struct subject *subject, unsigned round,
                    size_t count, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &analysis->config;
    const double seconds = analysis->options->seconds / ROUNDS;
    /* Workers run ahead of what comes out, and should find that in memory, too. */
    const uint64_t steps = count / config->batch;
    struct dl2_load_pass pass = {.epoch = round};
    if (count < subject->sampler.positions)
        pass.steps = steps > config->depth ? steps - config->depth : 1;
    struct dl2_load_run first = {0}, run = {0};
    if (round == 0)
        DL2_TRY(load_for(subject, pass, seconds / 4, &first, error));
    DL2_TRY(load_for(subject, pass, seconds, &run, error));
    const double processors = fmin(config->workers, analysis->device.cores);
    struct runs *runs = &subject->runs[round];
    runs->loader = dl2_load_rate((double)run.images, run.seconds);
    runs->cpu = run.images ? run.cpu_seconds / (double)run.images : 0;
    runs->kept = fmax(runs->cpu, run.images ? processors * run.seconds / (double)run.images : 0);
    return DL2_OK;
}

/* An epoch at most, of images that no run had before; what is in memory already is no use. */
static int run_cold(const struct analysis *analysis, struct subject *subject, unsigned round,
                    struct dl2_error *error)
{
    DL2_TRY(make_cold(subject, error));
    const struct dl2_load_pass pass = {.epoch = ROUNDS + round,
                                       .seconds = analysis->options->seconds / ROUNDS};
    struct dl2_load_run run = {0};
    DL2_TRY(dl2_load_run(subject->loader, &pass, &run, error));
    subject->warm_images += run.images;
    struct runs *runs = &subject->runs[round];
    runs->cold = fmin(runs->loader, dl2_load_rate((double)run.images, run.seconds));
    runs->cold_cpu = fmax(runs->cpu, run.images ? run.cpu_seconds / (double)run.images : 0);
    return DL2_OK;
}

static int run_round(struct analysis *analysis, struct subject *subject, unsigned round,
                     struct dl2_progress *progress, struct dl2_error *error)
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

static int run_rounds(struct analysis *analysis, struct dl2_error *error)
{
    struct dl2_progress progress;
    dl2_progress_begin(&progress, "analyze", "runs", 3 * ROUNDS * analysis->count,
                       analysis->options->quiet);
    int status = DL2_OK;
    for (unsigned round = 0; round < ROUNDS && status == DL2_OK; round++)
        for (size_t i = 0; i < analysis->count && status == DL2_OK; i++)
            status = run_round(analysis, &analysis->subjects[i], round, &progress, error);
    dl2_progress_end(&progress);
    return status;
}

/* ---- what follows from them ---- */

static double predict(const struct limits *limits)
{
    double rate = fmin(limits->device, fmin(limits->loader, limits->storage));
    if (limits->threads > 0)
        rate = fmin(rate, limits->cores / (limits->threads / limits->device + limits->cpu));
    return rate;
}

/* With a part of the files in memory. */
static struct limits limits_at(const struct device *device, const struct runs *runs, double cached)
{
    const double rest = 1 - cached;
    return (struct limits){.device = device->rate.middle,
                           .threads = device->shared ? device->threads : 0,
                           .cores = device->cores,
                           .loader = 1 / (cached / runs->loader + rest / runs->cold),
                           .cpu = runs->kept + rest * (runs->cold_cpu - runs->cpu),
                           .storage = rest > 0 ? runs->storage / rest : INFINITY};
}

static void consider(struct advice *best, double rate, const char *format, ...) DL2_PRINTF(3, 4);
static void consider(struct advice *best, double rate, const char *format, ...)
{
    if (rate <= best->rate)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(best->text, sizeof best->text, format, args);
    va_end(args);
    best->rate = rate;
}

/* What would speed this one up most, by itself. */
static void advise(const struct analysis *analysis, struct subject *subject)
{
    const struct device *device = &analysis->device;
    const struct limits now = limits_at(device, &subject->middle, subject->cached);
    const double cores = device->cores, workers = analysis->config.workers;
    struct advice *advice = &subject->advice;
    char size[16];
    const double least = advice->rate = predict(&now) * (1 + WORTH);

    struct limits other = now;
    other.device = INFINITY;
    other.threads = 0;
    consider(advice, predict(&other), "a faster device");
    if (workers < cores) {
        other = now;
        other.loader *= cores / workers;
        consider(advice, predict(&other), "%.0f workers instead of %.0f", cores, workers);
    }
    other = limits_at(device, &subject->middle, 1);
    consider(advice, predict(&other), "memory for all its files, %s",
             dl2_load_bytes(size, (double)subject->bytes));
    const struct dl2_loader_stats *stats = &subject->stats;
    const double work = stats->read + stats->decode + stats->transform + stats->operations;
    const double kept = work > 0 ? 1 - (stats->read + stats->decode) / work : 1;
    if (subject->decoded_bytes <= (double)analysis->memory) {
        other.cpu *= kept;
        other.loader /= fmax(kept, 0.01);
        consider(advice, predict(&other), "--cache-decoded %.0fM",
                 ceil(subject->decoded_bytes / 0x1p20));
    }
    const double wanted = fmin(now.device, now.storage);
    if (!device->shared && now.loader < wanted)
        consider(advice, wanted, "%.0f processors for the loader instead of %.0f",
                 ceil(wanted / now.loader * fmin(workers, cores)), fmin(workers, cores));
    if (advice->rate <= least)
        advice->rate = 0;
}

/* Where an epoch's time goes: each stage's part is what it adds to those before it. */
static void share_out(const struct device *device, struct subject *subject)
{
    const struct limits limits = limits_at(device, &subject->middle, subject->cached);
    const struct limits warm = limits_at(device, &subject->middle, 1);
    const double rate = predict(&limits), warm_rate = predict(&warm);
    subject->device_share = rate / limits.device;
    subject->loader_share = rate / warm_rate - subject->device_share;
    subject->storage_share = 1 - rate / warm_rate;
    /* A device that waits is not what holds training up; one that shares processors never waits. */
    const double device_counts =
        device->shared || subject->device_share >= 1 - WORTH ? subject->device_share : 0;
    if (device_counts >= subject->loader_share && device_counts >= subject->storage_share)
        subject->bottleneck = "device";
    else
        subject->bottleneck =
            subject->storage_share > subject->loader_share ? "storage" : "preprocessing";
}

/* The figure of one field of the rounds' runs. */
static struct figure figure_of(const struct subject *subject, size_t field)
{
    double values[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++)
        memcpy(&values[round], (const char *)&subject->runs[round] + field, sizeof *values);
    return summarize(values, ROUNDS);
}

static void conclude(const struct analysis *analysis, struct subject *subject)
{
    const struct device *device = &analysis->device;
    dl2_loader_get_stats(subject->loader, &subject->stats);
    subject->storage_figure = figure_of(subject, offsetof(struct runs, storage));
    subject->loader_figure = figure_of(subject, offsetof(struct runs, loader));
    subject->cold_figure = figure_of(subject, offsetof(struct runs, cold));
    subject->cpu_figure = figure_of(subject, offsetof(struct runs, cpu));
    subject->middle = (struct runs){subject->storage_figure.middle,
                                    subject->loader_figure.middle,
                                    subject->cold_figure.middle,
                                    subject->cpu_figure.middle,
                                    figure_of(subject, offsetof(struct runs, cold_cpu)).middle,
                                    figure_of(subject, offsetof(struct runs, kept)).middle};
    share_out(device, subject);
    advise(analysis, subject);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct limits limits = limits_at(device, &subject->runs[round], subject->cached);
        const struct limits first = limits_at(device, &subject->runs[round], 0);
        subject->rate[round] = predict(&limits);
        subject->first[round] = predict(&first);
    }
    subject->rate_figure = summarize(subject->rate, ROUNDS);
    subject->first_figure = summarize(subject->first, ROUNDS);
    /* The device's own uncertainty counts as far as the device does. */
    const double relative = device->rate.half / device->rate.middle;
    if (isfinite(relative))
        subject->rate_figure.half =
            hypot(subject->rate_figure.half,
                  relative * subject->device_share * subject->rate_figure.middle);
}

static void choose(struct analysis *analysis)
{
    const struct subject *subjects = analysis->subjects;
    for (size_t i = 1; i < analysis->count; i++)
        if (subjects[i].rate_figure.middle > subjects[analysis->fastest].rate_figure.middle)
            analysis->fastest = i;
    const double enough =
        subjects[analysis->fastest].rate_figure.middle * (1 - analysis->options->within / 100);
    analysis->smallest = analysis->fastest;
    for (size_t i = 0; i < analysis->count; i++)
        if (subjects[i].rate_figure.middle >= enough &&
            subjects[i].bytes < subjects[analysis->smallest].bytes)
            analysis->smallest = i;
}

/* ---- telling it ---- */

static void print_device(FILE *out, const struct analysis *analysis)
{
    const struct device *device = &analysis->device;
    const struct dl2_loader_config *config = &analysis->config;
    fprintf(out, "The device trains %.0f images/s", device->rate.middle);
    if (device->report)
        fprintf(out, " (%s, %s)", dl2_json_get_text(device->report, "arch", "?"),
                dl2_json_get_text(device->report, "device", "?"));
    if (device->shared)
        fprintf(out, ", with %u thread%s on the loader's %u processors", device->threads,
                device->threads == 1 ? "" : "s", device->cores);
    fprintf(out, ".\nThe loader: %ux%ux%u in batches of %u, %u workers.\n\n", config->image_size,
            config->image_size, config->channels, config->batch, config->workers);
}

/* "1234 +-56" */
static void print_figure(FILE *out, const struct figure *figure)
{
    if (isfinite(figure->half))
        fprintf(out, " %8.0f +-%-4.0f", figure->middle, figure->half);
    else
        fprintf(out, " %8.0f       ", figure->middle);
}

static void print_table(FILE *out, const struct analysis *analysis)
{
    int width = 7;
    for (size_t i = 0; i < analysis->count; i++) {
        const int length = (int)strlen(analysis->subjects[i].name);
        width = length > width ? length : width;
    }
    fprintf(out, "Images/s, with half the 95%% interval, and what an epoch's time goes to:\n");
    fprintf(out, "%-*s %10s%10s%16s%16s%9s%16s%9s%9s%8s%s\n", width, "dataset", "size", "read cold",
            "load warm", "load cold", "training", "1st epoch", "device", "preproc.", "storage",
            analysis->options->quality_count ? "     PSNR    SSIM" : "");
    for (size_t i = 0; i < analysis->count; i++) {
        const struct subject *subject = &analysis->subjects[i];
        char size[16];
        fprintf(out, "%-*s %10s", width, subject->name,
                dl2_load_bytes(size, (double)subject->bytes));
        print_figure(out, &subject->storage_figure);
        print_figure(out, &subject->loader_figure);
        fprintf(out, " %8.0f", subject->cold_figure.middle);
        print_figure(out, &subject->rate_figure);
        fprintf(out, " %9.0f %7.0f%% %7.0f%% %6.0f%%", subject->first_figure.middle,
                100 * subject->device_share, 100 * subject->loader_share,
                100 * subject->storage_share);
        if (subject->quality)
            fprintf(out, " %8.2f %7.4f", mean_of(subject->quality, "psnr_rgb"),
                    mean_of(subject->quality, "ssim"));
        fprintf(out, "\n");
    }
}

static void print_subject(FILE *out, const struct analysis *analysis, const struct subject *subject)
{
    fprintf(out, "%s: ", subject->name);
    if (subject->device_share >= 1 - WORTH) {
        fprintf(out, "the device never waits.");
    } else if (analysis->device.shared) {
        fprintf(out, "%s most of an epoch.",
                !strcmp(subject->bottleneck, "preprocessing") ? "decoding and cropping take"
                : !strcmp(subject->bottleneck, "storage")     ? "reading takes"
                                                              : "the device takes");
    } else {
        fprintf(out, "the device waits %.0f%% of an epoch, mostly for %s.",
                100 * (1 - subject->device_share),
                !strcmp(subject->bottleneck, "storage") ? "storage" : "decoding and cropping");
    }
    if (subject->advice.rate > 0)
        fprintf(out, " What would help most: %s (%.0f images/s).", subject->advice.text,
                subject->advice.rate);
    fprintf(out, "\n");
}

static void print_cost(FILE *out, const struct analysis *analysis, const struct subject *subject)
{
    const struct subject *fastest = &analysis->subjects[analysis->fastest];
    char size[16];
    fprintf(out, "%s, %.0f images/s", dl2_load_bytes(size, (double)subject->bytes),
            subject->rate_figure.middle);
    if (subject != fastest)
        fprintf(out, ", %.1f%% slower and %.1f%% of the bytes",
                100 * (1 - subject->rate_figure.middle / fastest->rate_figure.middle),
                100 * (double)subject->bytes / (double)(fastest->bytes ? fastest->bytes : 1));
    if (subject->quality)
        fprintf(out, ", PSNR %.2f dB, SSIM %.4f", mean_of(subject->quality, "psnr_rgb"),
                mean_of(subject->quality, "ssim"));
}

static void print_choice(FILE *out, const struct analysis *analysis)
{
    const struct subject *fastest = &analysis->subjects[analysis->fastest];
    const struct subject *smallest = &analysis->subjects[analysis->smallest];
    if (analysis->count < 2)
        return;
    fprintf(out, "\nThe fastest is %s: ", fastest->name);
    print_cost(out, analysis, fastest);
    if (smallest == fastest) {
        fprintf(out, ". None within %g%% of it is smaller.\n", analysis->options->within);
    } else {
        fprintf(out, ".\nThe smallest within %g%% of it is %s: ", analysis->options->within,
                smallest->name);
        print_cost(out, analysis, smallest);
        fprintf(out, ".\n");
    }
}

/* Was it storage that was read, or memory under another name? */
static bool was_cold(const struct subject *subject)
{
    return subject->resident < 0.5;
}

static void print_analysis(FILE *out, const struct analysis *analysis)
{
    print_device(out, analysis);
    print_table(out, analysis);
    fprintf(out, "\n");
    for (size_t i = 0; i < analysis->count; i++)
        print_subject(out, analysis, &analysis->subjects[i]);
    print_choice(out, analysis);
    for (size_t i = 0; i < analysis->count; i++)
        if (!was_cold(&analysis->subjects[i]))
            fprintf(out,
                    "%s: its files would not leave memory, so the rate of its storage is not "
                    "that of a cold start.\n",
                    analysis->subjects[i].name);
}

static json_t *figure_json(const struct figure *figure)
{
    return json_pack("{s:f, s:o}", "median", figure->middle, "half", dl2_json_real(figure->half));
}

static json_t *device_json(const struct device *device)
{
    return json_pack(
        "{s:s, s:o, s:i, s:i, s:o, s:o}", "kind", device->shared ? "shared" : "separate",
        "images_per_second", figure_json(&device->rate), "threads", (int)device->threads, "cores",
        (int)device->cores, "arch",
        device->report ? dl2_json_text(dl2_json_get_text(device->report, "arch", "")) : json_null(),
        "device",
        device->report ? dl2_json_text(dl2_json_get_text(device->report, "device", ""))
                       : json_null());
}

static json_t *subject_json(const struct subject *subject)
{
    const struct dl2_loader_stats *stats = &subject->stats;
    json_t *json = json_pack(
        "{s:o, s:o, s:I, s:I, s:f, s:{s:o, s:o, s:b}, s:{s:o, s:o, s:f, s:{s:f, s:f, s:f, s:f}},"
        " s:{s:o, s:f}, s:{s:o, s:o, s:f}, s:{s:f, s:f, s:f}, s:s, s:o}",
        "variant", dl2_json_text(subject->name), "path", dl2_json_text(subject->path), "images",
        (json_int_t)subject->images, "bytes", (json_int_t)subject->bytes, "cached", subject->cached,
        "storage", "images_per_second", figure_json(&subject->storage_figure), "bytes_per_second",
        json_real(subject->storage_figure.middle *
                  dl2_load_rate((double)subject->read_bytes, (double)subject->read_images)),
        "cold", was_cold(subject), "preprocessing", "images_per_second",
        figure_json(&subject->loader_figure), "cpu_seconds_per_image",
        figure_json(&subject->cpu_figure), "processor_seconds_per_image", subject->middle.kept,
        "stages", "read", stats->read, "decode", stats->decode, "transform", stats->transform,
        "operations", stats->operations, "cold", "images_per_second",
        figure_json(&subject->cold_figure), "cpu_seconds_per_image", subject->middle.cold_cpu,
        "predicted", "images_per_second", figure_json(&subject->rate_figure),
        "first_epoch_images_per_second", figure_json(&subject->first_figure), "epoch_seconds",
        dl2_load_rate((double)subject->images, subject->rate_figure.middle), "epoch_shares",
        "device", subject->device_share, "preprocessing", subject->loader_share, "storage",
        subject->storage_share, "bottleneck", subject->bottleneck, "help",
        subject->advice.rate > 0
            ? json_pack("{s:o, s:f}", "what", dl2_json_text(subject->advice.text),
                        "images_per_second", subject->advice.rate)
            : json_null());
    if (json && subject->quality)
        json_object_set_new(json, "quality", json_deep_copy(subject->quality));
    return json;
}

static json_t *analysis_json(const struct analysis *analysis)
{
    const struct dl2_loader_config *config = &analysis->config;
    json_t *variants = json_array();
    for (size_t i = 0; i < analysis->count; i++)
        json_array_append_new(variants, subject_json(&analysis->subjects[i]));
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:i, s:I, s:o, s:o, s:{s:o, s:o, s:f}, s:O, s:o, s:o}",
        "schema", "dl2-load-analysis/1", "mode", config->train ? "train" : "val", "batch",
        (int)config->batch, "image_size", (int)config->image_size, "channels",
        (int)config->channels, "workers", (int)config->workers, "seconds",
        analysis->options->seconds, "rounds", ROUNDS, "memory_bytes", (json_int_t)analysis->memory,
        "device", device_json(&analysis->device), "variants", variants, "choice", "fastest",
        dl2_json_text(analysis->subjects[analysis->fastest].name), "smallest",
        dl2_json_text(analysis->subjects[analysis->smallest].name), "within",
        analysis->options->within, "bad", analysis->bad, "machine", dl2_machine_describe(),
        "versions", versions);
}

static int save(const struct analysis *analysis, struct dl2_error *error)
{
    const char *path = analysis->options->json_path;
    json_t *json = analysis_json(analysis);
    const int status = json ? dl2_json_save(path, json, error)
                            : dl2_error_set(error, DL2_ERR_MEMORY, "%s: out of memory", path);
    json_decref(json);
    return status;
}

/* ---- */

static int prepare(struct analysis *analysis, const char *const *paths, struct dl2_error *error)
{
    const struct dl2_load_options *options = analysis->options;
    const size_t count = analysis->count;
    analysis->config = options->loader;
    analysis->bad = json_array();
    analysis->subjects = dl2_calloc(count, sizeof *analysis->subjects);
    analysis->quality = json_array();
    if (!analysis->bad || !analysis->subjects || !analysis->quality)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    DL2_TRY(find_device(analysis, error));
    analysis->memory = options->memory ? options->memory : dl2_memory_available();
    DL2_TRY(read_quality(analysis, error));
    for (size_t i = 0; i < count; i++)
        DL2_TRY(open_subject(analysis, &analysis->subjects[i], paths[i], error));
    return DL2_OK;
}

static int analyze(struct analysis *analysis, const char *const *paths, FILE *out,
                   struct dl2_error *error)
{
    DL2_TRY(prepare(analysis, paths, error));
    const int status = run_rounds(analysis, error);
    for (size_t i = 0; i < analysis->count; i++)
        analysis->bad_count += dl2_load_name_bad(analysis->subjects[i].loader, analysis->bad);
    DL2_TRY(status);
    for (size_t i = 0; i < analysis->count; i++)
        conclude(analysis, &analysis->subjects[i]);
    choose(analysis);
    print_analysis(out, analysis);
    return analysis->options->json_path ? save(analysis, error) : DL2_OK;
}

int dl2_load_analyze(const struct dl2_load_options *options, const char *const *paths, size_t count,
                     FILE *out, struct dl2_error *error)
{
    struct analysis analysis = {.options = options, .count = count};
    const int status = analyze(&analysis, paths, out, error);
    for (size_t i = 0; analysis.subjects && i < count; i++)
        close_subject(&analysis.subjects[i]);
    free(analysis.subjects);
    json_decref(analysis.quality);
    json_decref(analysis.bad);
    json_decref(analysis.device.report);
    return status < 0 ? status : analysis.bad_count;
}
