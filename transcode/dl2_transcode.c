/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-transcode: recompresses a tree of images by several codecs at several qualities. */
#include "common/file.h"
#include "common/json.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/subset_options.h"
#include "dataset/tell.h"
#include "dataset/write/variant_facts.h"
#include "quality/image_dataset.h"
#include "transcode/copy.h"
#include "transcode/frames.h"
#include "transcode/preprocess.h"
#include "transcode/survey.h"
#include "transcode/tables/fit_tables.h"
#include "transcode/transcode_options.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/variant.h"

#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dl2_progress progress;

static struct dl2_transcode_arguments arguments = {
    .run = {.decode = {.max_pixels = DL2_DEFAULT_MAX_PIXELS,
                       .background = {255, 255, 255},
                       .external = &arguments.external},
            .pack = {.slice = dl2_image_slice},
            .never_larger = true,
            .progress = &progress},
    .qualities = "75",
    .subsampling = DL2_ENCODERS_OWN,
    .restart = DL2_ENCODERS_OWN,
    .each = {.tolerance = 0, .probes = 16, .input_size = 224},
    .shard_mib = 256,
    .crop_area = {0.08, 1},
    .preprocess = {.spacing = {NAN}, .clip = {NAN, NAN}, .normal = {NAN, NAN}},
    .list = DL2_NO_LIST};
static struct dl2_common_options common;

static struct dl2_command commands[] = {
    [DL2_ENCODE] = {"recompress", DL2_ENCODES, "SOURCE DEST", 0, 2,
                    "Make variants by codecs at qualities", NULL}, /* main() adds the details */
    [DL2_COPY] = {"copy", 1 << DL2_COPY, "SOURCE DEST", 2, 2,
                  "Copy images as they are into another container",
                  "Makes DEST a container of SOURCE's bytes as they are, or class folders from "
                  "one. What lies beside images comes along."},
    [DL2_INDEX] = {"index", 1 << DL2_INDEX, "SOURCE", 1, 1, "Write an index for packed files",
                   "Writes a dl2-index.bin beside shards that another program packed."},
    [DL2_SURVEY] = {"survey", DL2_SURVEYS, "SOURCE", 1, 1, "Say what is in a dataset",
                    "Says formats, sizes, JPEG qualities, mean and deviation, near duplicates, and "
                    "files that cannot be read. Nothing is written but the FILEs of options."},
    [DL2_IDENTIFY] =
        {"identify", DL2_IDENTIFIES, "SOURCE", 1, 1, "Say name, size and fingerprint, for scripts",
         "Prints name, container, images, bytes, classes, \"splits no\" where no names are of "
         "splits, \"complete no\" of a variant that is not finished, and a fingerprint that "
         "changes with anything in "
         "SOURCE; one line each, the word and the value with a tab between them. Only "
         "names and sizes are looked at."},
    [DL2_FIT_TABLES] = {"fit-tables", DL2_FITS, "SOURCE FILE", 2, 2,
                        "Fit JPEG quantization tables to a training",
                        "Fits tables to SOURCE's training images and to what a training sees of "
                        "them, at each resolution, and writes FILE, for --codec jpeg:tables=FILE, "
                        "which names the variants."},
    [DL2_MAKE_FRAMES] = {"frames", DL2_MAKES_FRAMES, "SOURCE DEST", 2, 2,
                         "Make clips of the frames of videos",
                         "Makes DEST a dataset of clips of SOURCE's videos, encoded by the one "
                         "codec of --codec at the one quality of --q. Frame k is the one that the "
                         "video shows at (k + 1/2) / fps seconds, as FFmpeg's filter fps has it. "
                         "Frames are turned upright, become smaller and never larger, and are "
                         "packed or put into folders CLASS/CLIP/00000.jpg. Sound is dropped. A "
                         "rerun makes only the clips whose video or settings changed."},
    [DL2_PREPROCESS] =
        {"preprocess", DL2_PREPROCESSES, "SOURCE DEST", 2, 2,
         "Make raw volumes one dataset to train on",
         "Turns, resamples, clips and normalizes each volume of SOURCE, in this order, and turns "
         "and resamples its labels: DEST/NAME.npy, float32, and DEST/NAME.mask.npy, uint8. SOURCE "
         "is a folder of volumes with NAME.mask.EXT beside them, of KiTS19 "
         "(case_00000/imaging.nii.gz and segmentation.nii.gz), or of the Medical Segmentation "
         "Decathlon (imagesTr, labelsTr, imagesTs). A volume without spacing, where that is "
         "asked for, or with labels of another shape, spacing or orientation is named and left "
         "out. A rerun makes only what is missing or older than its source, or all with other "
         "settings."},
    {0},
};

