/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-quality: scores variants of images against their reference. */
#include "codec/codec.h"
#include "codec/external.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/progress.h"
#include "common/quote.h"
#include "dataset/subset_options.h"
#include "dataset/write/variant_facts.h"
#include "quality/codec_compare.h"
#include "quality/crops.h"
#include "quality/output.h"
#include "quality/score.h"
#include "quality/score_share.h"
#include "quality/volume_metrics.h"
#include "ranks/share_options.h"
#include "remote/remote_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct dl2_scoring_options scoring;
    struct dl2_external_decoders external;
    const char *json, *json_folder, *csv, *codec_compare, *out;
    const char *background; /* NULL: as the variants' dl2-variant.json say */
    const char *device;
    struct dl2_score_bound bounds[DL2_METRIC_COUNT];
    size_t bound_count;
    struct dl2_share share;
} arguments = {.scoring = {.max_pixels = DL2_DEFAULT_MAX_PIXELS,
                           .external = &arguments.external,
                           .heatmaps = {.error = DL2_HEATMAP_SSIM, .limit = 16}},
               .device = "cpu"};

/* The color that is given, or else that the variants were flattened on, from their
 * dl2-variant.json; white if none says. */
static int quality_find_background(char **paths, size_t count, struct dl2_error *error)
{
    uint8_t *background = arguments.scoring.background;
    const char *first = NULL;
    if (arguments.background)
        return dl2_parse_color(arguments.background, background, error);
    memset(background, 255, 3);
    for (size_t i = 0; i < count; i++) {
        json_t *json;
        uint8_t own[3];
        dl2_facts_load(paths[i], &json, NULL); /* opening what can't be read says why */
        const char *text = dl2_json_get_text(json_object_get(json, "options"), "background", NULL);
        const bool known = text && dl2_parse_color(text, own, NULL) == DL2_OK;
        json_decref(json);
        if (!known)
            continue;
        if (first && memcmp(own, background, 3) != 0)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s and %s have different backgrounds under alpha: score each by "
                                 "itself, or say --background where no image has alpha",
                                 first, paths[i]);
        first = paths[i];
        memcpy(background, own, 3);
    }
    return DL2_OK;
}

static int quality_write_files(const struct dl2_scoring *scoring, struct dl2_error *error)
{
    if (arguments.json)
        DL2_TRY(dl2_scoring_write_json(scoring, arguments.json, error));
    if (arguments.json_folder)
        DL2_TRY(dl2_scoring_write_json_folder(scoring, arguments.json_folder, error));
    if (arguments.csv)
        DL2_TRY(dl2_scoring_write_csv(scoring, arguments.csv, error));
    if (!arguments.codec_compare)
        return DL2_OK;
    struct dl2_codec_compare_counts counts;
    DL2_TRY(dl2_codec_compare_write(scoring, arguments.codec_compare, &counts, error));
    printf("\ncodec-compare: %zu rows in %s, %zu file%s and batches.json; %zu scored images left "
           "out, without a value by each metric\n",
           counts.rows, DL2_SHOWN(arguments.codec_compare), counts.batches,
           counts.batches == 1 ? "" : "s", counts.left_out);
    return DL2_OK;
}

/* Checks before the work begins that the files can be written. */
static int quality_expect_files(struct dl2_error *error)
{
    if (arguments.json)
        DL2_TRY(dl2_file_expect(arguments.json, error));
    if (arguments.json_folder)
        DL2_TRY(dl2_folder_expect(arguments.json_folder, error));
    if (arguments.codec_compare)
        DL2_TRY(dl2_folder_expect(arguments.codec_compare, error));
    if (arguments.scoring.heatmaps.folder) {
        DL2_TRY(dl2_heatmap_check(error));
        DL2_TRY(dl2_folder_expect(arguments.scoring.heatmaps.folder, error));
    }
    return arguments.csv ? dl2_file_expect(arguments.csv, error) : DL2_OK;
}

/* Writes crops by scores that are there. */
static int quality_crop(char **paths, size_t count, struct dl2_error *error)
{
    struct dl2_progress progress = {.done = 0};
    arguments.scoring.progress = &progress;
    DL2_TRY(quality_find_background(paths + 1, count - 1, error));
    return dl2_crops_write(paths[0], (const char *const *)paths + 1, count - 1,
                           arguments.json_folder, arguments.out, &arguments.scoring, error);
}

