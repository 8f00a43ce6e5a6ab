/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-load: measures and checks the input pipeline alone, and predicts training rates. */
#include "codec/codec.h"
#include "codec/external.h"
#include "common/file.h"
#include "common/option.h"
#include "common/thread.h"
#include "dataset/subset_options.h"
#include "load/load.h"
#include "loader/loader_options.h"
#include "remote/remote_options.h"

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *const devices[] = {[DL2_DEVICE_UNKNOWN] = "auto",
                                      [DL2_DEVICE_SEPARATE] = "separate",
                                      [DL2_DEVICE_SHARED] = "shared",
                                      NULL};

enum command { BENCH, CHECK, ANALYZE };
enum {
    BENCHES = 1 << BENCH,
    ANALYZES = 1 << ANALYZE,
    LOADS = BENCHES | ANALYZES,
    CHECKS = 1 << CHECK
};

static const struct dl2_command commands[] = {
    [BENCH] = {"bench", BENCHES, "DIR...", 1, 0,
               "Load images as training does, and measure the rate",
               "All images are loaded as in training, of several DIRs as of one dataset; the rate "
               "and the time of each stage are "
               "printed. Images/s a core are images per CPU second, user and system, of the whole "
               "process. With --batching=strict the batches are the same bytes for every number of "
               "workers."},
    [CHECK] = {"check", CHECKS, "DIR...", 1, 0,
               "Decode every image, and name those that are damaged",
               "Every image is read, compared with its check sum if the dataset has one, and "
               "decoded. Several DIRs must go together as one dataset."},
    [ANALYZE] = {"analyze", ANALYZES, "DIR...", 1, 0,
                 "Predict how fast a device trains, and what it waits for",
                 "For each DIR, predicts how fast a device trains from it, and what it waits for: "
                 "storage, preprocessing or itself (the differential runs of DS-Analyzer: Mohan et "
                 "al., VLDB 2021). Some of the images are read cold, the same images are loaded "
                 "with the files in memory, others are loaded cold, and these rates are compared "
                 "with the device's own. Then a DIR is recommended. It takes about 3 * --seconds "
                 "for each."},
    {0},
};

static struct {
    struct dl2_load_options options;
    const char *split; /* NULL: as the mode says */
    bool gray;
} settings = {
    .options = {.loader = DL2_LOADER_DEFAULTS,
                .dataset = DL2_DATASET_DEFAULTS,
                .epochs = 3,
                .measure = NAN,
                .device_rate = NAN,
                .parameters = NAN,
                .link = NAN,
                .seconds = 3,
                .within = 5},
    .options.loader.max_pixels = DL2_DEFAULT_MAX_PIXELS,
};

/* ---- Values of options ---- */

static int parse_scaling(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_load_options *options = value;
    free(options->scaling);
    options->scaling = NULL;
    options->scaling_count = 0;
    if (strcmp(text, "auto"))
        return dl2_parse_uint_list(text, 1, 1024, &options->scaling, &options->scaling_count,
                                   error);
    const unsigned cores = dl2_cpu_count();
    DL2_TRY(DL2_NEW(&options->scaling, 34, "options", error));
    unsigned workers = 1;
    for (; workers < cores; workers *= 2)
        options->scaling[options->scaling_count++] = workers;
    options->scaling[options->scaling_count++] = cores;
    return DL2_OK;
}

static int parse_quality(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_load_options *options = value;
    DL2_TRY(dl2_grow(&options->quality, options->quality_count, sizeof *options->quality, error));
    options->quality[options->quality_count++] = text;
    return DL2_OK;
}

/* ---- */

#define AT(member) offsetof(__typeof__(settings), member)

