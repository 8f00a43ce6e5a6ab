/* dl2-load: measures and checks the input pipeline alone, and tells what training will come to. */
#include "codec/codec.h"
#include "common/file.h"
#include "common/option.h"
#include "common/thread.h"
#include "load/load.h"
#include "loader/words.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SPLIT_BY_MODE = DL2_SPLIT_TEST + 1 };
static const char *const devices[] = {[DL2_DEVICE_UNKNOWN] = "auto",
                                      [DL2_DEVICE_SEPARATE] = "separate",
                                      [DL2_DEVICE_SHARED] = "shared",
                                      NULL};

static struct dl2_load_options settings = {.loader = DL2_LOADER_DEFAULTS,
                                           .dataset = DL2_DATASET_DEFAULTS,
                                           .epochs = 3,
                                           .seconds = 3,
                                           .within = 5};
static struct {
    struct dl2_common_options common;
    unsigned split, on_bad;
    bool gray;
} given = {.split = SPLIT_BY_MODE};

/* ---- values of options ---- */

static int parse_area(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_loader_config *loader = value;
    double min, max;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &min, &max, &rest) != 2 || !(min > 0 && min <= max && max <= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not MIN,MAX with 0 < MIN <= MAX <= 1", text);
    loader->area_min = min;
    loader->area_max = max;
    return DL2_OK;
}

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
    options->scaling = dl2_calloc(34, sizeof *options->scaling);
    if (!options->scaling)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    unsigned workers = 1;
    for (; workers < cores; workers *= 2)
        options->scaling[options->scaling_count++] = workers;
    options->scaling[options->scaling_count++] = cores;
    return DL2_OK;
}

static int parse_quality(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_load_options *options = value;
    const char **grown = dl2_realloc(options->quality, options->quality_count + 1, sizeof *grown);
    if (!grown)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    options->quality = grown;
    options->quality[options->quality_count++] = text;
    return DL2_OK;
}

/* ---- */

