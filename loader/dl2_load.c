/* dl2-load: measures and checks the input pipeline alone. */
#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/option.h"
#include "common/progress.h"
#include "common/thread.h"
#include "loader/loader.h"

#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct settings {
    struct dl2_common_options common;
    struct dl2_loader_config loader;
    struct dl2_dataset_options dataset;
    unsigned epochs;
    bool split_is_given, gray, digest;
    const char *json_path, *name;
};

static struct settings settings = {
    .loader = DL2_LOADER_DEFAULTS, .dataset = DL2_DATASET_DEFAULTS, .epochs = 3};

static int parse_split(const char *text, void *value, struct dl2_error *error)
{
    static const char *const names[] = {
        [DL2_SPLIT_ALL] = "all", [DL2_SPLIT_TRAIN] = "train", [DL2_SPLIT_VAL] = "val"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            *(enum dl2_split *)value = (enum dl2_split)i;
            settings.split_is_given = true;
            return DL2_OK;
        }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is none of all, train and val", text);
}

static const struct dl2_option options[] = {
    {DL2_OPTION_GROUP, .help = "What is loaded:"},
    {DL2_OPTION_PARSE, "split", 's', "SPLIT",
     "all, train or val (default: what the mode is called; of check: all)",
     .value = &settings.dataset.split, .parse = parse_split},
    {DL2_OPTION_FLAG, "train", 0, NULL, "Shuffled, random crops and flips (the default)",
     .value = &settings.loader.train},
    {DL2_OPTION_NEGATE, "val", 0, NULL, "In order, resized, the middle cropped",
     .value = &settings.loader.train},
    {DL2_OPTION_UINT, "image-size", 'i', "PIXELS", "Side of the images that come out (default: 64)",
     .value = &settings.loader.image_size, .min = 1, .max = 65536},
    {DL2_OPTION_UINT, "resize", 0, "PIXELS",
     "With --val: the shorter side before the crop (default: 256/224 of the image size)",
     .value = &settings.loader.resize, .min = 1, .max = 65536},
    {DL2_OPTION_FLAG, "gray", 0, NULL, "One channel instead of three", .value = &settings.gray},
    {DL2_OPTION_UINT, "batch", 'b', "IMAGES", "Images a batch (default: 64)",
     .value = &settings.loader.batch, .min = 1, .max = 1048576},
    {DL2_OPTION_FLAG, "drop-last", 0, NULL, "Leave out a last batch that is not full",
     .value = &settings.loader.drop_last},
    {DL2_OPTION_UINT, "depth", 0, "BATCHES", "Batches held in memory (default: 3)",
     .value = &settings.loader.depth, .min = 2, .max = 1024},
    {DL2_OPTION_UINT, "epochs", 'e', "N", "How often all images are loaded (default: 3)",
     .value = &settings.epochs, .min = 1, .max = 1000000},
    {DL2_OPTION_UINT64, "seed", 0, "N", "Of the order, crops and flips (default: 0)",
     .value = &settings.loader.seed},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N",
     "Images with more pixels are counted as bad (default: 134217728)",
     .value = &settings.loader.max_pixels},
    {DL2_OPTION_GROUP, .help = "What is reported:"},
    {DL2_OPTION_TEXT, "json", 0, "FILE", "Write the figures to FILE (dl2-load/1)",
     .value = &settings.json_path},
    {DL2_OPTION_TEXT, "name", 0, "NAME",
     "What to call the dataset (default: its variant's name, or the last part of DIR)",
     .value = &settings.name},
    {DL2_OPTION_FLAG, "digest", 0, NULL,
     "Also print a check sum over every batch's images and labels (slows down a little)",
     .value = &settings.digest},
    {.type = DL2_OPTION_END},
};

static void print_versions(FILE *out)
{
    dl2_codec_print_versions(out);
    fprintf(out, "  zlib %s\n", zlibVersion());
}

static const struct dl2_program program = {
    .name = "dl2-load",
    .synopsis = "bench DIR\ncheck DIR",
    .summary = "Measure or check the input pipeline of training: read, decode, crop, resize.",
    .details =
        "bench loads all images as training would and says how fast that went, and where the time "
        "went. An image's share of a core is CPU time, of user and system, of the whole "
        "process.\n\n"
        "check reads and decodes every image and names the bad ones.\n\n"
        "DIR is a folder of images, {train,val}/CLASS/FILE or CLASS/FILE, or one that holds "
        "MNIST's "
        "IDX files. The batches are the same bytes for every number of workers.\n\n"
        "Exit status: 0 all well, 1 an image or something else failed, 2 wrong usage.",
    .options = options,
    .print_versions = print_versions,
    .min_arguments = 2,
    .max_arguments = 2,
};

