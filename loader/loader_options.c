/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/loader_options.h"

#include "common/file.h"
#include "loader/batch_decoder.h"
#include "loader/sample_weights.h"
#include "pixels/augment.h"
#include "pixels/resize.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const char *const dl2_split_words[] = {"all", "train", "val", "test", NULL};

const char *const dl2_dtype_words[] = {[DL2_UINT8] = "uint8",
                                       [DL2_FLOAT32] = "float32",
                                       [DL2_BFLOAT16] = "bfloat16",
                                       [DL2_FLOAT16] = "float16",
                                       NULL};

/* Options have the words in small letters, the library's settings in capitals. */
const char *const dl2_layout_words[] = {[DL2_NHWC] = "nhwc", [DL2_NCHW] = "nchw", NULL};
static const char *const layouts[] = {[DL2_NHWC] = "NHWC", [DL2_NCHW] = "NCHW", NULL};

const char *const dl2_batching_words[] = {
    [DL2_BATCHING_STRICT] = "strict", [DL2_BATCHING_COMPLETION] = "completion", NULL};

const char *const dl2_io_words[] = {[DL2_IO_AUTO] = "auto",
                                    [DL2_IO_DIRECT] = "direct",
                                    [DL2_IO_THREADS] = "threads",
                                    [DL2_IO_URING] = "uring",
                                    NULL};

const char *const dl2_val_crop_words[] = {
    [DL2_VAL_CENTER] = "center", [DL2_VAL_SQUASH] = "squash", NULL};

static const char *const frame_sampling_words[] = {[DL2_FRAMES_AUTO] = "auto",
                                                   [DL2_FRAMES_RANDOM] = "random",
                                                   [DL2_FRAMES_CENTER] = "center",
                                                   [DL2_FRAMES_UNIFORM] = "uniform",
                                                   NULL};

static const char *const normalization_words[] = {[DL2_NORMALIZATION_ZSCORE] = "zscore",
                                                  [DL2_NORMALIZATION_WINDOW] = "window",
                                                  [DL2_NORMALIZATION_NONE] = "none",
                                                  NULL};

static const char *const foreground_rule_words[] = {
    [DL2_FOREGROUND_VOXEL] = "voxel", [DL2_FOREGROUND_COMPONENT] = "component", NULL};

static const char *const on_bad_words[] = {[false] = "skip", [true] = "stop", NULL};

const char *const dl2_decode_mode_words[] = {
    [DL2_DECODE_CPU] = "cpu", [DL2_DECODE_GPU] = "gpu", [DL2_DECODE_HYBRID] = "hybrid", NULL};

const char *const dl2_decode_input_words[] = {[DL2_DECODE_PLAIN] = "plain",
                                              [DL2_DECODE_REGION] = "region",
                                              [DL2_DECODE_SPLICED] = "spliced",
                                              NULL};

const char *const dl2_decode_engine_words[] = {[DL2_DECODE_AUTO] = "auto",
                                               [DL2_DECODE_ENGINES] = "engines",
                                               [DL2_DECODE_CORES] = "cores",
                                               NULL};

/* ---- The library's settings ---- */

#define MAX_IMAGE_SIZE 65536

enum {
    TRAINING = DL2_SETTING_TRAINING,
    VALIDATION = DL2_SETTING_VALIDATION,
    FLOATS = DL2_SETTING_FLOATS,
    AHEAD = DL2_SETTING_AHEAD,
    DECODER = DL2_SETTING_DECODER,
    PROCESSORS = DL2_SETTING_PROCESSORS,
    IMAGES = DL2_SETTING_IMAGES,
    VOLUMES = DL2_SETTING_VOLUMES,
};

#define ROW(name, kind, member, help, ...)                                                         \
    {                                                                                              \
        name, DL2_SETTING_##kind, offsetof(struct dl2_loader_config, member), help, __VA_ARGS__    \
    }

/* In the order of dl2.Loader's signature, which is made from this. Options of programs are below.
 */
