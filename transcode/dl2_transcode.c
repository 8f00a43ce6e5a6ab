/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-transcode: recompresses a tree of images by several codecs at several qualities. */
#include "codec/external.h"
#include "codec/settings.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/option.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/thread.h"
#include "dataset/dataset.h"
#include "dataset/subset_options.h"
#include "dataset/tell.h"
#include "dataset/variant_facts.h"
#include "transcode/copy.h"
#include "transcode/fit_tables.h"
#include "transcode/survey.h"
#include "transcode/transcode.h"
#include "transcode/variant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CODECS = 32, MAX_CONTAINERS = 16 };

/* The task of a run; as bits, the rows' `commands`. */
enum task { ENCODE, COPY, INDEX, SURVEY, IDENTIFY, FIT_TABLES };
enum {
    ENCODES = 1 << ENCODE,
    WRITES = ENCODES | 1 << COPY,
    SURVEYS = 1 << SURVEY,
    FITS = 1 << FIT_TABLES
};

enum { LIST_CODECS, LIST_CONTAINERS, LIST_SETTINGS, LIST_VARIANTS, LIST_NOTHING };
static const char *const lists[] = {[LIST_CODECS] = "codecs",
                                    [LIST_CONTAINERS] = "containers",
                                    [LIST_SETTINGS] = "settings",
                                    [LIST_VARIANTS] = "variants",
                                    NULL};

static const char *const subsamplings[] = {"420", "422", "444", NULL};
static const char *const restarts[] = {"tiles", "none", NULL};
static const char *const filters[] = {"lanczos", "box", "bilinear", NULL};
static const enum dl2_interpolation filter_numbers[] = {DL2_LANCZOS, DL2_BOX, DL2_BILINEAR};
static const char *const no_yes[] = {[false] = "no", [true] = "yes", NULL};
static const char *containers[MAX_CONTAINERS + 1]; /* filled in by main() */

enum { ENCODERS_OWN = 100 };

/* The options that limit the sides of images, and how --help shows their values. */
enum size_option { SHORT, MAX_SIDE, FIT };
static const char *const size_names[] = {"short", "max-side", "fit"};

static struct arguments {
    const char *codecs, *qualities, *efforts, *targets, *range;
    double tolerance;
    unsigned probes, rule, miss;   /* the latter are enum dl2_target_rule and dl2_target_miss */
    const char *sizes[3];          /* by enum size_option */
    unsigned filter;               /* the number of a word */
    unsigned subsampling, restart; /* numbers of words; ENCODERS_OWN: not given */
    uint8_t background[3];
    uint64_t max_pixels, memory_mib;
    struct dl2_external_decoders external; /* to read sources */
    unsigned colour;                       /* enum dl2_colour_rule */
    bool never_larger, force, prune;
    unsigned samples;   /* enum dl2_samples */
    unsigned container; /* a number for dl2_container_name() */
    unsigned shard_mib;
    bool copy, index, survey, identify;
    const char *json, *groups, *facts;
    const char *fit_tables, *sensitivity;
    uint64_t shuffle; /* a seed, if it was given */
    unsigned input_size;
    double crop_area[2];
    unsigned list;
} arguments = {.qualities = "75",
               .subsampling = ENCODERS_OWN,
               .restart = ENCODERS_OWN,
               .never_larger = true,
               .tolerance = 0.02,
               .probes = 8,
               .background = {255, 255, 255},
               .max_pixels = DL2_DEFAULT_MAX_PIXELS,
               .shard_mib = 256,
               .input_size = 224,
               .crop_area = {0.08, 1},
               .list = LIST_NOTHING};
/* The codecs to encode with, and their settings. */
struct selection {
    struct dl2_settings items[MAX_CODECS];
    size_t count;
};

static struct dl2_common_options common;
static struct dl2_external *external; /* the codec that --codec names, or NULL */
static struct selection selected;     /* what --codec selects */

#define AT(member) offsetof(struct arguments, member)

static int parse_crop_area(const char *text, void *value, struct dl2_error *error)
{
    double *area = value;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &area[0], &area[1], &rest) == 2 && area[0] > 0 &&
        area[0] <= area[1] && area[1] <= 1)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not two parts from 0 to 1, as 0.08,1",
                         text);
}