/* ---- bench ---- */

struct bench {
    char *name;
    const char *path;
    unsigned workers;
    uint64_t samples;
    double seconds, cpu_seconds;
    double *epoch_seconds;
    uint64_t *epoch_images;
    struct dl2_loader_stats stats;
    uint32_t digest;
};

/* The workers' time that no stage took: they waited for a free slot or for the epoch to end. */
static double waited(const struct bench *bench)
{
    const struct dl2_loader_stats *stats = &bench->stats;
    const double rest =
        bench->workers * bench->seconds - stats->read - stats->decode - stats->transform;
    return rest > 0 ? rest : 0;
}

static uint32_t digest_batch(uint32_t digest, const struct dl2_batch *batch)
{
    const struct dl2_loader_config *config = &settings.loader;
    const size_t size = (size_t)config->image_size * config->image_size * config->channels;
    for (unsigned i = 0; i < batch->count; i++)
        digest = (uint32_t)crc32_z(digest, batch->images + i * size, size);
    return (uint32_t)crc32_z(digest, (const Bytef *)batch->labels,
                             batch->count * sizeof *batch->labels);
}

static int run_epoch(struct dl2_loader *loader, struct bench *bench, unsigned epoch,
                     struct dl2_progress *progress, struct dl2_error *error)
{
    const double start = dl2_clock_wall();
    DL2_TRY(dl2_loader_start_epoch(loader, epoch, 0, error));
    struct dl2_batch *batch;
    int status;
    while ((status = dl2_loader_next(loader, &batch, error)) == 1) {
        if (settings.digest)
            bench->digest = digest_batch(bench->digest, batch);
        bench->epoch_images[epoch] += batch->count;
        dl2_progress_update(progress, progress->done + batch->count, NULL);
        dl2_loader_release(loader, batch);
    }
    bench->epoch_seconds[epoch] = dl2_clock_wall() - start;
    bench->seconds += bench->epoch_seconds[epoch];
    return status;
}

static int run_epochs(struct dl2_loader *loader, struct bench *bench, struct dl2_error *error)
{
    struct dl2_progress progress;
    dl2_progress_begin(&progress, "load", "images", bench->samples * settings.epochs,
                       settings.common.quiet);
    const double cpu = dl2_clock_process_cpu();
    int status = DL2_OK;
    for (unsigned epoch = 0; epoch < settings.epochs && status == DL2_OK; epoch++)
        status = run_epoch(loader, bench, epoch, &progress, error);
    bench->cpu_seconds = dl2_clock_process_cpu() - cpu;
    dl2_progress_end(&progress);
    dl2_loader_get_stats(loader, &bench->stats);
    return status;
}

static void print_stage(const char *name, double seconds, const struct bench *bench)
{
    const double total = bench->workers * bench->seconds;
    const double images = bench->stats.images ? (double)bench->stats.images : 1;
    printf("  %-10s %9.2f s %7.1f %% %10.1f us an image\n", name, seconds,
           total > 0 ? 100 * seconds / total : 0, 1e6 * seconds / images);
}

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

static void print_bench(const struct bench *bench)
{
    const struct dl2_loader_config *config = &settings.loader;
    const struct dl2_loader_stats *stats = &bench->stats;
    printf("%s: %" PRIu64 " images for %s, %ux%ux%u in batches of %u, %u worker%s\n", bench->name,
           bench->samples, config->train ? "training" : "validation", config->image_size,
           config->image_size, config->channels, config->batch, bench->workers,
           bench->workers == 1 ? "" : "s");
    for (unsigned i = 0; settings.epochs > 1 && i < settings.epochs; i++)
        printf("  epoch %-6u %7.2f s %9.0f images/s\n", i + 1, bench->epoch_seconds[i],
               rate((double)bench->epoch_images[i], bench->epoch_seconds[i]));
    printf("  %-21s %10.0f\n", "images/s", rate((double)stats->images, bench->seconds));
    printf("  %-21s %10.0f\n", "images/s a core", rate((double)stats->images, bench->cpu_seconds));
    printf("  %-21s %10.1f\n", "MB/s read", rate((double)stats->bytes / 1e6, bench->seconds));
    printf("Where the workers' time went:\n");
    print_stage("read", stats->read, bench);
    print_stage("decode", stats->decode, bench);
    print_stage("transform", stats->transform, bench);
    print_stage("wait", waited(bench), bench);
    if (settings.digest)
        printf("digest %08" PRIx32 "\n", bench->digest);
}

