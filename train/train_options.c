/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/train_options.h"

#include "codec/external.h"
#include "common/json.h"
#include "common/memory.h"
#include "dataset/subset_options.h"
#include "loader/loader_options.h"
#include "network/arch.h"
#include "remote/remote_options.h"
#include "train/checkpoint.h"

#include <ctype.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_EPOCHS 30

enum { LEAST_SIZE = 8, MAX_SIZE = 4096 }; /* pixels */

/* Not yet an enum dl2_optimizer: the one that the network learns best with. */
#define OPTIMIZER_OF_ARCH UINT_MAX

struct dl2_train_settings dl2_train_defaults(void)
{
    struct dl2_train_settings settings = {
        .config.data.train_split = "train",
        .config.data.val_split = "val",
        .config.data.val_fraction = DL2_VAL_FRACTION_UNSET,
        .config.data.synthetic_classes = 10,
        .config.data.synthetic_images = 10000,
        .config.loader = DL2_LOADER_DEFAULTS,
        .config.data.mean = {122.655, 116.535, 104.04},
        .config.data.std = {59.415, 58.395, 58.65},
        .config.arch = "resnet10",
        .config.optimizer.accumulate = 1,
        .config.optimizer.lr = NAN,
        .config.optimizer.warmup = NAN,
        .config.optimizer.kind = (enum dl2_optimizer)OPTIMIZER_OF_ARCH,
        .config.optimizer.momentum = 0.9,
        .config.optimizer.beta2 = NAN,
        .config.optimizer.weight_decay = NAN,
        .config.optimizer.smoothing = 0.1,
        .config.run.trainers = 1,
        .config.run.time_budget = NAN,
        .config.run.run_epochs = NAN,
        .config.run.stop_at = NAN,
        .config.run.measure = NAN,
        .config.run.validate_every = 1,
        .config.run.checkpoints.every = 1,
        .epochs = NAN,
    };
    settings.config.loader.channels = settings.config.loader.height = 0;
    return settings;
}

/* ---- Values ---- */

static int add_path(const char *text, const char *const **list, size_t *count,
                    struct dl2_error *error)
{
    const char **grown = dl2_realloc((void *)*list, *count + 1, sizeof *grown);
    if (!grown)
        return dl2_error_memory(error, "options");
    grown[(*count)++] = text;
    *list = grown;
    return DL2_OK;
}

static int add_val(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_train_config *config = value;
    return add_path(text, &config->data.val, &config->data.val_count, error);
}

/* The first is the stage's, and the others are joined to it. */
static int add_data(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_train_settings *settings = value;
    struct dl2_train_data *data = &settings->config.data;
    if (settings->data)
        return add_path(text, &data->joined, &data->joined_count, error);
    settings->data = text;
    return DL2_OK;
}

static json_t *show_val(const void *value)
{
    const struct dl2_train_config *config = value;
    json_t *array = json_array();
    for (size_t i = 0; i < config->data.val_count; i++)
        json_array_append_new(array, dl2_json_text(config->data.val[i]));
    return array;
}

static json_t *show_data(const void *value)
{
    const struct dl2_train_settings *settings = value;
    return settings->data ? dl2_json_text(settings->data) : json_null();
}

/* Appends a stage, with its own copy of the path's first `length` bytes. */
static int add_stage(struct dl2_train_config *config, const char *path, size_t length,
                     const struct dl2_train_stage *stage, struct dl2_error *error)
{
    struct dl2_train_stage *grown =
        dl2_realloc((void *)config->data.stages, config->data.stage_count + 1, sizeof *grown);
    if (grown)
        config->data.stages = grown;
    char *copy = grown && path ? strndup(path, length) : NULL;
    if (!grown || (path && !copy))
        return dl2_error_memory(error, "options");
    grown[config->data.stage_count] = *stage;
    grown[config->data.stage_count++].path = copy;
    return DL2_OK;
}

static void drop_stages(struct dl2_train_config *config)
{
    for (size_t i = 0; i < config->data.stage_count; i++)
        free((char *)config->data.stages[i].path);
    free((void *)config->data.stages);
    config->data.stages = NULL;
    config->data.stage_count = 0;
}

/* Into height, width and volume_depth, which is 0 of images. */
static int parse_input_size(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_loader_config size = DL2_LOADER_DEFAULTS;
    DL2_TRY(dl2_parse_output_size(text, &size.height, error));
    const unsigned sides[] = {size.height, dl2_loader_width(&size),
                              size.volume_depth ? size.volume_depth : size.height};
    for (int i = 0; i < 3; i++)
        if (sides[i] < LEAST_SIZE || sides[i] > MAX_SIZE)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is not between %d and %d", text,
                                 LEAST_SIZE, MAX_SIZE);
    memcpy(value, &size.height, 3 * sizeof size.height);
    return DL2_OK;
}

/* One setting of a stage, "size=96", "size=96x128" or "freeze"; false: it is none. */
static bool parse_stage_setting(const char *text, size_t length, struct dl2_train_stage *stage)
{
    static const char size[] = "size=", freeze[] = "freeze";
    if (length == sizeof freeze - 1 && strncmp(text, freeze, length) == 0)
        return stage->freeze = true;
    if (length < sizeof size || strncmp(text, size, sizeof size - 1) != 0 ||
        !isdigit((unsigned char)text[sizeof size - 1]))
        return false;
    char pixels[32];
    struct dl2_loader_config parsed = DL2_LOADER_DEFAULTS;
    snprintf(pixels, sizeof pixels, "%.*s", (int)(length - sizeof size + 1),
             text + sizeof size - 1);
    if (length - sizeof size + 1 >= sizeof pixels ||
        parse_input_size(pixels, &parsed.height, NULL) < 0 || parsed.volume_depth)
        return false;
    stage->height = parsed.height;
    stage->width = parsed.width;
    return true;
}

/* "DIR:N", then ":size=SIZE" and ":freeze" in any order, `length` bytes long. */
static int parse_stage(const char *text, size_t length, struct dl2_train_config *config,
                       struct dl2_error *error)
{
    struct dl2_train_stage stage = {0};
    size_t size = length; /* without the settings */
    const char *colon;
    char *end = NULL;
    while ((colon = memrchr(text, ':', size)) &&
           parse_stage_setting(colon + 1, (size_t)(text + size - colon - 1), &stage))
        size = (size_t)(colon - text);
    if (colon)
        stage.epochs = strtod(colon + 1, &end);
    if (!colon || colon == text || end == colon + 1 || end != text + size || !(stage.epochs > 0) ||
        !isfinite(stage.epochs))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%.*s' is not a folder and its epochs, like photos:45, with settings "
                             "such as photos:45:size=96:freeze",
                             (int)length, text);
    return add_stage(config, text, (size_t)(colon - text), &stage, error);
}

static int parse_stages(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_train_config *config = value;
    drop_stages(config);
    for (const char *item = text; item; item = strchr(item, ',') ? strchr(item, ',') + 1 : NULL)
        DL2_TRY(parse_stage(item, strcspn(item, ","), config, error));
    return DL2_OK;
}

