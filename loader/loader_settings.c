/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/loader_settings.h"

#include "loader/loader_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct dl2_loader_setting *dl2_loader_settings(void)
{
    return dl2_loader_setting_rows;
}

const struct dl2_loader_setting *dl2_loader_setting(const char *name)
{
    const struct dl2_loader_setting *setting = dl2_loader_settings();
    while (setting->name && strcmp(setting->name, name) != 0)
        setting++;
    return setting->name ? setting : NULL;
}

static size_t size_of(const struct dl2_loader_setting *setting)
{
    switch (setting->kind) {
    case DL2_SETTING_BOOL:
        return sizeof(bool);
    case DL2_SETTING_SIZE:
        return 3 * sizeof(unsigned);
    case DL2_SETTING_UINT64:
        return sizeof(uint64_t);
    case DL2_SETTING_NUMBER:
        return sizeof(double);
    case DL2_SETTING_RANGE:
        return 2 * sizeof(double);
    case DL2_SETTING_CHANNELS:
        return sizeof((struct dl2_loader_config *)NULL)->mean;
    case DL2_SETTING_SHARES:
        return sizeof(struct dl2_dataset_shares);
    case DL2_SETTING_TEXT:
    case DL2_SETTING_NAMES:
    case DL2_SETTING_POINTER:
        return sizeof(void *);
    default:
        return sizeof(unsigned);
    }
}

static const struct dl2_loader_config defaults = DL2_LOADER_DEFAULTS;

/* ---- Rules ---- */

static const struct {
    unsigned scope;
    const char *rule;
} scope_rules[] = {
    {DL2_SETTING_TRAINING,
     "needs {train}: validation loads each image once, in order, and changes nothing at "
     "random"},
    {DL2_SETTING_VALIDATION, "needs {!train}: training crops images at random"},
    {DL2_SETTING_FLOATS, "is for types of floats, not for uint8: choose another {dtype}"},
    {DL2_SETTING_AHEAD, "has no effect with {io} direct, which reads nothing ahead"},
    {DL2_SETTING_DECODER, "needs {decoder}"},
    {DL2_SETTING_PROCESSORS,
     "must keep its default with {decoder}: images from a card are square, uint8 and "
     "NHWC, resized by the bilinear filter, without augmentation, operations, clips, "
     "masks and boxes, and not cached"},
    {DL2_SETTING_IMAGES,
     "has no effect on volumes, which {image_size} of depth, height and width asks for"},
    {DL2_SETTING_VOLUMES, "is for volumes: {image_size} of depth, height and width asks for them"},
};

static int fault_of(struct dl2_loader_fault *fault, const struct dl2_loader_setting *setting,
                    const char *rule)
{
    *fault = (struct dl2_loader_fault){setting, rule};
    return DL2_ERR_ARGUMENT;
}

/* One number of a value. A size, a range and channels have defaults, which are values, too. */
static double number_of(const struct dl2_loader_config *config,
                        const struct dl2_loader_setting *setting)
{
    const void *value = (const char *)config + setting->offset;
    switch (setting->kind) {
    case DL2_SETTING_SIZE:
        return config->height && config->width > config->height ? config->width : config->height;
    case DL2_SETTING_BOOL:
        return *(const bool *)value;
    case DL2_SETTING_UINT64:
        return (double)*(const uint64_t *)value;
    case DL2_SETTING_NUMBER:
    case DL2_SETTING_RANGE:
        return *(const double *)value;
    case DL2_SETTING_CHANNELS:
        return *(const float *)value;
    case DL2_SETTING_TEXT:
    case DL2_SETTING_NAMES:
    case DL2_SETTING_POINTER:
        return *(const void *const *)value != NULL;
    default:
        return *(const unsigned *)value;
    }
}

bool dl2_loader_is_set(const struct dl2_loader_config *config,
                       const struct dl2_loader_setting *setting)
{
    const float *channels = (const float *)((const char *)config + setting->offset);
    const double usual = number_of(&defaults, setting), number = number_of(config, setting);
    if (setting->kind != DL2_SETTING_CHANNELS)
        return usual == 0 && number != 0;
    for (unsigned c = 0; c < config->channels && c < 3; c++)
        if (channels[c] != 0 && channels[c] != (float)usual)
            return true;
    return false;
}