static const struct dl2_option options[] = {
    {DL2_OPTION_GROUP, .help = "Options for the images:"},
    {DL2_OPTION_TEXT, "split", 's', "SPLIT",
     "Which images to load: all, train, val, test, or the name of another split", AT(split),
     .words = dl2_split_words, .unset = "as --train or --val says; all for check", .basic = true},
    {DL2_OPTION_TABLE, .table = dl2_subset_options, .offset = AT(options.dataset.subset)},
    {DL2_OPTION_TABLE, .table = dl2_samples_options, .offset = AT(options.dataset.samples)},
    {DL2_OPTION_TABLE, .table = dl2_labels_options, .offset = AT(options.dataset.labels)},
    {DL2_OPTION_TABLE, .table = dl2_member_options, .offset = AT(options.dataset.members)},
    {DL2_OPTION_TABLE, .table = dl2_remote_options, .offset = AT(options.dataset.remote)},
    {DL2_OPTION_FLAG, "train", 0, NULL,
     "Load as in training: shuffled, with random crops and flips; this is the default",
     AT(options.loader.train), .commands = LOADS, .basic = true},
    {DL2_OPTION_NEGATE, "val", 0, NULL,
     "Load as in validation: in order, resized, with the central crop", AT(options.loader.train),
     .commands = LOADS, .basic = true},
    {DL2_OPTION_PARSE, "image-size", 'i', "SIZE",
     "Size of the loaded images: PIXELS of a square's side, or HEIGHTxWIDTH; of volumes, the patch "
     "that is cut out: DEPTHxHEIGHTxWIDTH voxels",
     AT(options.loader.height), .parse = dl2_parse_output_size, .show = dl2_show_output_size,
     .commands = LOADS, .also = "img-size,input-size,resolution,size,crop-size", .basic = true},
    {DL2_OPTION_CHOICE, "val-crop", 0, "MODE",
     "With --val, what is shown of an image: center: the middle, after a resize that keeps the "
     "aspect; squash: the whole image, resized to --image-size whatever its aspect",
     AT(options.loader.val_crop), .words = dl2_val_crop_words, .commands = LOADS},
    {DL2_OPTION_UINT, "resize", 0, "PIXELS",
     "With --val: shorter side of an image before it is cropped", AT(options.loader.resize),
     .min = 1, .max = 65536, .unset = "8/7 of --image-size", .commands = LOADS},
    {DL2_OPTION_FLAG, "gray", 0, NULL, "Load one channel instead of three", AT(gray),
     .commands = LOADS},
    {DL2_OPTION_CHOICE, "dtype", 0, "TYPE",
     "Type of the pixels: uint8, float32, bfloat16 or float16 (of volumes float32 unless it is "
     "given)",
     AT(options.loader.dtype), .words = dl2_dtype_words, .commands = LOADS},
    {DL2_OPTION_CHOICE, "layout", 0, "LAYOUT",
     "Order of the pixels: nhwc: channels together; nchw: planes (of volumes nchw unless it is "
     "given)",
     AT(options.loader.layout), .words = dl2_layout_words, .commands = LOADS},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N", "Count images with more pixels as unreadable",
     AT(options.loader.max_pixels)},
    {DL2_OPTION_TEXT, "mask", 0, "EXT",
     "Also load the masks that lie beside the images or volumes, by their extension, for example "
     "mask.png or mask.npy; check compares them with these",
     AT(options.loader.mask), .unset = "none", .commands = BENCHES | CHECKS},
    {DL2_OPTION_TEXT, "boxes", 0, "FILE|EXT",
     "Also load the boxes of the images' objects: a file in COCO's JSON, such as instances.json, "
     "whose file_names fit the images, or the extension of YOLO's label files beside the images, "
     "such as txt, or their data.yaml or classes.txt; check compares them with the images",
     AT(options.loader.boxes), .unset = "none", .commands = BENCHES | CHECKS, .basic = true},
    {DL2_OPTION_REAL, "min-visibility", 0, "SHARE",
     "With --boxes, leave out boxes of whose area an image shows a smaller share",
     AT(options.loader.min_visibility), .min = 0, .max = 1, .commands = BENCHES},
    {DL2_OPTION_FLAG, "instance-masks", 0, NULL,
     "With --boxes of COCO's JSON, also load a mask of each object; check reads the polygons and "
     "run lengths that they are made of",
     AT(options.loader.instance_masks), .commands = BENCHES | CHECKS},
    {DL2_OPTION_TABLE, .table = dl2_volume_options, .offset = AT(options.loader),
     .commands = BENCHES},
    {DL2_OPTION_TABLE, .table = dl2_external_options, .offset = AT(options.loader.external)},
    {DL2_OPTION_TABLE, .table = dl2_bands_options, .offset = AT(options.loader.drop_bands)},

    {DL2_OPTION_GROUP, .help = "Options for loading:"},
    {DL2_OPTION_UINT, "batch", 'b', "IMAGES", "Number of images per batch",
     AT(options.loader.batch), .min = 1, .max = 1048576, .commands = LOADS, .also = "batch-size,bs",
     .basic = true},
    {DL2_OPTION_FLAG, "drop-last", 0, NULL, "Leave out the last batch if it is not full",
     AT(options.loader.drop_last), .commands = LOADS},
    {DL2_OPTION_UINT64, "seed", 0, "N", "Seed of order, crops, flips and augmentation",
     AT(options.loader.seed), .commands = LOADS},
    {DL2_OPTION_UINT, "rank", 0, "N", "Which part of an epoch this process loads",
     AT(options.loader.rank), .commands = LOADS},
    {DL2_OPTION_UINT, "world", 0, "N",
     "Number of parts of an epoch; with --train they are equal, and the images left over, others "
     "in each epoch, are left out",
     AT(options.loader.world), .min = 1, .max = 65536, .unset = "1", .commands = LOADS},
    {DL2_OPTION_TABLE, .table = dl2_loader_options, .offset = AT(options.loader),
     .commands = LOADS},
    {DL2_OPTION_TABLE, .table = dl2_sampling_options, .offset = AT(options.loader),
     .commands = BENCHES},
    {DL2_OPTION_UINT, "ahead", 0, "IMAGES", "Maximum number of images read ahead",
     AT(options.loader.fetch.ahead), .min = 1, .max = 1048576, .unset = "chosen by the loader",
     .commands = LOADS},
    {DL2_OPTION_FLAG, "whole", 0, NULL,
     "Read packed images whole even where the rows of the crop suffice (a cache always does)",
     AT(options.loader.fetch.whole), .commands = LOADS},

    {DL2_OPTION_GROUP, .help = "Options for bench:"},
    {DL2_OPTION_UINT, "epochs", 'e', "N", "Number of epochs", AT(options.epochs), .min = 1,
     .max = 1000000, .commands = BENCHES, .basic = true},
    {DL2_OPTION_REAL, "measure", 0, "S",
     "Instead of --epochs: load for S seconds or an epoch to warm up, then measure for S seconds "
     "or "
     "a little longer",
     AT(options.measure), .min = 0.01, .max = 86400, .commands = BENCHES},
    {DL2_OPTION_FLAG, "cold", 0, NULL,
     "Evict the files from the system's page cache before each epoch", AT(options.cold),
     .commands = BENCHES, .basic = true},
    {DL2_OPTION_PARSE, "scaling", 0, "N,...",
     "Also compare these numbers of workers, one epoch of each in turn; auto: 1, 2, 4... up to "
     "the number of processors",
     AT(options), .parse = parse_scaling, .commands = BENCHES, .basic = true},
    {DL2_OPTION_FLAG, "digest", 0, NULL,
     "Also print a checksum of all images and labels (slows loading a little)", AT(options.digest),
     .commands = BENCHES},
    {DL2_OPTION_TABLE, .table = dl2_decode_options, .offset = AT(options.decode),
     .commands = BENCHES},
    {DL2_OPTION_PARSE, "device", 0, "NAME",
     "With --decode gpu or hybrid: the card, auto, cuda or cuda:1", AT(options.card),
     .parse = dl2_batch_decoder_card, .unset = "auto, the first", .commands = BENCHES},
    {DL2_OPTION_TEXT, "name", 0, "NAME", "Name of the dataset in the results", AT(options.name),
     .unset = "its variant's name, or the last part of DIR; A+B of several", .commands = BENCHES},

    {DL2_OPTION_GROUP, .help = "Options for analyze:"},
    {DL2_OPTION_REAL, "device-rate", 0, "IMAGES/S",
     "Training rate of the device when it never waits for data", AT(options.device_rate),
     .min = 1e-3, .max = 1e9, .commands = ANALYZES, .basic = true},
    {DL2_OPTION_TEXT, "device-report", 0, "FILE",
     "Take that rate from an experiment_report.json of dl2-train --loader synthetic, and from it "
     "also image size, batch, channels, crops and augmentation",
     AT(options.device_report), .commands = ANALYZES},
    {DL2_OPTION_CHOICE, "device-kind", 0, "KIND",
     "separate: the loader has all processors, as beside a GPU; shared: training runs on them "
     "too; auto: shared if the report's device is a processor",
     AT(options.device), .words = devices, .commands = ANALYZES},
    {DL2_OPTION_REAL, "seconds", 0, "S", "Duration of each of the three runs of a dataset",
     AT(options.seconds), .min = 0.05, .max = 86400, .commands = ANALYZES},
    {DL2_OPTION_REAL, "within", 0, "PERCENT",
     "How much slower than the fastest a recommended smaller dataset may be", AT(options.within),
     .min = 0, .max = 99, .commands = ANALYZES},
    {DL2_OPTION_SIZE, "memory", 0, "SIZE", "Memory that can keep files from epoch to epoch",
     AT(options.memory), .unset = "what is available now", .commands = ANALYZES},
    {DL2_OPTION_PARSE, "quality", 0, "PATH",
     "Show the figures of this JSON file of dl2-quality, or of a folder of them, beside the "
     "datasets; may be given several times",
     AT(options), .parse = parse_quality, .commands = ANALYZES},
    {DL2_OPTION_UINT, "models", 0, "N",
     "With --ranks: predict an epoch of N models, data parallel one after the other, hopping, and "
     "task parallel (dl2-train --ranks, --hop, --task): time, bytes moved, files that a rank reads",
     AT(options.models), .min = 1, .max = 1000000, .unset = "no such prediction",
     .commands = ANALYZES},
    {DL2_OPTION_UINT, "ranks", 0, "N",
     "Number of ranks that train --models, each as fast as this machine", AT(options.ranks),
     .min = 2, .max = 4096, .unset = "no such prediction", .commands = ANALYZES},
    {DL2_OPTION_REAL, "parameters", 0, "N", "Number of parameters of each of --models",
     AT(options.parameters), .min = 1, .max = 1e15, .unset = "the device report's",
     .commands = ANALYZES},
    {DL2_OPTION_REAL, "bandwidth", 0, "MB/S", "Megabytes a second that a rank of --ranks can send",
     AT(options.link), .min = 1e-3, .max = 1e9, .unset = "sending takes no time",
     .commands = ANALYZES},

    {DL2_OPTION_GROUP, .help = "Options for results:"},
    {DL2_OPTION_TEXT, "json", 0, "FILE",
     "Write the results to FILE (dl2-load/1, dl2-load-check/1 or dl2-load-analysis/1)",
     AT(options.json_path), .basic = true},
    {DL2_OPTION_END},
};

