/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/augment.h"

#include "common/memory.h"
#include "common/quote.h"
#include "pixels/plugin.h"
#include "pixels/policies.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RADIAN (3.14159265358979323846 / 180)

enum { MAX_SETTINGS = 1 + DL2_OPERATION_SETTINGS };

/* Values of settings come in the order of the row; the first is the probability. */
struct operation {
    const char *name, *summary;
    struct dl2_operation_setting settings[MAX_SETTINGS];
    /* One of these; neither: of a plug-in, or on volumes alone. */
    void (*plain)(struct dl2_pixels *pixels);
    void (*apply)(const double *values, struct dl2_random *random, struct dl2_pixels *pixels);
    /* Why the values do not go together; NULL: they do. No function: all do. */
    const char *(*refuse)(const double *values);
    /* The same for volumes. NULL: not for volumes; without apply(), for volumes alone. */
    void (*apply_volume)(const double *values, struct dl2_random *random,
                         struct dl2_voxels *voxels);
    const char *(*refuse_volume)(const double *values);
    bool moves; /* pixels of images, so that masks have to follow */
};

/* ---- the operations ---- */

static double draw(struct dl2_random *random, double low, double high)
{
    return low + (high - low) * dl2_random_uniform(random);
}

static double jitter_factor(struct dl2_random *random, double strength)
{
    return draw(random, strength < 1 ? 1 - strength : 0, 1 + strength);
}

static const char *refuse_jitter(const double *values)
{
    return values[1] > 0 || values[2] > 0 || values[3] > 0 || values[4] > 0
               ? NULL
               : "has no effect without brightness, contrast, saturation or hue above 0";
}

/* torchvision's ColorJitter: the four in any order, those of strength 0 left out. */
static void apply_jitter(const double *values, struct dl2_random *random, struct dl2_pixels *pixels)
{
    enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, PARTS };
    uint32_t order[PARTS];
    double factors[PARTS];
    dl2_random_permutation(random, order, PARTS);
    for (int i = 0; i < HUE; i++)
        factors[i] = jitter_factor(random, values[1 + i]);
    factors[HUE] = draw(random, -values[1 + HUE], values[1 + HUE]);
    for (int i = 0; i < PARTS; i++) {
        const uint32_t part = order[i];
        if (!(values[1 + part] > 0))
            continue;
        if (part == BRIGHTNESS)
            dl2_pixels_brightness(pixels, (float)factors[part]);
        else if (part == CONTRAST)
            dl2_pixels_contrast(pixels, (float)factors[part]);
        else if (part == SATURATION)
            dl2_pixels_saturation(pixels, (float)factors[part]);
        else
            dl2_pixels_hue(pixels, factors[part]);
    }
}

static void apply_solarize(const double *values, struct dl2_random *random,
                           struct dl2_pixels *pixels)
{
    (void)random;
    dl2_pixels_solarize(pixels, values[1]);
}

static void apply_posterize(const double *values, struct dl2_random *random,
                            struct dl2_pixels *pixels)
{
    (void)random;
    dl2_pixels_posterize(pixels, (unsigned)values[1]);
}

static void apply_sharpness(const double *values, struct dl2_random *random,
                            struct dl2_pixels *pixels)
{
    (void)random;
    dl2_pixels_sharpness(pixels, (float)values[1]);
}

static const char *refuse_blur(const double *values)
{
    return values[1] > values[2]                     ? "has sigma-min above sigma-max"
           : values[3] > 0 && fmod(values[3], 2) < 1 ? "needs an odd kernel"
           : values[3] == 0 && 6 * values[2] > DL2_BLUR_MAX - 3
               ? "needs a kernel of its own with so large a sigma-max"
               : NULL;
}

/* Without a kernel of its own, one that reaches three standard deviations. */
static void apply_blur(const double *values, struct dl2_random *random, struct dl2_pixels *pixels)
{
    const double sigma = draw(random, values[1], values[2]);
    const unsigned side = values[3] > 0 ? (unsigned)values[3] : 2 * (unsigned)ceil(3 * sigma) + 1;
    dl2_pixels_blur(pixels, side, sigma);
}

