/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-load check: reads and decodes every image, every frame of a video and every voxel of a
 * volume, and what is asked for beside them, and names the unreadable ones. */
#include "codec/codec.h"
#include "codec/decoder.h"
#include "codec/video.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/thread.h"
#include "load/load.h"
#include "loader/boxes.h"
#include "loader/masks.h"
#include "loader/unusual.h"
#include "loader/volume_sample.h"
#include "volumes/volume.h"

#include <inttypes.h>

struct checker {
    struct dl2_bytes encoded;
    struct dl2_image image, turned;
    struct dl2_decoder *decoder; /* kept with external codecs */
    struct dl2_sample_boxes boxes;
    struct dl2_sample_mask mask;
    struct dl2_loader_stats unusual; /* the counts of dl2_unusual_rows() alone */
};

struct check {
    const struct dl2_load_options *options;
    struct dl2_loader_config config;
    const struct dl2_dataset *dataset;
    struct dl2_box_source boxes;
    struct checker *checkers;  /* one per worker */
    struct dl2_error *results; /* one per slot */
    struct dl2_progress progress;
    struct dl2_loader_stats unusual;
    json_t *bad;
    int bad_count;
};

static int check_video(const struct check *check, struct checker *checker, const uint8_t *data,
                       size_t size, struct dl2_error *error)
{
    struct dl2_video *video;
    DL2_TRY(dl2_video_open(data, size, check->config.max_pixels, &video, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < dl2_video_info(video)->frames; i++)
        status = dl2_video_seek(video, i, error);
    if (status == DL2_OK)
        dl2_unusual_note_video(&checker->unusual, dl2_video_info(video));
    dl2_video_close(video);
    return status;
}

static int check_image(const struct check *check, struct checker *checker, const uint8_t *data,
                       size_t size, struct dl2_image_info *info, struct dl2_error *error)
{
    struct dl2_decode_options how = DL2_DECODE_DEFAULTS;
    how.keep_orientation = true; /* rotation finds no further errors */
    how.max_pixels = check->config.max_pixels;
    how.external = &check->config.external;
    how.drop_bands = check->config.drop_bands;
    how.info = info;
    how.keep = &checker->decoder;
    DL2_TRY(dl2_image_decode(data, size, &how, &checker->image, &checker->turned, error));
    const struct dl2_raster raster = dl2_raster_of(&checker->image, 0, 0);
    dl2_unusual_note(&checker->unusual, info, &raster);
    return DL2_OK;
}

static int check_mask(const struct check *check, struct checker *checker, size_t item,
                      const struct dl2_image_info *info, struct dl2_error *error)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    const struct dl2_crop_box whole = {0, 0, width, height, false};
    DL2_TRY(dl2_mask_read(&checker->mask, &check->config, check->dataset, (uint32_t)item, error));
    const int status = dl2_mask_show(&checker->mask, &check->config, width, height, &whole, error);
    struct dl2_sample sample;
    dl2_dataset_image(check->dataset, item, &sample);
    if (status < 0)
        dl2_error_prefix(error, "%s: mask '%s'", sample.path, check->config.mask);
    return status;
}

static int check_boxes(const struct check *check, struct checker *checker, size_t item,
                       const struct dl2_image_info *info, struct dl2_error *error)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    const struct dl2_crop_box whole = {0, 0, width, height, false};
    DL2_TRY(dl2_boxes_read(&checker->boxes, &check->boxes, check->dataset, (uint32_t)item,
                           &checker->unusual, error));
    const int status = dl2_boxes_show(&checker->boxes, &check->boxes, &check->config,
                                      (uint32_t)item, width, height, &whole, error);
    struct dl2_sample sample;
    dl2_dataset_image(check->dataset, item, &sample);
    if (status < 0)
        dl2_error_prefix(error, "%s: boxes '%s'", sample.path, check->boxes.text);
    return status;
}

