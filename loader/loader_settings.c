/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/loader_settings.h"

#include "loader/loader_options.h"
#include "pixels/resize.h"

#include <stdio.h>
#include <string.h>

#define MAX_IMAGE_SIZE 65536

static const char *const layouts[] = {[DL2_NHWC] = "NHWC", [DL2_NCHW] = "NCHW", NULL};

enum {
    TRAINING = DL2_SETTING_TRAINING,
    VALIDATION = DL2_SETTING_VALIDATION,
    FLOATS = DL2_SETTING_FLOATS,
    AWARE = DL2_SETTING_AWARE,
    AHEAD = DL2_SETTING_AHEAD,
    DECODER = DL2_SETTING_DECODER,
    PROCESSORS = DL2_SETTING_PROCESSORS,
};

#define ROW(name, kind, member, ...)                                                               \
    {                                                                                              \
        name, DL2_SETTING_##kind, offsetof(struct dl2_loader_config, member), __VA_ARGS__          \
    }

/* In the order of dl2.Loader's signature. */
static const struct dl2_loader_setting settings[] = {
    ROW("batch", UNSIGNED, batch, 0),
    ROW("image_size", SIZE, height, 0, .pixels = true),
    ROW("train", BOOL, train, 0),
    ROW("seed", UINT64, seed, 0),
    ROW("workers", UNSIGNED, workers, 0),
    ROW("dtype", CHOICE, dtype, PROCESSORS, dl2_dtype_words, .pixels = true),
    ROW("layout", CHOICE, layout, PROCESSORS, layouts, .pixels = true),
    ROW("mean", CHANNELS, mean, FLOATS, .pixels = true),
    ROW("std", CHANNELS, std, FLOATS, .pixels = true),
    ROW("channels", UNSIGNED, channels, 0, .pixels = true),
    ROW("resize", UNSIGNED, resize, VALIDATION, .pixels = true),
    ROW("val_crop", CHOICE, val_crop, VALIDATION, dl2_val_crop_words, .pixels = true),
    ROW("drop_last", BOOL, drop_last, 0),
    ROW("area", RANGE, area_min, TRAINING, .pixels = true),
    ROW("aspect", RANGE, aspect_min, TRAINING, .pixels = true),
    ROW("flip", BOOL, flip, TRAINING, .pixels = true),
    ROW("interpolation", CHOICE, interpolation, PROCESSORS, dl2_interpolation_words,
        .pixels = true),
    ROW("augment", TEXT, augment, TRAINING | PROCESSORS, .pixels = true),
    ROW("targets", NAMES, targets, 0),
    ROW("mask", TEXT, mask, PROCESSORS),
    ROW("mask_fill", UNSIGNED, mask_fill, 0, .needs = "mask"),
    ROW("depth", UNSIGNED, depth, 0),
    ROW("max_pixels", UINT64, max_pixels, 0),
    ROW("external_timeout", NUMBER, external.timeout, 0),
    ROW("stop_on_bad", BOOL, stop_on_bad, 0),
    ROW("max_bad", NUMBER, max_bad, 0),
    ROW("rank", UNSIGNED, rank, 0),
    ROW("world", UNSIGNED, world, 0),
    ROW("shuffle_chunk", UNSIGNED, shuffle_chunk, TRAINING),
    ROW("shuffle_window", UNSIGNED, shuffle_window, TRAINING, .needs = "shuffle_chunk"),
    ROW("weights", POINTER, weights, TRAINING),
    ROW("weights_file", POINTER, weights_file, TRAINING),
    ROW("balanced", BOOL, balanced, TRAINING),
    ROW("repeats", UNSIGNED, repeats, TRAINING, .idle = 1),
    ROW("draws", UNSIGNED, draws, TRAINING),
    ROW("batching", CHOICE, batching, 0, dl2_batching_words),
    ROW("slow_percentile", NUMBER, slow_percentile, AWARE),
    ROW("side_workers", UNSIGNED, side_workers, AWARE),
    ROW("io", CHOICE, fetch.io, 0, dl2_io_words),
    ROW("ahead", UNSIGNED, fetch.ahead, AHEAD),
    ROW("ahead_bytes", UINT64, fetch.ahead_bytes, AHEAD),
    ROW("cache_bytes", UINT64, fetch.cache_bytes, 0),
    ROW("drop_behind", BOOL, fetch.drop_behind, 0),
    ROW("decoded_cache_bytes", UINT64, decoded_cache_bytes, PROCESSORS),
    ROW("decoded_cache", POINTER, decoded_cache, PROCESSORS),
    ROW("operations", POINTER, operations, PROCESSORS),
    ROW("decoder", POINTER, decoder, 0),
    ROW("decoder_shares", BOOL, decoder_shares, DECODER),
    ROW("decoder_splices", BOOL, decoder_splices, DECODER),
    {.name = NULL},
};