static void apply_rotate(const double *values, struct dl2_random *random, struct dl2_pixels *pixels)
{
    const struct dl2_affine affine =
        dl2_affine_rotation(pixels, draw(random, -values[1], values[1]));
    dl2_pixels_affine(pixels, &affine, (uint8_t)values[2]);
}

static const char *refuse_no_direction(const double *values)
{
    return values[1] > 0 || values[2] > 0 ? NULL : "has no effect without x or y above 0";
}

static void apply_shear(const double *values, struct dl2_random *random, struct dl2_pixels *pixels)
{
    const double across = draw(random, -values[1], values[1]) * RADIAN;
    const double down = draw(random, -values[2], values[2]) * RADIAN;
    const struct dl2_affine affine =
        dl2_affine_shear(tan(across), tan(down), pixels->width / 2.0, pixels->height / 2.0);
    dl2_pixels_affine(pixels, &affine, (uint8_t)values[3]);
}

static void apply_translate(const double *values, struct dl2_random *random,
                            struct dl2_pixels *pixels)
{
    const double most_right = values[1] * pixels->width, most_down = values[2] * pixels->height;
    const double right = rint(draw(random, -most_right, most_right));
    const double down = rint(draw(random, -most_down, most_down));
    const struct dl2_affine affine = dl2_affine_translation(right, down);
    dl2_pixels_affine(pixels, &affine, (uint8_t)values[3]);
}

static const char *refuse_erase(const double *values)
{
    return values[1] > values[2]   ? "has area-min above area-max"
           : values[3] > values[4] ? "has aspect-min above aspect-max"
                                   : NULL;
}

/* torchvision's RandomErasing: ten tries; a rectangle is smaller than the image both ways. Its
 * aspect is the height by the width. */
static void apply_erase(const double *values, struct dl2_random *random, struct dl2_pixels *pixels)
{
    const double area = (double)pixels->width * pixels->height;
    for (int i = 0; i < 10; i++) {
        const double erased = area * draw(random, values[1], values[2]);
        const double aspect = exp(draw(random, log(values[3]), log(values[4])));
        const double height = rint(sqrt(erased * aspect)), width = rint(sqrt(erased / aspect));
        if (height >= pixels->height || width >= pixels->width)
            continue;
        const uint32_t w = (uint32_t)width, h = (uint32_t)height;
        const uint32_t y = dl2_random_below(random, pixels->height - h + 1);
        const uint32_t x = dl2_random_below(random, pixels->width - w + 1);
        dl2_pixels_erase(pixels, x, y, w, h, (uint8_t)values[5]);
        return;
    }
}

static const char *refuse_randaugment(const double *values)
{
    return values[2] < values[3] ? NULL : "has an m that is not below bins";
}

static void apply_randaugment(const double *values, struct dl2_random *random,
                              struct dl2_pixels *pixels)
{
    dl2_policy_randaugment(pixels, random, (unsigned)values[1], (unsigned)values[2],
                           (unsigned)values[3], (uint8_t)values[4]);
}

static void apply_trivialaugment(const double *values, struct dl2_random *random,
                                 struct dl2_pixels *pixels)
{
    dl2_policy_trivialaugment(pixels, random, (unsigned)values[1], (uint8_t)values[2]);
}

static void apply_autoaugment(const double *values, struct dl2_random *random,
                              struct dl2_pixels *pixels)
{
    dl2_policy_autoaugment(pixels, random, (uint8_t)values[1]);
}

/* ---- operations on volumes ---- */

static void apply_flips(const double *values, struct dl2_random *random, struct dl2_voxels *voxels)
{
    for (unsigned axis = 0; axis < 3; axis++)
        if (dl2_random_uniform(random) < values[1 + axis])
            dl2_voxels_flip(voxels, axis);
}

static const char *refuse_no_axis(const double *values)
{
    return values[1] > 0 || values[2] > 0 || values[3] > 0
               ? NULL
               : "has no effect without z, y or x above 0";
}