/* What has a bound is scored, beside what is scored anyway. Is a metric of inputs among them? */
static bool choose_metrics(void)
{
    const struct dl2_metric *metric;
    bool *metrics = arguments.scoring.metrics, any = false, any_of_input = false;
    for (unsigned i = 0; i < DL2_METRIC_COUNT; i++)
        any |= metrics[i];
    for (unsigned i = 0; (metric = dl2_metric_at(i)); i++) {
        metrics[i] |= !any && metric->by_default;
        for (size_t b = 0; b < arguments.bound_count; b++)
            metrics[i] |= arguments.bounds[b].metric == metric;
        any_of_input |= metrics[i] && metric->of_input;
    }
    return any_of_input;
}

/* Does the device score one of the metrics, by number in the registry? */
static bool scores_one_of(const struct dl2_score_device_class *device, const bool *metrics)
{
    for (unsigned i = 0; dl2_metric_at(i); i++)
        for (unsigned n = 0; device->metrics[n]; n++)
            if (metrics[i] && device->metrics[n] == dl2_metric_at(i))
                return true;
    return false;
}

/* Opens the device that is to score, and refuses one that scores none of the metrics. */
static int quality_open_device(struct dl2_error *error)
{
    struct dl2_scoring_options *options = &arguments.scoring;
    DL2_TRY(dl2_score_device_open(arguments.device, &options->device, error));
    if (!options->device || strcmp(arguments.device, "auto") == 0 ||
        scores_one_of(options->device->ops, options->metrics))
        return DL2_OK;
    dl2_score_device_close(options->device);
    options->device = NULL;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "--device=%s has no effect: it scores none of these metrics (see "
                         "--list devices)",
                         arguments.device);
}

/* ".scores.json.part" beside scores.json: what the names of parts' files begin with. To free. */
static char *quality_part_stem(const char *json)
{
    char *stem;
    const char *base = dl2_path_base(json);
    return asprintf(&stem, "%.*s.%s.part", (int)(base - json), json, base) < 0 ? NULL : stem;
}

/* Prints and writes what was scored: 1 if something is wrong with it. */
static int quality_report(const struct dl2_scoring *scoring, struct dl2_error *error)
{
    dl2_scoring_print(scoring, stdout);
    const size_t worse =
        dl2_scoring_print_worse(scoring, arguments.bounds, arguments.bound_count, stdout);
    if (arguments.scoring.heatmaps.folder)
        dl2_scoring_print_heatmaps(scoring, &arguments.scoring.heatmaps, stdout);
    fflush(stdout);
    dl2_scoring_print_faults(scoring, stderr);
    const int status = quality_write_files(scoring, error);
    return status == DL2_OK && (worse || dl2_scoring_has_faults(scoring)) ? 1 : status;
}

static int quality_score(const struct dl2_common_options *common, const struct dl2_world *world,
                         char **paths, size_t count, struct dl2_error *error)
{
    struct dl2_scoring_options *options = &arguments.scoring;
    struct dl2_progress progress;
    struct dl2_score_share share = {.part = arguments.share.part, .world = world, .file = {-1}};
    const bool first = dl2_world_rank(world) == 0;
    options->jobs = dl2_share_jobs(common, world);
    options->progress = &progress;
    DL2_TRY(quality_find_background(paths + 1, count - 1, error));
    for (size_t i = 0; i < count; i++)
        options->any_is_remote = options->any_is_remote || dl2_is_address(paths[i]);
    for (size_t i = 0; dl2_members_are_chosen(&options->members) && i < count; i++)
        options->any_has_members = options->any_has_members || dl2_dataset_has_members(paths[i]);
    struct dl2_scoring scoring = {.count = 0};
    char *stem = share.part.count ? quality_part_stem(arguments.json) : NULL;
    share.stem = stem;
    if (world)
        share.part = (struct dl2_work_part){dl2_world_rank(world) + 1, dl2_world_size(world)};
    if (share.part.count)
        options->share = &share;
    int status = quality_expect_files(error);
    if (status == DL2_OK)
        status = quality_open_device(error);
    status = dl2_world_agree(world, status, error);
    dl2_progress_begin(&progress, "quality", "images", 0, common->quiet || !first);
    if (status == DL2_OK)
        status = dl2_scoring_run(paths[0], (const char *const *)paths + 1, count - 1, options,
                                 &scoring, error);
    dl2_progress_end(&progress);
    dl2_score_device_close(options->device);
    if (status == DL2_OK && (!options->share || share.complete))
        status = quality_report(&scoring, error);
    else if (status == DL2_OK && !world)
        dl2_share_print_end(&share.part, share.parts_missing, share.first_missing,
                            "; another part has completed the scores");
    dl2_scoring_free(&scoring);
    free(stem);
    return status;
}