static const struct dl2_option table[] = {
    {DL2_OPTION_GROUP, .help = "Options for encoding:"},
    {DL2_OPTION_TEXT, "codec", 'c', "LIST",
     "Codecs to encode with, of those below, each with settings if wanted, as in "
     "jpeg,jpeg:effort=1:subsampling=444, which are part of the variant's name; the last may be an "
     "external one, as two commands: 'NAME=ENCODE %i %o %q; DECODE %i %o'",
     AT(codecs), .list = "codecs", .commands = ENCODES},
    {DL2_OPTION_TEXT, "q", 'q', "LIST",
     "Qualities of lossy codecs, 1 to 100, higher is better, for example 10,25,50 or 5:95:10 "
     "(from, to, step)",
     AT(qualities), .commands = ENCODES},
    {DL2_OPTION_TEXT, "target", 0, "METRIC=VALUE,...",
     "A quality for each image instead: the lowest at which it has this score by a metric of "
     "dl2-quality, as ssim=0.95, or the highest at which it has as many bytes or bits per pixel at "
     "most, as bytes=20000 or bpp=0.5; each is a variant of its own, as jpeg-ssim0.95",
     AT(targets), .commands = ENCODES},
    {DL2_OPTION_TEXT, "q-range", 0, "FROM:TO", "Qualities that --target tries", AT(range),
     .unset = "1:100", .commands = ENCODES},
    {DL2_OPTION_CHOICE, "target-rule", 0, "at-least|nearest",
     "File that an image has with --target: the smallest that meets it (the largest that keeps a "
     "size), or the one nearest to it on either side",
     AT(rule), .words = dl2_target_rules, .commands = ENCODES},
    {DL2_OPTION_REAL, "target-tolerance", 0, "SHARE",
     "Closeness to the target at which a search may end, as a share of what is lost (mean squared "
     "error, 1 - SSIM, 100 - SSIMULACRA2, a distance) or of the bytes; JPEG tries all qualities "
     "for a score",
     AT(tolerance), .min = 0, .max = 1, .commands = ENCODES},
    {DL2_OPTION_UINT, "probes", 0, "N",
     "Files that a search makes of an image at most; JPEG makes none for a score", AT(probes),
     .min = 1, .max = 100, .commands = ENCODES},
    {DL2_OPTION_CHOICE, "on-miss", 0, "best|copy|fail",
     "Where no quality meets the target: take the nearest file, copy the source's if it is of the "
     "variant's codec, or fail the image",
     AT(miss), .words = dl2_target_misses, .commands = ENCODES},
    {DL2_OPTION_CHOICE, "subsampling", 's', "420|422|444",
     "Chroma subsampling of codecs that have the choice", AT(subsampling), .words = subsamplings,
     .unset = "420", .commands = ENCODES},
    {DL2_OPTION_TEXT, "effort", 'e', "[CODEC=]N|auto",
     "Effort of an encoder, or several, for example webp=6,png=9; the codecs below say what it "
     "means",
     AT(efforts), .commands = ENCODES},
    {DL2_OPTION_CHOICE, "restart", 0, "tiles|none",
     "Restart intervals of JPEG, with which the loader decodes only what a crop needs, for 0 to "
     "3% more bytes; progressive files have none",
     AT(restart), .words = restarts, .unset = "tiles", .commands = ENCODES},
    {DL2_OPTION_SWITCH, "never-larger", 0, "yes|no",
     "Copy a source file unchanged into a lossy variant of its own codec if it is at or below the "
     "variant's quality, with chroma no finer (known of JPEG alone), or no larger than what would "
     "be encoded; not if it is resized, must be turned upright, has transparent pixels, or is a "
     "JPEG of RGB, "
     "CMYK or arithmetic codes",
     AT(never_larger), .words = no_yes, .commands = ENCODES},
    {DL2_OPTION_TEXT, "short", 0, "LIST",
     "Resize images to these lengths of their shorter side, pixels, for example 160,320,full; each "
     "is a variant of its own, as jpeg-75@320; smaller images keep their size",
     AT(sizes[SHORT]), .unset = "full", .commands = ENCODES | FITS},
    {DL2_OPTION_TEXT, "max-side", 0, "LIST", "The same by the longer side: 512 is --fit 512x512",
     AT(sizes[MAX_SIDE]), .unset = "full", .commands = ENCODES | FITS},
    {DL2_OPTION_TEXT, "fit", 0, "WxH,...",
     "The same by both sides: no wider than W and no higher than H, as jpeg-75@640x480",
     AT(sizes[FIT]), .unset = "full", .commands = ENCODES | FITS},
    {DL2_OPTION_CHOICE, "filter", 0, "lanczos|box|bilinear",
     "Filter of resized images, as Pillow has it; one other than lanczos is part of the variant's "
     "name, as in jpeg-75@320-box",
     AT(filter), .words = filters, .commands = ENCODES | FITS},
    {DL2_OPTION_PARSE, "background", 'b', "RRGGBB", "Colour under transparent pixels",
     AT(background), .parse = dl2_parse_colour, .unset = "white", .commands = ENCODES},
    {DL2_OPTION_CHOICE, "colour", 0, "keep|convert|drop",
     "Colours that are not sRGB (ICC profiles, PNG's gamma, PQ and the like): keep numbers and "
     "description, convert the numbers to sRGB, or keep the numbers and drop the description",
     AT(colour), .words = dl2_colour_rules, .commands = ENCODES},
    {DL2_OPTION_TABLE, .table = dl2_samples_options, .offset = AT(samples),
     .commands = WRITES | SURVEYS | FITS | 1 << IDENTIFY},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N", "Refuse images with more pixels", AT(max_pixels),
     .min = 1, .max = 4294967295.0, .commands = ENCODES | SURVEYS | FITS},
    {DL2_OPTION_UINT64, "memory", 0, "MIB",
     "Memory for all images in work together, which limits how many large ones are in work at "
     "once",
     AT(memory_mib), .min = 1, .max = 1u << 30, .unset = "half of the machine's memory",
     .commands = ENCODES},
    {DL2_OPTION_TABLE, .table = dl2_external_options, .offset = AT(external),
     .commands = ENCODES | SURVEYS | FITS},

    {DL2_OPTION_GROUP, .help = "Options for output:"},
    {DL2_OPTION_CHOICE, "container", 0, "NAME", "Container of the variants, one of those below",
     AT(container), .words = containers, .commands = WRITES},
    {DL2_OPTION_UINT, "shard", 0, "MIB",
     "Size at which another chunk or shard begins; chunks have at most 10000 images", AT(shard_mib),
     .min = 1, .max = 1u << 20, .commands = WRITES},
    {DL2_OPTION_UINT64, "shuffle", 0, "SEED",
     "Pack images in a random order, the same for the same seed, so that a program that reads "
     "one shard after the other meets all classes from the beginning",
     AT(shuffle), .max = 9e15, .unset = "SOURCE's order, by class", .commands = WRITES},
    {DL2_OPTION_FLAG, "copy", 0, NULL,
     "Copy SOURCE's images to DEST as they are, into the given container", AT(copy),
     .commands = WRITES},
    {DL2_OPTION_FLAG, "index", 0, NULL, "Write an index for the packed dataset SOURCE", AT(index)},
    {DL2_OPTION_FLAG, "survey", 0, NULL,
     "Only say what is in SOURCE: formats, sizes, JPEG qualities, mean and deviation, near "
     "duplicates, files that cannot be read",
     AT(survey)},
    {DL2_OPTION_TEXT, "json", 0, "FILE", "Write the survey to FILE, too", AT(json),
     .commands = SURVEYS},
    {DL2_OPTION_TEXT, "groups", 0, "FILE",
     "Write the survey's near duplicates to FILE, too, a line KEY, tab, GROUP for each image, as "
     "dl2-report --group takes it",
     AT(groups), .commands = SURVEYS},
    {DL2_OPTION_TEXT, "facts", 0, "FOLDER",
     "At the end, write each variant's dl2-variant.json to FOLDER/VARIANT, too", AT(facts),
     .commands = ENCODES},
    {DL2_OPTION_FLAG, "force", 'f', NULL, "Make everything again", AT(force), .commands = WRITES},
    {DL2_OPTION_FLAG, "prune", 0, NULL,
     "Remove images of earlier runs whose source is gone (with --copy every image of a folder "
     "DEST that SOURCE lacks) instead of naming them",
     AT(prune), .commands = WRITES},

    {DL2_OPTION_GROUP, .help = "Options for fitted tables:"},
    {DL2_OPTION_TEXT, "fit-tables", 0, "FILE",
     "Only fit JPEG quantisation tables to SOURCE's training images and to what a training sees of "
     "them, at each resolution; write FILE, for --codec jpeg:tables=FILE, which names the variants",
     AT(fit_tables)},
    {DL2_OPTION_UINT, "input-size", 0, "N",
     "Side of the training's input, pixels: tables are fitted to random crops of images, resized "
     "to it; and --target's input_psnr and input_ssim compare images at it",
     AT(input_size), .min = 1, .max = DL2_MAX_INPUT_SIZE, .commands = FITS | ENCODES},
    {DL2_OPTION_PARSE, "crop-area", 0, "MIN,MAX",
     "The part of an image's area that the training's crops have, as of dl2-train", AT(crop_area),
     .parse = parse_crop_area, .unset = "0.08,1", .commands = FITS},
    {DL2_OPTION_TEXT, "sensitivity", 0, "FILE",
     "Fit the tables to a network, too: FILE is what dl2-train --sensitivity wrote",
     AT(sensitivity), .commands = FITS},

    {DL2_OPTION_GROUP, .help = "Options for scripts:"},
    {DL2_OPTION_FLAG, "identify", 0, NULL,
     "Only say what SOURCE is: name, container, images, bytes, classes, \"complete no\" of a "
     "variant that is not finished, and a fingerprint that changes with anything in it; "
     "one line each, the word and the value with a tab between them",
     AT(identify)},
    {DL2_OPTION_CHOICE, "list", 0, "WHAT",
     "Check the other options, list what this build has, and exit: codecs (name, lossy or "
     "lossless, extension), containers (name, read or read,write, extensions, summary), settings "
     "(codec, name, values, default, help) or variants, that the other options would make (name, "
     "codec, quality or -, place in DEST, file of tables, which need not be there, or -); one line "
     "each, with tabs between the columns",
     AT(list), .words = lists},
    {DL2_OPTION_END},
};