static const struct dl2_option options[] = {
    {DL2_OPTION_GROUP, .help = "What is loaded:"},
    {DL2_OPTION_CHOICE, "split", 's', "SPLIT",
     "all, train, val or test (default: what the mode is called; of check: all)",
     .value = &given.split, .words = dl2_split_words},
    {DL2_OPTION_FLAG, "train", 0, NULL, "Shuffled, random crops and flips (the default)",
     .value = &settings.loader.train},
    {DL2_OPTION_NEGATE, "val", 0, NULL, "In order, resized, the middle cropped",
     .value = &settings.loader.train},
    {DL2_OPTION_UINT, "image-size", 'i', "PIXELS", "Side of the images that come out (default: 64)",
     .value = &settings.loader.image_size, .min = 1, .max = 65536},
    {DL2_OPTION_PARSE, "crop-area", 0, "MIN,MAX",
     "With --train: parts of the image's area that a crop may have (default: 0.08,1)",
     .value = &settings.loader, .parse = parse_area},
    {DL2_OPTION_UINT, "resize", 0, "PIXELS",
     "With --val: the shorter side before the crop (default: 256/224 of the image size)",
     .value = &settings.loader.resize, .min = 1, .max = 65536},
    {DL2_OPTION_FLAG, "gray", 0, NULL, "One channel instead of three", .value = &given.gray},
    {DL2_OPTION_CHOICE, "dtype", 0, "TYPE",
     "What pixels come out as: uint8, float32 or bfloat16 (default: uint8)",
     .value = &settings.loader.dtype, .words = dl2_dtype_words},
    {DL2_OPTION_CHOICE, "layout", 0, "LAYOUT",
     "nhwc: a pixel's channels together; nchw: planes (default: nhwc)",
     .value = &settings.loader.layout, .words = dl2_layout_words},
    {DL2_OPTION_UINT, "batch", 'b', "IMAGES", "Images a batch (default: 64)",
     .value = &settings.loader.batch, .min = 1, .max = 1048576},
    {DL2_OPTION_FLAG, "drop-last", 0, NULL, "Leave out a last batch that is not full",
     .value = &settings.loader.drop_last},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N",
     "Images with more pixels are counted as bad (default: 134217728)",
     .value = &settings.loader.max_pixels},
    {DL2_OPTION_CHOICE, "on-bad", 0, "skip|stop",
     "skip: name a bad image and put the next good one in its place (with --val, zeros that count "
     "for nothing); stop: end there (default: skip)",
     .value = &given.on_bad, .words = dl2_on_bad_words},

    {DL2_OPTION_GROUP, .help = "In which order:"},
    {DL2_OPTION_UINT64, "seed", 0, "N", "Of the order, crops and flips (default: 0)",
     .value = &settings.loader.seed},
    {DL2_OPTION_UINT, "shuffle-chunk", 0, "N",
     "Shuffle runs of N neighbours, for disks that seek slowly (default: shuffle all)",
     .value = &settings.loader.shuffle_chunk, .min = 1, .max = 4294967295.0},
    {DL2_OPTION_UINT, "shuffle-window", 0, "N",
     "With --shuffle-chunk: runs whose images are mixed with each other (default: 1)",
     .value = &settings.loader.shuffle_window, .min = 1, .max = 4294967295.0},
    {DL2_OPTION_UINT, "rank", 0, "N", "The part of an epoch that this process loads (default: 0)",
     .value = &settings.loader.rank},
    {DL2_OPTION_UINT, "world", 0, "N",
     "Parts that an epoch is cut into; with --train they are equal, and the images that are left "
     "over, fewer than N, others in each epoch, are left out (default: 1)",
     .value = &settings.loader.world, .min = 1, .max = 65536},
    {DL2_OPTION_CHOICE, "batching", 0, "MODE",
     "strict: batches in the epoch's order; completion: of whatever is ready first; aware: slow "
     "images are put aside and join a later batch (default: strict)",
     .value = &settings.loader.batching, .words = dl2_batching_words},
    {DL2_OPTION_UINT, "depth", 0, "BATCHES", "Batches held in memory (default: 3)",
     .value = &settings.loader.depth, .min = 2, .max = 1024},

    {DL2_OPTION_GROUP, .help = "How files are read:"},
    {DL2_OPTION_CHOICE, "io", 0, "WAY",
     "direct: each worker reads what it needs; threads or uring: ahead of the workers; auto: "
     "whichever is fast (default: auto)",
     .value = &settings.loader.fetch.io, .words = dl2_io_words},
    {DL2_OPTION_UINT, "ahead", 0, "IMAGES", "Images read ahead at most (default: the loader's)",
     .value = &settings.loader.fetch.ahead, .min = 1, .max = 1048576},
    {DL2_OPTION_FLAG, "whole", 0, NULL,
     "Read packed images whole where the rows of the crop would do (a cache always does)",
     .value = &settings.loader.fetch.whole},
    {DL2_OPTION_SIZE, "cache", 0, "SIZE",
     "Keep up to SIZE of encoded images in memory, as 512M or 2G (default: none)",
     .value = &settings.loader.fetch.cache_bytes},
    {DL2_OPTION_SIZE, "cache-decoded", 0, "SIZE",
     "Keep up to SIZE of decoded images in memory (default: none)",
     .value = &settings.loader.decoded_cache_bytes},

    {DL2_OPTION_GROUP, .help = "Of bench:"},
    {DL2_OPTION_UINT, "epochs", 'e', "N", "How often all images are loaded (default: 3)",
     .value = &settings.epochs, .min = 1, .max = 1000000},
    {DL2_OPTION_FLAG, "cold", 0, NULL,
     "Take the files out of the system's page cache before each epoch", .value = &settings.cold},
    {DL2_OPTION_PARSE, "scaling", 0, "N,...",
     "Then compare these numbers of workers, an epoch of each in turn; auto: 1, 2, 4... up to the "
     "processors",
     .value = &settings, .parse = parse_scaling},
    {DL2_OPTION_FLAG, "digest", 0, NULL,
     "Also print a check sum over every batch's images and labels (slows down a little)",
     .value = &settings.digest},
    {DL2_OPTION_CHOICE, "decode", 0, "WHO",
     "cpu; gpu: a card decodes, crops and resizes the JPEGs that it knows (needs nvJPEG); hybrid: "
     "both share the images by how fast they are (default: cpu)",
     .value = &settings.decode.mode, .words = dl2_decode_mode_words},
    {DL2_OPTION_CHOICE, "gpu-input", 0, "WHAT",
     "What the card is given: plain (whole files), region (it decodes the crop alone) or spliced "
     "(small JPEGs of the segments under the crop, of files that have restart markers) (default: "
     "plain)",
     .value = &settings.decode.input, .words = dl2_decode_input_words},
    {DL2_OPTION_CHOICE, "gpu-engine", 0, "PART",
     "What of the card decodes: engines (its JPEG decoders), cores, or auto: engines where there "
     "are some and they know the image (default: auto)",
     .value = &settings.decode.engine, .words = dl2_decode_engine_words},
    {DL2_OPTION_PARSE, "device", 0, "NAME",
     "With --decode gpu or hybrid: the card, auto, cuda or cuda:1 (default: auto, the first)",
     .value = &settings.card, .parse = dl2_batch_decoder_card},

    {DL2_OPTION_GROUP, .help = "Of analyze:"},
    {DL2_OPTION_REAL, "device-rate", 0, "IMAGES/S",
     "What the device trains a second when it never waits for data", .value = &settings.device_rate,
     .min = 1e-3, .max = 1e9},
    {DL2_OPTION_TEXT, "device-report", 0, "FILE",
     "The same from an experiment_report.json of dl2-train --loader synthetic; its image size, "
     "batch, channels and crops hold here, too",
     .value = &settings.device_report},
    {DL2_OPTION_CHOICE, "device-kind", 0, "KIND",
     "separate: the loader has the processors for itself, as beside a GPU; shared: training runs "
     "on them, too; auto: what the report's device is, else separate (default: auto)",
     .value = &settings.device, .words = devices},
    {DL2_OPTION_REAL, "seconds", 0, "S",
     "Time for each of the three runs of a dataset (default: 3)", .value = &settings.seconds,
     .min = 0.05, .max = 86400},
    {DL2_OPTION_REAL, "within", 0, "PERCENT",
     "How much slower than the fastest a smaller dataset may be (default: 5)",
     .value = &settings.within, .min = 0, .max = 99},
    {DL2_OPTION_SIZE, "memory", 0, "SIZE",
     "What memory can keep of the files from epoch to epoch (default: what is available now)",
     .value = &settings.memory},
    {DL2_OPTION_PARSE, "quality", 0, "PATH",
     "A JSON file of dl2-quality, or a folder of them, whose figures stand beside the datasets'; "
     "may "
     "come several times",
     .value = &settings, .parse = parse_quality},

    {DL2_OPTION_GROUP, .help = "What is reported:"},
    {DL2_OPTION_TEXT, "json", 0, "FILE",
     "Write the figures to FILE (dl2-load/1, dl2-load-check/1, dl2-load-analysis/1)",
     .value = &settings.json_path},
    {DL2_OPTION_TEXT, "name", 0, "NAME",
     "Of bench: what to call the dataset (default: its variant's name, or the last part of DIR)",
     .value = &settings.name},
    {.type = DL2_OPTION_END},
};

