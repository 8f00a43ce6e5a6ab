/* dl2-train: trains a network on a dataset and says how well it did. */
#include "config.h"

#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/option.h"
#include "common/progress.h"
#include "common/quote.h"
#include "device/device.h"
#include "loader/words.h"
#include "network/arch.h"
#include "network/network.h"
#include "ranks/world.h"
#include "train/trainer.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BY_ARCH UINT_MAX /* whichever optimizer the network learns best with */

enum list { LIST_ARCHS, LIST_DEVICES, LIST_NOTHING };

/* What the command line says, before it is put together. */
static struct {
    const char *data, *stages, *mean, *std, *area, *aspect, *budget;
    const char *world;
    unsigned synthetic, on_bad, optimizer, ranks, gpus, list;
    char **val;
    size_t val_count;
    double epochs, lr, beta2, weight_decay;
    struct dl2_device_name device;
} given = {.optimizer = BY_ARCH,
           .list = LIST_NOTHING,
           .epochs = NAN,
           .lr = NAN,
           .beta2 = NAN,
           .weight_decay = NAN};

static struct dl2_train_config config = {
    .val_split = DL2_SPLIT_VAL,
    .val_fraction = 0.2,
    .synthetic_classes = 0,
    .area_min = 0.08,
    .area_max = 1,
    .aspect_min = 3.0 / 4,
    .aspect_max = 4.0 / 3,
    .flip = true,
    .loader.depth = 3,
    .mean = {122.655, 116.535, 104.04},
    .std = {59.415, 58.395, 58.65},
    .arch = "resnet10",
    .batch = 64,
    .accumulate = 1,
    .warmup = -1,
    .momentum = 0.9,
    .smoothing = 0.1,
    .validate_every = 1,
    .checkpoint_every = 1,
    .trainers = 1,
};

#define DEFAULT_EPOCHS 30

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = number;
}

static int add_val(const char *text, void *value, struct dl2_error *error)
{
    (void)value;
    char **grown = realloc(given.val, (given.val_count + 1) * sizeof *grown);
    char *copy = grown ? strdup(text) : NULL;
    if (grown)
        given.val = grown;
    if (!copy)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    given.val[given.val_count++] = copy;
    return DL2_OK;
}

static const char *const loaders[] = {[false] = "real", [true] = "synthetic", NULL};
static const char *const precisions[] = {[DL2_PRECISION_FP32] = "off",
                                         [DL2_PRECISION_TF32] = "tf32",
                                         [DL2_PRECISION_BF16] = "bf16",
                                         [DL2_PRECISION_FP16] = "fp16",
                                         NULL};

static const char *const lists[] = {[LIST_ARCHS] = "archs", [LIST_DEVICES] = "devices", NULL};