/* Keeps a text whose errors count as wrong usage. */
static int keep_color(const char *text, void *value, struct dl2_error *error)
{
    uint8_t unused[3];
    *(const char **)value = text;
    return dl2_parse_color(text, unused, error);
}

static int keep_device(const char *text, void *value, struct dl2_error *error)
{
    *(const char **)value = text;
    return dl2_score_device_check(text, error);
}

/* "psnr_rgb,ms_ssim", "all" or "default,ms_ssim" into bool[DL2_METRIC_COUNT]. */
static int parse_metrics(const char *text, void *value, struct dl2_error *error)
{
    const char *words[DL2_METRIC_COUNT + 3] = {NULL};
    bool *metrics = value;
    char **names;
    size_t count;
    int all = 0;
    for (const struct dl2_metric *metric; (metric = dl2_metric_at((unsigned)all)); all++) {
        words[all] = metric->name;
        metrics[all] = false;
    }
    words[all] = "all";
    words[all + 1] = "default";
    DL2_TRY(dl2_parse_name_list(text, &names, &count, error));
    int word = DL2_OK;
    for (size_t i = 0; word >= 0 && i < count; i++) {
        word = dl2_parse_word(names[i], words, error);
        for (int m = 0; m < all; m++)
            metrics[m] |= m == word || word == all ||
                          (word == all + 1 && dl2_metric_at((unsigned)m)->by_default);
    }
    dl2_free_list(names);
    return word < 0 ? word : DL2_OK;
}

/* "ssim=0.9" into the bounds. */
static int parse_bound(const char *text, void *value, struct dl2_error *error)
{
    (void)value;
    const char *words[DL2_METRIC_COUNT + 1] = {NULL};
    const size_t length = strcspn(text, "=");
    char name[64] = "", *end;
    for (unsigned i = 0; dl2_metric_at(i); i++)
        words[i] = dl2_metric_at(i)->name;
    if (length < sizeof name)
        memcpy(name, text, length);
    const int word = dl2_parse_word(name, words, error);
    DL2_TRY(word);
    const double bound = text[length] ? strtod(text + length + 1, &end) : NAN;
    if (!isfinite(bound) || end == text + length + 1 || *end)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not METRIC=VALUE, such as ssim=0.9",
                             text);
    for (size_t b = 0; b < arguments.bound_count; b++)
        if (arguments.bounds[b].metric == dl2_metric_at((unsigned)word))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has two bounds", name);
    arguments.bounds[arguments.bound_count++] =
        (struct dl2_score_bound){dl2_metric_at((unsigned)word), bound};
    return DL2_OK;
}

static void list_metrics(void)
{
    const struct dl2_metric *metric;
    for (unsigned i = 0; (metric = dl2_metric_at(i)); i++)
        printf("%s\t%s\t%s\t%s\t%s\n", metric->name, metric->title,
               *metric->unit ? metric->unit : "-", metric->by_default ? "default" : "on request",
               metric->definition);
}

static void list_devices(void)
{
    const struct dl2_score_device_class *device;
    for (unsigned i = 0; (device = dl2_score_device_at(i)); i++) {
        printf("%s\t%s\t%s", device->name, device->summary, device->metrics ? "" : "all");
        for (unsigned m = 0; device->metrics && device->metrics[m]; m++)
            printf("%s%s", m ? "," : "", device->metrics[m]->name);
        printf("\n");
    }
}