static struct dl2_program program = {
    .name = "dl2-transcode",
    .synopsis = "SOURCE [DEST]",
    .summary = "Recompress a tree of images by several codecs at several qualities.",
    .options = table,
    .values = &arguments,
    .print_versions = dl2_codec_print_versions,
    .max_arguments = 2,
};

static bool shuffles(void)
{
    return dl2_option_given(&program, &common, "shuffle");
}

static struct dl2_writer_options pack_options(const char *dest)
{
    return (struct dl2_writer_options){.container = dl2_dataset_is_database(dest)
                                                        ? "postgresql"
                                                        : dl2_container_name(arguments.container),
                                       .slice = dl2_image_slice,
                                       .shard_bytes = (uint64_t)arguments.shard_mib << 20};
}

static int no_codec(const char *name, struct dl2_error *error)
{
    char known[128] = "";
    for (size_t i = 0; dl2_codec_at(i); i++)
        if (dl2_codec_at(i)->encode)
            dl2_list_name(known, sizeof known, dl2_codec_at(i)->name);
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "--codec: '%s' is not a codec that this build can write: %s, or an "
                         "external one: NAME=ENCODE; DECODE%s",
                         name, known, external ? "; quote a comma that belongs to a command" : "");
}

static int add_codec(struct selection *selection, const struct dl2_settings *settings,
                     struct dl2_error *error)
{
    if (selection->count == MAX_CODECS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--codec: more than %d", MAX_CODECS);
    selection->items[selection->count++] = *settings;
    return DL2_OK;
}

static int select_external(const char *item, struct selection *selection, struct dl2_error *error)
{
    struct dl2_settings settings;
    if (external)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--codec: '%s' is a second external codec, and one run takes one; "
                             "quote a comma that belongs to a command",
                             item);
    if (dl2_external_parse(item, arguments.external.timeout, &external, error) < 0) {
        dl2_error_prefix(error, "--codec");
        return DL2_ERR_ARGUMENT;
    }
    dl2_settings_init(&settings, dl2_external_codec(external));
    return add_codec(selection, &settings, error);
}

static int select_codec(const char *item, struct selection *selection, struct dl2_error *error)
{
    struct dl2_settings settings;
    const size_t length = strcspn(item, ":=");
    if (item[length] == '=')
        return select_external(item, selection, error);
    char *name = strndup(item, length);
    if (!name)
        return dl2_error_memory(error, "options");
    const struct dl2_codec *codec = dl2_codec_find(name);
    int status = DL2_OK;
    if (!codec || !codec->encode)
        status = no_codec(name, error);
    free(name);
    DL2_TRY(status);
    if (!item[length])
        dl2_settings_init(&settings, codec);
    else if (dl2_settings_parse(&settings, codec, item + length + 1, error) < 0) {
        dl2_error_prefix(error, "--codec");
        dl2_jpeg_tables_free(settings.tables);
        return DL2_ERR_ARGUMENT;
    }
    status = add_codec(selection, &settings, error);
    if (status < 0)
        dl2_jpeg_tables_free(settings.tables);
    return status;
}

static int select_codecs(const char *text, struct selection *selection, struct dl2_error *error)
{
    for (const char *end;; text = end + 1) {
        end = dl2_command_find(text, ',');
        if (end == text)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "--codec: an empty name before '%s'",
                                 end);
        char *item = strndup(text, (size_t)(end - text));
        const int status =
            item ? select_codec(item, selection, error) : dl2_error_memory(error, "options");
        free(item);
        DL2_TRY(status);
        if (!*end)
            return DL2_OK;
    }
}

/* Gives the effort to all of the codec that have none of their own; false: all have. */
static bool give_effort(struct selection *selection, const struct dl2_codec *codec, int effort)
{
    bool any = false;
    for (size_t i = 0; i < selection->count; i++)
        if (selection->items[i].codec == codec && !selection->items[i].has_effort) {
            selection->items[i].effort = effort;
            selection->items[i].has_effort = true;
            any = true;
        }
    return any;
}

/* "6" if only one codec has a choice, or "webp=6". */
static int set_effort(const char *text, struct selection *selection, struct dl2_error *error)
{
    const char *equals = strchr(text, '='), *number = equals ? equals + 1 : text;
    const struct dl2_codec *codec = NULL;
    size_t candidates = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const struct dl2_codec *own = selection->items[i].codec;
        bool named = equals && strlen(own->name) == (size_t)(equals - text) &&
                     !strncmp(own->name, text, (size_t)(equals - text));
        if ((equals ? named : own->max_effort >= 0) && own != codec) {
            codec = own;
            candidates++;
        }
    }
    if (candidates == 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--effort %s: that is for a codec that is not in use, or none that "
                             "is has a choice",
                             text);
    if (candidates > 1 && !equals)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--effort %s: say for which codec, as in %s=%s", text, codec->name,
                             text);
    const bool automatic = codec->usual_effort < 0;
    if (automatic && !strcmp(number, "auto"))
        number = "-1";
    else if (strlen(number) < 1 || strlen(number) > 2 ||
             strspn(number, "0123456789") != strlen(number) || atoi(number) > codec->max_effort) {
        return codec->max_effort < 0
                   ? dl2_error_set(error, DL2_ERR_ARGUMENT, "--effort: %s has none", codec->name)
                   : dl2_error_set(error, DL2_ERR_ARGUMENT, "--effort: %s takes %s0 to %d, not %s",
                                   codec->name, automatic ? "auto or " : "", codec->max_effort,
                                   number);
    }
    return give_effort(selection, codec, atoi(number))
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "--effort %s has no effect: --codec gives %s an effort everywhere",
                               text, codec->name);
}

static int set_efforts(const char *text, struct selection *selection, struct dl2_error *error)
{
    char **items;
    size_t count;
    DL2_TRY(dl2_parse_name_list(text, &items, &count, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < count; i++)
        status = set_effort(items[i], selection, error);
    dl2_free_list(items);
    return status;
}

/* Options that exclude one another are told before any work, by the codec's own words. */
static int try_target(const struct dl2_transcode_target *target, struct dl2_error *error)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes out = DL2_BYTES_INIT;
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_encode_options encode = target->encode;
    if (target->target.name)
        encode.quality = target->target.high;
    DL2_TRY(dl2_image_reshape(&image, 1, 1, 3, error));
    memset(image.data, 0, image.stride);
    const int status = dl2_image_encode(target->codec, &image, &encode, &out, &own);
    dl2_image_free(&image);
    dl2_bytes_free(&out);
    return status == DL2_ERR_ARGUMENT ? dl2_error_copy(error, &own) : DL2_OK;
}