const struct dl2_loader_setting *dl2_loader_settings(void)
{
    return settings;
}

const struct dl2_loader_setting *dl2_loader_setting(const char *name)
{
    const struct dl2_loader_setting *setting = settings;
    while (setting->name && strcmp(setting->name, name) != 0)
        setting++;
    return setting->name ? setting : NULL;
}

/* ---- Rules ---- */

/* In the order of the bits of a scope. */
static const struct {
    unsigned scope;
    const char *rule;
} scope_rules[] = {
    {TRAINING, "needs {train}: validation loads each image once, in order, and changes nothing at "
               "random"},
    {VALIDATION, "needs {!train}: training crops images at random"},
    {FLOATS, "is for types of floats, not for uint8: choose another {dtype}"},
    {AWARE, "needs {batching} aware, which is sample-aware batching"},
    {AHEAD, "has no effect with {io} direct, which reads nothing ahead"},
    {DECODER, "needs {decoder}"},
    {PROCESSORS, "must keep its default with {decoder}: images from a card are square, uint8 and "
                 "NHWC, resized by the bilinear filter, without augmentation, operations and "
                 "masks, and not cached"},
};

#define TWO_WAYS   ": they are two ways to weigh images"
#define ONE_BY_ONE ", which draws each image by itself"

/* Of each pair, `name` is refused if `other` is set. */
static const struct {
    const char *name, *other, *rule;
} exclusions[] = {
    {"balanced", "weights", "excludes {weights}" TWO_WAYS},
    {"balanced", "weights_file", "excludes {weights_file}" TWO_WAYS},
    {"weights", "weights_file", "excludes {weights_file}" TWO_WAYS},
    {"repeats", "weights", "excludes {weights}" ONE_BY_ONE},
    {"repeats", "weights_file", "excludes {weights_file}" ONE_BY_ONE},
    {"repeats", "balanced", "excludes {balanced}" ONE_BY_ONE},
    {"shuffle_chunk", "weights", "excludes {weights}" ONE_BY_ONE},
    {"shuffle_chunk", "weights_file", "excludes {weights_file}" ONE_BY_ONE},
    {"shuffle_chunk", "balanced", "excludes {balanced}" ONE_BY_ONE},
    {"resize", "val_crop", "has no effect with {val_crop} squash, which resizes to {image_size}"},
    {"decoded_cache_bytes", "decoded_cache", "excludes {decoded_cache}, which has a limit already"},
};

static int fault_of(struct dl2_loader_fault *fault, const struct dl2_loader_setting *setting,
                    const char *rule)
{
    *fault = (struct dl2_loader_fault){setting, rule};
    return DL2_ERR_ARGUMENT;
}