const struct dl2_loader_setting dl2_loader_setting_rows[] = {
    ROW("batch", UNSIGNED, batch, "images of a batch", 0, .min = 1, .max = INFINITY,
        .also = "batch_size,bs"),
    ROW("image_size", SIZE, height,
        "pixels of a square's side, or (height, width); of volumes (depth, height, width) of the "
        "patch that is cut out, without resizing",
        0, .min = 1, .max = MAX_IMAGE_SIZE, .pixels = true,
        .also = "size,crop_size,img_size,resolution"),
    ROW("train", BOOL, train,
        "shuffle; crop at random (a part `area` of the image, of this `aspect`), resize, "
        "flip at random. Else in order: resize the shorter side to `resize`, crop the middle",
        0, .also = "shuffle,is_train,training"),
    ROW("seed", UINT64, seed,
        "of order, crops, flips and augmentation: 0 unless it is given, so loaders that are "
        "to differ need one each. The same for any number of workers",
        0, .also = "generator,random_seed"),
    ROW("workers", UNSIGNED, workers, "threads; 0: one for each core", 0,
        .also = "num_workers,num_threads,threads"),
    ROW("dtype", CHOICE, dtype,
        "'uint8', 0 to 255; or (value / 255 - mean) / std as 'float32', or rounded to the "
        "nearest 'float16' or 'bfloat16'; volumes are 'float32' unless it is given",
        PROCESSORS, dl2_dtype_words, .pixels = true),
    ROW("layout", CHOICE, layout,
        "of images: 'NHWC', [n, height, width, channels]; or 'NCHW', [n, channels, height, "
        "width]; of volumes 'NCHW' unless it is given, [n, channels, depth, height, width]; or "
        "'NHWC', [n, depth, height, width, channels]",
        PROCESSORS, layouts, .pixels = true, .also = "memory_format,data_format"),
    ROW("mean", CHANNELS, mean,
        "with the floats: a number for each channel, of values from 0 to 1; None: 0. Numbers "
        "for values from 0 to 255 are a ValueError",
        FLOATS | IMAGES, .pixels = true),
    ROW("std", CHANNELS, std, "the same, above 0; None: 1", FLOATS | IMAGES, .pixels = true),
    ROW("channels", UNSIGNED, channels, "3 or 1 (gray); of volumes what they have", 0,
        .pixels = true),
    ROW("resize", UNSIGNED, resize,
        "without train: the shorter side of an image before its crop; 0: image_size * 256 / "
        "224",
        VALIDATION | IMAGES, .pixels = true, .also = "resize_size"),
    ROW("val_crop", CHOICE, val_crop,
        "without train: 'center', the middle; or 'squash': resize the whole image to "
        "image_size, whatever its aspect",
        VALIDATION | IMAGES, dl2_val_crop_words, .pixels = true),
    ROW("frames", UNSIGNED, frames,
        "of each clip of a dataset of clips: images are [n, frames, height, width, channels] or "
        "[n, channels, frames, height, width] then, with one crop and flip for a clip, whose last "
        "frame comes again where it is too short; 0: the dataset holds images",
        PROCESSORS | IMAGES, .max = DL2_MAX_FRAMES, .pixels = true),
    ROW("frame_step", UNSIGNED, frame_step, "from one frame of a clip to the next; 0: 1", 0,
        .max = 65536, .pixels = true),
    ROW("frame_sampling", CHOICE, frame_sampling,
        "which frames: from a 'random' one on, those in the 'center', or 'uniform', the middles of "
        "so many equal parts of the clip; 'auto': random with train, else the center",
        0, frame_sampling_words, .pixels = true),
    ROW("val_clips", UNSIGNED, val_clips,
        "without train: clips of each video, equally spread, whose frames come one clip after the "
        "other: images are [n, val_clips * frames, ...]; 0: one",
        VALIDATION | PROCESSORS | IMAGES, .max = DL2_MAX_FRAMES, .pixels = true,
        .also = "clips_per_video,num_clips"),
    ROW("normalization", CHOICE, normalization,
        "of volumes: 'zscore': each channel of a patch has the mean 0 and the deviation 1; "
        "'window': values from the first number of `window` to the second become 0 to 1, others "
        "the nearer of these; 'none'",
        VOLUMES, normalization_words, .pixels = true),
    ROW("window", RANGE, window_min, "with normalization 'window': two numbers", VOLUMES,
        .pixels = true),
    ROW("oversample_foreground", NUMBER, foreground,
        "of volumes with `mask`: probability that a training patch is one that shows a voxel whose "
        "label is above 0",
        VOLUMES | TRAINING, .max = 1, .pixels = true),
    ROW("foreground_rule", CHOICE, foreground_rule,
        "with oversample_foreground: what such a patch shows, a random 'voxel'; or by MLPerf's "
        "rule a random connected 'component' of a random class, whole or, where it is longer than "
        "the patch, nothing beyond it",
        VOLUMES | TRAINING, foreground_rule_words, .pixels = true),
    ROW("drop_last", BOOL, drop_last,
        "leave out the last batch of an epoch where it would hold fewer images", 0),
    ROW("area", RANGE, area_min,
        "of a crop for training, as a fraction of the image's: two numbers", TRAINING | IMAGES,
        .pixels = true, .also = "scale"),
    ROW("aspect", RANGE, aspect_min, "of a crop for training, width by height: two numbers",
        TRAINING | IMAGES, .pixels = true, .also = "ratio"),
    ROW("flip", BOOL, flip, "mirror half of the images for training", TRAINING | IMAGES,
        .pixels = true, .also = "hflip,horizontal_flip"),
    ROW("interpolation", CHOICE, interpolation,
        "of the resize, by Pillow's definitions: 'bilinear', 'nearest', 'box', 'bicubic' or "
        "'lanczos'; all but the nearest are antialiased",
        PROCESSORS | IMAGES, dl2_interpolation_words, .pixels = true),
    ROW("augment", TEXT, augment,
        "then change the image by operations, such as 'randaugment:n=2:m=9,erase:p=0.25'; "
        "`dl2-train --list augmentations` prints them, their settings and defaults. "
        "'NAME@FILE' is an operation of your own in a shared object, such as "
        "'grain@./libgrain.so:strength=20'",
        TRAINING | PROCESSORS, .pixels = true,
        .also = "transform,transforms,auto_augment,pipeline"),
    ROW("targets", NAMES, targets,
        "what samples have beside their images: extensions, such as ('json', 'txt') or "
        "'json,txt'. batch.targets['json'] is a list of bytes, None where a sample has none. "
        "In a folder: the file beside the image; in tar: the member of the same name; in "
        "GulpIO, 'json': the item's meta_data",
        0),
    ROW("mask", TEXT, mask,
        "masks beside the images: their extension, such as 'png' or 'mask.png'; in a folder "
        "at a path, such files are no images then. batch.masks has them, uint8 [n, height, "
        "width], cropped, flipped and moved as the images are, by nearest neighbors. Gray "
        "of 8 bits, or PNG with a palette, whose numbers count; of the image's size. A "
        "sample without a mask is bad. Masks of volumes, 'mask.npy', are volumes of whole numbers "
        "from 0 to 255; batch.masks is uint8 [n, depth, height, width]",
        PROCESSORS),
    ROW("mask_fill", UNSIGNED, mask_fill,
        "what a mask has where an operation of `augment` shows what lies outside, and around a "
        "volume that is smaller than its patch",
        0, .max = 255),
    ROW("boxes", TEXT, boxes,
        "boxes of the images' objects: a file in COCO's JSON, 'instances.json', whose file_names "
        "fit the samples' keys; or the extension of label files beside the images, 'txt', with "
        "YOLO's lines, or their 'data.yaml' or 'classes.txt' with the classes' names. batch.boxes "
        "has for each "
        "sample a dict as torchvision's networks take it: boxes, "
        "float32 [k, 4], x1, y1, x2, y2 in pixels of the sample, cropped, resized and flipped as "
        "it "
        "is; labels, int64 [k], the file's category ids or class numbers; area, float32 [k], in "
        "pixels of the file's image; iscrowd, int64 [k]; image_id, -1 where the file does not have "
        "the sample. Operations of `augment` must leave pixels where they are",
        PROCESSORS | IMAGES),
    ROW("min_visibility", NUMBER, min_visibility,
        "with `boxes`: leave out a box of whose area the sample shows a smaller share",
        PROCESSORS | IMAGES, .max = 1),
    ROW("instance_masks", BOOL, instance_masks,
        "with `boxes` of COCO's JSON: also masks, uint8 [k, height, width], from polygons or run "
        "lengths, as pycocotools draws them",
        PROCESSORS | IMAGES),
    ROW("depth", UNSIGNED, depth, "batches in memory", 0, .min = 2, .max = INFINITY,
        .also = "prefetch,prefetch_factor"),
    ROW("max_pixels", UINT64, max_pixels, "of the largest image decoded; 0: 134 million", 0),
    ROW("external_timeout", NUMBER, external.timeout,
        "seconds after which a command of `external` is killed; 0: 300", 0),
    ROW("drop_bands", BOOL, drop_bands,
        "of images with more bands than gray or RGB and alpha, load those that the file calls gray "
        "or RGB; else such images can't be read",
        IMAGES),
    ROW("stop_on_bad", BOOL, stop_on_bad,
        "raise dl2.Error at a sample that can't be read. Else it is named in .bad; in "
        "training the next good one takes its place, in validation its label is -1",
        0),
    ROW("max_bad", NUMBER, max_bad,
        "raise dl2.Error once more than this share of the dataset's samples can't be read "
        "(fewer than 100 samples count as 100); 1: never",
        0, .max = 1, .also = "skip_bad"),
    ROW("rank", UNSIGNED, rank, "this loader's number among `world`", 0, .also = "shard_id"),
    ROW("world", UNSIGNED, world,
        "loaders that share each epoch: all have as many batches. In training len(dataset) % "
        "world samples, others in each epoch, are left out; in validation none is, and the "
        "last batch of some ranks may be empty",
        0, .also = "world_size,num_shards,num_replicas"),
    ROW("shuffle_chunk", UNSIGNED, shuffle_chunk,
        "shuffle runs of so many neighbors; 0: single samples", TRAINING),
    ROW("shuffle_window", UNSIGNED, shuffle_window,
        "mix the samples of so many such runs; 0: of one", TRAINING),
    ROW("sample_weights", POINTER, weights_file, NULL, TRAINING),
    ROW("sample_weights", POINTER, weights, NULL, TRAINING),
    ROW("balanced", BOOL, balanced,
        "draw samples by weights that make all classes equally frequent", TRAINING),
    ROW("repeats", UNSIGNED, repeats,
        "each sample comes so often in a row, with other crops; ranks take turns", TRAINING),
    ROW("num_samples", UNSIGNED, draws,
        "samples in an epoch of all ranks; 0: len(dataset), times repeats", TRAINING),
    ROW("shares", SHARES, shares,
        "of several datasets: the part of an epoch's samples that is of each, such as (0.7, 0.3), "
        "in proportion to the others and exact; a small dataset comes again, a large one goes on "
        "in the next epoch. None: every sample of every dataset once",
        TRAINING, .also = "proportions,probabilities,probs"),
    ROW("batching", CHOICE, batching,
        "'strict': the epoch's order. 'completion': what is finished first, so that slow samples "
        "join a later batch",
        0, dl2_batching_words),
    ROW("io", CHOICE, fetch.io, "how files are read ahead: 'auto', 'direct', 'threads' or 'uring'",
        IMAGES, dl2_io_words),
    ROW("ahead", UNSIGNED, fetch.ahead, "samples that are read ahead at most; 0: a default",
        AHEAD | IMAGES),
    ROW("ahead_bytes", UINT64, fetch.ahead_bytes, "limit of what is read ahead; 0: a default",
        AHEAD | IMAGES),
    ROW("cache_bytes", UINT64, fetch.cache_bytes, "limit of the cache of encoded samples; 0: none",
        IMAGES),
    ROW("drop_behind", BOOL, fetch.drop_behind,
        "evict what was read from the system's cache, so that every epoch is cold", 0),
    ROW("decoded_cache_bytes", UINT64, decoded_cache_bytes,
        "limit of the cache of decoded samples; 0: none", PROCESSORS | IMAGES),
    ROW("volume_cache_bytes", UINT64, volume_cache_bytes,
        "limit of the memory for volumes of .nii.gz that are kept decompressed; 0: none", VOLUMES),
    ROW("decoded_cache", POINTER, decoded_cache, NULL, PROCESSORS | IMAGES),
    ROW("operations", POINTER, operations, NULL, PROCESSORS | IMAGES),
    ROW("decoder", POINTER, decoder, NULL, 0),
    ROW("decoder_shares", BOOL, decoder_shares, NULL, DECODER),
    ROW("decoder_splices", BOOL, decoder_splices, NULL, DECODER),
    {.name = NULL},
};