/* "1h30m", "10m", "90s" or "90" in seconds; NAN for anything else. */
static double seconds_of(const char *text)
{
    static const char units[] = "hms";
    static const double worth[] = {3600, 60, 1};
    size_t next = 0;
    double seconds = 0;
    while (*text) {
        char *end;
        if (*text == '-' || *text == '+')
            return NAN;
        double number = strtod(text, &end);
        if (end == text || !isfinite(number))
            return NAN;
        const char *unit = *end ? strchr(units + next, *end) : units + 2;
        if (!unit)
            return NAN;
        seconds += number * worth[unit - units];
        next = (size_t)(unit - units) + 1;
        if (next == 3 && *end && end[1])
            return NAN;
        text = *end ? end + 1 : end;
    }
    return seconds > 0 ? seconds : NAN;
}

int dl2_parse_duration(const char *text, void *value, struct dl2_error *error)
{
    const double seconds = seconds_of(text);
    if (isnan(seconds))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a time like 10m or 1h30m", text);
    *(double *)value = seconds;
    return DL2_OK;
}

static json_t *show_real(const void *value)
{
    return dl2_json_real(*(const double *)value);
}

#define OF_UNIT "is for values from 0 to 1: multiply by 255, since pixels have 0 to 255 here"

/* Means of values from 0 to 1, which no std beside them shows to be of black images. */
static bool are_of_unit(const double mean[3])
{
    return mean[0] < 1 && mean[1] < 1 && mean[2] < 1 && (mean[0] > 0 || mean[1] > 0 || mean[2] > 0);
}

/* "122.6,116.5,104" or one number for all three, into a double[3]. */
static int parse_channels(const char *text, void *value, struct dl2_error *error)
{
    double n[3];
    int one = 0, all = 0;
    const int count = sscanf(text, "%lf%n,%lf,%lf%n", &n[0], &one, &n[1], &n[2], &all);
    if (count == 1 && !text[one])
        n[1] = n[2] = n[0];
    else if (count != 3 || text[all])
        n[0] = NAN;
    if (count < 1 || !isfinite(n[0]) || !isfinite(n[1]) || !isfinite(n[2]))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not one or three numbers", text);
    for (int i = 0; i < 3; i++)
        if (n[i] > 255)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "'%s' is not of values from 0 to 255, which pixels have", text);
    memcpy(value, n, sizeof n);
    return DL2_OK;
}

static int parse_deviation(const char *text, void *value, struct dl2_error *error)
{
    double numbers[3];
    DL2_TRY(parse_channels(text, numbers, error));
    if (!(numbers[0] > 0 && numbers[1] > 0 && numbers[2] > 0))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not above 0", text);
    if (numbers[0] <= 0.5 || numbers[1] <= 0.5 || numbers[2] <= 0.5)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' " OF_UNIT, text);
    memcpy(value, numbers, sizeof numbers);
    return DL2_OK;
}

static json_t *show_channels(const void *value)
{
    const double *numbers = value;
    return json_pack("[f, f, f]", numbers[0], numbers[1], numbers[2]);
}

/* "1/4" into two unsigned, from 0 and the number of all. */
static int parse_partition(const char *text, void *value, struct dl2_error *error)
{
    unsigned *partition = value, number, count;
    int length = 0;
    if (!isdigit((unsigned char)*text) ||
        sscanf(text, "%5u/%5u%n", &number, &count, &length) != 2 || text[length] || number < 1 ||
        number > count || count > DL2_PARTITIONS_MAX)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not a partition of up to %d, like 1/4", text,
                             DL2_PARTITIONS_MAX);
    partition[0] = number - 1;
    partition[1] = count;
    return DL2_OK;
}

static json_t *show_partition(const void *value)
{
    const unsigned *partition = value;
    return partition[1] ? json_sprintf("%u/%u", partition[0] + 1, partition[1]) : json_null();
}

/* "mean_dice=0.9" */
static int parse_until(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_train_until *until = value;
    const size_t length = strcspn(text, "=");
    char *end;
    for (unsigned i = 0; text[length] && dl2_until_metrics[i]; i++) {
        if (strlen(dl2_until_metrics[i]) != length || strncmp(dl2_until_metrics[i], text, length))
            continue;
        until->metric = i + 1;
        until->value = strtod(text + length + 1, &end);
        /* All but the loss are fractions. */
        if (end > text + length + 1 && !*end && until->value > 0 &&
            until->value <= (i ? 1 : FLT_MAX))
            return DL2_OK;
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "'%s' is not METRIC=VALUE with a metric of loss, top1, top5, miou, "
                         "mean_dice and mean_dice_mlperf, and a fraction but for the loss, such "
                         "as top1=0.75",
                         text);
}

static json_t *show_until(const void *value)
{
    const struct dl2_train_until *until = value;
    return until->metric
               ? json_sprintf("%s=%.17g", dl2_until_metrics[until->metric - 1], until->value)
               : json_null();
}

static int parse_checkpoints(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_train_checkpoints *checkpoints = value;
    char *end;
    const double every = strtod(text, &end);
    const bool keep = strcmp(end, ",keep") == 0;
    if (end == text || (*end && !keep) || !(every >= 0 && every <= 1e9) || (keep && every == 0))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is neither EPOCHS, from 0 on, nor EPOCHS,keep, above 0", text);
    *checkpoints = (struct dl2_train_checkpoints){every, keep};
    return DL2_OK;
}

static json_t *show_checkpoints(const void *value)
{
    const struct dl2_train_checkpoints *checkpoints = value;
    return checkpoints->keep ? json_sprintf("%.17g,keep", checkpoints->every)
                             : json_real(checkpoints->every);
}

/* Does a training of such a kind have the metric, by its name? */
static bool has_metric(unsigned metric, bool sees_volumes, bool has_masks)
{
    const char *name = metric ? dl2_until_metrics[metric - 1] : "loss";
    return !strncmp(name, "mean_dice", strlen("mean_dice")) ? sees_volumes
           : !strcmp(name, "miou")                          ? has_masks && !sees_volumes
                                                            : true;
}

/* ---- The table ---- */

static const char *const loader_words[] = {[false] = "real", [true] = "synthetic", NULL};
static const char *const precision_words[] = {[DL2_PRECISION_FP32] = "off",
                                              [DL2_PRECISION_TF32] = "tf32",
                                              [DL2_PRECISION_BF16] = "bf16",
                                              [DL2_PRECISION_FP16] = "fp16",
                                              NULL};

enum {
    RUN = DL2_OPTION_FIXED | DL2_OPTION_COMPARED,
    MODEL = RUN | DL2_OPTION_MODEL | DL2_OPTION_FIT,
    PART = DL2_OPTION_NOTED | DL2_OPTION_COMPARED,
};

#define AT(member)    offsetof(struct dl2_train_settings, config.member)
#define GIVEN(member) offsetof(struct dl2_train_settings, member)

enum {
    TRAINS = DL2_TRAINING | DL2_MEASURING,
    VALIDATES = DL2_TRAINING | DL2_EVALUATION,
    OF_ONE = DL2_RUN | DL2_EVALUATION | DL2_MEASURING, /* model */
};