void dl2_loader_clear_idle(struct dl2_loader_config *config)
{
    const unsigned other = config->train ? DL2_SETTING_VALIDATION : DL2_SETTING_TRAINING;
    for (const struct dl2_loader_setting *setting = dl2_loader_settings(); setting->name; setting++)
        if (setting->scope & other)
            memcpy((char *)config + setting->offset, (const char *)&defaults + setting->offset,
                   size_of(setting));
}

/* What a value alone breaks; NULL: nothing. */
static const char *broken_by_value(const struct dl2_loader_config *config,
                                   const struct dl2_loader_setting *setting)
{
    const double number = number_of(config, setting);
    unsigned words = 0;
    while (setting->words && setting->words[words])
        words++;
    if (words && number >= words)
        return "is not a value of its enum";
    if (setting->max != 0 && !(number >= setting->min && number <= setting->max))
        return isinf(setting->max) ? "must be at least {min}" : "must be {min} to {max}";
    return NULL;
}

static bool was_given(const struct dl2_loader_config *config,
                      const struct dl2_loader_source *source,
                      const struct dl2_loader_setting *setting)
{
    return source->given ? source->given(source->context, setting)
                         : dl2_loader_is_set(config, setting);
}

#define DRAWN_SINGLY "{sample_weights} and {balanced}, which draw each image by itself"

static bool are_above_zero(const struct dl2_dataset_shares *shares)
{
    bool good = true;
    for (unsigned i = 0; i < shares->count; i++)
        good &= shares->of[i] > 0 && isfinite(shares->of[i]);
    return good;
}

