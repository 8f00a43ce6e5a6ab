/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of dl2-load analyze as text and as JSON. */
#include "codec/codec.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/quote.h"
#include "load/load_analyze.h"
#include "loader/loader_options.h"

#include "config.h"

#include <math.h>
#include <string.h>

static double mean_of(const json_t *metrics, const char *name)
{
    return dl2_json_get_real(json_object_get(metrics, name), "mean", NAN);
}

static void print_device(FILE *out, const struct dl2_load_analysis *analysis)
{
    const struct dl2_load_analysis_device *device = &analysis->device;
    const struct dl2_loader_config *config = &analysis->config;
    fprintf(out, "The device trains %.0f images/s", device->rate.middle);
    if (device->report)
        fprintf(out, " (%s, %s)", dl2_json_get_text(device->report, "arch", "?"),
                dl2_json_get_text(device->report, "device", "?"));
    if (device->shared)
        fprintf(out, ", with %u thread%s on the loader's %u processors", device->threads,
                device->threads == 1 ? "" : "s", device->cores);
    fprintf(out, ".\nThe loader: %ux%ux%u in batches of %u, %u workers.\n\n", config->height,
            dl2_loader_width(config), config->channels, config->batch, config->workers);
}

/* "1234 +-56" */
static void print_figure(FILE *out, const struct dl2_figure *figure)
{
    if (isfinite(figure->half))
        fprintf(out, " %8.0f +-%-4.0f", figure->middle, figure->half);
    else
        fprintf(out, " %8.0f       ", figure->middle);
}

static void print_table(FILE *out, const struct dl2_load_analysis *analysis)
{
    int width = 7;
    for (size_t i = 0; i < analysis->count; i++) {
        const int length = (int)strlen(analysis->subjects[i].name);
        width = length > width ? length : width;
    }
    fprintf(out, "Images/s, with half the 95%% interval, and what an epoch's time goes to:\n");
    fprintf(out, "%-*s %10s%10s%16s%16s%9s%16s%9s%9s%8s%s\n", width, "dataset", "size", "read cold",
            "load warm", "load cold", "training", "1st epoch", "device", "preproc.", "storage",
            analysis->options->quality_count ? "     PSNR    SSIM" : "");
    for (size_t i = 0; i < analysis->count; i++) {
        const struct dl2_load_analysis_subject *subject = &analysis->subjects[i];
        char size[16];
        fprintf(out, "%-*s %10s", width, DL2_SHOWN(subject->name),
                dl2_load_bytes(size, (double)subject->bytes));
        print_figure(out, &subject->storage_figure);
        print_figure(out, &subject->loader_figure);
        fprintf(out, " %8.0f", subject->cold_figure.middle);
        print_figure(out, &subject->rate_figure);
        fprintf(out, " %9.0f %7.0f%% %7.0f%% %6.0f%%", subject->first_figure.middle,
                100 * subject->device_share, 100 * subject->loader_share,
                100 * subject->storage_share);
        if (subject->quality)
            fprintf(out, " %8.2f %7.4f", mean_of(subject->quality, "psnr_rgb"),
                    mean_of(subject->quality, "ssim"));
        fprintf(out, "\n");
    }
}

/* dl2-train's options for the ways. */
static const char *const way_options[DL2_LOAD_WAYS] = {"--ranks", "--hop", "--task"};

static void print_ways(FILE *out, const struct dl2_load_analysis *analysis)
{
    const struct dl2_load_options *options = analysis->options;
    fprintf(out, "\nAn epoch of %u models of %.3g million parameters on %u ranks like this one:\n",
            options->models, analysis->parameters / 1e6, options->ranks);
    fprintf(out, "%23s %10s %12s %18s %14s  %s\n", "", "time", "bytes moved", "files of a rank",
            "network", "dataset");
    for (size_t i = 0; i < analysis->count; i++)
        for (int k = 0; k < DL2_LOAD_WAYS; k++) {
            const struct dl2_load_analysis_way *way = &analysis->subjects[i].ways[k];
            char moved[16], files[16], network[16], name[32];
            snprintf(name, sizeof name, "%s (%s)", dl2_load_way_words[k], way_options[k]);
            fprintf(out, "%-23s %8.1f s %12s %18s %14s  %s\n", name, way->seconds,
                    dl2_load_bytes(moved, way->moved), dl2_load_bytes(files, way->files),
                    dl2_load_bytes(network, way->network), DL2_SHOWN(analysis->subjects[i].name));
        }
}