static void print_versions(FILE *out)
{
    dl2_codec_print_versions(out);
    fprintf(out, "  zlib %s\n", zlibVersion());
}

static const struct dl2_program program = {
    .name = "dl2-load",
    .synopsis = "bench DIR\ncheck DIR\nanalyze DIR...",
    .summary = "Measure or check the input pipeline of training: read, decode, crop, resize.",
    .details =
        "bench loads all images as training would and says how fast that went, and where the time "
        "went. An image's share of a core is CPU time, of user and system, of the whole process. "
        "Heap allocations are those of the whole process, libraries included.\n\n"
        "check reads every image, holds it against its check sum where there is one, decodes it, "
        "and names the bad ones.\n\n"
        "analyze tells for each DIR how fast a device would train from it, and what it would wait "
        "for: storage, preprocessing or itself (the differential runs of DS-Analyzer: Mohan et "
        "al., VLDB 2021). It reads a part of the images cold, loads the same part with the files "
        "in memory, then another part cold, and sets that beside the device's own rate. Then it "
        "says which DIR to choose. It takes about 3 * --seconds for each.\n\n"
        "DIR is a folder of images, {train,val,test}/CLASS/FILE or CLASS/FILE, or one of its "
        "splits, DIR/train; one of GulpIO's chunks, "
        "or of WebDataset's tar shards, or such a file; or one that holds MNIST's IDX files. With "
        "--batching=strict the batches are the same bytes for every number of workers.\n\n"
        "Exit status: 0 all well, 1 an image or something else failed, 2 wrong usage.\n\n"
        "Examples:\n"
        "  $ dl2-load bench variants/jpeg-50 --image-size 224 --scaling auto\n"
        "  $ dl2-load check photos\n"
        "  $ dl2-load analyze --device-rate 3000 photos variants/*",
    .options = options,
    .print_versions = print_versions,
    .min_arguments = 2,
};

/* ---- */

enum command { BENCH, CHECK, ANALYZE };

static int run(enum command command, const char *const *paths, size_t count,
               struct dl2_error *error)
{
    if (given.split != SPLIT_BY_MODE)
        settings.dataset.split = (enum dl2_split)given.split;
    else if (command != CHECK)
        settings.dataset.split = settings.loader.train ? DL2_SPLIT_TRAIN : DL2_SPLIT_VAL;
    settings.dataset.keep = dl2_codec_is_image_file;
    settings.loader.workers = given.common.jobs;
    settings.loader.channels = given.gray ? 1 : 3;
    settings.loader.stop_on_bad = given.on_bad;
    settings.quiet = given.common.quiet;
    if (settings.json_path)
        DL2_TRY(dl2_file_expect(settings.json_path, error));
    switch (command) {
    case BENCH:
        return dl2_load_bench(&settings, paths[0], stdout, error);
    case CHECK:
        return dl2_load_check(&settings, paths[0], stdout, error);
    default:
        return dl2_load_analyze(&settings, paths, count, stdout, error);
    }
}