static void print_versions(FILE *out)
{
    dl2_codec_print_versions(out);
    fprintf(out, "  zlib %s\n", zlibVersion());
}

static const struct dl2_program program = {
    .name = "dl2-load",
    .summary = "Measure or check the input pipeline of training: read, decode, crop, resize.",
    .details =
        "DIR is a folder of images, {train,val,test,...}/CLASS/FILE or CLASS/FILE, or one split of "
        "it, DIR/train; a folder of GulpIO chunks or of WebDataset tar shards, or one such file; "
        "a folder of MNIST's IDX files; the address of a table in PostgreSQL, "
        "postgresql://HOST/DATABASE?table=NAME; or of such a dataset behind a server, "
        "https://HOST/PATH (shards with their index) or s3://BUCKET/PREFIX (also folders).\n\n"
        "Exit status: 0 success, 1 an image or something else failed, 2 wrong usage.",
    .examples = "  $ dl2-load bench variants/jpeg-50 --image-size 224 --scaling auto\n"
                "  $ dl2-load check photos\n"
                "  $ dl2-load analyze --device-rate 3000 photos variants/*",
    .options = options,
    .values = &settings,
    .commands = commands,
    .print_versions = print_versions,
};

/* ---- */

static struct dl2_common_options common;

static bool is_given(const char *option)
{
    return dl2_option_given(&program, &common, option);
}