static json_t *epochs_json(const struct bench *bench)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < settings.epochs; i++)
        json_array_append_new(list, json_pack("{s:f, s:I}", "seconds", bench->epoch_seconds[i],
                                              "images", (json_int_t)bench->epoch_images[i]));
    return list;
}

static json_t *bench_json(const struct bench *bench, const char *const *bad, size_t bad_count)
{
    const struct dl2_loader_config *config = &settings.loader;
    const struct dl2_loader_stats *stats = &bench->stats;
    json_t *names = json_array();
    for (size_t i = 0; i < bad_count; i++)
        json_array_append_new(names, dl2_json_text(bad[i]));
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    return json_pack("{s:s, s:o, s:o, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f,"
                     " s:{s:f, s:f, s:f, s:f}, s:I, s:o, s:o, s:o, s:o}",
                     "schema", "dl2-load/1", "variant", dl2_json_text(bench->name), "path",
                     dl2_json_text(bench->path), "mode", config->train ? "train" : "val", "images",
                     (json_int_t)bench->samples, "epochs", (int)settings.epochs, "batch",
                     (int)config->batch, "image_size", (int)config->image_size, "channels",
                     (int)config->channels, "workers", (int)bench->workers, "seconds",
                     bench->seconds, "cpu_seconds", bench->cpu_seconds, "images_per_second",
                     rate((double)stats->images, bench->seconds), "images_per_core_second",
                     rate((double)stats->images, bench->cpu_seconds), "stages", "read", stats->read,
                     "decode", stats->decode, "transform", stats->transform, "wait", waited(bench),
                     "bytes_read", (json_int_t)stats->bytes, "per_epoch", epochs_json(bench), "bad",
                     names, "machine", dl2_machine_describe(), "versions", versions);
}

static int save_json(const struct bench *bench, const char *const *bad, size_t bad_count,
                     struct dl2_error *error)
{
    json_t *json = bench_json(bench, bad, bad_count);
    if (!json)
        return dl2_error_set(error, DL2_ERR_MEMORY, "%s: out of memory", settings.json_path);
    const int status = dl2_json_save(settings.json_path, json, error);
    json_decref(json);
    return status;
}

/* Returns how many bad samples were named, or an error. */
static int bench_loader(struct dl2_loader *loader, struct bench *bench, struct dl2_error *error)
{
    int status = run_epochs(loader, bench, error);
    size_t count;
    const char *const *bad = dl2_loader_bad(loader, &count);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "dl2-load: %s\n", bad[i]);
    DL2_TRY(status);
    print_bench(bench);
    if (settings.json_path)
        DL2_TRY(save_json(bench, bad, count, error));
    return count > INT32_MAX ? INT32_MAX : (int)count;
}

static int bench_dataset(const struct dl2_dataset *dataset, const char *path,
                         struct dl2_error *error)
{
    struct bench bench = {
        .name = settings.name ? strdup(settings.name) : dl2_dataset_variant_name(path),
        .path = path,
        .workers = settings.loader.workers,
        .samples = dl2_dataset_count(dataset),
        .epoch_seconds = dl2_calloc(settings.epochs, sizeof(double)),
        .epoch_images = dl2_calloc(settings.epochs, sizeof(uint64_t)),
    };
    struct dl2_loader *loader = NULL;
    int status = DL2_OK;
    if (!bench.name || !bench.epoch_seconds || !bench.epoch_images)
        status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    if (status == DL2_OK)
        status = dl2_loader_create(dataset, &settings.loader, &loader, error);
    if (status == DL2_OK)
        status = bench_loader(loader, &bench, error);
    dl2_loader_destroy(loader);
    free(bench.name);
    free(bench.epoch_seconds);
    free(bench.epoch_images);
    return status;
}

/* ---- check ---- */

struct checker {
    struct dl2_bytes encoded;
    struct dl2_image image, turned;
};