/* A number of pixels, up to the end of `text` or an "x" if that may follow; 0: it is none. */
static uint32_t parse_side(const char **text, bool with_height)
{
    const size_t digits = strspn(*text, "0123456789");
    const unsigned long side = digits && digits < 6 ? strtoul(*text, NULL, 10) : 0;
    const char end = (*text)[digits];
    *text += digits + (with_height && end == 'x');
    return end == (with_height ? 'x' : '\0') && side <= DL2_RESOLUTION_MAX ? (uint32_t)side : 0;
}

static int parse_size(enum size_option option, const char *text, struct dl2_resolution *out,
                      struct dl2_error *error)
{
    const char *at = text;
    *out = (struct dl2_resolution){.filter = filter_numbers[arguments.filter]};
    if (!strcmp(text, "full"))
        return DL2_OK;
    if (option == SHORT) {
        out->short_side = parse_side(&at, false);
    } else {
        out->width = parse_side(&at, option == FIT);
        out->height = option == FIT && out->width ? parse_side(&at, false) : out->width;
    }
    if (option == SHORT ? out->short_side : out->width && out->height)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "--%s: '%s' is not %s from 1 to %d, nor \"full\"",
                         size_names[option], text,
                         option == FIT ? "a width and a height, as 640x480, each"
                                       : "a number of pixels",
                         DL2_RESOLUTION_MAX);
}

enum { MAX_RESOLUTIONS = 64 };

static int add_sizes(enum size_option option, struct dl2_resolution *out, size_t *count,
                     struct dl2_error *error)
{
    char **items;
    size_t item_count;
    if (dl2_parse_name_list(arguments.sizes[option], &items, &item_count, error) < 0) {
        dl2_error_prefix(error, "--%s", size_names[option]);
        return DL2_ERR_ARGUMENT;
    }
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < item_count; i++) {
        bool again = false;
        if (*count == MAX_RESOLUTIONS)
            status = dl2_error_set(error, DL2_ERR_ARGUMENT, "--%s: more than %d sizes",
                                   size_names[option], MAX_RESOLUTIONS);
        else
            status = parse_size(option, items[i], &out[*count], error);
        for (size_t r = 0; status == DL2_OK && r < *count; r++)
            again = again || dl2_resolution_equal(&out[r], &out[*count]);
        *count += status == DL2_OK && !again;
    }
    dl2_free_list(items);
    return status;
}

/* The resolutions of the variants, each once, in the order given; full alone if none is. */
static int parse_resolutions(struct dl2_resolution *out, size_t *count, struct dl2_error *error)
{
    bool resized = false;
    *count = 0;
    for (unsigned option = 0; option < sizeof size_names / sizeof *size_names; option++)
        if (arguments.sizes[option])
            DL2_TRY(add_sizes(option, out, count, error));
    if (!*count)
        out[(*count)++] = (struct dl2_resolution){0};
    for (size_t r = 0; r < *count; r++)
        resized = resized || !dl2_resolution_is_full(&out[r]);
    if (dl2_option_given(&program, &common, "filter") && !resized)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--filter has no effect: no image is resized; give --short, "
                             "--max-side or --fit");
    return DL2_OK;
}

/* What is given and usual is recorded as if it were not given, since it makes the same files. */
static void forget_usual(struct dl2_settings *item)
{
    if (item->effort == item->codec->usual_effort)
        item->effort = -1;
    if (item->subsampling && !strcmp(item->subsampling, dl2_subsampling_find(NULL)))
        item->subsampling = NULL;
}

/* Do both make the same files? */
static bool make_the_same(const struct dl2_settings *a, const struct dl2_settings *b)
{
    const char *restart = a->restart ? a->restart : "", *other = b->restart ? b->restart : "";
    return a->codec == b->codec && a->effort == b->effort && !strcmp(a->name, b->name) &&
           !strcmp(dl2_subsampling_find(a->subsampling), dl2_subsampling_find(b->subsampling)) &&
           !strcmp(restart, other) && !a->tables == !b->tables &&
           (!a->tables || !strcmp(a->tables->path, b->tables->path));
}

/* Drops what is there already: "jpeg,jpeg", "jpeg,jpeg:subsampling=420". */
static void drop_repeated(struct selection *selection)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->count; i++) {
        bool again = false;
        for (size_t k = 0; k < kept; k++)
            again = again || make_the_same(&selection->items[k], &selection->items[i]);
        if (again)
            dl2_jpeg_tables_free(selection->items[i].tables);
        else
            selection->items[kept++] = selection->items[i];
    }
    selection->count = kept;
}

enum { MAX_TARGETS = 64 };

/* The qualities of --q-range. */
static int parse_range(int *low, int *high, struct dl2_error *error)
{
    const char *text = arguments.range ? arguments.range : "1:100";
    unsigned *list;
    size_t count;
    DL2_TRY(dl2_parse_uint_list(text, 1, 100, &list, &count, error));
    *low = (int)list[0];
    *high = (int)list[count - 1];
    const bool whole = !strchr(text, ',') && (size_t)(*high - *low) + 1 == count;
    free(list);
    return whole
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a range such as 20:95", text);
}

/* Adds a target that is not there yet. */
static int add_target(const char *text, const struct dl2_quality_target *rest,
                      struct dl2_quality_target *out, size_t *count, struct dl2_error *error)
{
    if (*count == MAX_TARGETS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "more than %d", MAX_TARGETS);
    DL2_TRY(dl2_target_parse(text, rest, &out[*count], error));
    for (size_t t = 0; t < *count; t++)
        if (dl2_target_equal(&out[t], &out[*count]))
            return DL2_OK;
    ++*count;
    return DL2_OK;
}