/* ---- Values of options ---- */

static int parse_range(const char *text, double highest, double *range, struct dl2_error *error)
{
    double min, max;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &min, &max, &rest) != 2 ||
        !(min > 0 && min <= max && max <= highest && isfinite(max)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not MIN,MAX with 0 < MIN <= MAX%s",
                             text, highest == 1 ? " <= 1" : "");
    range[0] = min;
    range[1] = max;
    return DL2_OK;
}

static int parse_area(const char *text, void *value, struct dl2_error *error)
{
    return parse_range(text, 1, value, error);
}

int dl2_parse_aspect(const char *text, void *value, struct dl2_error *error)
{
    return parse_range(text, INFINITY, value, error);
}

json_t *dl2_show_range(const void *value)
{
    const double *range = value;
    return json_pack("[f, f]", range[0], range[1]);
}

struct image_size {
    unsigned height, width; /* width 0: the same */
};

/* Digits at `text`, and where they end; 0 where there are none. */
static unsigned long long read_side(const char *text, char **end)
{
    *end = (char *)text;
    return isdigit((unsigned char)*text) ? strtoull(text, end, 10) : 0;
}

int dl2_parse_image_size(const char *text, void *value, struct dl2_error *error)
{
    char *end;
    const unsigned long long height = read_side(text, &end);
    const bool is_pair = end > text && *end == 'x';
    const char *second = is_pair ? end + 1 : text;
    const unsigned long long width = read_side(second, &end);
    if (end == second || *end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not PIXELS or HEIGHTxWIDTH", text);
    if (height < 1 || height > MAX_IMAGE_SIZE || width < 1 || width > MAX_IMAGE_SIZE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is not between 1 and %d", text,
                             MAX_IMAGE_SIZE);
    *(struct image_size *)value =
        (struct image_size){(unsigned)height, width == height ? 0 : (unsigned)width};
    return DL2_OK;
}

json_t *dl2_show_image_size(const void *value)
{
    const struct image_size *size = value;
    return size->width ? json_sprintf("%ux%u", size->height, size->width)
                       : json_integer(size->height);
}

int dl2_parse_output_size(const char *text, void *value, struct dl2_error *error)
{
    unsigned *size = value; /* height, width, depth */
    unsigned long long sides[3];
    const char *at = text;
    char *end = (char *)text;
    for (int i = 0; i < 3; i++, at = end + 1) {
        sides[i] = read_side(at, &end);
        if (end == at || *end != (i < 2 ? 'x' : '\0')) {
            size[2] = 0;
            return dl2_parse_image_size(text, value, error);
        }
    }
    for (int i = 0; i < 3; i++)
        if (sides[i] < 1 || sides[i] > MAX_IMAGE_SIZE)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is not between 1 and %d", text,
                                 MAX_IMAGE_SIZE);
    size[0] = (unsigned)sides[1];
    size[1] = sides[2] == sides[1] ? 0 : (unsigned)sides[2];
    size[2] = (unsigned)sides[0];
    return DL2_OK;
}