static const struct dl2_option options[] = {
    {DL2_OPTION_GROUP, .help = "Data:"},
    {DL2_OPTION_TEXT, "data", 'd', "DIR",
     "Dataset: DIR/train/CLASS/IMAGE and DIR/val/CLASS/IMAGE (also training, valid, validation "
     "or dev, in any case), or DIR/CLASS/IMAGE, of which a part is kept for validation, or a "
     "folder "
     "of IDX files",
     .value = &given.data},
    {DL2_OPTION_PARSE, "val", 0, "DIR",
     "Validate on the validation images of DIR; may come several times (default: the dataset's "
     "own)",
     NULL, .parse = add_val},
    {DL2_OPTION_CHOICE, "val-split", 0, "SPLIT",
     "What to validate on of these: val, test, train or all (default: val)",
     .value = &config.val_split, .words = dl2_split_words},
    {DL2_OPTION_TEXT, "stages", 0, "DIR:N,...",
     "Instead of --data: train on each DIR for N epochs, one after the other, under one schedule",
     .value = &given.stages},
    {DL2_OPTION_REAL, "val-fraction", 0, "PART",
     "Part of each class kept for validation where no folders say what is (default: 0.2)",
     .value = &config.val_fraction, .min = 0.001, .max = 0.9},
    {DL2_OPTION_UINT64, "split-seed", 0, "N", "Which part that is (default: 0)",
     .value = &config.split_seed},
    {DL2_OPTION_UINT, "image-size", 0, "PIXELS",
     "Side of the network's input (default: what the list of architectures below says)",
     .value = &config.image_size, .min = 8, .max = 4096},
    {DL2_OPTION_UINT, "channels", 0, "N",
     "1 for gray, 3 for colour (default: 1 where the training images are gray)",
     .value = &config.channels, .min = 1, .max = 3},
    {DL2_OPTION_TEXT, "mean", 0, "R,G,B",
     "Mean of the pixels' values, 0 to 255; one number for all three, or three (default: "
     "ImageNet's, 122.655,116.535,104.04; gray images use their mean)",
     .value = &given.mean},
    {DL2_OPTION_TEXT, "std", 0, "R,G,B",
     "Their standard deviation (default: ImageNet's, 59.415,58.395,58.65)", .value = &given.std},
    {DL2_OPTION_TEXT, "crop-area", 0, "MIN,MAX",
     "Area of a training crop, as a part of the image's (default: 0.08,1)", .value = &given.area},
    {DL2_OPTION_TEXT, "crop-aspect", 0, "MIN,MAX",
     "Width by height of a training crop (default: 0.75,1.3333)", .value = &given.aspect},
    {DL2_OPTION_NEGATE, "no-flip", 0, NULL, "Never mirror training images", .value = &config.flip},
    {DL2_OPTION_UINT, "val-resize", 0, "PIXELS",
     "Shorter side of a validation image before its centre is cut out (default: 8/7 of "
     "--image-size)",
     .value = &config.val_resize, .min = 8, .max = 8192},
    {DL2_OPTION_CHOICE, "loader", 0, "KIND",
     "real, or synthetic: the same noise again and again, to see how fast training itself is "
     "(default: real)",
     .value = &given.synthetic, .words = loaders},
    {DL2_OPTION_UINT, "classes", 0, "N", "Classes of synthetic data without --data (default: 10)",
     .value = &config.synthetic_classes, .min = 2, .max = 1000000},
    {DL2_OPTION_UINT64, "images", 0, "N",
     "Images of synthetic data without --data (default: 10000)", .value = &config.synthetic_images,
     .min = 1, .max = 1e12},

    {DL2_OPTION_GROUP, .help = "How images are loaded (-j: the number of workers):"},
    {DL2_OPTION_CHOICE, "batching", 0, "MODE",
     "strict: batches in the epoch's order, the same in every run; completion: of whatever is "
     "ready first; aware: slow images are put aside and join a later batch (default: strict)",
     .value = &config.loader.batching, .words = dl2_batching_words},
    {DL2_OPTION_CHOICE, "on-bad", 0, "skip|stop",
     "skip: name an image that can't be read and put the next good one in its place; stop: end "
     "with the error (default: skip)",
     .value = &given.on_bad, .words = dl2_on_bad_words},
    {DL2_OPTION_CHOICE, "io", 0, "WAY",
     "direct: each worker reads what it needs; threads or uring: ahead of the workers; auto: "
     "whichever is fast (default: auto)",
     .value = &config.loader.io, .words = dl2_io_words},
    {DL2_OPTION_SIZE, "cache", 0, "SIZE",
     "Keep up to SIZE of encoded training images in memory, as 512M or 2G (default: none)",
     .value = &config.loader.cache_bytes},
    {DL2_OPTION_SIZE, "cache-decoded", 0, "SIZE",
     "Keep up to SIZE of decoded training images in memory (default: none)",
     .value = &config.loader.decoded_cache_bytes},
    {DL2_OPTION_CHOICE, "decode", 0, "WHO",
     "cpu; gpu: the device's card decodes, crops and resizes the JPEGs that it knows (needs nvJPEG "
     "and --device cuda); hybrid: both share the images by how fast they are (default: cpu)",
     .value = &config.loader.decode.mode, .words = dl2_decode_mode_words},
    {DL2_OPTION_CHOICE, "gpu-input", 0, "WHAT",
     "What the card is given: plain (whole files), region (it decodes the crop alone) or spliced "
     "(small JPEGs of the segments under the crop, of files that have restart markers) (default: "
     "plain)",
     .value = &config.loader.decode.input, .words = dl2_decode_input_words},
    {DL2_OPTION_CHOICE, "gpu-engine", 0, "PART",
     "What of the card decodes: engines (its JPEG decoders), cores, or auto: engines where there "
     "are some and they know the image (default: auto)",
     .value = &config.loader.decode.engine, .words = dl2_decode_engine_words},
    {DL2_OPTION_UINT, "shuffle-chunk", 0, "N",
     "Shuffle runs of N neighbours, for disks that seek slowly (default: shuffle all)",
     .value = &config.loader.shuffle_chunk, .min = 1, .max = 4294967295.0},
    {DL2_OPTION_UINT, "shuffle-window", 0, "N",
     "With --shuffle-chunk: runs whose images are mixed with each other (default: 1)",
     .value = &config.loader.shuffle_window, .min = 1, .max = 4294967295.0},
    {DL2_OPTION_UINT, "depth", 0, "BATCHES", "Batches held in memory (default: 3)",
     .value = &config.loader.depth, .min = 2, .max = 1024},

    {DL2_OPTION_GROUP, .help = "Network:"},
    {DL2_OPTION_TEXT, "arch", 'a', "NAME", "One of those below (default: resnet10)",
     .value = &config.arch},
    {DL2_OPTION_TEXT, "pretrained", 0, "FILE",
     "Begin with the weights of a safetensors file: torchvision's, an --export or a checkpoint; "
     "where it is for other classes, the last layer begins anew",
     .value = &config.pretrained},
    {DL2_OPTION_TEXT, "export", 0, "FILE",
     "Write the weights alone when the run ends or stops, as torchvision's models load them",
     .value = &config.export},
    {DL2_OPTION_TEXT, "device", 0, "NAME",
     "auto (the fastest that is there), cuda (cuda:1 is the second card), cpu or ref, as far as "
     "--list devices names them (default: auto)",
     .value = &config.device},
    {DL2_OPTION_CHOICE, "amp", 0, "PRECISION",
     "What layers compute in: bf16 or fp16 (half as wide, with weights kept in float32 too), tf32 "
     "(products of shorter numbers), or off (float32); on the cards of device cuda, bf16 and fp16 "
     "slowly on ref (default: off)",
     .value = &config.precision, .words = precisions},
    {DL2_OPTION_REAL, "loss-scale", 0, "N",
     "With --amp=fp16: factor that keeps gradients from vanishing; 0: found while training "
     "(default: 0)",
     .value = &config.loss_scale, .min = 0, .max = 16777216},
    {DL2_OPTION_FLAG, "deterministic", 0, NULL,
     "The same weights in every run, bit for bit, on device cuda too; the others always are",
     .value = &config.deterministic},
    {DL2_OPTION_UINT, "threads", 0, "N", "The device's threads (default: one a processor)",
     .value = &config.threads, .min = 1, .max = 1024},

    {DL2_OPTION_GROUP, .help = "Several processes that train together, one a device:"},
    {DL2_OPTION_UINT, "ranks", 0, "N", "Start N of them on this machine", .value = &given.ranks,
     .min = 1, .max = 256},
    {DL2_OPTION_UINT, "gpus", 0, "N", "Start N, on devices cuda:0, cuda:1...", .value = &given.gpus,
     .min = 1, .max = 256},
    {DL2_OPTION_TEXT, "world", 0, "NAME",
     "How they reach each other: local (--ranks and --gpus), or mpi, where mpirun or srun started "
     "them (default: whichever it is)",
     .value = &given.world},
    {DL2_OPTION_FLAG, "sync-bn", 0, NULL,
     "Batch norm by the statistics of all of them together, not of each one's own batch",
     .value = &config.sync_norm},

    {DL2_OPTION_GROUP, .help = "Optimisation:"},
    {DL2_OPTION_UINT, "batch", 'b', "N",
     "Images a batch, of each process where there are several (default: 64)",
     .value = &config.batch, .min = 1, .max = 1000000},
    {DL2_OPTION_UINT, "accumulate", 0, "N",
     "Batches whose gradients are averaged into one step (default: 1)", .value = &config.accumulate,
     .min = 1, .max = 1000000},
    {DL2_OPTION_REAL, "epochs", 'e', "N",
     "Length of the run, not necessarily whole (default: 30; with a time budget: as many as it has "
     "time for, and N at most)",
     .value = &given.epochs, .min = 1e-6, .max = 1e9},
    {DL2_OPTION_CHOICE, "optimizer", 0, "NAME",
     "sgd or adamw (default: adamw for vision transformers, sgd for the others)",
     .value = &given.optimizer, .words = dl2_optimizer_words},
    {DL2_OPTION_REAL, "lr", 0, "RATE",
     "Peak learning rate, taken as it is whatever a step has (default: 0.05 for a step of 64 "
     "images, all processes together, in proportion for others; with adamw 0.0005, and in "
     "proportion to their square root)",
     .value = &given.lr, .min = 1e-12, .max = 1e6},
    {DL2_OPTION_CHOICE, "lr-policy", 0, "NAME",
     "How the rate falls: cosine, step (to a tenth at 1/3, 2/3 and 8/9 of the run), linear or "
     "exponential (default: cosine)",
     .value = &config.policy, .words = dl2_lr_policy_words},
    {DL2_OPTION_FLAG, "lr-per-epoch", 0, NULL,
     "Keep the rate within an epoch, as (DL)2 does, instead of moving it at every step",
     .value = &config.lr_per_epoch},
    {DL2_OPTION_REAL, "warmup", 0, "EPOCHS",
     "Raise the rate linearly at first (default: a tenth of the run, at most 5)",
     .value = &config.warmup, .min = 0, .max = 1e9},
    {DL2_OPTION_REAL, "end-lr", 0, "RATE",
     "Rate at the end of the run (default: 0; exponential: a thousandth of --lr)",
     .value = &config.end_lr, .min = 0, .max = 1e6},
    {DL2_OPTION_REAL, "momentum", 0, "M",
     "How much of the last step goes into the next; adamw's beta1 (default: 0.9)",
     .value = &config.momentum, .min = 0, .max = 1},
    {DL2_OPTION_REAL, "beta2", 0, "B",
     "How much of the gradients' squares adamw keeps in each step (default: 0.999)",
     .value = &given.beta2, .min = 0, .max = 0.999999},
    {DL2_OPTION_FLAG, "nesterov", 0, NULL, "Nesterov's momentum", .value = &config.nesterov},
    {DL2_OPTION_REAL, "weight-decay", 0, "L2",
     "sgd: of the weights' squares, half of it times this (default: 0.0005); adamw: the part of a "
     "weight that it loses in a step, times the rate (default: 0.05)",
     .value = &given.weight_decay, .min = 0, .max = 10},
    {DL2_OPTION_FLAG, "bn-weight-decay", 0, NULL,
     "Let weight decay act on norms' parameters, biases and a transformer's tokens too",
     .value = &config.norm_decay},
    {DL2_OPTION_REAL, "label-smoothing", 0, "S",
     "Part of the target spread over all classes (default: 0.1)", .value = &config.smoothing,
     .min = 0, .max = 0.999},
    {DL2_OPTION_REAL, "mixup", 0, "ALPHA",
     "Blend pairs of images with shares from Beta(ALPHA, ALPHA); 0: don't (default: 0)",
     .value = &config.mixup, .min = 0, .max = 1000},
    {DL2_OPTION_REAL, "ema", 0, "DECAY",
     "Validate and export moving averages of the weights that keep DECAY of themselves in each "
     "update, less in a run's first ones: 0.999, say; 0: the weights themselves (default: 0)",
     .value = &config.average_decay, .min = 0, .max = 0.999999},
    {DL2_OPTION_UINT64, "seed", 0, "N", "Of weights, order, crops, mixup and dropout (default: 0)",
     .value = &config.seed},

    {DL2_OPTION_GROUP, .help = "The run:"},
    {DL2_OPTION_TEXT, "out", 0, "DIR",
     "Where the report and the checkpoint go (default: experiments/NAME)", .value = &config.out},
    {DL2_OPTION_TEXT, "name", 0, "NAME",
     "What the run is called in its report (default: VARIANT-ARCH-seed-N)", .value = &config.name},
    {DL2_OPTION_UINT, "trainers", 0, "N",
     "Trainings that share this machine, this one included; recorded, so that nobody takes rates "
     "and energy for those of one alone (default: 1)",
     .value = &config.trainers, .min = 1, .max = 100000},
    {DL2_OPTION_TEXT, "time-budget", 0, "TIME",
     "End, with the schedule played to its end and validation done, within this time, as 90s or 1h",
     .value = &given.budget},
    {DL2_OPTION_TEXT, "checkpoint", 0, "FILE",
     "The checkpoint, a safetensors file (default: DIR/" DL2_CHECKPOINT_FILE ")",
     .value = &config.checkpoint},
    {DL2_OPTION_REAL, "checkpoint-every", 0, "EPOCHS",
     "Write it so often; 0: only when the run stops or ends (default: 1)",
     .value = &config.checkpoint_every, .min = 0, .max = 1e9},
    {DL2_OPTION_FLAG, "resume", 0, NULL, "Go on from the checkpoint; where there is none, begin",
     .value = &config.resume},
    {DL2_OPTION_FLAG, "restart", 0, NULL, "Begin anew, even over a checkpoint that is there",
     .value = &config.restart},
    {DL2_OPTION_REAL, "run-epochs", 0, "N",
     "Stop after so many epochs, not necessarily whole, to be resumed", .value = &config.run_epochs,
     .min = 1e-6, .max = 1e9},
    {DL2_OPTION_REAL, "validate-every", 0, "EPOCHS",
     "Validate after every so many epochs, and at the end; 0: only at the end (default: 1)",
     .value = &config.validate_every, .min = 0, .max = 1e9},
    {DL2_OPTION_FLAG, "skip-validation", 0, NULL, "Don't validate",
     .value = &config.skip_validation},
    {DL2_OPTION_CHOICE, "list", 0, "WHAT",
     "Check the other options, list what this build has, and end: archs (name, default image size, "
     "optimizer, description) or "
     "devices (name, version, whether it can be used here; with --device, that one alone); a line "
     "each, with tabs between the columns",
     .value = &given.list, .words = lists},
    {DL2_OPTION_END},
};

