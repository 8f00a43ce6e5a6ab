/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-load check: reads and decodes every image, and every frame of a video, and names the
 * unreadable ones. */
#include "codec/codec.h"
#include "codec/video.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/thread.h"
#include "load/load.h"

#include <stdlib.h>

struct checker {
    struct dl2_bytes encoded;
    struct dl2_image image, turned;
};

struct check {
    const struct dl2_load_options *options;
    const struct dl2_dataset *dataset;
    struct checker *checkers;  /* one per worker */
    struct dl2_error *results; /* one per slot */
    struct dl2_progress progress;
    json_t *bad;
    int bad_count;
};

static int check_video(const struct check *check, const uint8_t *data, size_t size,
                       struct dl2_error *error)
{
    struct dl2_video *video;
    DL2_TRY(dl2_video_open(data, size, check->options->loader.max_pixels, &video, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < dl2_video_info(video)->frames; i++)
        status = dl2_video_seek(video, i, error);
    dl2_video_close(video);
    return status;
}

static int check_sample(void *context, unsigned worker, size_t slot, size_t item,
                        struct dl2_error *error)
{
    struct check *check = context;
    struct checker *checker = &check->checkers[worker];
    struct dl2_error *result = &check->results[slot];
    const uint8_t *data;
    size_t size;
    dl2_error_clear(result);
    int status = dl2_dataset_read(check->dataset, item, &checker->encoded, &data, &size, result);
    if (status == DL2_OK) {
        struct dl2_decode_options how = DL2_DECODE_DEFAULTS;
        how.keep_orientation = true; /* rotation finds no further errors */
        how.max_pixels = check->options->loader.max_pixels;
        how.external = &check->options->loader.external;
        status =
            dl2_dataset_kind(check->dataset) == DL2_SAMPLE_VIDEO
                ? check_video(check, data, size, result)
                : dl2_image_decode(data, size, &how, &checker->image, &checker->turned, result);
        if (status < 0) {
            struct dl2_sample sample;
            dl2_dataset_image(check->dataset, item, &sample);
            dl2_error_prefix(result, "%s: decode", sample.path);
        }
    }
    if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST)
        return dl2_error_copy(error, result);
    return DL2_OK;
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
    return dl2_json_save_new(check->options->json_path, json, error);
}

static int run_check(struct check *check, struct dl2_parallel *loop, struct dl2_error *error)
{
    check->checkers = dl2_calloc(loop->jobs, sizeof *check->checkers);
    check->results = dl2_calloc(loop->window, sizeof *check->results);
    check->bad = json_array();
    if (!check->checkers || !check->results || !check->bad)
        return dl2_error_memory(error, "results");
    dl2_progress_begin(&check->progress, "check", "images", loop->count, check->options->quiet);
    const int status = dl2_parallel_run(loop, error);
    dl2_progress_end(&check->progress);
    return status;
}

int dl2_load_check(const struct dl2_load_options *options, const char *path, FILE *out,
                   struct dl2_error *error)
{
    struct dl2_dataset *dataset;
    DL2_TRY(dl2_load_open(options, path, &dataset, error));
    struct check check = {.options = options, .dataset = dataset};
    struct dl2_parallel loop = {
        .jobs = options->loader.workers,
        .count = dl2_dataset_image_count(dataset),
        .work = check_sample,
        .emit = tell_result,
        .context = &check,
    };
    dl2_parallel_resolve(&loop);
    const double start = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
    int status = run_check(&check, &loop, error);
    const double seconds = dl2_clock_wall() - start;
    if (status == DL2_OK && options->json_path)
        status = save(&check, path, seconds, dl2_clock_process_cpu() - cpu, error);
    const bool clips = dl2_dataset_kind(dataset) == DL2_SAMPLE_CLIP;
    if (status == DL2_OK && clips)
        fprintf(out, "%s: %zu clips, %zu frames, %d bad\n", DL2_SHOWN(path),
                dl2_dataset_count(dataset), loop.count, check.bad_count);
    else if (status == DL2_OK)
        fprintf(out, "%s: %zu %s, %d bad\n", DL2_SHOWN(path), loop.count,
                dl2_dataset_kind(dataset) == DL2_SAMPLE_VIDEO ? "videos" : "images",
                check.bad_count);
    for (unsigned i = 0; check.checkers && i < loop.jobs; i++) {
        dl2_bytes_free(&check.checkers[i].encoded);
        dl2_image_free(&check.checkers[i].image);
        dl2_image_free(&check.checkers[i].turned);
    }
    free(check.checkers);
    free(check.results);
    json_decref(check.bad);
    dl2_dataset_close(dataset);
    return status < 0 ? status : check.bad_count;
}