const struct dl2_option dl2_train_options[] = {
    {DL2_OPTION_GROUP, .help = "Options for data:"},
    {DL2_OPTION_PARSE, "data", 'd', "DIR",
     "Dataset: DIR/train/CLASS/IMAGE and DIR/val/CLASS/IMAGE (also named training, valid, "
     "validation or dev, in any case), or DIR/CLASS/IMAGE, a part of which is kept for "
     "validation, such folders of volumes (.npy, .nii, .nii.gz), a folder of IDX files, packed "
     "images, or postgresql://HOST/DATABASE?table=NAME; "
     "packed images may lie at https://HOST/PATH and s3://BUCKET/PREFIX, folders at the latter; "
     "given several times, the datasets are trained on as one, with --shares or every image once",
     0, .parse = add_data, .show = show_data, .commands = TRAINS,
     .also = "dataset,root,train-dir,folder", .basic = true},
    {DL2_OPTION_PARSE, "val", 0, "DIR",
     "Validate on the validation images of DIR; may be given several times", 0, .parse = add_val,
     .show = show_val, .unset = "the dataset's own", .commands = VALIDATES, .basic = true},
    {DL2_OPTION_TEXT, "train-split", 0, "SPLIT",
     "Which of the dataset's images to train on: train, val, test, all, or the name of another "
     "split",
     AT(data.train_split), .words = dl2_split_words, .roles = RUN, .commands = TRAINS},
    {DL2_OPTION_TEXT, "val-split", 0, "SPLIT",
     "Which of the validation datasets' images to validate on: as --train-split",
     AT(data.val_split), .words = dl2_split_words, .roles = DL2_OPTION_COMPARED,
     .commands = VALIDATES},
    {DL2_OPTION_TEXT, "sensitivity", 0, "OUT",
     "Also write to OUT how much the network's loss depends on its input, which "
     "dl2-transcode fits JPEG's tables by; measured on random crops of the first --val, so give it "
     "training images",
     AT(run.sensitivity), .commands = DL2_EVALUATION},
    {DL2_OPTION_PARSE, "stages", 0, "DIR:N,...",
     "Instead of --data: train on each DIR for N epochs, one after the other, under one schedule; "
     "DIR:N:size=SIZE trains on images of that size and validates at --image-size, "
     "DIR:N:freeze trains the last layer alone, and both can be combined",
     0, .parse = parse_stages, .commands = DL2_RUN},
    {DL2_OPTION_REAL, "val-fraction", 0, "PART",
     "Fraction of each class's training images that is kept for validation if no folder has those",
     AT(data.val_fraction), .min = 0.001, .max = 0.9,
     .unset = "0.2 if no folders split the dataset", .roles = RUN},
    {DL2_OPTION_UINT64, "split-seed", 0, "N", "Seed by which --val-fraction draws images",
     AT(data.split_seed), .roles = RUN},
    {DL2_OPTION_TABLE, .table = dl2_subset_options, .offset = AT(data.subset), .commands = TRAINS},
    {DL2_OPTION_TABLE, .table = dl2_samples_options, .offset = AT(data.samples)},
    {DL2_OPTION_TABLE, .table = dl2_labels_options, .offset = AT(data.labels)},
    {DL2_OPTION_TABLE, .table = dl2_member_options, .offset = AT(data.members)},
    {DL2_OPTION_PARSE, "image-size", 0, "SIZE",
     "Size of the network's input: PIXELS of a square's side, or HEIGHTxWIDTH; of volumes "
     "DEPTHxHEIGHTxWIDTH voxels of the patches",
     AT(loader.height), .parse = parse_input_size, .show = dl2_show_output_size,
     .unset = "that of the architecture, see --list archs",
     .roles = RUN | DL2_OPTION_ALONE | DL2_OPTION_FIT,
     .also = "img-size,input-size,resolution,size,crop-size", .basic = true},
    {DL2_OPTION_UINT, "channels", 0, "N", "Number of channels: 1 for gray, 3 for color",
     AT(loader.channels), .min = 1, .max = 3, .unset = "1 if the training images are gray, else 3",
     .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_PARSE, "mean", 0, "R,G,B",
     "Mean of the pixels' values, 0 to 255: three numbers, or one for all; gray images use the "
     "mean of the three (the default is ImageNet's)",
     AT(data.mean), .parse = parse_channels, .show = show_channels, .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_PARSE, "std", 0, "R,G,B", "Standard deviation of the pixels' values, as --mean",
     AT(data.std), .parse = parse_deviation, .show = show_channels, .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_PARSE, "crop-aspect", 0, "MIN,MAX",
     "Aspect ratio (width by height) of a training crop", AT(loader.aspect_min),
     .parse = dl2_parse_aspect, .show = dl2_show_range, .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_NEGATE, "no-flip", 0, NULL, "Do not mirror training images", AT(loader.flip),
     .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_CHOICE, "val-crop", 0, "MODE",
     "What is shown of a validation image: center: the middle, after a resize that keeps the "
     "aspect; squash: the whole image, resized to --image-size whatever its aspect",
     AT(loader.val_crop), .words = dl2_val_crop_words, .roles = PART, .commands = VALIDATES,
     .also = "crop-mode"},
    {DL2_OPTION_UINT, "val-resize", 0, "PIXELS",
     "Shorter side of a validation image before its central crop", AT(loader.resize), .min = 8,
     .max = 8192, .unset = "8/7 of --image-size", .roles = PART, .commands = VALIDATES},
    {DL2_OPTION_UINT, "val-clips", 0, "N",
     "Clips of each validation video, equally spread over it; the mean of their softmax scores is "
     "the video's prediction",
     AT(loader.val_clips), .min = 1, .max = DL2_MAX_FRAMES, .unset = "1", .roles = PART,
     .commands = VALIDATES, .also = "clips-per-video,num-clips,test-segments"},
    {DL2_OPTION_SWITCH, "loader", 0, "KIND",
     "real; or synthetic: the same batch of noise each time, to measure training alone",
     AT(data.synthetic), .words = loader_words, .roles = RUN, .commands = TRAINS},
    {DL2_OPTION_TEXT, "mask", 0, "EXT",
     "Learn the class of each pixel from masks beside the images: their extension, such as png or "
     "mask.png; gray, or PNG with a palette, whose values are the classes from 0 on, and 255 for "
     "pixels without a label; needs --classes, and an architecture for masks; of volumes, volumes "
     "of labels, such as mask.npy",
     AT(loader.mask), .roles = RUN},
    {DL2_OPTION_UINT, "classes", 0, "N",
     "Number of classes of --mask (at most 255), or of synthetic data without --data",
     AT(data.synthetic_classes), .min = 2, .max = 1000000, .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_UINT64, "images", 0, "N", "Number of images of synthetic data without --data",
     AT(data.synthetic_images), .min = 1, .max = 1e12, .roles = DL2_OPTION_FIXED | DL2_OPTION_FIT,
     .commands = TRAINS},

    {DL2_OPTION_GROUP, .help = "Options for volumes (--mask names their labels):"},
    {DL2_OPTION_TABLE, .table = dl2_volume_options, .offset = AT(loader)},

    {DL2_OPTION_GROUP, .help = "Options for remote datasets:"},
    {DL2_OPTION_TABLE, .table = dl2_remote_options, .offset = AT(data.remote)},

    {DL2_OPTION_GROUP, .help = "Options for loading (--jobs sets the number of workers):"},
    {DL2_OPTION_TABLE, .table = dl2_loader_options, .offset = AT(loader)},
    {DL2_OPTION_TABLE, .table = dl2_sampling_options, .offset = AT(loader)},
    {DL2_OPTION_TABLE, .table = dl2_external_options, .offset = AT(loader.external)},
    {DL2_OPTION_TABLE, .table = dl2_bands_options, .offset = AT(loader.drop_bands)},
    {DL2_OPTION_TABLE, .table = dl2_decode_options, .offset = AT(decode)},
    {DL2_OPTION_FLAG, "cold", 0, NULL,
     "Evict the training images from the system's page cache before each epoch", AT(run.cold),
     .commands = TRAINS},

    {DL2_OPTION_GROUP, .help = "Options for network and device:"},
    {DL2_OPTION_TEXT, "arch", 'a', "NAME", "Architecture, one of --list archs", AT(arch),
     .list = "archs", .roles = DL2_OPTION_FIXED | DL2_OPTION_MODEL | DL2_OPTION_FIT,
     .also = "model,network,backbone", .basic = true},
    {DL2_OPTION_TEXT, "pretrained", 0, "FILE",
     "Start from the weights in a safetensors file: torchvision's, an --export or a checkpoint; "
     "with other classes the last layer starts anew",
     AT(run.pretrained), .roles = DL2_OPTION_COMPARED | DL2_OPTION_MODEL, .commands = TRAINS,
     .also = "weights,finetune,init,checkpoint-path", .basic = true},
    {DL2_OPTION_TEXT, "export", 0, "FILE",
     "Write the weights to a safetensors file when the run ends or stops, as torchvision's "
     "models load them",
     AT(run.export), .roles = DL2_OPTION_MODEL, .commands = DL2_TRAINING},
    {DL2_OPTION_TEXT, "device", 0, "NAME",
     "Device: auto, cuda (cuda:1 is the second card; untested on hardware), cpu or ref, if --list "
     "devices has it",
     AT(device), .list = "devices", .unset = "auto, the fastest that can be used", .roles = PART,
     .also = "gpu", .basic = true},
    {DL2_OPTION_CHOICE, "amp", 0, "PRECISION",
     "Precision of the layers: bf16 or fp16: 16 bits, with float32 weights kept beside them "
     "(device cuda; slow on ref); bf16 on cpu: products alone, on processors with AMX; tf32: "
     "products of shortened numbers (device cuda); off: float32",
     AT(precision), .words = precision_words, .roles = RUN | DL2_OPTION_MODEL,
     .also = "precision,mixed-precision,fp16,bf16", .basic = true},
    {DL2_OPTION_REAL, "loss-scale", 0, "N",
     "With --amp fp16: factor that keeps gradients from vanishing; 0: found while training",
     AT(loss_scale), .min = 0, .max = 16777216, .roles = RUN | DL2_OPTION_MODEL,
     .commands = TRAINS},
    {DL2_OPTION_FLAG, "deterministic", 0, NULL,
     "Make the same weights in every run, bit for bit, on device cuda too; the other devices "
     "always do",
     AT(deterministic), .roles = PART},
    {DL2_OPTION_FLAG, "check-device", 0, NULL,
     "Before training, compare what device cuda computes for convolutions, linear layers and "
     "attention with float32, and stop where it is wrong [with --deterministic]",
     AT(check_device)},
    {DL2_OPTION_UINT, "threads", 0, "N", "Number of threads of the device", AT(threads), .min = 1,
     .max = 1024, .unset = "one per processor"},
    {DL2_OPTION_SIZE, "memory", 0, "SIZE",
     "Memory that the networks and, on a CPU, the caches may take "
     "together, for example 8G; more is refused before training begins",
     AT(memory), .unset = "what the machine has left", .commands = DL2_TOGETHER},

    {DL2_OPTION_GROUP, .help = "Options for several processes, one per device:"},
    {DL2_OPTION_UINT, "ranks", 0, "N", "Start N processes on this machine", GIVEN(ranks), .min = 1,
     .max = 256, .unset = "", .roles = RUN, .also = "nproc,nproc-per-node,processes,devices"},
    {DL2_OPTION_UINT, "gpus", 0, "N",
     "Start N processes, on devices cuda:0, cuda:1... (untested on hardware)", GIVEN(gpus),
     .min = 1, .max = 256, .unset = "", .commands = OF_ONE},
    {DL2_OPTION_TEXT, "world", 0, "NAME",
     "How the processes reach each other: local (--ranks and --gpus), or mpi if mpirun or srun "
     "started them",
     GIVEN(world), .unset = "whichever it is"},
    {DL2_OPTION_FLAG, "sync-bn", 0, NULL,
     "Compute batch norm's statistics over all processes instead of each one's own batch",
     AT(sync_norm), .roles = RUN, .commands = DL2_RUN | DL2_MEASURING},

    {DL2_OPTION_PARSE, "partition", 0, "P/N",
     "Visit partition P of the N that the training images are divided into, and stop: an epoch is "
     "over when --resume has visited each of them once; --hop does this on all ranks",
     AT(loader.partition), .parse = parse_partition, .show = show_partition,
     .unset = "all images, in one", .commands = DL2_RUN},

    {DL2_OPTION_GROUP, .help = "Options for optimization:"},
    {DL2_OPTION_UINT, "batch", 'b', "N", "Number of images per batch and process", AT(loader.batch),
     .min = 1, .max = 1000000, .roles = RUN | DL2_OPTION_ALONE | DL2_OPTION_FIT,
     .also = "batch-size,bs", .basic = true},
    {DL2_OPTION_UINT, "grad-accum", 0, "N",
     "Number of batches whose gradients are averaged into one step", AT(optimizer.accumulate),
     .min = 1, .max = 1000000, .roles = MODEL, .commands = TRAINS,
     .also = "grad-accum-steps,gradient-accumulation-steps"},
    {DL2_OPTION_REAL, "epochs", 'e', "N",
     "Number of epochs, not necessarily whole; with --time-budget the maximum", GIVEN(epochs),
     .min = 1e-6, .max = 1e9, .unset = "30, or with --time-budget as many as fit", .roles = MODEL,
     .commands = DL2_TRAINING, .also = "num-epochs,max-epochs", .basic = true},
    {DL2_OPTION_CHOICE, "optimizer", 0, "NAME", "Optimizer, one of those that run --help describes",
     AT(optimizer.kind), .words = dl2_optimizer_words,
     .unset = "adamw for vision transformers, sgd for the others", .roles = MODEL,
     .commands = TRAINS, .also = "opt", .basic = true},
    {DL2_OPTION_FLAG, "freeze", 0, NULL,
     "Train the last layer of a --pretrained network alone: the other layers' weights stay, and "
     "batch norm uses its running statistics, which stay, too",
     GIVEN(freeze), .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "lr", 0, "RATE", "Peak learning rate, whatever the number of images per step",
     AT(optimizer.lr), .min = 1e-12, .max = 1e6,
     .unset = "the optimizer's, see run --help, for a step of 64 images over all processes; in "
              "proportion "
              "for others, with an adaptive optimizer to their square root",
     .roles = MODEL, .commands = TRAINS, .also = "learning-rate,rate", .basic = true},
    {DL2_OPTION_CHOICE, "lr-policy", 0, "NAME",
     "How the learning rate falls: cosine, step (to a tenth at 1/3, 2/3 and 8/9 of the run), "
     "linear or exponential",
     AT(optimizer.policy), .words = dl2_lr_policy_words, .roles = MODEL, .commands = TRAINS,
     .also = "scheduler,sched,lr-scheduler,schedule"},
    {DL2_OPTION_FLAG, "lr-per-epoch", 0, NULL,
     "Change the learning rate after each epoch, as (DL)2 does, instead of after each step",
     AT(optimizer.lr_per_epoch), .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "warmup", 0, "EPOCHS", "Raise the learning rate linearly for so many epochs",
     AT(optimizer.warmup), .min = 0, .max = 1e9, .unset = "a tenth of the run, at most 5",
     .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "min-lr", 0, "RATE", "Learning rate at the end of the run",
     AT(optimizer.end_lr), .min = 0, .max = 1e6, .unset = "0; exponential: a thousandth of --lr",
     .roles = MODEL, .commands = TRAINS, .also = "min-lr,lr-min"},
    {DL2_OPTION_REAL, "momentum", 0, "M", "Momentum; beta1 of adamw", AT(optimizer.momentum),
     .min = 0, .max = 1, .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "beta2", 0, "B", "Decay of an adaptive optimizer's mean of squared gradients",
     AT(optimizer.beta2), .min = 0, .max = 0.999999, .unset = "the optimizer's", .roles = MODEL,
     .commands = TRAINS},
    {DL2_OPTION_FLAG, "nesterov", 0, NULL, "Use Nesterov momentum", AT(optimizer.nesterov),
     .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "weight-decay", 0, "L2",
     "Factor of half the sum of the squared weights in the loss; adamw: part of a weight that it "
     "loses in a step, times the learning rate",
     AT(optimizer.weight_decay), .min = 0, .max = 10, .unset = "the optimizer's", .roles = MODEL,
     .commands = TRAINS, .also = "wd"},
    {DL2_OPTION_FLAG, "bn-weight-decay", 0, NULL,
     "Decay norms' parameters, biases and a transformer's tokens too", AT(optimizer.norm_decay),
     .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "clip-grad", 0, "NORM",
     "Scale a step's gradients down where their norm, over all of them, is above NORM; 0: never",
     AT(optimizer.clip), .min = 0, .max = 1e9, .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "label-smoothing", 0, "S",
     "Part of the target that is spread over all classes", AT(optimizer.smoothing), .min = 0,
     .max = 0.999, .roles = MODEL, .commands = TRAINS, .also = "smoothing"},
    {DL2_OPTION_REAL, "mixup", 0, "ALPHA",
     "Blend pairs of images with shares drawn from Beta(ALPHA, ALPHA); 0: do not blend",
     AT(optimizer.mixup), .min = 0, .max = 1000, .roles = MODEL, .commands = TRAINS},
    {DL2_OPTION_REAL, "cutmix", 0, "ALPHA",
     "Paste a rectangle of another image of the batch into each image, of a part of the area drawn "
     "from Beta(ALPHA, ALPHA), and mix the targets likewise; with --mixup every other batch on "
     "average; 0: do not paste",
     AT(optimizer.cutmix), .min = 0, .max = 1000, .roles = RUN | DL2_OPTION_ALONE | DL2_OPTION_FIT,
     .commands = TRAINS},
    {DL2_OPTION_REAL, "ema", 0, "DECAY",
     "Validate and export moving averages of the weights with this decay per update (less in "
     "the first ones), for example 0.999; 0: the weights themselves",
     AT(optimizer.average_decay), .min = 0, .max = 0.999999, .roles = MODEL, .commands = TRAINS,
     .also = "model-ema,ema-decay"},
    {DL2_OPTION_UINT64, "seed", 0, "N",
     "Seed of weights, order, crops, augmentation, mixup, CutMix and dropout", AT(seed),
     .roles = DL2_OPTION_FIXED | DL2_OPTION_MODEL | DL2_OPTION_FIT, .commands = TRAINS},
    {DL2_OPTION_UINT64, "data-seed", 0, "N", "Seed of order, crops and augmentation",
     AT(loader.seed), .unset = "that of --seed", .roles = DL2_OPTION_FIXED | DL2_OPTION_FIT,
     .commands = TRAINS},

    {DL2_OPTION_GROUP, .help = "Options for the run:"},
    {DL2_OPTION_TEXT, "out", 0, "DIR", "Folder of the report and the checkpoint", AT(run.out),
     .unset = "experiments/NAME; of evaluate the folder evaluation beside FILE",
     .also = "output,output-dir,save-dir,log-dir", .basic = true},
    {DL2_OPTION_TEXT, "name", 0, "NAME", "Name of the run in its report", AT(run.name),
     .unset = "VARIANT-ARCH-seed-N", .roles = DL2_OPTION_MODEL},
    {DL2_OPTION_UINT, "trainers", 0, "N",
     "Number of trainings that share this machine, this one included; recorded, so that rates "
     "and energy are not taken for those of one alone",
     AT(run.trainers), .min = 1, .max = 100000, .commands = TRAINS},
    {DL2_OPTION_PARSE, "time-budget", 0, "TIME",
     "Finish the schedule and the validation within this time, for example 90s or 1h",
     AT(run.time_budget), .parse = dl2_parse_duration, .show = show_real, .roles = RUN,
     .commands = DL2_RUN},
    {DL2_OPTION_PARSE, "until", 0, "METRIC=VALUE",
     "End after the epoch whose validation, on the first set, comes to this: top1, top5, miou, "
     "mean_dice or mean_dice_mlperf of at least VALUE, or loss of at most VALUE; the schedule "
     "stays that of all --epochs",
     AT(run.until), .parse = parse_until, .show = show_until, .unset = "none", .roles = RUN,
     .commands = DL2_RUN},
    {DL2_OPTION_PARSE, "duration", 0, "TIME",
     "Time to warm up, an epoch at most, and least time to measure then", AT(run.measure),
     .parse = dl2_parse_duration, .show = show_real, .unset = "5s", .commands = DL2_MEASURING},
    {DL2_OPTION_TEXT, "checkpoint", 0, "FILE", "Checkpoint, a safetensors file", AT(run.checkpoint),
     .unset = "DIR/" DL2_CHECKPOINT_FILE, .commands = DL2_RUN},
    {DL2_OPTION_PARSE, "checkpoint-every", 0, "EPOCHS",
     "Checkpoint interval; 0: only when the run stops or ends; EPOCHS,keep: keep each as "
     "checkpoint-EPOCHS.safetensors, too, as long as there is room on the disk",
     AT(run.checkpoints), .parse = parse_checkpoints, .show = show_checkpoints,
     .commands = DL2_TRAINING},
    {DL2_OPTION_FLAG, "resume", 0, NULL,
     "Continue from the checkpoint; start from the beginning if there is none", AT(run.resume),
     .commands = DL2_RUN | DL2_SEVERAL | DL2_SEARCH, .basic = true},
    {DL2_OPTION_FLAG, "restart", 0, NULL,
     "Start from the beginning even if there is a checkpoint, and overwrite it", AT(run.restart),
     .commands = DL2_RUN | DL2_SEVERAL | DL2_SEARCH},
    {DL2_OPTION_REAL, "run-epochs", 0, "N",
     "Stop after N epochs, not necessarily whole, to be resumed later", AT(run.run_epochs),
     .min = 1e-6, .max = 1e9, .commands = DL2_RUN | DL2_SEVERAL},
    {DL2_OPTION_REAL, "validate-every", 0, "EPOCHS",
     "Validation interval, in whole epochs; the end is always validated; 0: the end alone",
     AT(run.validate_every), .min = 0, .max = 1e9, .commands = DL2_TRAINING},
    {DL2_OPTION_FLAG, "keep-best", 0, NULL,
     "Keep the weights of the epoch with the highest top-1 (with --mask mean IoU, of volumes mean "
     "Dice) on the first validation set in DIR/" DL2_BEST_FILE ", as --export writes them",
     AT(run.keep_best), .commands = DL2_TRAINING},
    {DL2_OPTION_FLAG, "step-log", 0, NULL,
     "Write a line for each step to DIR/" DL2_STEPS_FILE ": loss, learning rate, seconds, wait for "
     "data; waits for the device after each step",
     AT(run.log_steps), .commands = DL2_TRAINING},
    {DL2_OPTION_FLAG, "skip-validation", 0, NULL, "Do not validate", AT(run.skip_validation),
     .commands = DL2_TRAINING},
    {DL2_OPTION_END},
};