struct check {
    const struct dl2_dataset *dataset;
    struct checker *checkers;  /* a worker each */
    struct dl2_error *results; /* a slot each */
    struct dl2_progress progress;
    int bad;
};

static int check_sample(void *context, unsigned worker, size_t slot, size_t item,
                        struct dl2_error *error)
{
    struct check *check = context;
    struct checker *checker = &check->checkers[worker];
    struct dl2_error *result = &check->results[slot];
    const uint8_t *data;
    size_t size;
    dl2_error_clear(result);
    int status = dl2_dataset_read(check->dataset, item, &checker->encoded, &data, &size, result);
    if (status == DL2_OK) {
        struct dl2_decode_options how = DL2_DECODE_DEFAULTS;
        how.max_pixels = settings.loader.max_pixels;
        status = dl2_image_decode(data, size, &how, &checker->image, &checker->turned, result);
        if (status < 0) {
            struct dl2_sample sample;
            dl2_dataset_sample(check->dataset, item, &sample);
            dl2_error_prefix(result, "%s: decode", sample.path);
        }
    }
    if (status == DL2_ERR_MEMORY)
        return dl2_error_set(error, status, "%s", result->message);
    return DL2_OK;
}

static int tell_result(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    (void)error;
    struct check *check = context;
    if (check->results[slot].status < 0) {
        dl2_progress_message(&check->progress, "%s", check->results[slot].message);
        check->bad++;
    }
    dl2_progress_update(&check->progress, item + 1, NULL);
    return DL2_OK;
}

static int check_dataset(const struct dl2_dataset *dataset, const char *path,
                         struct dl2_error *error)
{
    struct check check = {.dataset = dataset};
    struct dl2_parallel loop = {
        .jobs = settings.common.jobs,
        .count = dl2_dataset_count(dataset),
        .work = check_sample,
        .emit = tell_result,
        .context = &check,
    };
    dl2_parallel_resolve(&loop);
    check.checkers = dl2_calloc(loop.jobs, sizeof *check.checkers);
    check.results = dl2_calloc(loop.window, sizeof *check.results);
    int status = check.checkers && check.results
                     ? DL2_OK
                     : dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    if (status == DL2_OK) {
        dl2_progress_begin(&check.progress, "check", "images", loop.count, settings.common.quiet);
        status = dl2_parallel_run(&loop, error);
        dl2_progress_end(&check.progress);
    }
    for (unsigned i = 0; check.checkers && i < loop.jobs; i++) {
        dl2_bytes_free(&check.checkers[i].encoded);
        dl2_image_free(&check.checkers[i].image);
        dl2_image_free(&check.checkers[i].turned);
    }
    free(check.checkers);
    free(check.results);
    if (status < 0)
        return status;
    printf("%s: %zu images, %d bad\n", path, loop.count, check.bad);
    return check.bad;
}

/* ---- */

static int run(const char *command, const char *path, struct dl2_error *error)
{
    const bool bench = !strcmp(command, "bench");
    if (!settings.split_is_given && bench)
        settings.dataset.split = settings.loader.train ? DL2_SPLIT_TRAIN : DL2_SPLIT_VAL;
    settings.dataset.keep = dl2_codec_is_image_file;
    settings.loader.workers = settings.common.jobs;
    settings.loader.channels = settings.gray ? 1 : 3;
    struct dl2_dataset *dataset;
    DL2_TRY(dl2_dataset_open(path, &settings.dataset, &dataset, error));
    const int status =
        bench ? bench_dataset(dataset, path, error) : check_dataset(dataset, path, error);
    dl2_dataset_close(dataset);
    return status;
}

int main(int argc, char **argv)
{
    char **arguments;
    size_t count;
    dl2_program_parse(&program, argc, argv, &settings.common, &arguments, &count);
    int exit_status;
    if (strcmp(arguments[0], "bench") && strcmp(arguments[0], "check")) {
        exit_status =
            dl2_program_usage_error(&program, "'%s' is neither bench nor check", arguments[0]);
    } else {
        struct dl2_error error = DL2_ERROR_INIT;
        const int status = run(arguments[0], arguments[1], &error);
        if (status < 0)
            fprintf(stderr, "%s: %s\n", program.name, error.message);
        exit_status = status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    }
    free(arguments);
    return exit_status;
}