static int run(enum command command, const char *const *paths, size_t count,
               struct dl2_error *error)
{
    struct dl2_load_options *own = &settings.options;
    if (settings.split)
        own->dataset.split = settings.split;
    else if (command != CHECK)
        own->dataset.split = own->loader.train ? "train" : "val";
    own->dataset.keep = dl2_codec_is_image_file;
    own->dataset.reads = dl2_codec_reads;
    own->loader.workers = common.jobs;
    own->loader.channels = settings.gray ? 1 : 3;
    own->quiet = common.quiet;
    own->dataset.decode_slice = command == ANALYZE ? NULL : dl2_gray_decode;
    own->dataset.takes_videos = command == BENCH || command == CHECK;
    own->dataset.sidecars = own->loader.mask;
    if (own->loader.volume_depth && !is_given("dtype"))
        own->loader.dtype = DL2_FLOAT32;
    if (own->loader.volume_depth && !is_given("layout"))
        own->loader.layout = DL2_NCHW;
    if (own->json_path)
        DL2_TRY(dl2_file_expect(own->json_path, error));
    switch (command) {
    case BENCH:
        return dl2_load_bench(own, paths, count, stdout, error);
    case CHECK:
        return dl2_load_check(own, paths, count, stdout, error);
    default:
        return dl2_load_analyze(own, paths, count, stdout, error);
    }
}