/* Prints a registry and ends the process, as --version does. */
static int print_list(const char *text, void *value, struct dl2_error *error)
{
    static const char *const words[] = {"metrics", "devices", NULL};
    static void (*const lists[])(void) = {list_metrics, list_devices};
    (void)value;
    const int word = dl2_parse_word(text, words, error);
    DL2_TRY(word);
    lists[word]();
    exit(DL2_EXIT_OK);
}

/* What scoring is, with a paragraph for each metric. To free. */
static char *quality_describe(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs("Gray images count as R = G = B. If the images of a VARIANT were resized (dl2-transcode "
          "--resize-shorter), REFERENCE's are resized in the same way, so its scores are those of "
          "the encoder "
          "alone.\n\n"
          "Metrics (those with * are scored by default):\n",
          out);
    const struct dl2_metric *metric;
    for (unsigned i = 0; (metric = dl2_metric_at(i)); i++) {
        fprintf(out, "%s%s%s: %s.", i ? "\n\n" : "\n", metric->name, metric->by_default ? " *" : "",
                metric->definition);
        if (metric->min_side > 1)
            fprintf(out, " Images with a side below %u pixels have no value.",
                    (unsigned)metric->min_side);
        if (metric->of_mse)
            fputs(" Identical images have no value.", out);
    }
    fputs("\n\nIf REFERENCE holds volumes, they and their variants are scored by these alone:\n",
          out);
    for (unsigned i = 0; (metric = dl2_volume_metric_at(i)); i++)
        fprintf(out, "%s%s: %s.", i ? "\n\n" : "\n", metric->name, metric->definition);
    fputs("\n\nThe table has the mean, median, 5th percentile and minimum over the images (where "
          "lower "
          "is better, the 95th percentile and the maximum), and for PSNR also the dB of the mean "
          "MSE.",
          out);
    fclose(out);
    return text;
}

static json_t *show_text(const void *value)
{
    const char *text = *(const char *const *)value;
    return text ? json_string(text) : json_null();
}

#define AT(member) offsetof(__typeof__(arguments), member)

enum command { SCORE, CROP, DRAW };
enum {
    SCORES_IMAGES = 1 << SCORE,
    CROPS = 1 << CROP,
    DRAWS = 1 << DRAW,
    SCORES_VOLUMES = 1 << 3, /* which is no command's */
    SCORES = SCORES_IMAGES | SCORES_VOLUMES,
    ALL_OF_IMAGES = SCORES_IMAGES | CROPS | DRAWS,
};

static struct dl2_command commands[] = {
    [SCORE] = {"score", SCORES_IMAGES, "REFERENCE VARIANT...", 2, 0,
               "Score images by metrics, and print a table", NULL}, /* main() adds the details */
    [CROP] = {"crops", CROPS, "REFERENCE VARIANT...", 2, 0,
              "Write crops of the worst, median and best images",
              "By each metric, the worst, the median and the best image are chosen by the scores "
              "that an earlier run wrote to --json-dir. Their crops, from REFERENCE and every "
              "VARIANT, are written as PNG, with a file crops.json."},
    [DRAW] = {"heatmap", DRAWS, "REFERENCE VARIANT...", 2, 0, "Draw where images differ",
              "Each image gets a file VARIANT/KEY.png, from dark blue, no error, to yellow. The "
              "scale is the same for all images."},
    {0},
};