/* Reads and decodes. */
static int check_file(const struct check *check, struct checker *checker, size_t item,
                      struct dl2_error *error)
{
    struct dl2_image_info info;
    const uint8_t *data;
    size_t size;
    DL2_TRY(dl2_dataset_read(check->dataset, item, &checker->encoded, &data, &size, error));
    int status = dl2_dataset_kind(check->dataset) == DL2_SAMPLE_VIDEO
                     ? check_video(check, checker, data, size, error)
                     : check_image(check, checker, data, size, &info, error);
    struct dl2_sample sample;
    dl2_dataset_image(check->dataset, item, &sample);
    if (status < 0)
        dl2_error_prefix(error, "%s: decode", sample.path);
    if (status == DL2_OK && check->config.mask)
        status = check_mask(check, checker, item, &info, error);
    return status == DL2_OK && check->boxes.text ? check_boxes(check, checker, item, &info, error)
                                                 : status;
}

static int read_voxels(struct dl2_volume *volume, struct dl2_bytes *memory, struct dl2_error *error)
{
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    size_t bytes;
    if (!dl2_size_mul(info->size[1], info->size[2], &bytes) ||
        !dl2_size_mul(bytes, sizeof(double), &bytes))
        return dl2_error_memory(error, "a slice");
    DL2_TRY(dl2_bytes_resize(memory, bytes, error));
    for (size_t channel = 0; channel < info->channels; channel++)
        for (size_t z = 0; z < info->size[0]; z++)
            DL2_TRY(
                dl2_volume_read_stored(volume, channel, z, (double *)(void *)memory->data, error));
    return DL2_OK;
}

static void see_labels(void *context, uint64_t first, const uint8_t *labels, size_t count)
{
    (void)context, (void)first, (void)labels, (void)count; /* reading has checked them */
}

static int check_volume(const struct check *check, struct checker *checker, size_t item,
                        struct dl2_error *error)
{
    struct dl2_volume *volume, *labels;
    int status =
        dl2_volume_open_labeled(check->dataset, item, &check->config, &volume, &labels, error);
    if (status == DL2_OK)
        status = read_voxels(volume, &checker->encoded, error);
    if (status == DL2_OK && labels)
        status = dl2_volume_scan_labels(labels, see_labels, NULL, error);
    dl2_volume_close(volume);
    dl2_volume_close(labels);
    return status;
}

static int check_sample(void *context, unsigned worker, size_t slot, size_t item,
                        struct dl2_error *error)
{
    struct check *check = context;
    struct checker *checker = &check->checkers[worker];
    struct dl2_error *result = &check->results[slot];
    dl2_error_clear(result);
    const int status = dl2_dataset_kind(check->dataset) == DL2_SAMPLE_VOLUME
                           ? check_volume(check, checker, item, result)
                           : check_file(check, checker, item, result);
    if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST)
        return dl2_error_copy(error, result);
    return DL2_OK;
}

enum { NAMED = 10 }; /* images of COCO's file, and classes, that are named */

/* Names images of COCO's file that are no samples, and counts what else does not fit. */
static void check_coco(struct check *check, FILE *out)
{
    const struct dl2_coco *coco = check->boxes.coco;
    const struct dl2_coco_facts *facts = coco ? dl2_coco_facts(coco) : NULL;
    for (size_t i = 0; facts && i < facts->missing; i++) {
        char text[sizeof((struct dl2_error *)0)->message];
        snprintf(text, sizeof text, "%s: its image '%s' is not among the samples",
                 check->boxes.text, dl2_coco_missing(coco, i));
        if (i < NAMED)
            dl2_progress_message(&check->progress, "%s", text);
        json_array_append_new(check->bad, dl2_json_text(text));
    }
    if (!facts)
        return;
    if (facts->broken) {
        char text[sizeof((struct dl2_error *)0)->message];
        snprintf(text, sizeof text, "%s: %zu broken element%s left out: %s", check->boxes.text,
                 facts->broken, facts->broken == 1 ? "" : "s", facts->faults);
        dl2_progress_message(&check->progress, "%s", text);
        json_array_append_new(check->bad, dl2_json_text(text));
    }
    if (facts->missing > NAMED)
        dl2_progress_message(&check->progress, "%s: and %zu more", check->boxes.text,
                             facts->missing - NAMED);
    fprintf(
        out,
        "%s: %zu images, %zu annotations, %zu categories; %zu of the images, with %zu "
        "annotations, are not among the samples, %zu have no annotation; %zu samples are not in "
        "the file%s%s\n",
        DL2_SHOWN(check->boxes.text), facts->images, facts->annotations, facts->categories,
        facts->missing, facts->missing_boxes, facts->bare, facts->unlisted,
        facts->unlisted ? ", such as " : "", facts->unlisted ? DL2_SHOWN(facts->unlisted_key) : "");
    check->bad_count += (int)(facts->missing + facts->broken);
}