json_t *dl2_show_output_size(const void *value)
{
    const unsigned *size = value;
    return size[2] ? json_sprintf("%ux%ux%u", size[2], size[0], size[1] ? size[1] : size[0])
                   : dl2_show_image_size(value);
}

int dl2_take_image_size(const json_t *json, struct dl2_loader_config *config,
                        struct dl2_error *error)
{
    char text[64];
    if (!json)
        return DL2_OK;
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(json));
    return dl2_parse_image_size(json_is_string(json) ? json_string_value(json) : text,
                                &config->height, error);
}

/* The text with every setting; NULL and an error. */
static json_t *augment_json(const char *text, struct dl2_error *error)
{
    struct dl2_augmentation *augmentation;
    if (dl2_augmentation_parse(text, &augmentation, error) < 0)
        return NULL;
    json_t *shown = json_string(dl2_augmentation_text(augmentation));
    dl2_augmentation_free(augmentation);
    return shown ? shown : json_null();
}

/* Keeps the text as it is given. */
static int parse_augment(const char *text, void *value, struct dl2_error *error)
{
    json_auto_t *shown = augment_json(text, error);
    if (!shown)
        return DL2_ERR_ARGUMENT;
    *(const char **)value = text;
    return DL2_OK;
}

json_t *dl2_show_augment(const void *value)
{
    const char *text = *(const char *const *)value;
    json_t *shown = text ? augment_json(text, NULL) : NULL;
    return shown ? shown : json_null();
}