/* The targets of --target; none where it is not given. */
static int parse_targets(struct dl2_quality_target *out, size_t *count, struct dl2_error *error)
{
    static const char *const others[] = {"q-range", "target-rule", "target-tolerance", "probes",
                                         "on-miss"};
    struct dl2_quality_target rest = {.rule = arguments.rule,
                                      .miss = arguments.miss,
                                      .tolerance = arguments.tolerance,
                                      .input_size = arguments.input_size,
                                      .probes = arguments.probes};
    char **items = NULL;
    size_t item_count;
    *count = 0;
    for (size_t i = 0; !arguments.targets && i < sizeof others / sizeof *others; i++)
        if (dl2_option_given(&program, &common, others[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "--%s has no effect without --target",
                                 others[i]);
    if (!arguments.targets)
        return DL2_OK;
    if (dl2_option_given(&program, &common, "q"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--q and --target exclude one another");
    int status = parse_range(&rest.low, &rest.high, error);
    if (status < 0) {
        dl2_error_prefix(error, "--q-range");
        return status;
    }
    status = dl2_parse_name_list(arguments.targets, &items, &item_count, error);
    for (size_t i = 0; status == DL2_OK && i < item_count; i++)
        status = add_target(items[i], &rest, out, count, error);
    if (status < 0)
        dl2_error_prefix(error, "--target");
    dl2_free_list(items);
    return status;
}

/* The tables of a target's resolution. */
static int find_tables(const struct dl2_settings *item, struct dl2_transcode_target *target,
                       struct dl2_error *error)
{
    char resolution[DL2_RESOLUTION_NAME_SIZE];
    if (arguments.list == LIST_VARIANTS) /* the file may be made later */
        return DL2_OK;
    DL2_TRY(dl2_jpeg_tables_load(item->tables, error));
    dl2_resolution_name(&target->resolution, resolution);
    target->encode.tables = dl2_jpeg_tables_find(item->tables, resolution,
                                                 dl2_subsampling_find(item->subsampling), error);
    return target->encode.tables ? DL2_OK : DL2_ERR_ARGUMENT;
}

/* Options of targets that none of those to be made heeds. */
static int check_targets(const struct dl2_transcode_target *targets, size_t count,
                         struct dl2_error *error)
{
    bool searched = false, scored = false, of_input = false;
    for (size_t t = 0; t < count; t++) {
        const struct dl2_quality_target *const target = &targets[t].target;
        searched = searched || (target->name && !dl2_target_is_scanned(target, targets[t].codec));
        scored = scored || target->metric;
        of_input = of_input || target->input_size;
    }
    if (!of_input && dl2_option_given(&program, &common, "input-size"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--input-size has no effect but on --fit-tables and on --target "
                             "input_psnr or input_ssim");
    if (arguments.targets && !searched && dl2_option_given(&program, &common, "probes"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--probes has no effect: all qualities are tried for a score of JPEG");
    if (arguments.targets && !searched && arguments.rule == DL2_TARGET_AT_LEAST &&
        dl2_option_given(&program, &common, "target-tolerance"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--target-tolerance has no effect: all qualities are tried for a "
                             "score of JPEG");
    if (arguments.miss == DL2_MISS_COPY && (!scored || !arguments.never_larger))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--on-miss copy has no effect %s",
                             scored ? "with --never-larger=no" : "on targets of sizes");
    return DL2_OK;
}

/* Makes a target for every lossy codec at every quality and every lossless one, at each resolution.
 */
static int make_targets(struct dl2_transcode_target **out, size_t *count, struct dl2_error *error)
{
    struct dl2_resolution resolutions[MAX_RESOLUTIONS];
    size_t resolution_count;
    struct dl2_quality_target targets[MAX_TARGETS];
    size_t target_count;
    DL2_TRY(parse_resolutions(resolutions, &resolution_count, error));
    DL2_TRY(parse_targets(targets, &target_count, error));
    DL2_TRY(select_codecs(arguments.codecs, &selected, error));
    if (arguments.efforts)
        DL2_TRY(set_efforts(arguments.efforts, &selected, error));
    bool lossy = false, subsampled = false, restarted = false;
    for (size_t c = 0; c < selected.count; c++) {
        struct dl2_settings *item = &selected.items[c];
        const struct dl2_encode_options own = {.settings = item->values};
        lossy = lossy || dl2_settings_use_quality(item->codec, &own);
        if (item->codec->has_subsampling && !item->subsampling) {
            subsampled = true;
            if (arguments.subsampling != ENCODERS_OWN)
                item->subsampling = subsamplings[arguments.subsampling];
        }
        if (item->codec->has_restart && !item->restart) {
            restarted = true;
            if (arguments.restart != ENCODERS_OWN)
                item->restart = restarts[arguments.restart];
        }
    }
    for (size_t c = 0; c < selected.count; c++)
        forget_usual(&selected.items[c]);
    drop_repeated(&selected);
    if (dl2_option_given(&program, &common, "q") && !lossy)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--q: every codec in use is lossless, or has a setting in its place");
    if (target_count && !lossy)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--target: no codec in use has a quality to search");
    if (target_count && external && dl2_external_codec(external)->lossy)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--target: an external codec cannot be searched; give it --q in a run "
                             "of its own");
    if (arguments.subsampling != ENCODERS_OWN && !subsampled)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--subsampling: none of the codecs in use has a choice, or --codec "
                             "makes it everywhere");
    if (arguments.restart != ENCODERS_OWN && !restarted)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--restart: none of the codecs in use has restart intervals, or "
                             "--codec sets them everywhere");

    unsigned *qualities;
    size_t quality_count;
    int status =
        dl2_parse_uint_list(arguments.qualities, 1, 100, &qualities, &quality_count, error);
    if (status < 0) {
        dl2_error_prefix(error, "--q");
        return status;
    }
    *count = 0;
    const size_t graded = target_count ? target_count : quality_count;
    *out = dl2_calloc(selected.count * graded * resolution_count, sizeof **out);
    for (size_t c = 0; *out && c < selected.count; c++) {
        const struct dl2_settings *item = &selected.items[c];
        struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
        encode.effort = item->effort;
        encode.subsampling = item->subsampling;
        encode.restart = item->restart;
        encode.settings = item->codec->settings ? item->values : NULL;
        if (external && item->codec == dl2_external_codec(external))
            encode.external = external;
        /* variants at one resolution */
        const bool has_quality = dl2_settings_use_quality(item->codec, &encode);
        const bool searched = has_quality && target_count;
        const size_t own = has_quality ? graded : 1;
        for (size_t i = 0; i < resolution_count * own; i++) {
            encode.quality = searched ? 0 : (int)qualities[i % own];
            (*out)[(*count)++] = (struct dl2_transcode_target){.codec = item->codec,
                                                               .encode = encode,
                                                               .name = item->name,
                                                               .resolution = resolutions[i / own]};
            if (searched)
                (*out)[*count - 1].target = targets[i % own];
            if (item->tables && !status)
                status = find_tables(item, &(*out)[*count - 1], error);
        }
    }
    free(qualities);
    if (!*out)
        return dl2_error_memory(error, "options");
    DL2_TRY(status);
    DL2_TRY(check_targets(*out, *count, error));
    for (size_t t = 0; t < *count; t++)
        if (!(*out)[t].encode.external && (!t || (*out)[t].name != (*out)[t - 1].name))
            DL2_TRY(try_target(&(*out)[t], error));
    return DL2_OK;
}

/* Says what the variants lack, or were made from, once for all that lack the same. */
static void print_losses(const struct dl2_transcode_result *result)
{
    const struct dl2_transcode_variant *const variants = result->variants;
    for (size_t v = 0; v < result->variant_count; v++) {
        size_t first = 0, same = 0;
        while (strcmp(variants[first].losses, variants[v].losses) != 0)
            first++;
        if (!*variants[v].losses || first < v)
            continue;
        for (size_t other = v; other < result->variant_count; other++)
            if (!strcmp(variants[v].losses, variants[other].losses))
                printf("%s%s", same++ ? ", " : "", variants[other].name);
        printf(":\n");
        for (const char *line = variants[v].losses; *line; line += strcspn(line, "\n") + 1)
            printf("  %.*s\n", (int)strcspn(line, "\n"), line);
    }
}

static void print_table(const struct dl2_transcode_result *result)
{
    int width = (int)strlen("variant");
    for (size_t v = 0; v < result->variant_count; v++) {
        int length = (int)strlen(result->variants[v].name);
        width = length > width ? length : width;
    }
    printf("%-*s %9s %9s %14s %8s %8s %7s %7s\n", width, "variant", "images", "made", "bytes",
           "bpp", "of source", "copied", "failed");
    for (size_t v = 0; v < result->variant_count; v++) {
        const struct dl2_transcode_variant *variant = &result->variants[v];
        double pixels = (double)variant->pixels, source = (double)variant->source_bytes;
        printf("%-*s %9" PRIu64 " %9zu %14" PRIu64 " %8.4f %8.1f%% %7" PRIu64 " %7" PRIu64 "\n",
               width, variant->name, variant->images, variant->made, variant->bytes,
               pixels > 0 ? 8 * (double)variant->bytes / pixels : 0,
               source > 0 ? 100 * (double)variant->bytes / source : 0, variant->copied,
               variant->failed);
    }
    print_losses(result);
    if (result->ignored)
        printf("%zu files that are not images were ignored\n", result->ignored);
}

/* The exit status of a finished run. */
static int end_program(int status, const struct dl2_error *error, bool failures)
{
    int exit_status = status < 0 || failures ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    if (status == DL2_ERR_ARGUMENT)
        exit_status = dl2_program_usage_error(&program, "%s", error->message);
    else if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error->message);
    return exit_status;
}

/* Half of the machine's memory. */
static uint64_t default_memory_mib(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? ((uint64_t)pages * (uint64_t)page >> 21) + 1 : 1024;
}

static int save_facts(const struct dl2_transcode_result *result, struct dl2_error *error)
{
    for (size_t v = 0; v < result->variant_count; v++) {
        const struct dl2_transcode_variant *variant = &result->variants[v];
        json_auto_t *summary = NULL;
        char *path = NULL;
        DL2_TRY(dl2_facts_load(variant->path, &summary, error));
        if (!summary)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: another program has replaced the table", variant->path);
        if (asprintf(&path, "%s/%s/" DL2_FACTS_SUMMARY_NAME, arguments.facts, variant->name) < 0)
            return dl2_error_memory(error, "a path");
        int status = dl2_make_folder_of(path, error);
        if (status == DL2_OK)
            status = dl2_json_save(path, summary, error);
        free(path);
        DL2_TRY(status);
    }
    return DL2_OK;
}

static int transcode(char **places)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_transcode_target *targets = NULL;
    size_t target_count = 0;
    if (make_targets(&targets, &target_count, &error) < 0) {
        free(targets);
        return dl2_program_usage_error(&program, "%s", error.message);
    }
    struct dl2_progress progress;
    struct dl2_transcode_options options = {
        .source = places[0],
        .dest = places[1],
        .samples = arguments.samples,
        .targets = targets,
        .target_count = target_count,
        .decode = DL2_DECODE_DEFAULTS,
        .jobs = common.jobs,
        .memory = (arguments.memory_mib ? arguments.memory_mib : default_memory_mib()) << 20,
        .pack = pack_options(places[1]),
        .shuffle = shuffles() ? &arguments.shuffle : NULL,
        .force = arguments.force,
        .never_larger = arguments.never_larger,
        .colour = arguments.colour,
        .prune = arguments.prune,
        .progress = &progress};
    options.decode.max_pixels = arguments.max_pixels;
    options.decode.external = &arguments.external;
    memcpy(options.decode.background, arguments.background, sizeof arguments.background);

    struct dl2_transcode_result result;
    dl2_progress_begin(&progress, "transcode", "images", 0, common.quiet);
    int status = dl2_transcode(&options, &result, &error);
    dl2_progress_end(&progress);
    const bool failures = status == DL2_OK && result.failed_sources;
    if (status == DL2_OK)
        print_table(&result);
    if (status == DL2_OK && arguments.facts)
        status = save_facts(&result, &error);
    if (failures)
        fprintf(stderr, "%s: %zu of %zu images failed; they are named above and in %s\n",
                program.name, result.failed_sources, result.sources,
                dl2_dataset_is_database(places[1]) ? "the tables' comments" : "dl2-variant.json");
    dl2_transcode_result_free(&result);
    free(targets);
    return end_program(status, &error, failures);
}

static int copy(char **places)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_progress progress;
    const struct dl2_copy_options options = {.source = places[0],
                                             .dest = places[1],
                                             .samples = arguments.samples,
                                             .pack = pack_options(places[1]),
                                             .shuffle = shuffles() ? &arguments.shuffle : NULL,
                                             .jobs = common.jobs,
                                             .force = arguments.force,
                                             .prune = arguments.prune,
                                             .progress = &progress};
    struct dl2_copy_result result;
    dl2_progress_begin(&progress, "copy", "images", 0, common.quiet);
    int status = dl2_copy(&options, &result, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK)
        printf("%s: %zu images, %" PRIu64 " bytes, as %s; %zu written, %zu failed\n",
               DL2_SHOWN(places[1]), result.images, result.bytes, options.pack.container,
               result.written, result.failed);
    return end_program(status, &error, result.failed > 0);
}

static int write_index(const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    size_t count = 0;
    int status = dl2_dataset_write_index(path, dl2_image_slice, common.jobs, &count, &error);
    if (status == DL2_OK)
        printf("%s/dl2-index.bin: %zu samples\n", DL2_SHOWN(path), count);
    return end_program(status, &error, false);
}

static int identify(const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset_options everything = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    uint64_t fingerprint = 0;
    everything.keep = dl2_codec_is_image_file;
    everything.reads = dl2_codec_reads;
    everything.samples = arguments.samples;
    int status = dl2_dataset_open(path, &everything, &dataset, &error);
    if (status == DL2_OK) {
        dl2_dataset_tell(dataset, path, false, &(struct dl2_progress){.done = 0});
        status = dl2_dataset_fingerprint(dataset, &fingerprint, &error);
    }
    char *name = status == DL2_OK ? dl2_dataset_variant_name(path) : NULL;
    if (status == DL2_OK && !name)
        status = dl2_error_memory(&error, "a dataset");
    char clips[32] = "";
    if (status == DL2_OK && dl2_dataset_kind(dataset) == DL2_SAMPLE_CLIP)
        snprintf(clips, sizeof clips, "clips\t%zu\n", dl2_dataset_count(dataset));
    if (status == DL2_OK)
        printf("name\t%s\ncontainer\t%s\n%simages\t%zu\nbytes\t%" PRIu64
               "\nclasses\t%u\n%sfingerprint\t%016" PRIx64 "\n",
               DL2_SHOWN(name), dl2_dataset_container(dataset), clips,
               dl2_dataset_image_count(dataset), dl2_dataset_bytes(dataset),
               dl2_dataset_class_count(dataset),
               dl2_dataset_is_incomplete(dataset) ? "complete\tno\n" : "", fingerprint);
    free(name);
    dl2_dataset_close(dataset);
    return end_program(status, &error, false);
}

static int survey(const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_progress progress;
    json_auto_t *survey = NULL;
    const struct dl2_survey_options options = {.source = path,
                                               .samples = arguments.samples,
                                               .groups = arguments.groups,
                                               .max_pixels = arguments.max_pixels,
                                               .external = &arguments.external,
                                               .jobs = common.jobs,
                                               .progress = &progress};
    int status = arguments.json ? dl2_file_expect(arguments.json, &error) : DL2_OK;
    if (status == DL2_OK && arguments.groups)
        status = dl2_file_expect(arguments.groups, &error);
    if (status < 0)
        return end_program(status, &error, false);
    dl2_progress_begin(&progress, "survey", "images", 0, common.quiet);
    status = dl2_survey(&options, &survey, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK)
        dl2_survey_print(survey, stdout);
    if (status == DL2_OK && arguments.json)
        status = dl2_json_save(arguments.json, survey, &error);
    size_t i;
    json_t *bad = json_object_get(survey, "bad"), *image;
    json_array_foreach(bad, i, image) fprintf(stderr, "%s: %s: %s\n", program.name,
                                              DL2_SHOWN(dl2_json_get_text(image, "path", "")),
                                              DL2_SHOWN(dl2_json_get_text(image, "reason", "")));
    return end_program(status, &error, json_array_size(bad) > 0);
}

static int fit_tables(const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_progress progress;
    struct dl2_resolution resolutions[MAX_RESOLUTIONS];
    size_t images, failed;
    struct dl2_fit_options options = {.source = path,
                                      .samples = arguments.samples,
                                      .sensitivity = arguments.sensitivity,
                                      .height = arguments.input_size,
                                      .width = arguments.input_size,
                                      .resolutions = resolutions,
                                      .max_pixels = arguments.max_pixels,
                                      .external = &arguments.external,
                                      .jobs = common.jobs,
                                      .progress = &progress};
    for (size_t i = 0; dl2_codec_at(i); i++)
        if (dl2_codec_at(i)->count_coefficients)
            options.codec = dl2_codec_at(i);
    if (!options.codec)
        return dl2_program_usage_error(&program, "--fit-tables: this build cannot write JPEG");
    if (arguments.sensitivity && dl2_option_given(&program, &common, "input-size"))
        return dl2_program_usage_error(&program, "--input-size has no effect with --sensitivity, "
                                                 "which has the network's");
    memcpy(options.area, arguments.crop_area, sizeof options.area);
    if (parse_resolutions(resolutions, &options.resolution_count, &error) < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    int status = dl2_file_expect(arguments.fit_tables, &error);
    if (status < 0)
        return end_program(status, &error, false);
    dl2_progress_begin(&progress, "fit tables", "images", 0, common.quiet);
    status = dl2_fit_tables(&options, arguments.fit_tables, &images, &failed, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK)
        printf("%s: tables for qualities 1 to %d, from %zu images; %zu failed\n",
               DL2_SHOWN(arguments.fit_tables), DL2_TABLES_QUALITIES, images, failed);
    return end_program(status, &error, status == DL2_OK && failed);
}

/* The tables that a target is to have; NULL: the codec's own. */
static const char *tables_of(const struct dl2_transcode_target *target)
{
    for (size_t c = 0; c < selected.count; c++)
        if (selected.items[c].name == target->name && selected.items[c].tables)
            return selected.items[c].tables->path;
    return NULL;
}

/* Prints what would be made: its name, its codec's, its quality or "-", its place in DEST, and the
 * file of its tables or "-". */
static int list_variants(const struct dl2_transcode_target *targets, size_t count, const char *dest,
                         struct dl2_error *error)
{
    for (size_t t = 0; t < count; t++) {
        const struct dl2_transcode_target *target = &targets[t];
        char *name = dl2_variant_name(target), quality[16] = "-";
        char *place = name ? dl2_facts_place(dest, name) : NULL;
        if (!place) {
            free(name);
            return dl2_error_memory(error, "the variants");
        }
        if (dl2_settings_use_quality(target->codec, &target->encode))
            snprintf(quality, sizeof quality, "%d", target->encode.quality);
        const char *tables = tables_of(target);
        printf("%s\t%s\t%s\t%s\t%s\n", name, target->codec->name, quality, DL2_SHOWN(place),
               tables ? DL2_SHOWN(tables) : "-");
        free(name);
        free(place);
    }
    return DL2_OK;
}

/* Prints what this build has, after checking the other options. */
static int print_list(const char *dest)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_transcode_target *targets = NULL;
    size_t count = 0;
    int status = make_targets(&targets, &count, &error);
    if (status == DL2_OK && arguments.list == LIST_VARIANTS)
        status = list_variants(targets, count, dest, &error);
    free(targets);
    if (status < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    if (arguments.list == LIST_VARIANTS)
        return DL2_EXIT_OK;
    if (arguments.list == LIST_CONTAINERS)
        dl2_container_list(stdout);
    else if (arguments.list == LIST_SETTINGS)
        dl2_settings_list(stdout);
    else
        dl2_codec_list(stdout);
    return DL2_EXIT_OK;
}

static int run(char **places, size_t count)
{
    static const char *const only[] = {[COPY] = "--copy leaves images as they are",
                                       [INDEX] = "--index only writes an index",
                                       [SURVEY] = "--survey only looks at images",
                                       [IDENTIFY] = "--identify only looks at names and sizes",
                                       [FIT_TABLES] = "--fit-tables only fits tables"};
    const enum task task = arguments.identify     ? IDENTIFY
                           : arguments.survey     ? SURVEY
                           : arguments.index      ? INDEX
                           : arguments.fit_tables ? FIT_TABLES
                           : arguments.copy       ? COPY
                                                  : ENCODE;
    const char *idle = dl2_option_without_effect(&program, &common, 1u << task);
    if (idle && task == ENCODE)
        return dl2_program_usage_error(
            &program, "--%s needs --%s", idle,
            dl2_option_without_effect(&program, &common, ENCODES | FITS) ? "survey" : "fit-tables");
    if (idle)
        return dl2_program_usage_error(&program, "%s: leave out --%s", only[task], idle);
    if (arguments.survey + arguments.index + arguments.identify + !!arguments.fit_tables > 1)
        return dl2_program_usage_error(
            &program, "--survey, --index, --identify and --fit-tables exclude one another");
    const char *container = dl2_container_name(arguments.container);
    if (dl2_option_given(&program, &common, "shard") && !dl2_container_is_packed(container))
        return dl2_program_usage_error(
            &program, "--shard has no effect: --container=%s has no shards", container);
    if (arguments.list != LIST_NOTHING)
        return print_list(count > 1 ? places[1] : "DEST");
    if (task != ENCODE && task != COPY) {
        static int (*const tasks[])(const char *) = {[INDEX] = write_index,
                                                     [SURVEY] = survey,
                                                     [IDENTIFY] = identify,
                                                     [FIT_TABLES] = fit_tables};
        static const char *const names[] = {[INDEX] = "index",
                                            [SURVEY] = "survey",
                                            [IDENTIFY] = "identify",
                                            [FIT_TABLES] = "fit-tables"};
        return count == 1 ? tasks[task](places[0])
                          : dl2_program_usage_error(&program, "--%s takes one SOURCE", names[task]);
    }
    if (count != 2)
        return dl2_program_usage_error(&program, "name a SOURCE and a DEST");
    if (arguments.colour == DL2_COLOURS_CONVERT && !dl2_colour_engine())
        return dl2_program_usage_error(&program, "--colour convert: this build has no Little CMS "
                                                 "(Debian: liblcms2-dev)");
    if (shuffles() && !dl2_container_is_packed(pack_options(places[1]).container))
        return dl2_program_usage_error(
            &program, "--shuffle has no effect: --container=%s has no order", container);
    static const char *const for_folders[] = {"container", "shard", "prune"};
    for (size_t i = 0; i < sizeof for_folders / sizeof *for_folders; i++)
        if (dl2_dataset_is_database(places[1]) &&
            dl2_option_given(&program, &common, for_folders[i]))
            return dl2_program_usage_error(&program, "--%s has no effect: DEST is a table",
                                           for_folders[i]);
    return task == COPY ? copy(places) : transcode(places);
}

/* The end of --help: this build's codecs and containers, one line each, then the text. To free. */
static char *describe_details(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "Codecs of this build:\n");
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        if (!codec->encode)
            continue;
        fprintf(out, "  %-5s %s%s", codec->name, codec->lossy ? "quality 1-100" : "lossless",
                codec->has_subsampling ? ", subsampling" : "");
        if (codec->max_effort >= 0 && codec->usual_effort < 0)
            fprintf(out, ",\n        effort 0-%d (%s; default auto)", codec->max_effort,
                    codec->effort_help);
        else if (codec->max_effort >= 0)
            fprintf(out, ",\n        effort 0-%d (%s; default %d)", codec->max_effort,
                    codec->effort_help, codec->usual_effort);
        for (size_t s = 0; codec->settings && codec->settings[s].name; s++)
            fprintf(out, ",\n        %s: %s", codec->settings[s].name, codec->settings[s].help);
        fprintf(out, "\n");
    }
    fprintf(out, "\nContainers:\n");
    const char *container;
    for (size_t i = 0; (container = dl2_container_name(i)); i++)
        fprintf(out, "  %-6s  %s\n", container, dl2_container_summary(container));
    fputs("\n"
          "Makes DEST/CODEC-QUALITY, or with a size DEST/CODEC-QUALITY@SIZE, for each, with the "
          "tree of SOURCE, a dl2-variant.json that "
          "describes it, and a dl2-variant.jsonl with one line per image. EXIF orientation is "
          "applied, gray stays gray where the codec can, and transparent pixels are laid over the "
          "background. The content of a file, not its name, decides whether it is an image. DEST "
          "may not lie in SOURCE: the next run would take the variants for images of it.\n\n"
          "A rerun makes only what is missing or out of date: no file, another size than was "
          "written, a source of another size or time, other options, another version of the "
          "codec's library. A run that was killed leaves no half-written file; run it again to "
          "complete it.\n\n"
          "With --short, --max-side or --fit, images become smaller and never larger, with their "
          "aspect. Masks beside them (of the image's size, gray or with a palette, or called "
          "NAME.mask.EXT or NAME.seg.EXT) get the same size, by the nearest pixel. Coordinates in "
          "other files beside them stay those of the source.\n\n"
          "What lies beside images comes along as it is: files of the same name up to the "
          "extension, members of a sample in tar, metadata in gulp. What a container cannot hold "
          "is counted on stderr.\n\n"
          "With --container other than folder, a variant is a few large files, in a folder for "
          "each split if SOURCE has splits, with a dl2-index.bin that makes opening fast and holds "
          "a checksum of every image. It is made as a whole: if anything is out of date, all of it "
          "is made again. --copy makes DEST such a container of SOURCE's bytes as they are, or "
          "class folders from one. --index writes a dl2-index.bin beside shards that another "
          "program packed. --survey writes nothing but its FILEs.\n\n"
          "If DEST is postgresql://HOST/DATABASE?table=NAME, a variant is the table "
          "NAME_CODEC_QUALITY of a PostgreSQL database, and with --copy DEST is the table NAME. "
          "Each is written as a whole, in one transaction. The table's comment and its column "
          "\"made\" hold what dl2-variant.json and dl2-variant.jsonl say.\n\n"
          "An external codec is two commands: in them %i is the input file, %o the output "
          "file, %q the quality and %% a percent sign. The encoder's input is PNG; the decoder may "
          "write any format that this build reads. Commands run without a shell; quotes keep "
          "blanks, commas and semicolons in a word. Without %q there is one variant, called NAME. "
          "To read such a variant, "
          "pass --decoder to each program: none runs commands that a dataset comes with.\n\n"
          "Exit status: 0 success, 1 an image or the run failed (named on stderr), 2 wrong "
          "usage.\n\n"
          "Examples:\n"
          "  $ dl2-transcode --survey photos\n"
          "  $ dl2-transcode --identify photos\n"
          "  $ dl2-transcode --q 10,25,50,75 photos variants\n"
          "  $ dl2-transcode --q 50,70 --short 160,320,full photos variants\n"
          "  $ dl2-transcode --codec jpeg,jpeg:effort=1:subsampling=444 photos variants\n"
          "  $ dl2-transcode --codec jpeg,webp --effort webp=6 photos variants\n"
          "  $ dl2-transcode --codec 'cjxl=cjxl %i %o -q %q; djxl %i %o' --q 50 photos variants\n"
          "  $ dl2-transcode --copy --container=tar photos shards\n"
          "  $ dl2-transcode --copy photos 'postgresql:///mydb?table=photos'\n"
          "  $ dl2-transcode --q 25,50 photos 'postgresql:///mydb?table=photos'",
          out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int main(int argc, char **argv)
{
    char **places, *details = describe_details();
    size_t count;
    for (size_t i = 0; i < MAX_CONTAINERS; i++)
        containers[i] = dl2_container_name(i);
    arguments.codecs = dl2_codec_at(0)->name;
    program.details = details;
    dl2_program_parse(&program, argc, argv, &common, &places, &count);
    for (size_t i = 0; i < count; i++) { /* "photos/" would be "photos//train" in messages */
        const int length = dl2_path_folder_length(places[i]);
        if (length)
            places[i][length] = '\0';
    }
    const int exit_status = run(places, count);
    dl2_external_free(external);
    for (size_t c = 0; c < selected.count; c++)
        dl2_jpeg_tables_free(selected.items[c].tables);
    free(places);
    free(details);
    return exit_status;
}