static void print_versions(FILE *out)
{
    dl2_codec_print_versions(out);
    fprintf(out, "  zlib %s\n", zlibVersion());
    for (size_t i = 0; dl2_device_at(i); i++)
        fprintf(out, "  device %s: %s\n", dl2_device_at(i)->name, dl2_device_at(i)->version());
    for (size_t i = 0; dl2_world_at(i); i++)
        fprintf(out, "  ranks by %s: %s\n", dl2_world_at(i)->name, dl2_world_at(i)->version());
}

/* The details of --help: main() puts the architectures before this. */
static const char details[] =
    "SIGINT and SIGTERM end a run after its step, with a checkpoint and a report from which "
    "--resume goes on to the same weights, bit for bit, on the same device with as many "
    "--threads; with another --batching than strict, where the order is the machine's, to exactly "
    "the images that the epoch had not had.\n\n"
    "Exit status: 0 the run ended, or stopped where --run-epochs told it to; 1 something "
    "failed, or a signal stopped it; 2 wrong usage.\n\n"
    "Examples:\n"
    "  $ dl2-train -d photos\n"
    "  $ dl2-train -d variants/jpeg-25 --val photos -e 60 --out run1\n"
    "  $ dl2-train --stages variants/jpeg-10:45,photos:15 -a resnet50\n"
    "  $ dl2-train -d photos --time-budget 10m";