static struct dl2_program program = {
    .name = "dl2-transcode",
    .summary = "Recompress a tree of images by several codecs at several qualities.",
    .details = "Exit status: 0 success, 1 an image or the run failed (named on stderr), 2 wrong "
               "usage.",
    .examples =
        "  $ dl2-transcode survey photos\n"
        "  $ dl2-transcode identify photos\n"
        "  $ dl2-transcode --q 10,25,50,75 photos variants\n"
        "  $ dl2-transcode --q 50,70 --resize-shorter 160,320,full photos variants\n"
        "  $ dl2-transcode --codec jpeg,jpeg:effort=1:subsampling=444 photos variants\n"
        "  $ dl2-transcode --codec jpeg,webp --effort webp=6 photos variants\n"
        "  $ dl2-transcode --codec 'cjxl=cjxl %i %o -q %q; djxl %i %o' --q 50 photos variants\n"
        "  $ dl2-transcode --codec jp2 --q 10,50,90 scans scan-variants\n"
        "  $ dl2-transcode copy --container=tar photos shards\n"
        "  $ dl2-transcode frames --fps 8 --resize-shorter 128 --q 85 --container=gulp videos "
        "clips\n"
        "  $ dl2-transcode preprocess --spacing 1.6,1.2,1.2 --clip=-79,304 --normalize 101,76.9 "
        "kits "
        "prepared\n"
        "  $ dl2-transcode --codec h264,av1 --q 23,35 clips variants\n"
        "  $ dl2-transcode copy photos 'postgresql:///mydb?table=photos'\n"
        "  $ dl2-transcode --q 25,50 photos 'postgresql:///mydb?table=photos'",
    .options = dl2_transcode_rows,
    .values = &arguments,
    .commands = commands,
    .has_default = true,
    .print_versions = dl2_codec_print_versions,
};

static struct dl2_selection selection = {
    .program = &program, .common = &common, .arguments = &arguments};

/* What the task works on, and why it fails. */
static struct dl2_transcode_options *const options = &arguments.run;
static struct dl2_error error = DL2_ERROR_INIT;

static bool given(const char *option)
{
    return dl2_option_given(&program, &common, option);
}

/* `dest`: NULL for a task that has none. */
static void set_options(const char *source, const char *dest)
{
    options->source = source;
    options->dest = dest;
    options->jobs = common.jobs;
    options->pack.container = dest && dl2_dataset_is_database(dest)
                                  ? "postgresql"
                                  : dl2_container_name(arguments.container);
    options->pack.shard_bytes = (uint64_t)arguments.shard_mib << 20;
    options->shuffle = given("shuffle") ? &arguments.shuffle : NULL;
    options->idle_on_volumes =
        dl2_option_without_effect(&program, &common, 1u << DL2_ENCODE_VOLUMES);
    options->part = arguments.share.part;
}