static void apply_noise(const double *values, struct dl2_random *random, struct dl2_voxels *voxels)
{
    dl2_voxels_noise(voxels, random, draw(random, 0, values[1]));
}

static const char *refuse_range(const double *values)
{
    return values[1] > values[2] ? "has min above max" : NULL;
}

static void apply_brightness(const double *values, struct dl2_random *random,
                             struct dl2_voxels *voxels)
{
    dl2_voxels_brightness(voxels, draw(random, values[1], values[2]));
}

static void apply_gamma(const double *values, struct dl2_random *random, struct dl2_voxels *voxels)
{
    dl2_voxels_gamma(voxels, draw(random, values[1], values[2]));
}

static void apply_volume_blur(const double *values, struct dl2_random *random,
                              struct dl2_voxels *voxels)
{
    dl2_voxels_blur(voxels, draw(random, values[1], values[2]));
}

static const char *refuse_volume_blur(const double *values)
{
    return values[3] > 0                     ? "takes no kernel with volumes"
           : values[2] > DL2_VOXELS_BLUR_MAX ? "takes a sigma-max up to 10 with volumes"
                                             : NULL;
}

static void apply_elastic(const double *values, struct dl2_random *random,
                          struct dl2_voxels *voxels)
{
    struct dl2_elastic elastic;
    dl2_elastic_draw(&elastic, random, (unsigned)values[2], values[1]);
    dl2_voxels_elastic(voxels, &elastic);
}

/* ---- the table ---- */

/* clang-format off */
#define P(standard) {"p", 0, 1, standard, false}
#define FILL        {"fill", 0, 255, 0, true}