static bool is_given(const char *option)
{
    return dl2_option_given(&program, &given.common, option);
}

/* Options that would have no effect: whoever gives them expects one. */
static int check_effects(enum command command)
{
    static const char *const of_bench[] = {"epochs",    "cold",       "scaling", "digest", "decode",
                                           "gpu-input", "gpu-engine", "device",  "name",   NULL};
    static const char *const of_analyze[] = {
        "device-rate", "device-report", "device-kind", "seconds",
        "within",      "memory",        "quality",     NULL};
    static const char *const of_loading[] = {
        "train",          "val",   "image-size",    "crop-area", "resize",
        "gray",           "dtype", "layout",        "batch",     "drop-last",
        "on-bad",         "seed",  "rank",          "world",     "shuffle-chunk",
        "shuffle-window", "io",    "ahead",         "batching",  "depth",
        "whole",          "cache", "cache-decoded", NULL};
    static const char *const of_report[] = {"image-size", "batch", "gray", "crop-area", NULL};
    const struct {
        bool idle;
        const char *const *options, *says;
    } groups[] = {
        {command != BENCH, of_bench, "is an option of bench"},
        {command != ANALYZE, of_analyze, "is an option of analyze"},
        {command == CHECK, of_loading,
         "has no effect on check, which decodes each image as a whole"},
        {settings.device_report, of_report, "is what --device-report says"},
    };
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t i = 0; groups[g].idle && groups[g].options[i]; i++)
            if (is_given(groups[g].options[i]))
                return dl2_program_usage_error(&program, "--%s %s", groups[g].options[i],
                                               groups[g].says);
    const struct {
        bool idle;
        const char *option, *says;
    } rules[] = {
        {!settings.loader.train, "crop-area", "goes with --train"},
        {settings.loader.train, "resize", "goes with --val"},
        {!settings.loader.train, "shuffle-chunk", "goes with --train: --val loads in order"},
        {!is_given("shuffle-chunk"), "shuffle-window", "goes with --shuffle-chunk"},
        {settings.loader.fetch.io == DL2_IO_DIRECT, "ahead",
         "has no effect with --io direct, which reads nothing ahead"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].idle && is_given(rules[i].option))
            return dl2_program_usage_error(&program, "--%s %s", rules[i].option, rules[i].says);
    return 0;
}

/* An exit status where the arguments make no sense, else 0. */
static int check_usage(int command, size_t paths)
{
    if (command < 0)
        return dl2_program_usage_error(&program, "the command is bench, check or analyze");
    if (command != ANALYZE && paths > 1)
        return dl2_program_usage_error(&program, "bench and check take one DIR");
    const int idle = check_effects((enum command)command);
    if (idle)
        return idle;
    if (settings.loader.rank >= (settings.loader.world ? settings.loader.world : 1))
        return dl2_program_usage_error(&program, "--rank counts from 0 up to --world");
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_decode_choice_check(&settings.decode, &error) < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    const bool decodes = settings.decode.mode != DL2_DECODE_CPU;
    if (decodes && (settings.loader.dtype != DL2_UINT8 || settings.loader.layout != DL2_NHWC ||
                    settings.loader.decoded_cache_bytes))
        return dl2_program_usage_error(
            &program, "with --decode gpu or hybrid images come out as uint8 nhwc, without "
                      "--cache-decoded");
    if (!decodes && is_given("device"))
        return dl2_program_usage_error(&program, "--device goes with --decode gpu or hybrid");
    if (command != ANALYZE)
        return 0;
    if (!settings.device_rate == !settings.device_report)
        return dl2_program_usage_error(
            &program, "analyze needs the device's rate: --device-rate or --device-report, one of "
                      "them. For the latter: dl2-train --loader synthetic --data DIR --epochs 3");
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const commands[] = {
        [BENCH] = "bench", [CHECK] = "check", [ANALYZE] = "analyze", NULL};
    char **arguments;
    size_t count;
    dl2_program_parse(&program, argc, argv, &given.common, &arguments, &count);
    struct dl2_error error = DL2_ERROR_INIT;
    const int command = dl2_parse_word(arguments[0], commands, &error);
    int exit_status = check_usage(command, count - 1);
    if (!exit_status) {
        const int status =
            run((enum command)command, (const char *const *)arguments + 1, count - 1, &error);
        if (status < 0)
            fprintf(stderr, "%s: %s\n", program.name, error.message);
        exit_status = status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    }
    free(settings.scaling);
    free(settings.quality);
    free(arguments);
    return exit_status;
}