/* ---- Evaluation ---- */

/* Does the file's name end with one of the extensions? */
static bool ends_with(const char *path, const char *const *extensions)
{
    const char *point = path ? strrchr(path, '.') : NULL;
    for (; point && *extensions; extensions++)
        if (strcasecmp(point, *extensions) == 0)
            return true;
    return false;
}

#define FOR_PYTORCH                                                                                \
    "takes a safetensors file, and this is one of PyTorch's: convert it with "                     \
    "safetensors.torch.save_file(torch.load(FILE), \"FILE.safetensors\")"

/* By its first bytes, a ZIP archive's or a pickle's; or by its name, unless it is safetensors,
 * whose header begins behind its length. */
static bool is_of_pytorch(const char *path)
{
    unsigned char start[9] = {0};
    FILE *file = path ? fopen(path, "rbe") : NULL;
    const size_t length = file ? fread(start, 1, sizeof start, file) : 0;
    if (file)
        fclose(file);
    if (length == sizeof start && start[8] == '{')
        return false;
    return memcmp(start, "PK\3\4", 4) == 0 || start[0] == 0x80 ||
           ends_with(path, (const char *const[]){".pth", ".pt", ".ckpt", ".bin", ".pkl", NULL});
}

const char *const dl2_evaluation_options[] = {
    "arch",      "samples",       "image-size",   "channels",   "frames",   "frame-step",
    "mask",      "mean",          "std",          "val-resize", "val-crop", "frame-sampling",
    "val-clips", "interpolation", "val-fraction", "split-seed", "amp",      "batch",
    "seed",      "normalization", "window",       NULL,
};