static struct dl2_program program = {
    .name = "dl2-train",
    .synopsis = "",
    .summary = "Train a network on a dataset, validate it on one or several, and write "
               "experiment_report.json.",
    .options = options,
    .print_versions = print_versions,
};

static char *describe(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "Architectures, with the default of --image-size:\n");
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++)
        fprintf(out, "  %-12s %3u  %s\n", arch->name, arch->image_size, arch->summary);
    fprintf(out, "\n%s", details);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* -- what the texts of the command line mean -- */

/* "1h30m", "10m", "90s", "90" as seconds; false for anything else and for nothing. */
static bool parse_time(const char *text, double *seconds)
{
    static const char units[] = "hms";
    static const double worth[] = {3600, 60, 1};
    size_t next = 0;
    *seconds = 0;
    while (*text) {
        char *end;
        if (*text == '-' || *text == '+')
            return false;
        double number = strtod(text, &end);
        if (end == text || !isfinite(number))
            return false;
        const char *unit = *end ? strchr(units + next, *end) : units + 2;
        if (!unit)
            return false;
        *seconds += number * worth[unit - units];
        next = (size_t)(unit - units) + 1;
        if (next == 3 && *end && end[1])
            return false;
        text = *end ? end + 1 : end;
    }
    return *seconds > 0;
}