static void print_subject(FILE *out, const struct dl2_load_analysis *analysis,
                          const struct dl2_load_analysis_subject *subject)
{
    fprintf(out, "%s: ", DL2_SHOWN(subject->name));
    if (subject->saturated) {
        fprintf(out, "the device never waits.");
    } else if (analysis->device.shared) {
        fprintf(out, "%s most of an epoch.",
                !strcmp(subject->bottleneck, "preprocessing") ? "decoding and cropping take"
                : !strcmp(subject->bottleneck, "storage")     ? "reading takes"
                                                              : "the device takes");
    } else {
        fprintf(out, "the device waits %.0f%% of an epoch, mostly for %s.",
                100 * (1 - subject->device_share),
                !strcmp(subject->bottleneck, "storage") ? "storage" : "decoding and cropping");
    }
    if (subject->advice.rate > 0)
        fprintf(out, " What would help most: %s (%.0f images/s).", subject->advice.text,
                subject->advice.rate);
    fprintf(out, "\n");
}

static void print_cost(FILE *out, const struct dl2_load_analysis *analysis,
                       const struct dl2_load_analysis_subject *subject)
{
    const struct dl2_load_analysis_subject *fastest = &analysis->subjects[analysis->fastest];
    char size[16];
    fprintf(out, "%s, %.0f images/s", dl2_load_bytes(size, (double)subject->bytes),
            subject->rate_figure.middle);
    if (subject != fastest)
        fprintf(out, ", %.1f%% slower and %.1f%% of the bytes",
                100 * (1 - subject->rate_figure.middle / fastest->rate_figure.middle),
                100 * (double)subject->bytes / (double)(fastest->bytes ? fastest->bytes : 1));
    if (subject->quality)
        fprintf(out, ", PSNR %.2f dB, SSIM %.4f", mean_of(subject->quality, "psnr_rgb"),
                mean_of(subject->quality, "ssim"));
}

static void print_choice(FILE *out, const struct dl2_load_analysis *analysis)
{
    const struct dl2_load_analysis_subject *fastest = &analysis->subjects[analysis->fastest];
    const struct dl2_load_analysis_subject *smallest = &analysis->subjects[analysis->smallest];
    if (analysis->count < 2)
        return;
    fprintf(out, "\nThe fastest is %s: ", DL2_SHOWN(fastest->name));
    print_cost(out, analysis, fastest);
    if (smallest == fastest) {
        fprintf(out, ". None within %g%% of it is smaller.\n", analysis->options->within);
    } else {
        fprintf(out, ".\nThe smallest within %g%% of it is %s: ", analysis->options->within,
                DL2_SHOWN(smallest->name));
        print_cost(out, analysis, smallest);
        fprintf(out, ".\n");
    }
}

/* Whether storage was read, not the page cache. */
static bool was_cold(const struct dl2_load_analysis_subject *subject)
{
    return subject->resident < 0.5;
}

void dl2_load_analysis_print(FILE *out, const struct dl2_load_analysis *analysis)
{
    print_device(out, analysis);
    print_table(out, analysis);
    fprintf(out, "\n");
    for (size_t i = 0; i < analysis->count; i++)
        print_subject(out, analysis, &analysis->subjects[i]);
    print_choice(out, analysis);
    if (analysis->options->models)
        print_ways(out, analysis);
    for (size_t i = 0; i < analysis->count; i++)
        if (!was_cold(&analysis->subjects[i]))
            fprintf(out,
                    "%s: its files would not leave memory, so the rate of its storage is not "
                    "that of a cold start.\n",
                    DL2_SHOWN(analysis->subjects[i].name));
}

static json_t *figure_json(const struct dl2_figure *figure)
{
    return json_pack("{s:f, s:o}", "median", figure->middle, "half", dl2_json_real(figure->half));
}

static json_t *device_json(const struct dl2_load_analysis_device *device)
{
    return json_pack(
        "{s:s, s:o, s:i, s:i, s:o, s:o}", "kind", device->shared ? "shared" : "separate",
        "images_per_second", figure_json(&device->rate), "threads", (int)device->threads, "cores",
        (int)device->cores, "arch",
        device->report ? dl2_json_text(dl2_json_get_text(device->report, "arch", "")) : json_null(),
        "device",
        device->report ? dl2_json_text(dl2_json_get_text(device->report, "device", ""))
                       : json_null());
}