int dl2_train_options_take(struct dl2_train_settings *settings, const struct dl2_program *program,
                           const struct dl2_common_options *common)
{
    struct dl2_train_config *config = &settings->config;
    struct dl2_error error = DL2_ERROR_INIT;
    if (!config->run.evaluate)
        return 0;
    if (is_of_pytorch(config->run.evaluate))
        return dl2_program_usage_error(program, "evaluate " FOR_PYTORCH);
    if (dl2_checkpoint_origin(config->run.evaluate, &config->run.origin, &error) < 0) {
        fprintf(stderr, "%s: %s\n", program->name, error.message);
        return DL2_EXIT_FAILED;
    }
    config->run.origin_splits = !dl2_option_given(program, common, "val-fraction") &&
                                !dl2_option_given(program, common, "split-seed");
    const json_t *identity = json_object_get(config->run.origin, "identity");
    const json_t *part = json_object_get(config->run.origin, "part");
    for (const char *const *name = dl2_evaluation_options; *name; name++) {
        const json_t *value = json_object_get(identity, *name);
        if (dl2_option_given(program, common, *name))
            continue;
        value = value ? value : json_object_get(part, *name);
        if (dl2_option_from_record(dl2_train_options, settings, *name, value, &error) < 0) {
            fprintf(stderr, "%s: %s: --%s: %s\n", program->name, config->run.evaluate, *name,
                    error.message);
            return DL2_EXIT_FAILED;
        }
    }
    /* How many classes a dataset has, its masks do not say. */
    if (config->loader.mask && !dl2_option_given(program, common, "classes")) {
        const json_t *classes = json_object_get(identity, "classes");
        if (dl2_option_from_record(dl2_train_options, settings, "classes", classes, &error) < 0) {
            fprintf(stderr, "%s: %s: --classes: %s\n", program->name, config->run.evaluate,
                    error.message);
            return DL2_EXIT_FAILED;
        }
    }
    /* A run that trains on random frames validates those in the center. */
    if (!dl2_option_given(program, common, "frame-sampling") &&
        config->loader.frame_sampling == DL2_FRAMES_RANDOM)
        config->loader.frame_sampling = DL2_FRAMES_AUTO;
    return 0;
}