static const struct dl2_option options[] = {
    {DL2_OPTION_TEXT, "json", 0, "FILE",
     "Write everything to FILE: aggregates, each image's figures, and what could not be scored",
     AT(json), .commands = SCORES, .basic = true},
    {DL2_OPTION_TEXT, "json-dir", 0, "DIR",
     "Folder of the same, one file per variant, DIR/NAME.json: score writes them, crops reads them",
     AT(json_folder), .commands = SCORES | CROPS, .basic = true},
    {DL2_OPTION_TEXT, "csv", 0, "FILE", "Write one line per image of each variant to FILE", AT(csv),
     .commands = SCORES, .basic = true},
    {DL2_OPTION_TEXT, "codec-compare", 0, "DIR",
     "Write the scores for the viewer codec-compare: DIR/batches.json and a file for each codec",
     AT(codec_compare), .commands = SCORES_IMAGES},
    {DL2_OPTION_TEXT, "out", 'o', "DIR", "Folder to write to", AT(out), .commands = CROPS | DRAWS,
     .also = "output", .basic = true},
    {DL2_OPTION_CHOICE, "of", 0, "ERROR",
     "What is drawn: ssim, 1 - SSIM of the window around each pixel, from 0 to 1; or squared, the "
     "root of the mean squared error of R, G and B, from 0 to 64",
     AT(scoring.heatmaps.error), .words = dl2_heatmap_errors, .commands = DRAWS},
    {DL2_OPTION_UINT, "limit", 0, "N", "Draw the first N images of REFERENCE",
     AT(scoring.heatmaps.limit), .min = 1, .max = 4294967295.0, .commands = DRAWS},
    {DL2_OPTION_PARSE, "metrics", 0, "LIST",
     "Metrics to score, separated by commas, of those of --list metrics; all; or default",
     AT(scoring.metrics), .parse = parse_metrics, .list = "metrics", .unset = "default",
     .commands = SCORES_IMAGES, .basic = true},
    {DL2_OPTION_PARSE, "below", 0, "METRIC=VALUE",
     "List the images whose score is worse than VALUE, below it or, where lower is better, above "
     "it, and exit with status 1 if there is one; may be given for several metrics, which are "
     "scored beside the others",
     0, .parse = parse_bound, .unset = "no bound", .commands = SCORES_IMAGES, .basic = true},
    {DL2_OPTION_UINT, "input-size", 0, "PIXELS",
     "Side of the networks' square input, at which input_psnr and input_ssim compare images",
     AT(scoring.input_size), .min = 1, .max = DL2_MAX_INPUT_SIZE, .unset = "224",
     .commands = SCORES_IMAGES, .basic = true},
    {DL2_OPTION_PARSE, "background", 'b', "RRGGBB", "Color under transparent pixels",
     AT(background), .parse = keep_color,
     .unset = "the variants' own, from dl2-variant.json, else white", .commands = ALL_OF_IMAGES,
     .basic = true},
    {DL2_OPTION_TABLE, .table = dl2_subset_options, .offset = AT(scoring.subset),
     .commands = SCORES | DRAWS},
    {DL2_OPTION_TABLE, .table = dl2_samples_options, .offset = AT(scoring.samples),
     .commands = SCORES_IMAGES | DRAWS},
    {DL2_OPTION_TABLE, .table = dl2_member_options, .offset = AT(scoring.members),
     .commands = SCORES_IMAGES | DRAWS},
    {DL2_OPTION_TABLE, .table = dl2_remote_options, .offset = AT(scoring.remote),
     .commands = SCORES_IMAGES | DRAWS},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N", "Refuse images with more pixels",
     AT(scoring.max_pixels), .min = 1, .max = 4294967295.0},
    {DL2_OPTION_TABLE, .table = dl2_external_options, .offset = AT(external),
     .commands = ALL_OF_IMAGES},
    {DL2_OPTION_TABLE, .table = dl2_bands_options, .offset = AT(scoring.drop_bands),
     .commands = ALL_OF_IMAGES},
    {DL2_OPTION_TABLE, .table = dl2_share_options, .offset = AT(share), .commands = SCORES},
    {DL2_OPTION_PARSE, "device", 0, "NAME",
     "Device that scores: auto, cpu, or cuda (cuda:1 is the second card; untested on hardware). "
     "Values differ by at most 1e-5. The processors decode in any case, because a card's decoder "
     "rounds differently, and score the metrics that the device lacks",
     AT(device), .parse = keep_device, .list = "devices", .show = show_text,
     .commands = SCORES_IMAGES},
    {DL2_OPTION_PARSE, "list", 0, "WHAT",
     "List what this build has, and exit: metrics (name, title, unit, whether scored by default, "
     "definition) or devices (name, description, what they score); one line each, with tabs "
     "between the columns",
     .parse = print_list, .basic = true},
    {DL2_OPTION_END},
};