/* The name of the file and a check sum of what is in it: equal of equal weights, wherever it lies.
 */
static json_t *show_weights(const void *value)
{
    const char *path = *(const char *const *)value;
    struct dl2_bytes text = DL2_BYTES_INIT;
    json_t *shown = NULL;
    if (path && dl2_file_read(path, DL2_SAMPLE_WEIGHTS_MAX_BYTES, &text, NULL) == DL2_OK)
        shown = json_sprintf("%s, XXH3 %016" PRIx64, dl2_path_base(path),
                             (uint64_t)XXH3_64bits(text.data, text.size));
    dl2_bytes_free(&text);
    return shown ? shown : json_null();
}

static int parse_weights(const char *text, void *value, struct dl2_error *error)
{
    (void)error;
    *(const char **)value = text;
    return DL2_OK;
}

static int parse_shares(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_dataset_shares shares = {0};
    const char *at = text;
    for (char *end; shares.count < DL2_DATASETS_MAX; at = end + 1) {
        const double share = shares.of[shares.count++] = strtod(at, &end);
        if (end == at || !(share > 0) || !isfinite(share) || (*end && *end != ','))
            break;
        if (!*end) {
            *(struct dl2_dataset_shares *)value = shares;
            return DL2_OK;
        }
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "'%s' is not a number above 0 for each dataset, as in 0.7,0.3", text);
}