static int check_values(const struct dl2_loader_config *config, bool on_card,
                        struct dl2_loader_fault *fault)
{
    const struct {
        bool broken;
        const char *name, *rule;
    } rules[] = {
        {!config->batch, "batch", "must be at least 1"},
        {!config->height || config->height > MAX_IMAGE_SIZE || config->width > MAX_IMAGE_SIZE,
         "image_size", "must be 1 to 65536"},
        {on_card && dl2_loader_width(config) != config->height, "image_size",
         "must be square with {decoder}"},
        {config->dtype > DL2_FLOAT16, "dtype", "is not a value of its enum"},
        {config->layout > DL2_NCHW, "layout", "is not a value of its enum"},
        {config->channels != 1 && config->channels != 3, "channels", "must be 1 or 3"},
        {config->resize && config->resize < dl2_loader_shorter_side(config), "resize",
         "must be at least {image_size}, the shorter side of it: the crop is cut from the resized "
         "image"},
        {config->val_crop > DL2_VAL_SQUASH, "val_crop", "is not a value of its enum"},
        {!(config->area_min > 0 && config->area_min <= config->area_max && config->area_max <= 1),
         "area", "must be above 0, at most 1, and first the smaller number"},
        {!(config->aspect_min > 0 && config->aspect_min <= config->aspect_max &&
           config->aspect_max < 1e6),
         "aspect", "must be above 0, below 1e6, and first the smaller number"},
        {config->interpolation > DL2_LANCZOS, "interpolation", "is not a value of its enum"},
        {config->mask_fill > 255, "mask_fill", "must be 0 to 255"},
        {config->depth < 2, "depth", "must be at least 2"},
        {!(config->max_bad >= 0 && config->max_bad <= 1), "max_bad", "must be 0 to 1"},
        {config->batching > DL2_BATCHING_AWARE, "batching", "is not a value of its enum"},
        {!(config->slow_percentile >= 0 && config->slow_percentile < 100), "slow_percentile",
         "must be at least 0 and below 100"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken)
            return fault_of(fault, dl2_loader_setting(rules[i].name), rules[i].rule);
    return DL2_OK;
}

bool dl2_loader_is_set(const struct dl2_loader_config *config,
                       const struct dl2_loader_setting *setting)
{
    static const struct dl2_loader_config defaults = DL2_LOADER_DEFAULTS;
    static const char zeros[sizeof(double)];
    static const size_t sizes[] = {
        [DL2_SETTING_UNSIGNED] = sizeof(unsigned), [DL2_SETTING_UINT64] = sizeof(uint64_t),
        [DL2_SETTING_BOOL] = sizeof(bool),         [DL2_SETTING_NUMBER] = sizeof(double),
        [DL2_SETTING_CHOICE] = sizeof(unsigned),   [DL2_SETTING_TEXT] = sizeof(char *),
        [DL2_SETTING_NAMES] = sizeof(char *),      [DL2_SETTING_POINTER] = sizeof(void *),
    };
    const void *value = (const char *)config + setting->offset;
    const void *usual = (const char *)&defaults + setting->offset;
    if (setting->kind == DL2_SETTING_CHANNELS) {
        const float *numbers = value, *others = usual;
        for (unsigned c = 0; c < config->channels; c++)
            if (numbers[c] != 0 && numbers[c] != others[c])
                return true;
        return false;
    }
    if (setting->kind == DL2_SETTING_RANGE || setting->kind == DL2_SETTING_SIZE)
        return false;
    const size_t size = sizes[setting->kind];
    return memcmp(usual, zeros, size) == 0 && memcmp(value, zeros, size) != 0 &&
           !(setting->idle && *(const unsigned *)value == setting->idle);
}

/* Is the setting of that name set? */
static bool is_set(const struct dl2_loader_config *config, const char *name)
{
    return dl2_loader_is_set(config, dl2_loader_setting(name));
}

int dl2_loader_check(const struct dl2_loader_config *config, const struct dl2_loader_source *source,
                     struct dl2_loader_fault *fault)
{
    const bool on_card = config->decoder || source->decodes_on_card;
    const unsigned scope = (source->modes   ? source->modes
                            : config->train ? TRAINING
                                            : VALIDATION) |
                           (config->dtype != DL2_UINT8 ? FLOATS : 0) |
                           (config->batching == DL2_BATCHING_AWARE ? AWARE : 0) |
                           (config->fetch.io != DL2_IO_DIRECT ? AHEAD : 0) |
                           (on_card ? DECODER : PROCESSORS);
    DL2_TRY(check_values(config, on_card, fault));
    for (const struct dl2_loader_setting *setting = settings; setting->name; setting++) {
        const bool has_value = dl2_loader_is_set(config, setting);
        const bool given = source->given ? source->given(source->context, setting) : has_value;
        const unsigned missing = setting->scope & ~scope;
        for (size_t i = 0; i < sizeof scope_rules / sizeof *scope_rules; i++)
            if ((missing & scope_rules[i].scope) &&
                (scope_rules[i].scope == PROCESSORS ? has_value : given))
                return fault_of(fault, setting, scope_rules[i].rule);
        if (given && setting->needs && !is_set(config, setting->needs))
            return fault_of(fault, setting, "needs {}");
        for (size_t i = 0; i < sizeof exclusions / sizeof *exclusions; i++)
            if (given && strcmp(exclusions[i].name, setting->name) == 0 &&
                is_set(config, exclusions[i].other))
                return fault_of(fault, setting, exclusions[i].rule);
    }
    return DL2_OK;
}

/* ---- Messages ---- */

static void translate(const struct dl2_loader_source *source,
                      const struct dl2_loader_setting *setting, bool cleared, char text[64])
{
    if (source->translate)
        source->translate(source->context, setting, cleared, text);
    else
        snprintf(text, 64, "%s%s", setting->name, cleared ? " = false" : "");
}

int dl2_loader_explain(const struct dl2_loader_fault *fault, const struct dl2_loader_source *source,
                       struct dl2_error *error)
{
    char text[1024], name[64], word[64];
    translate(source, fault->setting, false, word);
    size_t used = (size_t)snprintf(text, sizeof text, "%s ", word);
    for (const char *rule = fault->rule; *rule && used < sizeof text;) {
        size_t length = strcspn(rule, "{");
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)length, rule);
        rule += length;
        if (!*rule || used >= sizeof text)
            continue;
        length = strcspn(rule, "}");
        const bool cleared = rule[1] == '!';
        snprintf(name, sizeof name, "%.*s", (int)length - 1 - cleared, rule + 1 + cleared);
        translate(source, dl2_loader_setting(*name ? name : fault->setting->needs), cleared, word);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", word);
        rule += length + 1;
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s", text);
}