static const struct dl2_program program = {
    .name = "dl2-quality",
    .summary = "Score variants of images against their reference.",
    .details = "REFERENCE and each VARIANT are datasets, or image files. Images of folders are "
               "paired by their paths without extension.\n\n"
               "Exit status: 0 if all images were scored; 1 if an image was missing, unreadable, "
               "of another size or without a reference (each is named, and the others are "
               "scored), or worse than --below; 2 for wrong usage.",
    .examples = "  $ dl2-quality photos variants/jpeg-10 variants/jpeg-50\n"
                "  $ dl2-quality --csv scores.csv original.png smaller.webp\n"
                "  $ dl2-quality --metrics ssim,ms_ssim photos variants/webp-75\n"
                "  $ dl2-quality --below ssim=0.7 photos variants/jpeg-50\n"
                "  $ dl2-quality heatmap --out maps photos variants/jpeg-10",
    .options = options,
    .values = &arguments,
    .commands = commands,
    .has_default = true,
    .print_versions = dl2_codec_print_versions,
};

static int quality_end(int status, const struct dl2_error *error)
{
    if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error->message);
    return status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

/* Scores in this process, alone or as a rank, of which rank 0 says how it ended. */
static int quality_score_in_world(const struct dl2_common_options *common, char **paths,
                                  size_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_world *world;
    int exit_status = DL2_EXIT_FAILED;
    if (dl2_share_open(&arguments.share, program.name, &world, &exit_status) != DL2_OK)
        return exit_status;
    const int status =
        quality_score(common, dl2_world_size(world) > 1 ? world : NULL, paths, count, &error);
    exit_status = dl2_world_rank(world) ? (status ? DL2_EXIT_FAILED : DL2_EXIT_OK)
                                        : quality_end(status, &error);
    dl2_world_close(world);
    return exit_status;
}

/* A reason why the arguments do not fit together, or NULL. */
static const char *quality_find_conflict(enum command command)
{
    const bool of_input = choose_metrics();
    if (arguments.share.part.count && !arguments.json)
        return "--part needs --json FILE, beside which parts keep their scores until all are there";
    if (command == CROP && !arguments.json_folder)
        return "crops: --json-dir must name the folder of the scores";
    if (command != SCORE && !arguments.out)
        return "--out must name a folder to write to";
    if (arguments.scoring.input_size && !of_input)
        return "--input-size has no effect without input_psnr or input_ssim (--metrics)";
    return dl2_share_find_conflict(&arguments.share);
}

static int quality_run(const struct dl2_common_options *common, char **paths, size_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const enum command command = (enum command)common->command;
    const char *const named = arguments.json_folder     ? "--json-dir"
                              : arguments.out           ? "--out"
                              : arguments.codec_compare ? "--codec-compare"
                                                        : NULL;
    if (named && dl2_check_variant_names((const char *const *)paths + 1, count - 1, &error) < 0)
        return dl2_program_usage_error(&program, "%s: %s", named, error.message);
    if (command == DRAW) { /* and score by what is drawn */
        arguments.scoring.heatmaps.folder = arguments.out;
        const bool of_ssim = arguments.scoring.heatmaps.error == DL2_HEATMAP_SSIM;
        if (parse_metrics(of_ssim ? "ssim" : "psnr_rgb", arguments.scoring.metrics, &error) < 0)
            return quality_end(error.status, &error);
    }
    arguments.scoring.idle_on_volumes = dl2_option_without_effect(&program, common, SCORES_VOLUMES);
    const char *conflict = quality_find_conflict(command);
    if (conflict)
        return dl2_program_usage_error(&program, "%s", conflict);
    const int refused = dl2_subset_options_check(&program, common, &arguments.scoring.subset);
    if (refused)
        return refused;
    return command == CROP ? quality_end(quality_crop(paths, count, &error), &error)
                           : quality_score_in_world(common, paths, count);
}

int main(int argc, char **argv)
{
    struct dl2_common_options common = {0};
    char **paths, *details = quality_describe();
    size_t count;
    commands[SCORE].details = details;
    dl2_program_parse(&program, argc, argv, &common, &paths, &count);
    free(details);
    const int exit_status = quality_run(&common, paths, count);
    free(paths);
    return exit_status;
}