/* "a,b,c" as exactly `count` numbers, or one for all where `one` is allowed. */
static bool parse_numbers(const char *text, double *numbers, size_t count, bool one)
{
    size_t n = 0;
    for (;;) {
        char *end;
        double number = strtod(text, &end);
        if (end == text || !isfinite(number) || n == count)
            return false;
        numbers[n++] = number;
        if (!*end)
            break;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    for (size_t i = 1; one && n == 1 && i < count; i++)
        numbers[i] = numbers[0];
    return n == count || (one && n == 1);
}

/* "DIR:45,DIR2:45" in place; the list is static, as long as the program. */
static int parse_stages(char *text)
{
    struct dl2_train_stage *stages = NULL;
    size_t count = 0;
    for (char *item = text, *rest; item; item = rest) {
        rest = strchr(item, ',');
        if (rest)
            *rest++ = '\0';
        char *colon = strrchr(item, ':');
        char *end = NULL;
        double epochs = colon ? strtod(colon + 1, &end) : 0;
        if (!colon || colon == item || end == colon + 1 || *end || !(epochs > 0) ||
            !isfinite(epochs)) {
            free(stages);
            return dl2_program_usage_error(
                &program, "--stages: '%s' is not a folder and its epochs, like photos:45", item);
        }
        *colon = '\0';
        stages = realloc(stages, (count + 1) * sizeof *stages);
        if (!stages)
            abort();
        stages[count++] = (struct dl2_train_stage){item, epochs};
    }
    config.stages = stages;
    config.stage_count = count;
    return 0;
}

static int check_texts(void)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_device_parse(config.device, &given.device, &error) < 0)
        return dl2_program_usage_error(&program, "--device: %s", error.message);
    const struct dl2_arch *arch = dl2_arch_find(config.arch, &error);
    if (!arch)
        return dl2_program_usage_error(&program, "--arch: %s", error.message);
    config.optimizer =
        given.optimizer == BY_ARCH ? arch->optimizer : (enum dl2_optimizer)given.optimizer;
    if (!config.image_size)
        config.image_size = arch->image_size;
    if (given.budget && !parse_time(given.budget, &config.time_budget))
        return dl2_program_usage_error(&program, "--time-budget: '%s' is no time like 10m or 1h30m",
                                       given.budget);
    if (given.mean && !parse_numbers(given.mean, config.mean, 3, true))
        return dl2_program_usage_error(&program, "--mean: '%s' is not one or three numbers",
                                       given.mean);
    if (given.std && (!parse_numbers(given.std, config.std, 3, true) || !(config.std[0] > 0) ||
                      !(config.std[1] > 0) || !(config.std[2] > 0)))
        return dl2_program_usage_error(&program, "--std: '%s' is not one or three numbers above 0",
                                       given.std);
    double pair[2];
    if (given.area) {
        if (!parse_numbers(given.area, pair, 2, false) || !(pair[0] > 0) || pair[0] > pair[1] ||
            pair[1] > 1)
            return dl2_program_usage_error(
                &program, "--crop-area: '%s' is not MIN,MAX above 0 and up to 1", given.area);
        config.area_min = pair[0];
        config.area_max = pair[1];
    }
    if (given.aspect) {
        if (!parse_numbers(given.aspect, pair, 2, false) || !(pair[0] > 0) || pair[0] > pair[1])
            return dl2_program_usage_error(&program, "--crop-aspect: '%s' is not MIN,MAX above 0",
                                           given.aspect);
        config.aspect_min = pair[0];
        config.aspect_max = pair[1];
    }
    return 0;
}

static struct dl2_train_stage only_stage;