static json_t *show_shares(const void *value)
{
    const struct dl2_dataset_shares *shares = value;
    json_t *array = shares->count ? json_array() : json_null();
    for (unsigned i = 0; i < shares->count; i++)
        json_array_append_new(array, json_real(shares->of[i]));
    return array;
}

_Static_assert(offsetof(struct dl2_loader_config, area_max) ==
                       offsetof(struct dl2_loader_config, area_min) + sizeof(double) &&
                   offsetof(struct dl2_loader_config, aspect_max) ==
                       offsetof(struct dl2_loader_config, aspect_min) + sizeof(double),
               "ranges are parsed as two doubles");
_Static_assert(offsetof(struct dl2_loader_config, width) ==
                   offsetof(struct dl2_loader_config, height) + sizeof(unsigned),
               "an image size is parsed as two numbers");
_Static_assert(offsetof(struct dl2_loader_config, volume_depth) ==
                       offsetof(struct dl2_loader_config, height) + 2 * sizeof(unsigned) &&
                   offsetof(struct dl2_loader_config, window_max) ==
                       offsetof(struct dl2_loader_config, window_min) + sizeof(double),
               "a size is parsed as three numbers, a window as two");

/* ---- Tables of options ---- */

enum { RUN = DL2_OPTION_FIXED | DL2_OPTION_COMPARED };

#define AT(member) offsetof(struct dl2_loader_config, member)

const struct dl2_option dl2_loader_options[] = {
    {DL2_OPTION_PARSE, "crop-area", 0, "MIN,MAX",
     "Area of a training crop, as a fraction of the image's area", AT(area_min),
     .parse = parse_area, .show = dl2_show_range, .roles = RUN | DL2_OPTION_FIT},
    {DL2_OPTION_CHOICE, "interpolation", 0, "FILTER",
     "Filter of the resize: bilinear, nearest, box, bicubic or lanczos; all but nearest are "
     "antialiased",
     AT(interpolation), .words = dl2_interpolation_words, .roles = RUN},
    {DL2_OPTION_PARSE, "augment", 0, "NAME,...",
     "Augment training images after the crop and the flip by one or more operations of `dl2-train "
     "--list augmentations`, in this order; settings follow a name after colons, for example "
     "randaugment:n=2:m=9,erase:p=0.25. NAME@FILE is an operation of a shared object of your own, "
     "for example grain@./libgrain.so:strength=20",
     AT(augment), .parse = parse_augment, .show = dl2_show_augment, .unset = "none",
     .roles = RUN | DL2_OPTION_ALONE | DL2_OPTION_FIT,
     .also = "aa,auto-augment,transform,transforms"},
    {DL2_OPTION_UINT, "frames", 0, "N",
     "Frames to load of each clip, for datasets of clips; the last is repeated in clips that are "
     "too short",
     AT(frames), .min = 1, .max = DL2_MAX_FRAMES,
     .unset = "of dl2-train: the architecture's, see there; else the dataset holds images",
     .roles = RUN},
    {DL2_OPTION_UINT, "frame-step", 0, "N", "From one frame of a clip to the next", AT(frame_step),
     .min = 1, .max = 65536, .unset = "1", .roles = RUN},
    {DL2_OPTION_CHOICE, "frame-sampling", 0, "WHICH",
     "Which frames of a clip: random: from a random one on; center: those in the middle; uniform: "
     "the middles of as many equal parts of the clip; auto: random in training, else center",
     AT(frame_sampling), .words = frame_sampling_words, .roles = RUN},
    {DL2_OPTION_CHOICE, "batching", 0, "MODE",
     "Which images make a batch: strict: those that are next in the epoch's order, the same in "
     "every run; completion: those that are ready first, so that slow images join a later batch",
     AT(batching), .words = dl2_batching_words, .roles = DL2_OPTION_NOTED | DL2_OPTION_COMPARED},
    {DL2_OPTION_UINT, "depth", 0, "BATCHES", "Number of batches held in memory", AT(depth),
     .min = 2, .max = 1024, .also = "prefetch,prefetch-factor"},
    {DL2_OPTION_UINT, "shuffle-chunk", 0, "N",
     "Shuffle runs of N neighbors, for disks that seek slowly", AT(shuffle_chunk), .min = 1,
     .max = 4294967295.0, .unset = "shuffle single images", .roles = RUN},
    {DL2_OPTION_UINT, "shuffle-window", 0, "N",
     "With --shuffle-chunk: number of runs whose images are mixed with each other",
     AT(shuffle_window), .min = 1, .max = 4294967295.0, .unset = "1", .roles = RUN},
    {DL2_OPTION_SWITCH, "on-bad", 0, "ACTION",
     "What to do with an image that cannot be read: skip: name it and load the next good one in "
     "its place (in validation, zeros that are not counted); stop: end with the error",
     AT(stop_on_bad), .words = on_bad_words},
    {DL2_OPTION_REAL, "max-bad", 0, "SHARE",
     "Share of a dataset's images that may be unreadable: once there are more, the run ends with "
     "an error (fewer than 100 images count as 100); 1: never",
     AT(max_bad), .min = 0, .max = 1},
    {DL2_OPTION_CHOICE, "io", 0, "ENGINE",
     "How files are read: direct: by each worker thread when it needs them; threads or uring: "
     "ahead of the workers; auto: the faster of them",
     AT(fetch.io), .words = dl2_io_words},
    {DL2_OPTION_SIZE, "cache", 0, "SIZE",
     "Keep up to this size of encoded images in memory, for example 512M or 2G",
     AT(fetch.cache_bytes), .unset = "none"},
    {DL2_OPTION_SIZE, "cache-decoded", 0, "SIZE",
     "Keep up to this size of decoded images in memory", AT(decoded_cache_bytes), .unset = "none",
     .roles = DL2_OPTION_COMPARED},
    {DL2_OPTION_END},
};