/* Refuses options that would have no effect. */
static int check_effects(enum command command, size_t paths)
{
    const struct dl2_load_options *own = &settings.options;
    const struct dl2_option_rule rules[] = {
        {own->device_report, "image-size,batch,gray,crop-area,augment,interpolation",
         "is taken from --device-report"},
        {own->loader.volume_depth, "gray",
         "has no effect on volumes, whose channels are loaded as they are"},
        {own->decode.mode == DL2_DECODE_CPU, "device", "needs --decode gpu or hybrid"},
        {paths < 2, "shares", "needs several DIRs"},
        {paths > 1, "labels", "is for one DIR, whose samples its lists name"},
    };
    if (own->loader.volume_depth && command != BENCH)
        return dl2_program_usage_error(&program,
                                       "--image-size DEPTHxHEIGHTxWIDTH is for bench, on volumes");
    if (dl2_program_refuse(&program, &common, rules, sizeof rules / sizeof *rules) != 0)
        return DL2_EXIT_USAGE;
    const int refused = dl2_subset_options_check(&program, &common, &own->dataset.subset);
    if (refused)
        return refused;
    return dl2_loader_options_check(&(struct dl2_loader_user){
        .program = &program,
        .common = &common,
        .options = options,
        .values = &settings,
        .config = &own->loader,
        .decodes_on_card = own->decode.mode != DL2_DECODE_CPU,
    });
}

/* Checks all arguments; returns 0 or an exit status. */
static int check_usage(enum command command, size_t paths)
{
    const int idle = check_effects(command, paths);
    if (idle)
        return idle;
    const struct dl2_load_options *own = &settings.options;
    const struct dl2_loader_config *loader = &own->loader;
    if (loader->rank >= (loader->world ? loader->world : 1))
        return dl2_program_usage_error(&program, "--rank must be below --world");
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_decode_choice_check(&own->decode, &error) < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    if (!own->models != !own->ranks)
        return dl2_program_usage_error(&program, "--models and --ranks need each other");
    if (!own->models && (is_given("parameters") || is_given("bandwidth")))
        return dl2_program_usage_error(&program, "--parameters and --bandwidth need --models");
    if (own->models && isnan(own->parameters) && !own->device_report)
        return dl2_program_usage_error(&program, "--models needs --parameters or --device-report: "
                                                 "they tell how large a model is");
    if (command == ANALYZE && isnan(own->device_rate) == !own->device_report)
        return dl2_program_usage_error(
            &program, "analyze needs the device's rate: either --device-rate or --device-report. "
                      "For a report, run dl2-train --loader synthetic --data DIR --epochs 3");
    return 0;
}

int main(int argc, char **argv)
{
    char **paths;
    size_t count;
    dl2_program_parse(&program, argc, argv, &common, &paths, &count);
    struct dl2_error error = DL2_ERROR_INIT;
    const enum command command = (enum command)common.command;
    int exit_status = check_usage(command, count);
    if (!exit_status) {
        const int status = run(command, (const char *const *)paths, count, &error);
        if (status < 0)
            fprintf(stderr, "%s: %s\n", program.name, error.message);
        exit_status = status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    }
    free(settings.options.scaling);
    free(settings.options.quality);
    free(paths);
    return exit_status;
}