/* What several values break together, or two numbers of one. */
static int check_values(const struct dl2_loader_config *config,
                        const struct dl2_loader_source *source, unsigned scope,
                        struct dl2_loader_fault *fault)
{
    const bool on_card = scope & DL2_SETTING_DECODER;
    const bool weighed = config->weights || config->weights_file || config->balanced;
    const struct {
        bool broken;
        const char *name, *rule;
    } rules[] = {
        {config->balanced && (config->weights || config->weights_file), "balanced",
         "excludes {sample_weights}: they are two ways to weigh images"},
        {config->weights && config->weights_file, "sample_weights",
         "excludes weights from a file: they are two ways to weigh images"},
        {weighed && config->repeats > 1, "repeats", "excludes " DRAWN_SINGLY},
        {weighed && config->shuffle_chunk, "shuffle_chunk", "excludes " DRAWN_SINGLY},
        {!are_above_zero(&config->shares), "shares",
         "must be finite numbers above 0: leave out a dataset that is to have none"},
        {config->shares.count && weighed, "shares", "excludes " DRAWN_SINGLY},
        {config->shares.count && config->repeats > 1, "shares",
         "excludes {repeats}: a dataset of which more is asked than it has comes again by itself"},
        {config->shares.count && config->shuffle_chunk, "shares",
         "excludes {shuffle_chunk}: samples of all datasets are mixed singly"},
        {config->shuffle_window && !config->shuffle_chunk, "shuffle_window",
         "needs {shuffle_chunk}"},
        {config->mask_fill && !config->mask, "mask_fill", "needs {mask}"},
        {config->min_visibility > 0 && !config->boxes, "min_visibility", "needs {boxes}"},
        {config->instance_masks && !config->boxes, "instance_masks", "needs {boxes}"},
        {config->boxes && config->frames, "boxes", "excludes {frames}: boxes are of images"},
        {config->frame_step && !config->frames, "frame_step", "needs {frames}"},
        {config->frame_sampling && !config->frames, "frame_sampling", "needs {frames}"},
        {config->frame_step && config->frame_sampling == DL2_FRAMES_UNIFORM, "frame_step",
         "has no effect with {frame_sampling} uniform, which takes frames from all of a clip"},
        {config->val_clips && !config->frames, "val_clips", "needs {frames}"},
        {config->val_clips > 1 && config->frame_sampling == DL2_FRAMES_UNIFORM, "val_clips",
         "has no effect with {frame_sampling} uniform, which takes frames from all of a clip"},
        {config->val_clips && (uint64_t)config->val_clips * config->frames > DL2_MAX_FRAMES,
         "val_clips", "times {frames} must be at most {max}"},
        {config->frame_sampling == DL2_FRAMES_RANDOM && !(scope & DL2_SETTING_TRAINING),
         "frame_sampling", "random needs {train}: validation changes nothing at random"},
        {config->frames && config->mask, "mask", "excludes {frames}: masks are of images"},
        {config->frames && (config->decoded_cache || config->decoded_cache_bytes),
         "decoded_cache_bytes", "excludes {frames}: frames of clips are not kept decoded"},
        {config->decoded_cache && config->decoded_cache_bytes, "decoded_cache_bytes",
         "excludes {decoded_cache}, which has a limit already"},
        {config->val_crop == DL2_VAL_SQUASH &&
             was_given(config, source, dl2_loader_setting("resize")),
         "resize", "has no effect with {val_crop} squash, which resizes to {image_size}"},
        {config->normalization == DL2_NORMALIZATION_WINDOW &&
             !(config->window_min < config->window_max &&
               isfinite(config->window_max - config->window_min)),
         "window", "must be two finite numbers with {normalization} window, first the smaller one"},
        {config->normalization != DL2_NORMALIZATION_WINDOW &&
             (config->window_min != 0 || config->window_max != 0),
         "window", "needs {normalization} window"},
        {config->foreground > 0 && !config->mask, "oversample_foreground",
         "needs {mask}, which has labels"},
        {config->fetch.drop_behind &&
             was_given(config, source, dl2_loader_setting("volume_cache_bytes")),
         "volume_cache_bytes", "has no effect with {drop_behind}, which reads each epoch anew"},
        {was_given(config, source, dl2_loader_setting("foreground_rule")) &&
             !(config->foreground > 0),
         "foreground_rule", "needs {oversample_foreground}"},
        {on_card && (dl2_loader_width(config) != config->height || config->volume_depth),
         "image_size", "must be square with {decoder}"},
        {config->channels != 1 && config->channels != 3 && !config->volume_depth, "channels",
         "must be 1 or 3"},
        {config->resize && config->resize < dl2_loader_shorter_side(config), "resize",
         "must be at least {image_size}, the shorter side of it: the crop is cut from the resized "
         "image"},
        {!(config->area_min > 0 && config->area_min <= config->area_max && config->area_max <= 1),
         "area", "must be above 0, at most 1, and first the smaller number"},
        {!(config->aspect_min > 0 && config->aspect_min <= config->aspect_max &&
           config->aspect_max < 1e6),
         "aspect", "must be above 0, below 1e6, and first the smaller number"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken)
            return fault_of(fault, dl2_loader_setting(rules[i].name), rules[i].rule);
    return DL2_OK;
}

int dl2_loader_check(const struct dl2_loader_config *config, const struct dl2_loader_source *source,
                     struct dl2_loader_fault *fault)
{
    const bool on_card = config->decoder || source->decodes_on_card;
    const unsigned scope = (source->modes   ? source->modes
                            : config->train ? DL2_SETTING_TRAINING
                                            : DL2_SETTING_VALIDATION) |
                           (config->dtype != DL2_UINT8 ? DL2_SETTING_FLOATS : 0) |
                           (config->fetch.io != DL2_IO_DIRECT ? DL2_SETTING_AHEAD : 0) |
                           (on_card ? DL2_SETTING_DECODER : DL2_SETTING_PROCESSORS) |
                           (config->volume_depth ? DL2_SETTING_VOLUMES : DL2_SETTING_IMAGES);
    for (const struct dl2_loader_setting *setting = dl2_loader_settings(); setting->name;
         setting++) {
        const unsigned missing = setting->scope & ~scope;
        const bool is_set = dl2_loader_is_set(config, setting);
        const bool given = was_given(config, source, setting);
        const char *rule = broken_by_value(config, setting);
        if (rule)
            return fault_of(fault, setting, rule);
        for (size_t i = 0; i < sizeof scope_rules / sizeof *scope_rules; i++)
            if ((missing & scope_rules[i].scope) &&
                (scope_rules[i].scope == DL2_SETTING_PROCESSORS ? is_set : given))
                return fault_of(fault, setting, scope_rules[i].rule);
    }
    return check_values(config, source, scope, fault);
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
        if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
            snprintf(word, sizeof word, "%g",
                     name[1] == 'i' ? fault->setting->min : fault->setting->max);
        else
            translate(source, dl2_loader_setting(name), cleared, word);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", word);
        rule += length + 1;
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s", text);
}