const struct dl2_option dl2_sampling_options[] = {
    {DL2_OPTION_PARSE, "sample-weights", 0, "FILE",
     "Draw training images with replacement, each with a probability in proportion to its weight; "
     "FILE has a line for each: the image's path from DIR without extension, a blank, and a number "
     "of at least 0",
     AT(weights_file), .parse = parse_weights, .show = show_weights, .unset = "none", .roles = RUN},
    {DL2_OPTION_FLAG, "balanced", 0, NULL,
     "As --sample-weights, with weights that make all classes equally frequent", AT(balanced),
     .roles = RUN},
    {DL2_OPTION_UINT, "repeats", 0, "N",
     "Load each training image N times an epoch, with other crops and augmentation each time; its "
     "copies follow one another, or are on different ranks",
     AT(repeats), .min = 1, .max = 1000000, .unset = "1", .roles = RUN},
    {DL2_OPTION_UINT, "num-samples", 0, "IMAGES",
     "Number of training images in an epoch, of all ranks; without --sample-weights and --balanced "
     "they "
     "are the first in the epoch's order",
     AT(draws), .min = 1, .max = 4294967295.0, .unset = "all images, times --repeats",
     .roles = RUN},
    {DL2_OPTION_PARSE, "shares", 0, "N,N,...",
     "Share of each of several datasets, in their order, in the images of an epoch, such as "
     "0.7,0.3: an epoch has as many images as all have together, or --num-samples; images of a "
     "dataset that is too small for its share come again",
     AT(shares), .parse = parse_shares, .show = show_shares, .unset = "every image once",
     .roles = RUN, .also = "proportions,probabilities,probs"},
    {DL2_OPTION_END},
};

static int parse_window(const char *text, void *value, struct dl2_error *error)
{
    double *window = value;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &window[0], &window[1], &rest) == 2 && window[0] < window[1] &&
        isfinite(window[0]) && isfinite(window[1]))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not MIN,MAX with MIN < MAX", text);
}

static json_t *show_window(const void *value)
{
    const double *window = value;
    return window[0] < window[1] ? dl2_show_range(value) : json_null();
}