static int check_data(char **own_stages)
{
    if (given.data && given.stages)
        return dl2_program_usage_error(&program, "--data and --stages exclude each other");
    if (given.stages && !isnan(given.epochs))
        return dl2_program_usage_error(&program,
                                       "--stages says how many epochs; leave out --epochs");
    if (!given.data && !given.stages && !config.synthetic)
        return dl2_program_usage_error(&program, "no data: say --data DIR");
    bool sized = config.synthetic_classes || config.synthetic_images;
    if (sized && (!config.synthetic || given.data || given.stages))
        return dl2_program_usage_error(
            &program, "--classes and --images are for --loader synthetic without --data");
    if (config.synthetic && given.val_count)
        return dl2_program_usage_error(&program, "synthetic data is not validated: drop --val");
    if (config.skip_validation && given.val_count)
        return dl2_program_usage_error(&program, "--val and --skip-validation exclude each other");
    const struct dl2_decode_choice *decode = &config.loader.decode;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_decode_choice_check(decode, &error) < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    if (decode->mode != DL2_DECODE_CPU && config.loader.decoded_cache_bytes)
        return dl2_program_usage_error(&program,
                                       "--cache-decoded is of what the processors decode: leave "
                                       "out --decode");
    if (decode->mode == DL2_DECODE_HYBRID && config.deterministic)
        return dl2_program_usage_error(
            &program, "with --decode hybrid pixels depend on who decoded them: no --deterministic");
    if (config.resume && config.restart)
        return dl2_program_usage_error(&program, "--resume and --restart exclude each other");
    if (config.channels == 2)
        return dl2_program_usage_error(&program, "--channels: 1 or 3");
    if (config.validate_every != floor(config.validate_every))
        return dl2_program_usage_error(&program, "--validate-every: a whole number of epochs");
    if (!config.synthetic_classes)
        config.synthetic_classes = 10;
    if (!config.synthetic_images)
        config.synthetic_images = 10000;
    if (given.stages) {
        *own_stages = strdup(given.stages);
        return *own_stages ? parse_stages(*own_stages) : DL2_EXIT_FAILED;
    }
    only_stage.path = given.data;
    only_stage.epochs = !isnan(given.epochs)     ? given.epochs
                        : config.time_budget > 0 ? INFINITY
                                                 : DEFAULT_EPOCHS;
    config.stages = &only_stage;
    config.stage_count = 1;
    return 0;
}

static int check_rates(unsigned ranks)
{
    const bool adamw = config.optimizer == DL2_ADAMW;
    /* In proportion to the images a step: Goyal et al., "Accurate, large minibatch SGD", 2017; to
     * their square root: Malladi et al., "On the SDEs and scaling rules for adaptive gradient
     * algorithms", 2022. */
    const double share = (double)config.batch * config.accumulate * ranks / 64;
    config.lr = !isnan(given.lr) ? given.lr : adamw ? 0.0005 * sqrt(share) : 0.05 * share;
    config.weight_decay = !isnan(given.weight_decay) ? given.weight_decay : adamw ? 0.05 : 0.0005;
    config.beta2 = isnan(given.beta2) ? 0.999 : given.beta2;
    if (config.end_lr > config.lr)
        return dl2_program_usage_error(&program, "--end-lr %g is above --lr %g", config.end_lr,
                                       config.lr);
    if (config.nesterov && config.momentum == 0)
        return dl2_program_usage_error(&program, "--nesterov needs a --momentum above 0");
    if (config.nesterov && adamw)
        return dl2_program_usage_error(&program, "--nesterov is for --optimizer sgd");
    if (!isnan(given.beta2) && !adamw)
        return dl2_program_usage_error(&program, "--beta2 is for --optimizer adamw");
    if (config.momentum == 1 && adamw)
        return dl2_program_usage_error(&program, "--momentum: below 1 with --optimizer adamw");
    double epochs = 0;
    for (size_t i = 0; i < config.stage_count; i++)
        epochs += config.stages[i].epochs;
    if (config.warmup >= epochs)
        return dl2_program_usage_error(
            &program, "--warmup %g is not shorter than the run's %g epochs", config.warmup, epochs);
    return 0;
}

/* Options that would have no effect: whoever gives them expects one. */
static int check_effects(const struct dl2_common_options *common)
{
    const struct {
        bool idle;
        const char *option, *says;
    } rules[] = {
        {!dl2_option_given(&program, common, "shuffle-chunk"), "shuffle-window",
         "goes with --shuffle-chunk"},
        {config.precision != DL2_PRECISION_FP16, "loss-scale", "goes with --amp fp16"},
        {config.skip_validation, "val-resize", "has no effect with --skip-validation"},
        {config.skip_validation, "validate-every", "has no effect with --skip-validation"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].idle && dl2_option_given(&program, common, rules[i].option))
            return dl2_program_usage_error(&program, "--%s %s", rules[i].option, rules[i].says);
    return 0;
}