static json_t *boxes_json(const struct check *check)
{
    const struct dl2_coco_facts *facts = dl2_coco_facts(check->boxes.coco);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "broken",
                     (json_int_t)facts->broken, "images", (json_int_t)facts->images, "annotations",
                     (json_int_t)facts->annotations, "categories", (json_int_t)facts->categories,
                     "missing", (json_int_t)facts->missing, "missing_annotations",
                     (json_int_t)facts->missing_boxes, "bare", (json_int_t)facts->bare, "unlisted",
                     (json_int_t)facts->unlisted);
}

static void print_box_classes(const struct check *check, FILE *out)
{
    char names[1024] = "";
    int64_t label;
    const char *name;
    size_t count = 0;
    for (size_t i = 0; dl2_box_source_class(&check->boxes, i, &label, &name); i++)
        if (*name && count++ < NAMED)
            dl2_list_name(names, sizeof names, name);
    if (count)
        fprintf(out, "%s: %zu classes: %s%s\n",
                DL2_SHOWN(check->boxes.coco ? check->boxes.text : check->boxes.names.path), count,
                DL2_SHOWN(names), count > NAMED ? ", ..." : "");
}

/* The names of classes by their numbers. */
static json_t *box_classes_json(const struct check *check)
{
    json_t *json = json_object();
    char key[24];
    int64_t label;
    const char *name;
    for (size_t i = 0; dl2_box_source_class(&check->boxes, i, &label, &name); i++) {
        snprintf(key, sizeof key, "%" PRId64, label);
        json_object_set_new(json, key, dl2_json_text(name));
    }
    return json;
}

static int tell_result(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    (void)error;
    struct check *check = context;
    if (check->results[slot].status < 0) {
        dl2_progress_message(&check->progress, "%s", check->results[slot].message);
        json_array_append_new(check->bad, dl2_json_text(check->results[slot].message));
        check->bad_count++;
    }
    dl2_progress_update(&check->progress, item + 1, NULL);
    return DL2_OK;
}

static int save(const struct check *check, const char *path, double seconds, double cpu_seconds,
                struct dl2_error *error)
{
    json_t *json = json_pack("{s:s, s:o, s:I, s:I, s:f, s:f, s:O}", "schema", "dl2-load-check/1",
                             "path", dl2_json_text(path), "images",
                             (json_int_t)dl2_dataset_image_count(check->dataset), "bytes",
                             (json_int_t)dl2_dataset_bytes(check->dataset), "seconds", seconds,
                             "cpu_seconds", cpu_seconds, "bad", check->bad);
    json_object_set_new(json, "unusual", dl2_load_unusual(&check->unusual));
    if (json && check->boxes.coco)
        json_object_set_new(json, "boxes", boxes_json(check));
    if (json && check->boxes.text)
        json_object_set_new(json, "box_classes", box_classes_json(check));
    return dl2_json_save_new(check->options->json_path, json, error);
}

/* What lies beside the samples. */
static int open_sidecars(struct check *check, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &check->config;
    const enum dl2_sample_kind kind = dl2_dataset_kind(check->dataset);
    if (config->boxes && kind != DL2_SAMPLE_IMAGE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--boxes: the dataset holds no images, and boxes are of images");
    if (config->mask && kind != DL2_SAMPLE_IMAGE && kind != DL2_SAMPLE_VOLUME)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "--mask: the dataset holds clips or videos, and masks are of images and volumes");
    return dl2_box_source_open(&check->boxes, config, check->dataset, error);
}

static const char *noun_of(enum dl2_sample_kind kind)
{
    return kind == DL2_SAMPLE_VIDEO ? "videos" : kind == DL2_SAMPLE_VOLUME ? "volumes" : "images";
}

