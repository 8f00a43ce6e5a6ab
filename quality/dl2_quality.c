/* dl2-quality: how far image variants are from their reference. */
#include "codec/codec.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/progress.h"
#include "quality/output.h"
#include "quality/score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    const char *json, *json_folder, *csv;
    uint64_t max_pixels;
    const char *background; /* NULL: the variants' own */
    const char *device;
};

/* What the variants were flattened on, as their dl2-variant.json says; white where none does. */
static int find_background(char **paths, size_t count, uint8_t background[3],
                           struct dl2_error *error)
{
    const char *first = NULL;
    memset(background, 255, 3);
    for (size_t i = 0; i < count; i++) {
        char *file = dl2_path_join(paths[i], "dl2-variant.json");
        json_t *json = NULL;
        uint8_t own[3];
        if (!file)
            return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
        const char *text = NULL;
        if (dl2_is_file(file) && dl2_json_load(file, NULL, &json, NULL) == DL2_OK)
            text = dl2_json_get_text(json_object_get(json, "options"), "background", NULL);
        const bool known = text && dl2_parse_colour(text, own, NULL) == DL2_OK;
        json_decref(json);
        free(file);
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

static void show_progress(void *context, size_t done, size_t total)
{
    struct dl2_progress *progress = context;
    progress->total = total;
    dl2_progress_update(progress, done, NULL);
}

static int write_files(const struct arguments *arguments, const struct dl2_scoring *scoring,
                       struct dl2_error *error)
{
    if (arguments->json)
        DL2_TRY(dl2_scoring_write_json(scoring, arguments->json, error));
    if (arguments->json_folder)
        DL2_TRY(dl2_scoring_write_json_folder(scoring, arguments->json_folder, error));
    if (arguments->csv)
        DL2_TRY(dl2_scoring_write_csv(scoring, arguments->csv, error));
    return DL2_OK;
}

/* So that no hours of scoring are lost for want of a folder. */
static int expect_files(const struct arguments *arguments, struct dl2_error *error)
{
    if (arguments->json)
        DL2_TRY(dl2_file_expect(arguments->json, error));
    if (arguments->json_folder)
        DL2_TRY(dl2_make_folders(arguments->json_folder, error));
    return arguments->csv ? dl2_file_expect(arguments->csv, error) : DL2_OK;
}

static int score(const struct arguments *arguments, const struct dl2_common_options *common,
                 char **paths, size_t count, struct dl2_error *error)
{
    struct dl2_progress progress;
    uint8_t background[3];
    if (arguments->background)
        DL2_TRY(dl2_parse_colour(arguments->background, background, error));
    else
        DL2_TRY(find_background(paths + 1, count - 1, background, error));
    struct dl2_scoring_options options = {.jobs = common->jobs,
                                          .max_pixels = arguments->max_pixels,
                                          .progress = show_progress,
                                          .context = &progress};
    memcpy(options.background, background, sizeof options.background);
    struct dl2_scoring scoring;
    DL2_TRY(expect_files(arguments, error));
    DL2_TRY(dl2_score_device_open(arguments->device, &options.device, error));
    dl2_progress_begin(&progress, "quality", "images", 0, common->quiet);
    int status = dl2_scoring_run(paths[0], (const char *const *)paths + 1, count - 1, &options,
                                 &scoring, error);
    dl2_progress_end(&progress);
    dl2_score_device_close(options.device);
    if (status < 0)
        return status;
    dl2_scoring_print(&scoring, stdout);
    fflush(stdout);
    dl2_scoring_print_faults(&scoring, stderr);
    status = write_files(arguments, &scoring, error);
    if (status == DL2_OK && dl2_scoring_has_faults(&scoring))
        status = 1;
    dl2_scoring_free(&scoring);
    return status;
}

/* Checked here, where wrong usage is told. */
static int keep_colour(const char *text, void *value, struct dl2_error *error)
{
    uint8_t unused[3];
    *(const char **)value = text;
    return dl2_parse_colour(text, unused, error);
}

static int keep_device(const char *text, void *value, struct dl2_error *error)
{
    *(const char **)value = text;
    return dl2_score_device_check(text, error);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.max_pixels = DL2_DEFAULT_MAX_PIXELS, .device = "cpu"};
    const struct dl2_option table[] = {
        {DL2_OPTION_TEXT, "json", 0, "FILE",
         "Write everything to FILE: aggregates, each image's figures, what could not be scored",
         &arguments.json, 0, 0, NULL},
        {DL2_OPTION_TEXT, "json-dir", 0, "DIR",
         "The same with a file for each variant, DIR/NAME.json", &arguments.json_folder, 0, 0,
         NULL},
        {DL2_OPTION_TEXT, "csv", 0, "FILE", "Write a line for each image of each variant to FILE",
         &arguments.csv, 0, 0, NULL},
        {DL2_OPTION_PARSE, "background", 'b', "RRGGBB",
         "What is under alpha (default: what dl2-variant.json says that dl2-transcode was told, "
         "else white)",
         &arguments.background, 0, 0, keep_colour},
        {DL2_OPTION_UINT64, "max-pixels", 0, "N", "Refuse larger images (default: 134217728)",
         &arguments.max_pixels, 1, 4294967295.0, NULL},
        {DL2_OPTION_PARSE, "device", 0, "NAME",
         "What scores: cpu, or cuda (cuda:1 is the second card), whose figures are the same to "
         "1e-5; images are decoded by the processors in any case, since a card's decoder rounds "
         "otherwise (default: cpu)",
         &arguments.device, 0, 0, keep_device},
        {DL2_OPTION_END, NULL, 0, NULL, NULL, NULL, 0, 0, NULL},
    };
    const struct dl2_program program = {
        .name = "dl2-quality",
        .synopsis = "REFERENCE VARIANT...",
        .summary = "Score variants of images against their reference by PSNR and SSIM.",
        .details =
            "REFERENCE and each VARIANT are folders of images, which are paired by their paths "
            "without extension, or image files.\n\n"
            "SSIM is that of Wang et al. 2004 as in ssim_index.m: 11x11 Gaussian window with sigma "
            "1.5, K1 0.01, K2 0.03, population covariance, valid region, no downsampling, of "
            "BT.601 "
            "full-range luma that is not rounded. PSNR is of R, G and B together, and of the same "
            "luma. Gray images count as R = G = B. Identical images have no PSNR, images with a "
            "side "
            "below 11 pixels no SSIM.\n\n"
            "Figures are given as mean, median, 5th percentile and minimum over the images; PSNR "
            "also "
            "as the dB of the mean MSE.\n\n"
            "Exit status: 0 all well; 1 something was missing, unreadable, of another size, or "
            "without a reference (each is named, and all else is scored); 2 wrong usage.\n\n"
            "Examples:\n"
            "  $ dl2-quality photos variants/jpeg-10 variants/jpeg-50\n"
            "  $ dl2-quality --csv scores.csv original.png smaller.webp",
        .options = table,
        .print_versions = dl2_codec_print_versions,
        .min_arguments = 2,
    };
    struct dl2_common_options common = {0};
    char **paths;
    size_t count;
    dl2_program_parse(&program, argc, argv, &common, &paths, &count);
    struct dl2_error error = DL2_ERROR_INIT;
    if (arguments.json_folder &&
        dl2_check_variant_names((const char *const *)paths + 1, count - 1, &error) < 0) {
        free(paths);
        return dl2_program_usage_error(&program, "--json-dir: %s", error.message);
    }
    int status = score(&arguments, &common, paths, count, &error);
    if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    free(paths);
    return status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}