static const struct operation operations[] = {
    {"randaugment", "RandAugment: n operations of strength m of bins",
     {P(1), {"n", 1, 14, 2, true}, {"m", 0, 255, 9, true}, {"bins", 2, 256, 31, true}, FILL},
     .apply = apply_randaugment, .refuse = refuse_randaugment, .moves = true},
    {"trivialaugment", "TrivialAugment (wide): one operation of any strength",
     {P(1), {"bins", 2, 256, 31, true}, FILL}, .apply = apply_trivialaugment, .moves = true},
    {"autoaugment", "AutoAugment's ImageNet policy: one of 25 pairs of operations",
     {P(1), FILL}, .apply = apply_autoaugment, .moves = true},
    {"jitter", "Brightness, contrast, saturation and hue, each changed by up to its value",
     {P(1), {"brightness", 0, 10, 0, false}, {"contrast", 0, 10, 0, false},
      {"saturation", 0, 10, 0, false}, {"hue", 0, 0.5, 0, false}},
     .apply = apply_jitter, .refuse = refuse_jitter},
    {"grayscale", "Three equal channels", {P(0.1)}, .plain = dl2_pixels_grayscale},
    {"invert", "The negative", {P(0.5)}, .plain = dl2_pixels_invert},
    {"solarize", "Values from threshold on inverted", {P(0.5), {"threshold", 0, 255, 128, false}},
     .apply = apply_solarize},
    {"posterize", "Fewer bits a value", {P(0.5), {"bits", 1, 8, 4, true}},
     .apply = apply_posterize},
    {"autocontrast", "Each channel stretched to 0 to 255", {P(0.5)},
     .plain = dl2_pixels_autocontrast},
    {"equalize", "Each channel's histogram made flat", {P(0.5)}, .plain = dl2_pixels_equalize},
    {"sharpness", "Sharper (factor above 1) or softer",
     {P(0.5), {"factor", 0, 10, 2, false}}, .apply = apply_sharpness},
    {"blur", "Gaussian blur; kernel: its side in pixels, 0: as needed",
     {P(0.5), {"sigma-min", 0.05, 40, 0.1, false}, {"sigma-max", 0.05, 40, 2, false},
      {"kernel", 0, DL2_BLUR_MAX, 0, true}},
     .apply = apply_blur, .refuse = refuse_blur, .apply_volume = apply_volume_blur,
     .refuse_volume = refuse_volume_blur},
    {"vflip", "Upside down", {P(0.5)}, .plain = dl2_pixels_flip_down, .moves = true},
    {"rotate", "Turned by up to so many degrees either way",
     {P(1), {"degrees", 0, 180, 30, false}, FILL}, .apply = apply_rotate, .moves = true},
    {"shear", "Sheared by up to so many degrees either way",
     {P(1), {"x", 0, 80, 15, false}, {"y", 0, 80, 0, false}, FILL}, .apply = apply_shear,
     .refuse = refuse_no_direction, .moves = true},
    {"translate", "Moved by up to so large a part of the width and the height",
     {P(1), {"x", 0, 1, 0.1, false}, {"y", 0, 1, 0.1, false}, FILL}, .apply = apply_translate,
     .refuse = refuse_no_direction, .moves = true},
    {"erase", "A rectangle set to a gray level (random erasing)",
     {P(0.5), {"area-min", 0.0001, 1, 0.02, false}, {"area-max", 0.0001, 1, 0.33, false},
      {"aspect-min", 0.01, 100, 0.3, false}, {"aspect-max", 0.01, 100, 3.3, false}, FILL},
     .apply = apply_erase, .refuse = refuse_erase},
    {"flips", "Volumes: each axis reversed, with a probability of its own",
     {P(1), {"z", 0, 1, 0.5, false}, {"y", 0, 1, 0.5, false}, {"x", 0, 1, 0.5, false}},
     .refuse = refuse_no_axis, .apply_volume = apply_flips},
    {"noise", "Volumes: normal noise of a deviation up to std",
     {P(0.5), {"std", 0, 1e6, 0.1, false}}, .apply_volume = apply_noise},
    {"brightness", "Volumes: values multiplied by min to max",
     {P(0.5), {"min", 0, 100, 0.75, false}, {"max", 0, 100, 1.25, false}},
     .refuse = refuse_range, .apply_volume = apply_brightness},
    {"gamma", "Volumes: each channel's values, from least to greatest, to a power of min to max",
     {P(0.5), {"min", 0.01, 100, 0.7, false}, {"max", 0.01, 100, 1.5, false}},
     .refuse = refuse_range, .apply_volume = apply_gamma},
    {"elastic", "Volumes: displaced by up to so many voxels at points on each axis, by B-splines",
     {P(0.25), {"voxels", 0, 1000, 7.5, false}, {"points", 2, DL2_ELASTIC_POINTS, 7, true}},
     .apply_volume = apply_elastic},
};
/* clang-format on */
enum { OPERATIONS = sizeof operations / sizeof *operations };

static size_t settings_of(const struct operation *operation)
{
    size_t count = 0;
    while (count < MAX_SETTINGS && operation->settings[count].name)
        count++;
    return count;
}

/* ---- texts ---- */

struct step {
    const struct operation *operation; /* a row of the table, or `own` */
    struct operation own;              /* the row of a plug-in's operation */
    struct dl2_plugin *plugin;         /* NULL: of the table */
    double values[MAX_SETTINGS];
};

struct dl2_augmentation {
    struct step *steps;
    size_t count;
    char *text;
};

static void print_settings(const struct operation *operation, const double *values, FILE *out)
{
    for (size_t i = 0; i < settings_of(operation); i++)
        fprintf(out, ":%s=%.10g", operation->settings[i].name, values[i]);
}

static void take_defaults(const struct operation *operation, double values[MAX_SETTINGS])
{
    for (size_t i = 0; i < MAX_SETTINGS; i++)
        values[i] = operation->settings[i].standard;
}

bool dl2_augmentation_row(size_t number, char **text, const char **summary)
{
    double values[MAX_SETTINGS];
    size_t size;
    FILE *out = number < OPERATIONS ? open_memstream(text, &size) : NULL;
    if (!out)
        return false;
    take_defaults(&operations[number], values);
    fprintf(out, "%s", operations[number].name);
    print_settings(&operations[number], values, out);
    *summary = operations[number].summary;
    if (fclose(out) == 0)
        return true;
    free(*text);
    return false;
}