static int run_check(struct check *check, const char *path, struct dl2_parallel *loop,
                     struct dl2_error *error)
{
    check->checkers = dl2_keep(loop->jobs, sizeof *check->checkers, "results");
    check->results = dl2_keep(loop->window, sizeof *check->results, "results");
    check->bad = dl2_keep_json(json_array());
    dl2_progress_begin(&check->progress, "check", noun_of(dl2_dataset_kind(check->dataset)),
                       loop->count, check->options->quiet);
    if (check->boxes.warning && !check->boxes.coco)
        dl2_progress_message(&check->progress, "%s", check->boxes.warning);
    int status = DL2_OK;
    for (unsigned i = 0; status == DL2_OK && i < loop->jobs; i++)
        if (dl2_dataset_kind(check->dataset) == DL2_SAMPLE_IMAGE)
            status = dl2_mask_init(&check->checkers[i].mask, &check->config, error);
    if (status == DL2_OK)
        status = dl2_parallel_run(loop, error);
    for (unsigned i = 0; i < loop->jobs; i++)
        dl2_unusual_add(&check->unusual, &check->checkers[i].unusual);
    for (const struct dl2_unusual *row = dl2_unusual_rows(); row->name; row++)
        if (dl2_unusual_count(&check->unusual, row))
            dl2_progress_message(&check->progress, "%s: %" PRIu64 " of its %s", path,
                                 dl2_unusual_count(&check->unusual, row), row->text);
    dl2_progress_end(&check->progress);
    return status;
}

static int check_all(const struct dl2_load_options *options, const struct dl2_dataset_union *data,
                     FILE *out, struct dl2_error *error)
{
    const struct dl2_dataset *dataset = data->dataset;
    const char *path = data->path;
    const enum dl2_sample_kind kind = dl2_dataset_kind(dataset);
    struct check check = {.options = options, .config = options->loader, .dataset = dataset};
    if (kind == DL2_SAMPLE_VOLUME)
        check.config.channels = dl2_dataset_volume_channels(dataset);
    struct dl2_parallel loop = {
        .jobs = options->loader.workers,
        .count = dl2_dataset_image_count(dataset),
        .work = check_sample,
        .emit = tell_result,
        .context = &check,
    };
    dl2_parallel_resolve(&loop);
    const double start = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
    int status = open_sidecars(&check, error);
    if (status == DL2_OK)
        status = run_check(&check, path, &loop, error);
    const double seconds = dl2_clock_wall() - start;
    if (status == DL2_OK)
        check_coco(&check, out);
    if (status == DL2_OK)
        print_box_classes(&check, out);
    if (status == DL2_OK && options->json_path)
        status = save(&check, path, seconds, dl2_clock_process_cpu() - cpu, error);
    if (status == DL2_OK && kind == DL2_SAMPLE_CLIP)
        fprintf(out, "%s: %zu clips, %zu frames, %d bad\n", DL2_SHOWN(path),
                dl2_dataset_count(dataset), loop.count, check.bad_count);
    else if (status == DL2_OK)
        fprintf(out, "%s: %zu %s, %d bad\n", DL2_SHOWN(path), loop.count, noun_of(kind),
                check.bad_count);
    for (unsigned i = 0; check.checkers && i < loop.jobs; i++) {
        dl2_bytes_free(&check.checkers[i].encoded);
        dl2_image_free(&check.checkers[i].image);
        dl2_image_free(&check.checkers[i].turned);
        dl2_decoder_destroy(check.checkers[i].decoder);
        dl2_boxes_free(&check.checkers[i].boxes);
        dl2_mask_free(&check.checkers[i].mask);
    }
    dl2_box_source_close(&check.boxes);
    return status < 0 ? status : check.bad_count;
}

int dl2_load_check(const struct dl2_load_options *options, const char *const *paths, size_t count,
                   FILE *out, struct dl2_error *error)
{
    struct dl2_dataset_union data = {0};
    int status = dl2_load_open(options, paths, count, &data, error);
    if (status == DL2_OK)
        status = check_all(options, &data, out, error);
    dl2_dataset_union_close(&data);
    return status;
}