const struct dl2_option dl2_volume_options[] = {
    {DL2_OPTION_CHOICE, "normalization", 0, "HOW",
     "How the values of volumes are normalized: zscore: each channel of a patch to the mean 0 and "
     "the deviation 1; window: --window to 0 to 1; none",
     AT(normalization), .words = normalization_words, .roles = RUN},
    {DL2_OPTION_PARSE, "window", 0, "MIN,MAX",
     "With --normalization window: the values that become 0 and 1; others become the nearer of "
     "these",
     AT(window_min), .parse = parse_window, .show = show_window, .unset = "none", .roles = RUN},
    {DL2_OPTION_REAL, "oversample-foreground", 0, "SHARE",
     "With --mask, in training: share of the patches of volumes that are drawn to show a voxel "
     "whose label is above 0",
     AT(foreground), .min = 0, .max = 1, .roles = RUN},
    {DL2_OPTION_CHOICE, "foreground-rule", 0, "RULE",
     "What patches of --oversample-foreground show: voxel: a random one; component: as in MLPerf, "
     "a random connected component of a random class, whole or, where it is longer than the patch, "
     "nothing beyond it",
     AT(foreground_rule), .words = foreground_rule_words, .roles = RUN},
    {DL2_OPTION_SIZE, "cache-volumes", 0, "SIZE",
     "Keep up to this size of decompressed .nii.gz volumes and labels in memory; others are "
     "decompressed for each patch; 0: keep none",
     AT(volume_cache_bytes)},
    {DL2_OPTION_END},
};

const char *dl2_sampling_given(const struct dl2_program *program,
                               const struct dl2_common_options *common)
{
    for (const struct dl2_option *option = dl2_sampling_options; option->type != DL2_OPTION_END;
         option++)
        if (dl2_option_given(program, common, option->name))
            return option->name;
    return NULL;
}

#undef AT
#define AT(member) offsetof(struct dl2_decode_choice, member)

const struct dl2_option dl2_decode_options[] = {
    {DL2_OPTION_CHOICE, "decode", 0, "WHERE",
     "Where JPEGs are decoded: cpu; gpu: on the card, which also crops and resizes them (needs "
     "nvJPEG; untested on hardware); hybrid: on both, shared by their speed",
     AT(mode), .words = dl2_decode_mode_words, .roles = RUN},
    {DL2_OPTION_CHOICE, "gpu-input", 0, "INPUT",
     "What the card receives: plain: whole files; region: whole files, of which its JPEG decoders "
     "decode the crop; spliced: small JPEGs made of the restart intervals under the crop",
     AT(input), .words = dl2_decode_input_words, .roles = RUN},
    {DL2_OPTION_CHOICE, "gpu-engine", 0, "ENGINE",
     "What decodes on the card: engines: its JPEG decoders; cores: its cores; auto: engines for "
     "the images that they support, cores for the others",
     AT(engine), .words = dl2_decode_engine_words, .roles = RUN},
    {DL2_OPTION_END},
};

/* ---- Checks ---- */

static const struct dl2_option *option_of(const struct dl2_loader_user *user,
                                          const struct dl2_loader_setting *setting, bool negates)
{
    return dl2_option_of(user->options, user->values, (const char *)user->config + setting->offset,
                         negates);
}

static bool is_given(const void *context, const struct dl2_loader_setting *setting)
{
    const struct dl2_loader_user *user = context;
    for (int negates = 0; negates < 2; negates++) {
        const struct dl2_option *option = option_of(user, setting, negates);
        if (option && dl2_option_given(user->program, user->common, option->name))
            return true;
    }
    return false;
}

static void translate(const void *context, const struct dl2_loader_setting *setting, bool cleared,
                      char text[64])
{
    const struct dl2_option *option = option_of(context, setting, cleared);
    if (!option) /* only the other way is an option */
        option = option_of(context, setting, !cleared);
    if (option)
        snprintf(text, 64, "--%s", option->name);
    else if (strcmp(setting->name, "decoder") == 0)
        snprintf(text, 64, "--decode gpu or hybrid");
    else /* of dl2-train, which has no mode but that of evaluate */
        snprintf(text, 64, "%s", strcmp(setting->name, "train") ? setting->name : "training");
}

int dl2_loader_options_check(const struct dl2_loader_user *user)
{
    const struct dl2_loader_source source = {
        .modes = user->modes,
        .decodes_on_card = user->decodes_on_card,
        .given = is_given,
        .translate = translate,
        .context = user,
    };
    struct dl2_loader_config known = *user->config;
    struct dl2_loader_fault fault;
    struct dl2_error error = DL2_ERROR_INIT;
    if (!known.channels)
        known.channels = 3;
    if (dl2_loader_check(&known, &source, &fault) == DL2_OK)
        return 0;
    dl2_loader_explain(&fault, &source, &error);
    return dl2_program_usage_error(user->program, "%s", error.message);
}