static int write_text(struct dl2_augmentation *augmentation, struct dl2_error *error)
{
    size_t size;
    FILE *out = open_memstream(&augmentation->text, &size);
    for (size_t i = 0; out && i < augmentation->count; i++) {
        const struct step *step = &augmentation->steps[i];
        fprintf(out, "%s%s", i ? "," : "", step->operation->name);
        if (step->plugin)
            fprintf(out, "#%016" PRIx64, dl2_plugin_sum(step->plugin));
        print_settings(step->operation, step->values, out);
    }
    if (!out || fclose(out) != 0)
        return dl2_error_memory(error, "an augmentation");
    return DL2_OK;
}

const char *dl2_augmentation_text(const struct dl2_augmentation *augmentation)
{
    return augmentation->text;
}

/* ---- parsing ---- */

/* A piece of the text, not ended by a zero. */
struct word {
    const char *at;
    size_t length;
};

/* Takes what is before the next `separator`, or all that is left. */
static struct word take_word(struct word *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->length);
    const struct word word = {rest->at, end ? (size_t)(end - rest->at) : rest->length};
    const size_t used = word.length + (end != NULL);
    rest->at += used;
    rest->length -= used;
    return word;
}

static bool is_word(struct word word, const char *name)
{
    return strlen(name) == word.length && memcmp(word.at, name, word.length) == 0;
}

static const struct operation *find_operation(struct word word, struct dl2_error *error)
{
    char all[512] = "";
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (is_word(word, operations[i].name))
            return &operations[i];
        dl2_list_name(all, sizeof all, operations[i].name);
    }
    dl2_error_set(error, DL2_ERR_ARGUMENT,
                  "there is no operation '%.*s': they are %s, and NAME@FILE of a plug-in",
                  (int)word.length, word.at, all);
    return NULL;
}

/* The row of an operation of a plug-in: p, and then its own settings. */
static int open_plugin(struct word word, struct step *step, struct dl2_error *error)
{
    DL2_TRY(dl2_plugin_open(word.at, word.length, &step->plugin, error));
    const struct dl2_operation_setting *settings = dl2_plugin_settings(step->plugin);
    step->own = (struct operation){.name = dl2_plugin_name(step->plugin),
                                   .settings = {{"p", 0, 1, 1, false}}};
    for (size_t i = 0; settings[i].name; i++)
        step->own.settings[1 + i] = settings[i];
    step->operation = &step->own;
    return DL2_OK;
}

/* The number of the setting that "name=..." sets, or an error. */
static int find_setting(const struct operation *operation, struct word name,
                        struct dl2_error *error)
{
    char all[256] = "";
    for (size_t i = 0; i < settings_of(operation); i++) {
        if (is_word(name, operation->settings[i].name))
            return (int)i;
        dl2_list_name(all, sizeof all, operation->settings[i].name);
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no setting '%.*s', only %s",
                         operation->name, (int)name.length, name.at, all);
}

static int parse_value(const struct operation *operation,
                       const struct dl2_operation_setting *setting, struct word word, double *out,
                       struct dl2_error *error)
{
    char text[32], *end = text;
    snprintf(text, sizeof text, "%.*s", (int)word.length, word.at);
    const double value = strtod(text, &end);
    if (word.length == 0 || word.length >= sizeof text || *end ||
        !(value >= setting->low && value <= setting->high) ||
        (setting->whole && value != floor(value)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: %s is a %snumber from %g to %g, not '%.*s'", operation->name,
                             setting->name, setting->whole ? "whole " : "", setting->low,
                             setting->high, (int)word.length, word.at);
    *out = value;
    return DL2_OK;
}

static int parse_step(struct word text, struct step *step, struct dl2_error *error)
{
    bool given[MAX_SETTINGS] = {false};
    const struct word named = take_word(&text, ':');
    if (memchr(named.at, '@', named.length))
        DL2_TRY(open_plugin(named, step, error));
    else if (!(step->operation = find_operation(named, error)))
        return DL2_ERR_ARGUMENT;
    const struct operation *operation = step->operation;
    take_defaults(operation, step->values);
    while (text.length) {
        struct word value = take_word(&text, ':');
        const struct word name = take_word(&value, '=');
        const int number = find_setting(operation, name, error);
        DL2_TRY(number);
        if (given[number])
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: %s is given twice", operation->name,
                                 operation->settings[number].name);
        given[number] = true;
        DL2_TRY(parse_value(operation, &operation->settings[number], value, &step->values[number],
                            error));
    }
    const char *why = operation->refuse ? operation->refuse(step->values) : NULL;
    if (why)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s %s", operation->name, why);
    return DL2_OK;
}