/* ---- What the settings come to together ---- */

/* What a network for volumes sees of them. */
static int check_patch(struct dl2_train_config *config, const struct dl2_arch *arch,
                       const struct dl2_program *program)
{
    struct dl2_loader_config *loader = &config->loader;
    if (!loader->height) {
        loader->height = arch->image_size;
        loader->volume_depth = arch->frames;
    }
    if (!loader->volume_depth)
        return dl2_program_usage_error(program,
                                       "--image-size: %s sees patches of volumes: give "
                                       "DEPTHxHEIGHTxWIDTH voxels, such as 64x64x64",
                                       arch->name);
    loader->dtype = DL2_FLOAT32;
    for (size_t i = 0; i < config->data.stage_count; i++)
        if (config->data.stages[i].height)
            return dl2_program_usage_error(program,
                                           "--stages: stages of volumes have no size of their own: "
                                           "--image-size is that of all patches");
    return 0;
}

static int check_names(struct dl2_train_config *config, const struct dl2_program *program)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device_name name;
    if (dl2_device_parse(config->device, &name, &error) < 0)
        return dl2_program_usage_error(program, "--device: %s", error.message);
    const struct dl2_arch *arch = dl2_arch_find(config->arch, &error);
    if (!arch)
        return dl2_program_usage_error(program, "--arch: %s", error.message);
    if ((unsigned)config->optimizer.kind == OPTIMIZER_OF_ARCH)
        config->optimizer.kind = arch->optimizer;
    if (arch->labels == DL2_LABEL_VOLUME)
        return check_patch(config, arch, program);
    if (config->loader.volume_depth)
        return dl2_program_usage_error(program,
                                       "--image-size: depth, height and width are for networks of "
                                       "volumes, such as --arch unet3d, and %s sees %s",
                                       arch->name, arch->frames ? "clips" : "images");
    if (!config->loader.height)
        config->loader.height = arch->image_size;
    if (config->loader.frames > 1 && dl2_arch_check_frames(arch, config->loader.frames, &error) < 0)
        return dl2_program_usage_error(program, "--frames %u: %s", config->loader.frames,
                                       error.message);
    if (!config->loader.frames)
        config->loader.frames = arch->frames;
    return 0;
}