static int check_ranks(void)
{
    if (given.ranks && given.gpus)
        return dl2_program_usage_error(&program, "--ranks and --gpus exclude each other");
    if (given.world && strcmp(given.world, "mpi") == 0 && (given.ranks || given.gpus))
        return dl2_program_usage_error(&program, "with --world mpi, mpirun or srun starts the "
                                                 "processes: leave out --ranks and --gpus");
    if (given.world && strcmp(given.world, "local") == 0 && !given.ranks && !given.gpus)
        return dl2_program_usage_error(&program, "--world local: say how many, by --ranks or "
                                                 "--gpus");
    bool known = !given.world;
    for (size_t i = 0; dl2_world_at(i) && !known; i++)
        known = strcmp(given.world, dl2_world_at(i)->name) == 0;
    if (!known)
        return dl2_program_usage_error(&program, "--world: there is no '%s' in this build",
                                       given.world);
    if (!given.gpus)
        return 0;
    const struct dl2_device_class *card = dl2_device_card();
    if (!card)
        return dl2_program_usage_error(&program, "--gpus: this build has no device cuda");
    if (!given.device.automatic &&
        (given.device.numbered || dl2_device_named(&given.device) != card))
        return dl2_program_usage_error(&program, "--gpus is for --device %s, not '%s'", card->name,
                                       config.device);
    config.device = card->name;
    return 0;
}

/* What is wrong with options that were parsed, but for the world's size. */
static int check_options(const struct dl2_common_options *common, char **own_stages)
{
    int status = check_data(own_stages);
    if (status == 0)
        status = check_effects(common);
    if (status == 0)
        status = check_ranks();
    if (status == 0)
        status = check_rates(given.gpus ? given.gpus : given.ranks ? given.ranks : 1);
    return status;
}

static void list_devices(void)
{
    const struct dl2_device_options how = {.threads = config.threads,
                                           .precision = config.precision,
                                           .loss_scale = config.loss_scale,
                                           .deterministic = config.deterministic};
    dl2_device_list(config.device, &how, stdout);
}

/* -- what it shows -- */

static bool quiet;
static struct dl2_progress progress;
static char bar_label[64];
static bool bar_open;
static unsigned long long bar_epoch;

static void close_bar(void)
{
    if (bar_open && progress.terminal)
        dl2_progress_end(&progress);
    bar_open = false;
}

static void on_opened(void *context, const char *path, const struct dl2_dataset *dataset)
{
    (void)context;
    const char *text;
    bool matters;
    for (size_t i = 0; (text = dl2_dataset_message(dataset, i, &matters)); i++)
        if (matters || !quiet)
            fprintf(stderr, "%s: %s: %s\n", program.name, DL2_SHOWN(path), DL2_SHOWN(text));
}

static void on_begun(void *context, const struct dl2_train_overview *run)
{
    (void)context;
    bar_epoch = run->epochs_done + 1;
    if (quiet)
        return;
    printf("%s, %.2f million parameters, on device %s (%s)\n", run->arch,
           (double)run->parameters / 1e6, run->device, run->device_version);
    printf("%s: %llu images of %u classes at %u pixels, batches of %u", DL2_SHOWN(run->variant),
           (unsigned long long)run->images, run->classes, config.image_size, config.batch);
    const unsigned ranks = dl2_world_size(config.world);
    if (config.world)
        printf(", ranks: %u (%s), %llu images a step, peak learning rate %g", ranks,
               config.world->ops->name,
               (unsigned long long)config.batch * config.accumulate * ranks, config.lr);
    const unsigned left_out = (unsigned)(run->images % ranks);
    if (left_out)
        printf("; each epoch leaves out %u image%s, others each time, since all ranks train on "
               "equally many",
               left_out, left_out == 1 ? "" : "s");
    printf("\n");
    fflush(stdout);
}

static void on_step(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context;
    /* Elsewhere than on a terminal, a line an epoch is enough. */
    static const char *shown;
    if (!bar_open || shown != what || done < progress.done) {
        close_bar();
        snprintf(bar_label, sizeof bar_label, "epoch %llu, %s", bar_epoch, what);
        dl2_progress_begin(&progress, bar_label, "batches", (size_t)total, quiet);
        bar_open = true;
        shown = what;
    }
    if (progress.terminal)
        dl2_progress_update(&progress, (size_t)done, NULL);
    progress.done = (size_t)done;
}

static void on_epoch(void *context, const struct dl2_train_epoch *epoch)
{
    (void)context;
    close_bar();
    bar_epoch = epoch->number + 1;
    if (quiet)
        return;
    printf("epoch %3llu  lr %-8.3g train loss %.3f top-1 %5.1f%%",
           (unsigned long long)epoch->number, epoch->lr, epoch->loss, 100 * epoch->top1);
    for (size_t i = 0; i < epoch->val_count; i++) {
        const struct dl2_train_val *val = &epoch->val[i];
        printf("  %s loss %.3f top-1 %5.1f%% top-5 %.1f%%", DL2_SHOWN(val->name), val->loss,
               100 * val->top1, 100 * val->top5);
    }
    const bool timed = epoch->seconds > 0;
    printf("  %.1f s, %.0f img/s, %.0f%% waiting\n", epoch->seconds,
           timed ? epoch->images_per_second : 0,
           timed ? 100 * epoch->data_wait / epoch->seconds : 0);
    fflush(stdout);
}