static json_t *subject_json(const struct dl2_load_analysis_subject *subject)
{
    const struct dl2_loader_stats *stats = &subject->stats;
    json_t *json = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:f, s:{s:o, s:o, s:b}, s:{s:o, s:o, s:f, s:{s:f, s:f, s:f, "
        "s:f}},"
        " s:{s:o, s:f}, s:{s:o, s:o, s:f}, s:{s:f, s:f, s:f}, s:s, s:o}",
        "variant", dl2_json_text(subject->name), "path", dl2_json_text(subject->path), "images",
        (json_int_t)subject->images, "bytes", (json_int_t)subject->bytes, "decoded_bytes",
        (json_int_t)subject->decoded_bytes, "cached", subject->cached, "storage",
        "images_per_second", figure_json(&subject->storage_figure), "bytes_per_second",
        json_real(subject->storage_figure.middle *
                  dl2_load_rate((double)subject->read_bytes, (double)subject->read_images)),
        "cold", was_cold(subject), "preprocessing", "images_per_second",
        figure_json(&subject->loader_figure), "cpu_seconds_per_image",
        figure_json(&subject->cpu_figure), "processor_seconds_per_image", subject->middle.kept,
        "stages", "read", stats->read, "decode", stats->decode, "transform", stats->transform,
        "operations", stats->operations, "cold", "images_per_second",
        figure_json(&subject->cold_figure), "cpu_seconds_per_image", subject->middle.cold_cpu,
        "predicted", "images_per_second", figure_json(&subject->rate_figure),
        "first_epoch_images_per_second", figure_json(&subject->first_figure), "epoch_seconds",
        dl2_load_rate((double)subject->images, subject->rate_figure.middle), "epoch_shares",
        "device", subject->device_share, "preprocessing", subject->loader_share, "storage",
        subject->storage_share, "bottleneck", subject->bottleneck, "help",
        subject->advice.rate > 0
            ? json_pack("{s:o, s:f}", "what", dl2_json_text(subject->advice.text),
                        "images_per_second", subject->advice.rate)
            : json_null());
    if (json && subject->quality)
        json_object_set_new(json, "quality", json_deep_copy(subject->quality));
    return json;
}

/* How several models would train; null without --models. */
static json_t *ways_json(const struct dl2_load_analysis *analysis,
                         const struct dl2_load_analysis_subject *subject)
{
    json_t *json = analysis->options->models ? json_array() : json_null();
    for (int k = 0; k < DL2_LOAD_WAYS && analysis->options->models; k++) {
        const struct dl2_load_analysis_way *way = &subject->ways[k];
        json_array_append_new(json,
                              json_pack("{s:s, s:f, s:f, s:f, s:f}", "way", dl2_load_way_words[k],
                                        "epoch_seconds", way->seconds, "bytes_moved", way->moved,
                                        "file_bytes", way->files, "network_bytes", way->network));
    }
    return json;
}

static json_t *analysis_json(const struct dl2_load_analysis *analysis)
{
    const struct dl2_loader_config *config = &analysis->config;
    json_t *variants = json_array();
    for (size_t i = 0; i < analysis->count; i++) {
        json_t *variant = subject_json(&analysis->subjects[i]);
        json_object_set_new(variant, "ways", ways_json(analysis, &analysis->subjects[i]));
        json_array_append_new(variants, variant);
    }
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    return json_pack(
        "{s:s, s:s, s:i, s:o, s:i, s:i, s:f, s:i, s:I, s:o, s:o, s:{s:o, s:o, s:f}, s:O, s:o, s:o}",
        "schema", "dl2-load-analysis/1", "mode", config->train ? "train" : "val", "batch",
        (int)config->batch, "image_size", dl2_show_image_size(&config->height), "channels",
        (int)config->channels, "workers", (int)config->workers, "seconds",
        analysis->options->seconds, "rounds", DL2_LOAD_ANALYSIS_ROUNDS, "memory_bytes",
        (json_int_t)analysis->memory, "device", device_json(&analysis->device), "variants",
        variants, "choice", "fastest", dl2_json_text(analysis->subjects[analysis->fastest].name),
        "smallest", dl2_json_text(analysis->subjects[analysis->smallest].name), "within",
        analysis->options->within, "bad", analysis->bad, "machine", dl2_machine_describe(),
        "versions", versions);
}

int dl2_load_analysis_save(const struct dl2_load_analysis *analysis, struct dl2_error *error)
{
    return dl2_json_save_new(analysis->options->json_path, analysis_json(analysis), error);
}