/* Does the network learn what the data have: classes of images, or of their pixels? */
static int check_labels(const struct dl2_train_config *config, const struct dl2_program *program,
                        const struct dl2_common_options *common, bool needs_data)
{
    const struct dl2_arch *arch = dl2_arch_find(config->arch, NULL);
    const char *mask = config->loader.mask;
    const bool volumes = arch->labels == DL2_LABEL_VOLUME;
    const bool counted = dl2_option_given(program, common, "classes") || config->run.evaluate;
    if (mask && config->data.synthetic)
        return dl2_program_usage_error(program, "--mask has no effect on synthetic data");
    if (mask && arch->labels == DL2_LABEL_CLASS)
        return dl2_program_usage_error(program,
                                       "--mask %s: %s learns the class of an image, not of its "
                                       "pixels: choose a network for masks, such as --arch unet",
                                       mask, arch->name);
    if (arch->labels != DL2_LABEL_CLASS && needs_data && !mask && !config->data.synthetic)
        return dl2_program_usage_error(program,
                                       "--arch %s learns the classes of %s: name the masks beside "
                                       "them by --mask, such as --mask %s, and their number of "
                                       "classes by --classes",
                                       arch->name, volumes ? "volumes' voxels" : "images' pixels",
                                       volumes ? "mask.npy" : "png");
    if (mask && !counted)
        return dl2_program_usage_error(program, "--mask needs --classes: how many classes the "
                                                "masks have, class 0 included");
    if (arch->labels != DL2_LABEL_CLASS && config->data.synthetic_classes > DL2_MASK_IGNORED)
        return dl2_program_usage_error(program, "--classes %u: masks hold classes 0 to %d",
                                       config->data.synthetic_classes, DL2_MASK_IGNORED - 1);
    if (arch->labels != DL2_LABEL_CLASS &&
        (config->optimizer.mixup > 0 || config->optimizer.cutmix > 0))
        return dl2_program_usage_error(program,
                                       "--%s mixes the labels of images, and %s learns those of "
                                       "pixels: leave it out",
                                       config->optimizer.mixup > 0 ? "mixup" : "cutmix",
                                       arch->name);
    return 0;
}

/* Refuses options that exclude each other or that would have no effect. */
static int check_effects(struct dl2_train_settings *settings, const struct dl2_program *program,
                         const struct dl2_common_options *common, bool needs_data)
{
    struct dl2_train_config *config = &settings->config;
    struct dl2_error error = DL2_ERROR_INIT;
    const bool has_data = settings->data || config->data.stage_count;
    const bool sizes_noise = config->data.synthetic && !has_data;
    const bool sees_clips = dl2_arch_find(config->arch, NULL)->frames;
    const bool sees_volumes = config->loader.volume_depth;
    const struct dl2_optimizer_facts *facts = dl2_optimizer_facts(config->optimizer.kind);
    const struct dl2_option_rule rules[] = {
        {settings->data, "stages", "excludes --data"},
        {!config->data.joined_count, "shares", "needs --data several times"},
        {config->data.joined_count || config->data.stage_count > 1 ||
             config->data.val_count > (config->run.evaluate ? 1 : 0),
         "labels", "is for one dataset, whose samples its lists name"},
        {config->data.stage_count, "epochs", "has no effect with --stages, which has the epochs"},
        {config->data.stage_count, "freeze",
         "goes with a stage of --stages, like photos:45:freeze"},
        {!config->run.pretrained && !config->run.resume && !(config->run.measure > 0), "freeze",
         "needs --pretrained FILE: it trains the last layer alone, on the other layers of a "
         "network "
         "that has learned something"},
        {is_of_pytorch(config->run.pretrained), "pretrained", FOR_PYTORCH},
        {!sizes_noise && !config->loader.mask, "classes",
         "needs --mask, or --loader synthetic without --data"},
        {!sizes_noise, "images", "needs --loader synthetic without --data"},
        {strcmp(config->data.train_split, "train") != 0, "subset",
         "takes a part of the split train, and --train-split names another"},
        {config->data.synthetic,
         "train-split,samples,labels,label-field,image-extension,frame-step,frame-sampling,"
         "normalization,window,"
         "oversample-foreground,foreground-rule,cold",
         "has no effect on synthetic data"},
        {!has_metric(config->run.until.metric, sees_volumes, config->loader.mask), "until",
         "names a metric that this training does not have: miou is of --mask, mean_dice of "
         "volumes"},
        {config->data.synthetic, "val,keep-best,until,val-clips",
         "has no effect on synthetic data, which is not validated"},
        {config->precision != DL2_PRECISION_FP32, "sensitivity", "needs --amp off"},
        {settings->ranks || settings->gpus || settings->world, "sensitivity",
         "works with one process only"},
        {config->loader.mask, "sensitivity", "is for networks that learn the class of an image"},
        {sees_clips, "sensitivity", "is for networks that see images: JPEG's tables are of those"},
        {config->data.synthetic && !sees_clips, "frames", "needs a network that sees clips"},
        {sees_volumes, "mean,std", "is of images: --normalization is for volumes"},
        {sees_volumes, "channels", "has no effect on volumes: a network sees those that they have"},
        {sees_volumes, "decoder,external-timeout",
         "decodes images, and volumes are read without a codec"},
        {sees_volumes && config->decode.mode != DL2_DECODE_CPU, "decode",
         "is for JPEGs: volumes are read by the processors"},
        {config->run.skip_validation, "val", "excludes --skip-validation"},
        {config->run.skip_validation,
         "val-resize,val-crop,val-clips,validate-every,keep-best,until",
         "has no effect with --skip-validation"},
        {config->precision != DL2_PRECISION_FP16, "loss-scale", "needs --amp fp16"},
        {config->run.restart, "resume", "excludes --restart"},
        {!facts->adaptive, "beta2", "needs an adaptive --optimizer, see --help"},
        {!facts->nesterov, "nesterov", "needs an --optimizer that has it, see --help"},
        {config->data.stage_count, "partition", "excludes --stages"},
        {config->data.synthetic, "partition", "has no use on synthetic data"},
        {config->run.time_budget > 0, "partition", "excludes --time-budget"},
        {config->run.until.metric, "partition", "excludes --until"},
        {config->run.run_epochs > 0, "partition", "excludes --run-epochs: a visit is what ends it"},
        {settings->ranks || settings->gpus, "partition",
         "works with one process only: several --hop gives each rank a partition"},
        {config->loader.batching != DL2_BATCHING_STRICT, "partition", "needs --batching strict"},
        {settings->gpus, "ranks", "excludes --gpus"},
        {are_of_unit(config->data.mean) && !dl2_option_given(program, common, "std"), "mean",
         OF_UNIT},
        {config->loader.channels == 2, "channels", "is 1 or 3"},
        {config->run.validate_every != floor(config->run.validate_every), "validate-every",
         "must be a whole number of epochs"},
        {config->decode.mode != DL2_DECODE_CPU && config->optimizer.cutmix > 0, "cutmix",
         "works on what the processors decode: leave out --decode"},
        {config->decode.mode == DL2_DECODE_HYBRID, "deterministic",
         "has no use with --decode hybrid: pixels depend on where they were decoded"},
    };
    const char *sampling = dl2_sampling_given(program, common);
    if (sampling && (config->data.synthetic || config->loader.partitions))
        return dl2_program_usage_error(program, "--%s %s", sampling,
                                       config->data.synthetic ? "has no effect on synthetic data"
                                                              : "excludes --partition");
    if (config->run.evaluate && !config->data.val_count)
        return dl2_program_usage_error(program, "evaluate needs --val DIR, the dataset whose "
                                                "validation images it reads");
    if (dl2_program_refuse(program, common, rules, sizeof rules / sizeof *rules) != 0 ||
        dl2_subset_options_check(program, common, &config->data.subset) != 0)
        return DL2_EXIT_USAGE;
    if (needs_data && !has_data && !config->data.synthetic && !config->run.evaluate)
        return dl2_program_usage_error(program, "no data: give --data DIR");
    if (dl2_decode_choice_check(&config->decode, &error) < 0)
        return dl2_program_usage_error(program, "%s", error.message);
    return dl2_loader_options_check(&(struct dl2_loader_user){
        .program = program,
        .common = common,
        .options = dl2_train_options,
        .values = settings,
        .config = &config->loader,
        .modes = config->run.evaluate ? DL2_SETTING_VALIDATION
                                      : DL2_SETTING_TRAINING | DL2_SETTING_VALIDATION,
        .decodes_on_card = config->decode.mode != DL2_DECODE_CPU,
    });
}