/* The exit status of a finished run. */
static int end_program(int status, bool failures)
{
    if (status == DL2_ERR_ARGUMENT)
        return dl2_program_usage_error(&program, "%s", error.message);
    if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    return status < 0 || failures ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

/* Names the order of --shuffle. */
static void print_order(void)
{
    if (given("shuffle"))
        printf("images are packed in the random order of seed %" PRIu64 "\n", arguments.shuffle);
}

/* ---- Encoding */

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

/* What variants consist of. */
static const char *item_name(void)
{
    return selection.target_count && selection.targets[0].codec->video ? "clips" : "images";
}

static void print_table(const struct dl2_transcode_result *result)
{
    int width = (int)strlen("variant");
    for (size_t v = 0; v < result->variant_count; v++) {
        int length = (int)strlen(result->variants[v].name);
        width = length > width ? length : width;
    }
    printf("%-*s %9s %9s %14s %8s %8s %7s %7s\n", width, "variant", item_name(), "made", "bytes",
           "bpp", "of source", "copied", "failed");
    for (size_t v = 0; v < result->variant_count; v++) {
        const struct dl2_transcode_variant *variant = &result->variants[v];
        const struct dl2_variant_totals *totals = &variant->totals;
        double pixels = (double)totals->pixels, source = (double)totals->source_bytes;
        printf("%-*s %9" PRIu64 " %9zu %14" PRIu64 " %8.4f %8.1f%% %7" PRIu64 " %7" PRIu64 "\n",
               width, variant->name, totals->images, variant->made, totals->bytes,
               pixels > 0 ? 8 * (double)totals->bytes / pixels : 0,
               source > 0 ? 100 * (double)totals->bytes / source : 0, totals->copied,
               totals->failed);
    }
    print_losses(result);
    if (result->ignored)
        printf("%zu files that are not images were ignored\n", result->ignored);
}

/* Half of the machine's memory. */
static uint64_t default_memory_mib(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? ((uint64_t)pages * (uint64_t)page >> 21) + 1 : 1024;
}

static int save_facts(const struct dl2_transcode_variant *variant)
{
    json_auto_t *summary = NULL;
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_facts_load(variant->path, &summary, &error));
    if (!summary)
        return dl2_error_set(&error, DL2_ERR_FORMAT, "%s: another program has replaced it",
                             variant->path);
    DL2_TRY(
        dl2_format(&path, &error, "%s/%s/" DL2_FACTS_SUMMARY_NAME, arguments.facts, variant->name));
    DL2_TRY(dl2_make_folder_of(path, &error));
    return dl2_json_save(path, summary, &error);
}

/* Why the processes that were asked for cannot share this run, or NULL. */
static const char *find_sharing_conflict(void)
{
    if (options->time_limit > 0 &&
        (arguments.share.part.count || arguments.share.ranks ||
         !dl2_output_is_folder(options->dest) || dl2_container_is_packed(options->pack.container)))
        return "--time-limit needs one process and --container folder in a folder DEST: a later "
               "run goes on with what this one leaves";
    if (arguments.share.part.count && options->force)
        return "--force has no effect with --part, each of which would undo the others; remove the "
               "variants in DEST instead";
    return dl2_share_find_conflict(&arguments.share);
}

/* Says which variants have not all images within --time-limit. */
static void tell_late(const struct dl2_transcode_result *result)
{
    for (size_t v = 0; result->late && v < result->variant_count; v++) {
        const struct dl2_variant_totals *totals = &result->variants[v].totals;
        if (totals->images + totals->failed < result->sources)
            fprintf(stderr,
                    "%s: %s did not finish in %g s (--time-limit): %" PRIu64 " of %zu %s are made; "
                    "a higher limit goes on with it\n",
                    program.name, result->variants[v].name, options->time_limit, totals->images,
                    result->sources, item_name());
    }
}

/* Prints what a run has made; rank 0 does. */
static void print_result(const struct dl2_transcode_result *result)
{
    print_table(result);
    print_order();
    if (arguments.share.part.count)
        dl2_share_print_end(&arguments.share.part, result->parts_missing, result->first_missing,
                            result->complete
                                ? ", and the variants are complete"
                                : "; others are at work, and the last one completes the variants");
    tell_late(result);
    if (result->failed_sources)
        fprintf(stderr, "%s: %zu of %zu %s failed; they are named above%s\n", program.name,
                result->failed_sources, result->sources, item_name(),
                !result->complete                        ? ""
                : dl2_dataset_is_database(options->dest) ? " and in the tables' comments"
                                                         : " and in dl2-variant.json");
}

/* Where x264 reads memory of its frames that it has not written, what earlier clips left there
 * would decide a little of the file, in about one short clip of a hundred: it finds zeros instead,
 * so that the bytes are the same for any number of threads. Before any thread. */
static void clear_memory(void)
{
#ifdef M_PERTURB
    enum { ZEROS = 0xff }; /* new memory gets the complement */
    mallopt(M_PERTURB, ZEROS);
#endif
}