int dl2_augmentation_parse(const char *text, struct dl2_augmentation **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_augmentation *augmentation = dl2_calloc(1, sizeof *augmentation);
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    if (augmentation)
        augmentation->steps = dl2_calloc(most, sizeof *augmentation->steps);
    int status =
        augmentation && augmentation->steps ? DL2_OK : dl2_error_memory(error, "an augmentation");
    struct word rest = {text, strlen(text)};
    while (status == DL2_OK && augmentation->count < most)
        status =
            parse_step(take_word(&rest, ','), &augmentation->steps[augmentation->count++], error);
    if (status == DL2_OK)
        status = write_text(augmentation, error);
    if (status < 0)
        dl2_augmentation_free(augmentation);
    else
        *out = augmentation;
    return status;
}

int dl2_augmentation_check(const struct dl2_augmentation *augmentation, bool volumes,
                           struct dl2_error *error)
{
    for (size_t i = 0; i < augmentation->count; i++) {
        const struct step *step = &augmentation->steps[i];
        const struct operation *operation = step->operation;
        if (volumes ? !operation->apply_volume
                    : !operation->plain && !operation->apply && !step->plugin)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is an operation on %s, not on %s",
                                 operation->name, volumes ? "images" : "volumes",
                                 volumes ? "volumes" : "images");
        const char *why =
            volumes && operation->refuse_volume ? operation->refuse_volume(step->values) : NULL;
        if (why)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s %s", operation->name, why);
    }
    return DL2_OK;
}

size_t dl2_augmentation_count(const struct dl2_augmentation *augmentation)
{
    return augmentation->count;
}

const char *dl2_augmentation_name(const struct dl2_augmentation *augmentation, size_t number)
{
    return augmentation->steps[number].operation->name;
}

const char *dl2_augmentation_moves(const struct dl2_augmentation *augmentation)
{
    for (size_t i = 0; i < augmentation->count; i++) {
        const struct step *step = &augmentation->steps[i];
        if (step->plugin ? dl2_plugin_moves(step->plugin) : step->operation->moves)
            return step->operation->name;
    }
    return NULL;
}

void dl2_augmentation_run_volume(const struct dl2_augmentation *augmentation, size_t number,
                                 struct dl2_random *random, struct dl2_voxels *voxels)
{
    const struct step *step = &augmentation->steps[number];
    if (dl2_random_uniform(random) < step->values[0])
        step->operation->apply_volume(step->values, random, voxels);
}

bool dl2_augmentation_names_file(const char *text)
{
    return strchr(text, '@') != NULL;
}

int dl2_augmentation_run(const struct dl2_augmentation *augmentation, struct dl2_random *random,
                         struct dl2_pixels *pixels, struct dl2_error *error)
{
    for (size_t i = 0; i < augmentation->count; i++) {
        const struct step *step = &augmentation->steps[i];
        if (!(dl2_random_uniform(random) < step->values[0]))
            continue;
        if (step->plugin)
            DL2_TRY(dl2_plugin_run(step->plugin, step->values + 1, random, pixels, error));
        else if (step->operation->plain)
            step->operation->plain(pixels);
        else
            step->operation->apply(step->values, random, pixels);
    }
    return DL2_OK;
}

void dl2_augmentation_free(struct dl2_augmentation *augmentation)
{
    if (!augmentation)
        return;
    for (size_t i = 0; augmentation->steps && i < augmentation->count; i++)
        dl2_plugin_close(augmentation->steps[i].plugin);
    free(augmentation->steps);
    free(augmentation->text);
    free(augmentation);
}