static int check_ranks(struct dl2_train_settings *settings, const struct dl2_program *program)
{
    struct dl2_train_config *config = &settings->config;
    const char *name = settings->world;
    const struct dl2_world_class *world = name ? dl2_world_find(name) : NULL;
    const bool starts = settings->ranks || settings->gpus;
    if (name && !world)
        return dl2_program_usage_error(program, "--world: there is no '%s' in this build", name);
    if (world && world->open && starts)
        return dl2_program_usage_error(program, "with --world mpi, mpirun or srun starts the "
                                                "processes: leave out --ranks and --gpus");
    if (world && !world->open && !starts)
        return dl2_program_usage_error(program, "--world local needs --ranks or --gpus");
    if (!settings->gpus)
        return 0;
    const struct dl2_device_class *card = dl2_device_card();
    if (!card)
        return dl2_program_usage_error(program, "--gpus: this build has no device cuda");
    struct dl2_device_name device;
    if (dl2_device_parse(config->device, &device, NULL) < 0 ||
        (!device.automatic && (device.numbered || dl2_device_named(&device) != card)))
        return dl2_program_usage_error(program, "--gpus needs --device %s, not '%s'", card->name,
                                       config->device);
    config->device = card->name;
    return 0;
}

int dl2_train_options_check_rates(struct dl2_train_config *config,
                                  const struct dl2_program *program, unsigned ranks)
{
    struct dl2_train_optimizer *optimizer = &config->optimizer;
    const struct dl2_optimizer_facts *facts = dl2_optimizer_facts(optimizer->kind);
    /* In proportion to the images a step: Goyal et al., "Accurate, large minibatch SGD", 2017; to
     * their square root: Malladi et al., "On the SDEs and scaling rules for adaptive gradient
     * algorithms", 2022. */
    const double share = (double)config->loader.batch * optimizer->accumulate * ranks / 64;
    if (isnan(optimizer->lr))
        optimizer->lr = facts->rate * (facts->adaptive ? sqrt(share) : share);
    if (isnan(optimizer->weight_decay))
        optimizer->weight_decay = facts->weight_decay;
    if (isnan(optimizer->beta2))
        optimizer->beta2 = facts->beta2;
    if (optimizer->end_lr > optimizer->lr)
        return dl2_program_usage_error(program, "--min-lr %g is above --lr %g", optimizer->end_lr,
                                       optimizer->lr);
    if (optimizer->nesterov && optimizer->momentum == 0)
        return dl2_program_usage_error(program, "--nesterov needs a --momentum above 0");
    if (optimizer->momentum == 1 && facts->momentum_below)
        return dl2_program_usage_error(program, "--momentum must be below 1 with --optimizer %s",
                                       dl2_optimizer_words[optimizer->kind]);
    double epochs = 0;
    for (size_t i = 0; i < config->data.stage_count; i++)
        epochs += config->data.stages[i].epochs;
    if (optimizer->warmup >= epochs)
        return dl2_program_usage_error(program,
                                       "--warmup %g is not shorter than the run's %g epochs",
                                       optimizer->warmup, epochs);
    return 0;
}

int dl2_train_options_check(struct dl2_train_settings *settings, const struct dl2_program *program,
                            const struct dl2_common_options *common, bool needs_data)
{
    struct dl2_train_config *config = &settings->config;
    struct dl2_error error = DL2_ERROR_INIT;
    int status = check_names(config, program);
    if (status == 0)
        status = check_labels(config, program, common, needs_data);
    if (status == 0)
        status = check_effects(settings, program, common, needs_data);
    if (status == 0)
        status = check_ranks(settings, program);
    if (config->run.measure > 0) {
        config->run.skip_validation = true;
        config->run.checkpoints.every = 0;
    }
    const double epochs = config->run.measure > 0       ? INFINITY
                          : !isnan(settings->epochs)    ? settings->epochs
                          : config->run.time_budget > 0 ? INFINITY
                                                        : DEFAULT_EPOCHS;
    if (!dl2_option_given(program, common, "data-seed"))
        config->loader.seed = config->seed;
    const char *data = settings->data;
    const struct dl2_train_stage stage = {.epochs = epochs, .freeze = settings->freeze};
    if (status == 0 && !config->data.stage_count && !config->run.evaluate &&
        add_stage(config, data, data ? strlen(data) : 0, &stage, &error) < 0)
        status = dl2_program_usage_error(program, "%s", error.message);
    return status;
}

unsigned dl2_train_options_ranks(const struct dl2_train_settings *settings)
{
    return settings->gpus ? settings->gpus : settings->ranks;
}

void dl2_train_options_free(struct dl2_train_config *config)
{
    drop_stages(config);
    free((void *)config->data.val);
    free((void *)config->data.joined);
    json_decref(config->run.origin);
}