/* Makes the variants in this process: alone, or as a rank, of which rank 0 speaks. */
static int transcode_in_world(const struct dl2_world *world)
{
    const bool first = dl2_world_rank(world) == 0;
    if (dl2_select_targets(&selection, &error) < 0)
        return first ? dl2_program_usage_error(&program, "%s", error.message) : DL2_EXIT_USAGE;
    if (world && options->time_limit > 0)
        return first ? dl2_program_usage_error(&program, "--time-limit needs one process")
                     : DL2_EXIT_USAGE;
    const struct dl2_codec *codec = selection.targets[0].codec;
    if (codec->video && (given("container") || !dl2_output_is_folder(options->dest)))
        return first ? dl2_program_usage_error(
                           &program,
                           "%s makes videos, which lie in folders: leave out --container, "
                           "and name a folder of this machine as DEST",
                           codec->name)
                     : DL2_EXIT_USAGE;
    if (codec->video)
        clear_memory();
    const uint64_t memory = arguments.memory_mib ? arguments.memory_mib : default_memory_mib();
    options->targets = selection.targets;
    options->target_count = selection.target_count;
    options->jobs = dl2_share_jobs(&common, world);
    options->memory = (memory << 20) / (world ? world->local_size : 1);
    options->world = world;

    struct dl2_transcode_result result;
    char label[64] = "transcode";
    if (world)
        snprintf(label, sizeof label, "transcode, 1 of %u ranks", dl2_world_size(world));
    dl2_progress_begin(&progress, label, item_name(), 0, common.quiet || !first);
    int status = dl2_transcode(options, &result, &error);
    dl2_progress_end(&progress);
    const bool failures = status == DL2_OK && (result.failed_sources || result.late);
    if (status == DL2_OK && first)
        print_result(&result);
    const size_t facts =
        arguments.facts && (result.complete || result.late) ? result.variant_count : 0;
    for (size_t v = 0; status == DL2_OK && v < facts; v++)
        status = save_facts(&result.variants[v]);
    dl2_transcode_result_free(&result);
    if (first)
        return end_program(status, failures);
    return status < 0 || failures ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

static int transcode(void)
{
    struct dl2_world *world;
    int exit_status = DL2_EXIT_FAILED;
    const char *conflict = find_sharing_conflict();
    if (conflict)
        return dl2_program_usage_error(&program, "%s", conflict);
    if (dl2_share_open(&arguments.share, program.name, &world, &exit_status) != DL2_OK)
        return exit_status;
    const struct dl2_world *several = dl2_world_size(world) > 1 ? world : NULL;
    exit_status = transcode_in_world(several);
    dl2_world_close(world);
    return exit_status;
}

/* ---- Other tasks */

static int copy(void)
{
    struct dl2_copy_result result;
    dl2_progress_begin(&progress, "copy", "images", 0, common.quiet);
    const int status = dl2_copy(options, &result, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK) {
        printf("%s: %zu images, %" PRIu64 " bytes, as %s; %zu written, %zu failed\n",
               DL2_SHOWN(options->dest), result.images, result.bytes, options->pack.container,
               result.written, result.failed);
        print_order();
    }
    return end_program(status, result.failed > 0);
}

static int write_index(void)
{
    const char *path = options->source;
    char *remarks;
    size_t count = 0;
    const int status = dl2_dataset_write_index(path, &options->members, dl2_image_slice,
                                               common.jobs, &count, &remarks, &error);
    if (status == DL2_OK)
        printf("%s/dl2-index.bin: %zu samples\n", DL2_SHOWN(path), count);
    char *rest = remarks;
    for (const char *line; (line = strsep(&rest, "\n"));)
        fprintf(stderr, "%s: %s: %s\n", program.name, DL2_SHOWN(path), DL2_SHOWN(line));
    free(remarks);
    return end_program(status, false);
}

/* Prints what a dataset is. */
static int print_identity(const struct dl2_dataset *dataset)
{
    uint64_t fingerprint = 0;
    char clips[32] = "";
    dl2_dataset_tell(dataset, options->source, false, &progress);
    DL2_TRY(dl2_dataset_fingerprint(dataset, &fingerprint, &error));
    DL2_AUTO_FREE char *name = dl2_dataset_variant_name(options->source);
    if (!name)
        return dl2_error_memory(&error, "a dataset");
    const enum dl2_sample_kind kind = dl2_dataset_kind(dataset);
    if (kind != DL2_SAMPLE_IMAGE)
        snprintf(clips, sizeof clips, "%s\t%zu\n",
                 kind == DL2_SAMPLE_CLIP    ? "clips"
                 : kind == DL2_SAMPLE_VIDEO ? "videos"
                                            : "volumes",
                 dl2_dataset_count(dataset));
    printf("name\t%s\ncontainer\t%s\n%simages\t%zu\nbytes\t%" PRIu64
           "\nclasses\t%u\n%s%sfingerprint\t%016" PRIx64 "\n",
           DL2_SHOWN(name), dl2_dataset_container(dataset), clips, dl2_dataset_image_count(dataset),
           dl2_dataset_bytes(dataset), dl2_dataset_class_count(dataset),
           dl2_dataset_has_parts(dataset) ? "" : "splits\tno\n",
           dl2_dataset_is_incomplete(dataset) ? "complete\tno\n" : "", fingerprint);
    return DL2_OK;
}

static int identify(void)
{
    struct dl2_dataset_options everything =
        dl2_image_dataset_options(options->samples, &options->members);
    struct dl2_dataset *dataset;
    everything.by_frame = false;
    everything.takes_videos = true;
    everything.decode_slice = dl2_gray_decode;
    int status = dl2_dataset_open(options->source, &everything, &dataset, &error);
    if (status == DL2_OK) {
        status = print_identity(dataset);
        dl2_dataset_close(dataset);
    }
    return end_program(status, false);
}

static int survey(void)
{
    json_auto_t *survey = NULL;
    int status = arguments.json ? dl2_file_expect(arguments.json, &error) : DL2_OK;
    if (status == DL2_OK && arguments.files.groups)
        status = dl2_file_expect(arguments.files.groups, &error);
    if (status == DL2_OK && arguments.files.csv)
        status = dl2_file_expect(arguments.files.csv, &error);
    if (status < 0)
        return end_program(status, false);
    dl2_progress_begin(&progress, "survey", "images", 0, common.quiet);
    status = dl2_survey(options, &arguments.files, &survey, &error);
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
    return end_program(status, json_array_size(bad) > 0);
}

static int fit_tables(const char *file)
{
    size_t images, failed;
    struct dl2_fit_options fit = {.common = options,
                                  .sensitivity = arguments.sensitivity,
                                  .height = arguments.each.input_size,
                                  .width = arguments.each.input_size,
                                  .resolutions = selection.resolutions};
    for (size_t i = 0; dl2_codec_at(i); i++)
        if (dl2_codec_at(i)->count_coefficients)
            fit.codec = dl2_codec_at(i);
    if (!fit.codec)
        return dl2_program_usage_error(&program, "this build cannot write JPEG");
    if (arguments.sensitivity && given("input-size"))
        return dl2_program_usage_error(&program, "--input-size has no effect with --sensitivity, "
                                                 "which has the network's");
    memcpy(fit.area, arguments.crop_area, sizeof fit.area);
    int status = dl2_select_resolutions(&selection, &error);
    fit.resolution_count = selection.resolution_count;
    if (status == DL2_OK)
        status = dl2_file_expect(file, &error);
    if (status < 0)
        return end_program(status, false);
    dl2_progress_begin(&progress, "fit tables", "images", 0, common.quiet);
    status = dl2_fit_tables(&fit, file, &images, &failed, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK)
        printf("%s: tables for qualities 1 to %d, from %zu images; %zu failed\n", DL2_SHOWN(file),
               DL2_TABLES_QUALITIES, images, failed);
    return end_program(status, status == DL2_OK && failed);
}

/* ---- Videos */

/* How frames are resized and encoded: the one target that the options come to. */
static int select_frames(void)
{
    if (!arguments.frame_rate.numerator)
        return dl2_error_set(&error, DL2_ERR_ARGUMENT,
                             "frames needs --fps N, frames of each second");
    if (!arguments.sizes[DL2_SHORT] && given("filter"))
        return dl2_error_set(
            &error, DL2_ERR_ARGUMENT,
            "--filter has no effect: no frame is resized; give --resize-shorter N");
    DL2_TRY(dl2_select_targets(&selection, &error));
    options->targets = selection.targets;
    options->target_count = selection.target_count;
    if (selection.target_count != 1)
        return dl2_error_set(&error, DL2_ERR_ARGUMENT,
                             "frames makes one dataset: give --codec one codec, --q one quality, "
                             "and --resize-shorter one length");
    if (selection.targets[0].codec->video)
        return dl2_error_set(&error, DL2_ERR_ARGUMENT,
                             "frames encodes frames as images; leave the word out for %s, which "
                             "makes videos of videos",
                             selection.targets[0].codec->name);
    return selection.external
               ? dl2_error_set(&error, DL2_ERR_ARGUMENT,
                               "frames encodes by codecs of this build; external ones take its "
                               "DEST as their SOURCE")
               : DL2_OK;
}

static int make_frames(void)
{
    struct dl2_frames_result result;
    if (select_frames() < 0)
        return end_program(error.status, false);
    dl2_progress_begin(&progress, "frames", "videos", 0, common.quiet);
    const int status = dl2_frames_make(options, arguments.frame_rate, &result, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK) {
        printf("%s: %zu clips, %" PRIu64 " frames, %" PRIu64 " bytes, as %s; %zu written, "
               "%zu failed\n",
               DL2_SHOWN(options->dest), result.clips, result.frames, result.bytes,
               options->pack.container, result.written, result.failed);
        print_order();
    }
    return end_program(status, result.failed > 0);
}

/* ---- Raw volumes */

static int preprocess(void)
{
    const struct dl2_preprocess_options *how = &arguments.preprocess;
    struct dl2_preprocess_result result;
    static const char *const of_resampling[] = {"order", "label-order"};
    for (size_t i = 0; i < 2; i++)
        if (given(of_resampling[i]) && isnan(how->spacing[0]))
            return dl2_program_usage_error(&program, "--%s has no effect without --spacing",
                                           of_resampling[i]);
    options->memory = (arguments.memory_mib ? arguments.memory_mib : default_memory_mib()) << 20;
    dl2_progress_begin(&progress, "preprocess", "volumes", 0, common.quiet);
    const int status = dl2_preprocess(options, how, &result, &error);
    dl2_progress_end(&progress);
    if (status == DL2_OK && how->of_dataset)
        printf("mean %g, deviation %g over the voxels for training\n", result.mean,
               result.deviation);
    if (status == DL2_OK)
        printf("%s: %zu volumes, %zu with labels, as %s; %zu written, %zu failed\n",
               DL2_SHOWN(options->dest), result.volumes, result.labeled,
               dl2_preprocess_formats[how->format], result.written, result.failed);
    return end_program(status, result.failed > 0);
}

/* ---- Lists */

/* The tables that a target is to have; NULL: the codec's own. */
static const char *tables_of(const struct dl2_transcode_target *target)
{
    for (size_t c = 0; c < selection.count; c++)
        if (selection.items[c].name == target->name && selection.items[c].tables)
            return selection.items[c].tables->path;
    return NULL;
}

/* Prints what would be made: its name, its codec's, its quality or "-", its place in DEST, and the
 * file of its tables or "-". */
static int list_variants(const char *dest)
{
    for (size_t t = 0; t < selection.target_count; t++) {
        const struct dl2_transcode_target *target = &selection.targets[t];
        DL2_AUTO_FREE char *name = dl2_variant_name(target);
        DL2_AUTO_FREE char *place = name ? dl2_facts_place(dest, name) : NULL;
        char quality[16] = "-";
        if (!place) {
            fprintf(stderr, "%s: out of memory for the variants\n", program.name);
            return DL2_EXIT_FAILED;
        }
        if (dl2_settings_use_quality(target->codec, &target->encode))
            snprintf(quality, sizeof quality, "%d", target->encode.quality);
        const char *tables = tables_of(target);
        printf("%s\t%s\t%s\t%s\t%s\n", name, target->codec->name, quality, DL2_SHOWN(place),
               tables ? DL2_SHOWN(tables) : "-");
    }
    return DL2_EXIT_OK;
}

/* Prints what this build has, after checking the other options. */
static int print_list(const char *dest)
{
    if (dl2_select_targets(&selection, &error) < 0)
        return dl2_program_usage_error(&program, "%s", error.message);
    if (arguments.list == DL2_LIST_VARIANTS)
        return list_variants(dest);
    if (arguments.list == DL2_LIST_CONTAINERS)
        dl2_container_list(stdout);
    else if (arguments.list == DL2_LIST_SETTINGS)
        dl2_settings_list(stdout);
    else
        dl2_codec_list(stdout);
    return DL2_EXIT_OK;
}

/* ---- The program */

/* Why options have no effect on what is written to DEST, or NULL. */
static const char *find_idle_packing(const char *dest)
{
    static const char *const for_folders[] = {"prune", "container", "shard", "shards"};
    const size_t idle = dl2_dataset_is_database(dest) ? 4 : !dl2_output_is_folder(dest);
    for (size_t i = 0; i < idle; i++)
        if (given(for_folders[i]))
            return for_folders[i];
    return NULL;
}

static int run_command(enum dl2_transcode_command command, const char *file)
{
    switch (command) {
    case DL2_COPY:
        return copy();
    case DL2_INDEX:
        return write_index();
    case DL2_SURVEY:
        return survey();
    case DL2_IDENTIFY:
        return identify();
    case DL2_FIT_TABLES:
        return fit_tables(file);
    case DL2_MAKE_FRAMES:
        return make_frames();
    case DL2_PREPROCESS:
        return preprocess();
    default:
        return transcode();
    }
}

static int run(char **places, size_t count)
{
    const enum dl2_transcode_command command = (enum dl2_transcode_command)common.command;
    const char *container = dl2_container_name(arguments.container);
    const char *sharding = given("shards") ? "shards" : given("shard") ? "shard" : NULL;
    const char *dest = count == 2 && command != DL2_FIT_TABLES ? places[1] : NULL;
    if (sharding && !dl2_container_is_packed(container))
        return dl2_program_usage_error(&program, "--%s has no effect: --container=%s has no shards",
                                       sharding, container);
    if (given("shards") && given("shard"))
        return dl2_program_usage_error(&program, "--shard has no effect with --shards");
    if (arguments.list != DL2_NO_LIST)
        return print_list(dest ? dest : "DEST");
    if (command == DL2_ENCODE && !dest)
        return dl2_program_usage_error(&program, "name a SOURCE and a DEST");
    const int refused = dl2_subset_options_check(&program, &common, &arguments.run.subset);
    if (refused)
        return refused;
    if (options->color == DL2_COLORS_CONVERT && !dl2_color_engine())
        return dl2_program_usage_error(&program, "--color convert: this build has no Little CMS "
                                                 "(Debian: liblcms2-dev)");
    set_options(places[0], dest);
    if (dest && given("shuffle") && !dl2_container_is_packed(options->pack.container))
        return dl2_program_usage_error(
            &program, "--shuffle has no effect: --container=%s has no order", container);
    const char *idle = dest ? find_idle_packing(dest) : NULL;
    if (idle)
        return dl2_program_usage_error(&program, "--%s has no effect: DEST is %s", idle,
                                       dl2_is_address(dest) ? "no folder, and is made as a whole"
                                                            : "a table");
    return run_command(command, dest ? NULL : places[1]);
}

int main(int argc, char **argv)
{
    char **places, *details = dl2_transcode_details();
    size_t count;
    arguments.codecs = dl2_codec_at(0)->name;
    commands[DL2_ENCODE].details = details;
    dl2_program_parse(&program, argc, argv, &common, &places, &count);
    for (size_t i = 0; i < count; i++) { /* "photos/" would be "photos//train" in messages */
        const int length = dl2_path_folder_length(places[i]);
        if (length)
            places[i][length] = '\0';
    }
    const int exit_status = run(places, count);
    dl2_selection_free(&selection);
    free(places);
    free(details);
    return exit_status;
}