static void on_ended(void *context, const struct dl2_train_summary *summary)
{
    (void)context;
    close_bar();
    for (size_t i = 0; i < summary->val_count; i++) {
        const struct dl2_train_val *val = &summary->val[i];
        printf("%s: top-1 %.2f%%, top-5 %.2f%%", DL2_SHOWN(val->name), 100 * val->top1,
               100 * val->top5);
        if (i == 0)
            printf(" (best top-1: %.2f%%, in epoch %llu)", 100 * summary->best_top1,
                   (unsigned long long)summary->best_epoch);
        printf("\n");
    }
    const char *out = DL2_SHOWN(summary->out);
    printf("report: %.*s/%s\n", dl2_path_folder_length(out), out, DL2_EXPERIMENT_FILE);
}

static void on_note(void *context, const char *text)
{
    (void)context;
    close_bar();
    fprintf(stderr, "%s: %s\n", program.name, DL2_SHOWN(text));
}

/* Of several ranks, this one. */
static void on_failed(void *context, const struct dl2_error *error)
{
    (void)context;
    close_bar();
    fprintf(stderr, "%s: rank %u: %s\n", program.name, dl2_world_rank(config.world),
            error->message);
}

static json_t *library_versions(void)
{
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    json_object_set_new(versions, "jansson", json_string(JANSSON_VERSION));
    json_object_set_new(versions, "zlib", json_string(zlibVersion()));
    return versions;
}

static int train(struct dl2_world *world)
{
    const struct dl2_train_events events = {.opened = on_opened,
                                            .begun = on_begun,
                                            .stepped = on_step,
                                            .epoch_ended = on_epoch,
                                            .ended = on_ended,
                                            .note = on_note,
                                            .failed = on_failed};
    struct dl2_train_result result;
    struct dl2_error error = DL2_ERROR_INIT;
    /* A second signal ends the program as it would any other. A rank's comes from who started it,
     * and from the terminal, too. */
    const bool started = world && strcmp(world->ops->name, "local") == 0;
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = started ? 0 : (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    config.stop = &stop;
    config.world = world;
    config.versions = library_versions();
    int status = dl2_train(&config, &events, &result, &error);
    json_decref(config.versions);
    close_bar();
    const bool first = dl2_world_rank(world) == 0;
    const bool told = world && !result.common && status != DL2_ERR_CANCELED; /* by on_failed() */
    if (status < 0 && first && !told)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    if (status < 0)
        return first || !result.common ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    if (first && !result.completed)
        fprintf(stderr,
                "%s: stopped at epoch %.4g; the same command with --resume goes on from there\n",
                program.name, result.position);
    /* The others have nothing to say; what is theirs alone is told above. */
    return first && result.stopped ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

/* Alone, or as one of several, or as the one who looks after those. */
static int train_in_world(void)
{
    const struct dl2_world_options world_options = {given.world,
                                                    given.gpus ? given.gpus : given.ranks};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_world *world;
    int exit_status;
    int status = dl2_world_open(&world_options, &world, &exit_status, &error);
    if (error.status)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    if (status < 0)
        return DL2_EXIT_FAILED;
    if (status == DL2_WORLD_ENDED)
        return exit_status;
    status = check_rates(dl2_world_size(world)); /* mpirun's number is known only now */
    if (status == 0 && config.sync_norm && !world)
        status = dl2_program_usage_error(
            &program, "--sync-bn goes with --ranks, --gpus or mpirun: one process alone has "
                      "nobody to share statistics with");
    if (status == 0)
        status = train(world);
    dl2_world_close(world);
    return status;
}

/*
 * GCC's OpenMP lets threads that wait for others spin for milliseconds before they sleep. The
 * loader's workers need those processors: with spins of a tenth, training alone is as fast, and
 * training with the loader 10 to 27% faster (docs/performance.md). The runtime reads its
 * environment before main() begins, hence once more from the start.
 */
static void spin_shortly(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
        setenv("GOMP_SPINCOUNT", "30000", 1) != 0)
        return;
    execv("/proc/self/exe", argv); /* returns only where it can't: then without */
}

int main(int argc, char **argv)
{
    spin_shortly(argv);
    config.started = dl2_clock_wall();
    struct dl2_common_options common = {0};
    char **arguments, *own_stages = NULL, *description = describe();
    size_t count;
    program.details = description;
    dl2_program_parse(&program, argc, argv, &common, &arguments, &count);
    int status = count ? dl2_program_usage_error(&program, "unexpected '%s'", arguments[0]) : 0;
    free(arguments);
    config.workers = common.jobs;
    config.synthetic = given.synthetic;
    config.loader.stop_on_bad = given.on_bad;
    quiet = common.quiet;
    config.val = (const char *const *)given.val;
    config.val_count = given.val_count;
    if (status == 0)
        status = check_texts();
    const bool to_train = given.list == LIST_NOTHING;
    if (status == 0 && (to_train || given.data || given.stages))
        status = check_options(&common, &own_stages);
    if (status == 0 && to_train)
        status = train_in_world();
    else if (status == 0 && given.list == LIST_ARCHS)
        dl2_arch_list(stdout);
    else if (status == 0)
        list_devices();
    if (config.stages != &only_stage)
        free((void *)config.stages);
    free(own_stages);
    for (size_t i = 0; i < given.val_count; i++)
        free(given.val[i]);
    free(given.val);
    free(description);
    return status;
}
