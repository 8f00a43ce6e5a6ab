/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/result_files.h"

#include "common/accuracy_kind.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The table */

#define VARIANT    "dl2-variant/1"
#define IMAGE      "dl2-variant.jsonl"
#define QUALITY    "dl2-quality/1"
#define LOAD       "dl2-load/1"
#define RUN        "dl2-experiment/1"
#define RATE       "dl2-rate/1"
#define EVALUATION "dl2-evaluation/1"
#define SEARCH     "dl2-search/1"
#define SURVEY     "dl2-survey/1"
#define CROPS      "dl2-crops/2"
#define TIMELINE   "dl2-timeline/1"

#define FRACTION  "fraction"
#define MOST      INFINITY
#define AGGREGATE ".mean|median|p5|min|p95|max"
/* A set of validation images in `final`, in `best`, or of an epoch. */
#define RESULTS(schema, set)                                                                       \
    {schema, set ".images", "images", 0, MOST, true},                                              \
        {schema, set ".top1", FRACTION, 0, 1, .at_most = "top5"},                                  \
        {schema, set ".top5|miou|mean_dice", FRACTION, 0, 1},                                      \
        {schema, set ".iou|dice[]", FRACTION, 0, 1}, {schema, set ".loss", "nats", 0, MOST},       \
    {                                                                                              \
        schema, set ".pixels|voxels", "pixels or voxels", 0, MOST, true                            \
    }
/* What a training and a measurement of its speed have in common. */
#define TRAINING(schema)                                                                           \
    {schema, "seed", NULL, 0, MOST, true}, {schema, "classes", "classes", 1, MOST, true},          \
        {schema, "train_images|val_images", "images", 0, MOST, true},                              \
        {schema, "train_bytes", "bytes", 0, MOST, true},                                           \
        {schema, "parameters", "parameters", 0, MOST, true},                                       \
        {schema, "arguments.trainers", "trainings", 0, MOST, true},                                \
        {schema, "machine.cores", "cores", 1, MOST, true},                                         \
        {schema, "machine.memory_bytes", "bytes", 0, MOST},                                        \
        {schema, "card.memory_bytes", "bytes", 0, MOST},                                           \
        {schema, "stages[].epochs", "epochs", 0, MOST},                                            \
        {schema, "epochs[].position", "epochs", 0, MOST},                                          \
        {schema, "epochs[].trainers", "trainings", 0, MOST, true},                                 \
        {schema, "epochs[].seconds|val_seconds|data_wait_seconds|compute_seconds", "seconds", 0,   \
         MOST},                                                                                    \
        {schema, "epochs[].images_per_second", "images/s", 0, MOST},                               \
        {schema, "epochs[].data_stall|resident", FRACTION, 0, 1},                                  \
        {schema, "epochs[].joules|joules_per_image", "joules", 0, MOST},                           \
        {schema, "epochs[].train.top1", FRACTION, 0, 1, .at_most = "top5"},                        \
        {schema, "epochs[].train.top5", FRACTION, 0, 1},                                           \
        {schema, "timeline.period_seconds", "seconds", 0, MOST},                                   \
        {schema, "timeline.*[]", NULL, 0, MOST},                                                   \
        {schema, "rank_timelines[].period_seconds", "seconds", 0, MOST},                           \
    {                                                                                              \
        schema, "rank_timelines[].*[]", NULL, 0, MOST                                              \
    }

static const struct figure {
    const char *schema;
    /* Members, separated by points; [] are the elements of a list, * any member, a|b two. */
    const char *field;
    const char *unit; /* NULL: a number */
    double low, high;
    bool whole;
    const char *at_most; /* a member beside it that is as large, where it is there */
} figures[] = {
    {VARIANT, "quality", NULL, 0, 100, true},
    {VARIANT, "images|frames|resized|copied|missed|pixels_only|quantized", "images", 0, MOST, true},
    {VARIANT, "pixels|source_pixels", "pixels", 0, MOST, true},
    {VARIANT, "bytes|source_bytes|copied_bytes", "bytes", 0, MOST, true},
    {VARIANT, "bits_per_pixel", "bits", 0, MOST},
    {VARIANT, "encode_cpu_seconds|decode_cpu_seconds", "seconds", 0, MOST},
    {VARIANT, "quantization_error", NULL, 0, MOST},
    {IMAGE, "bytes|source_bytes", "bytes", 0, MOST, true},
    {IMAGE, "width|height|source_width|source_height", "pixels", 0, MOST, true},
    {IMAGE, "frames|depth", NULL, 0, MOST, true},
    {QUALITY, "reference_files.lossy|of_known_quality", "files", 0, MOST, true},
    {QUALITY, "reference_files.formats.*", "files", 0, MOST, true},
    {QUALITY, "reference_files.median_quality", NULL, 1, 100},
    {QUALITY, "variants[].quality", NULL, 0, 100, true},
    {QUALITY, "variants[].images|identical|above_8_bits|at_16_bits|alpha|colors_differ|resized",
     "images", 0, MOST, true},
    {QUALITY, "variants[].pixels", "pixels", 0, MOST, true},
    {QUALITY, "variants[].bytes|reference_bytes", "bytes", 0, MOST, true},
    {QUALITY, "variants[].header_bytes", "bytes", 0, MOST, true, "bytes"},
    {QUALITY, "variants[].bits_per_pixel", "bits", 0, MOST},
    {QUALITY, "variants[].cpu_seconds", "seconds", 0, MOST},
    {QUALITY, "variants[].metrics.*.images", "images", 0, MOST, true},
    {QUALITY, "variants[].metrics.psnr_rgb|psnr_y|input_psnr" AGGREGATE "|of_mean_mse", "dB", 0,
     MOST},
    {QUALITY, "variants[].metrics.ssim|input_ssim|volume_ssim" AGGREGATE, NULL, -1, 1},
    {QUALITY, "variants[].metrics.ms_ssim" AGGREGATE, NULL, 0, 1},
    {QUALITY, "variants[].metrics.ssimulacra2" AGGREGATE, NULL, -MOST, 100},
    {QUALITY, "variants[].metrics.ciede2000|ciede2000_p95|butteraugli_max|butteraugli_3" AGGREGATE,
     NULL, 0, MOST},
    {QUALITY, "variants[].per_image[].width|height", "pixels", 1, MOST, true},
    {QUALITY, "variants[].per_image[].bytes|reference_bytes", "bytes", 0, MOST, true},
    {QUALITY, "variants[].per_image[].header_bytes", "bytes", 0, MOST, true, "bytes"},
    {QUALITY, "variants[].per_image[].psnr_rgb|psnr_y|input_psnr", "dB", 0, MOST},
    {QUALITY, "variants[].per_image[].ssim|input_ssim|volume_ssim", NULL, -1, 1},
    {QUALITY, "variants[].per_image[].ms_ssim", NULL, 0, 1},
    {QUALITY, "variants[].per_image[].ssimulacra2", NULL, -MOST, 100},
    {QUALITY, "variants[].per_image[].ciede2000|ciede2000_p95|butteraugli_max|butteraugli_3", NULL,
     0, MOST},
    {LOAD, "images", "images", 0, MOST, true},
    {LOAD, "epochs", "epochs", 0, MOST, true},
    {LOAD, "batch", "images", 1, MOST, true},
    {LOAD, "workers", "worker threads", 1, MOST, true},
    {LOAD, "seconds|cpu_seconds", "seconds", 0, MOST},
    {LOAD, "images_per_second|images_per_core_second", "images/s", 0, MOST},
    {LOAD, "stages.read|decode|transform|operations|wait", "seconds", 0, MOST},
    {LOAD, "bytes_read|peak_rss_bytes|loader_bytes", "bytes", 0, MOST, true},
    {LOAD, "config.cache_bytes", "bytes", 0, MOST},
    {LOAD, "requests|encoded_hits|decoded_hits", NULL, 0, MOST, true},
    {LOAD, "resident", FRACTION, 0, 1},
    {LOAD, "per_epoch[].images", "images", 0, MOST, true},
    {LOAD, "per_epoch[].seconds|cpu_seconds", "seconds", 0, MOST},
    {LOAD, "per_epoch[].bytes_read|disk_bytes", "bytes", 0, MOST, true},
    {LOAD, "batch_gaps.p50|p95|p99|max", "seconds", 0, MOST},
    {LOAD, "scaling[].workers", "worker threads", 1, MOST, true},
    {LOAD, "scaling[].images_per_second|images_per_core_second", "images/s", 0, MOST},
    {LOAD, "machine.cores", "cores", 1, MOST, true},
    {LOAD, "machine.memory_bytes", "bytes", 0, MOST},
    TRAINING(RUN),
    RESULTS(RUN, "epochs[].val[]"),
    RESULTS(RUN, "final[]"),
    RESULTS(RUN, "best.val[]"),
    TRAINING(RATE),
    {RATE, "measured.seconds", "seconds", 0, MOST},
    {RATE, "measured.images", "images", 0, MOST},
    {RATE, "measured.images_per_second", "images/s", 0, MOST},
    {RATE, "measured.data_stall", FRACTION, 0, 1},
    {RATE, "measured.joules_per_image", "joules", 0, MOST},
    {EVALUATION, "seed", NULL, 0, MOST, true},
    {EVALUATION, "seconds", "seconds", 0, MOST},
    RESULTS(EVALUATION, "val[]"),
    {SEARCH, "epochs|all_epochs", "epochs", 0, MOST},
    {SEARCH, "trials[].epochs|goal", "epochs", 0, MOST},
    {SEARCH, "trials[].rank", NULL, 1, MOST, true},
    {SEARCH, "trials[].accuracy", FRACTION, 0, 1},
    {SEARCH, "trials[].loss", "nats", 0, MOST},
    {SURVEY, "images", "images", 0, MOST, true},
    {SURVEY, "splits.*", "images", 0, MOST, true},
    {SURVEY, "formats.*.images", "images", 0, MOST, true},
    {SURVEY, "classes", "classes", 0, MOST, true},
    {SURVEY, "formats.*.bytes", "bytes", 0, MOST, true},
    {SURVEY, "formats.*.pixels", "pixels", 0, MOST, true},
    {SURVEY, "quality.min|p95|max", NULL, 0, 100},
    {SURVEY, "width|height|short.min|max", "pixels", 1, MOST},
    {SURVEY, "bits_per_pixel.min|max", "bits", 0, MOST},
    {SURVEY, "quality|width|height|short|bytes|bits_per_pixel.histogram[]", "images", 0, MOST,
     true},
    {SURVEY, "duplicates.groups", "groups", 0, MOST, true},
    {SURVEY, "duplicates.images|val_near_train", "images", 0, MOST, true},
    {SURVEY, "duplicates.across_splits|across_classes", "groups", 0, MOST, true},
    {CROPS, "crops[].x|y", "pixels", 0, MOST, true},
    {CROPS, "crops[].width|height", "pixels", 1, 1024, true},
    {TIMELINE, "started", "seconds", 0, MOST},
    {TIMELINE, "machine.cores", "cores", 1, MOST, true},
    {TIMELINE, "timeline.period_seconds", "seconds", 0, MOST},
    {TIMELINE, "timeline.*[]", NULL, 0, MOST},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* ---- Checking */

/* The way to a value, from its end; it becomes text only for a message. */
struct way {
    const struct way *before; /* NULL: the top of the file */
    const char *name;         /* of a member; NULL: an element */
    size_t index;
};

/* "final[0].top1" */
static void write_way(const struct way *way, char *out, size_t size)
{
    if (!way)
        return;
    write_way(way->before, out, size);
    const size_t used = strlen(out);
    if (way->name)
        snprintf(out + used, size - used, "%s%.60s", used ? "." : "", way->name);
    else
        snprintf(out + used, size - used, "[%zu]", way->index);
}

/* "a fraction from 0 to 1", "a whole number of bytes, 0 or more". Kept. */
static const char *describe(const struct figure *figure)
{
    const char *whole = figure->whole ? "whole " : "";
    const char *what = !figure->unit ? dl2_text("a %snumber", whole)
                       : strcmp(figure->unit, FRACTION) == 0
                           ? "a fraction"
                           : dl2_text("a %snumber of %s", whole, figure->unit);
    return isinf(figure->high)  ? dl2_text("%s, %g or more", what, figure->low)
           : isinf(figure->low) ? dl2_text("%s, at most %g", what, figure->high)
                                : dl2_text("%s from %g to %g", what, figure->low, figure->high);
}

/* Rounding may put a quotient a little beyond its limit. */
static bool is_above(double value, double limit)
{
    return value > limit + 1e-9 * (1 + fabs(limit));
}

struct checking {
    const struct figure *figure;
    const char *path;
    struct dl2_error *error;
    json_t *metric; /* of another trainer: that of the sets so far; NULL: none yet */
    bool has_own;   /* a set has dl2-train's metrics */
};

static int check_value(const struct checking *checking, const json_t *value, const json_t *members,
                       const struct way *way)
{
    const struct figure *figure = checking->figure;
    const double number = json_is_number(value) ? json_number_value(value) : NAN;
    const json_t *limit = figure->at_most ? json_object_get(members, figure->at_most) : NULL;
    const bool is_possible = !is_above(figure->low, number) && !is_above(number, figure->high) &&
                             (!figure->whole || number == floor(number));
    char where[256] = "";
    if (!value || json_is_null(value) ||
        (is_possible && !isnan(number) &&
         !(json_is_number(limit) && is_above(number, json_number_value(limit)))))
        return DL2_OK;
    write_way(way, where, sizeof where);
    if (is_possible && !isnan(number))
        return dl2_error_set(checking->error, DL2_ERR_FORMAT,
                             "%s: %s is %g: expected at most %s, which is %g", checking->path,
                             where, number, figure->at_most, json_number_value(limit));
    DL2_AUTO_FREE char *other = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    return dl2_error_set(checking->error, DL2_ERR_FORMAT, "%s: %s is %.60s: expected %s%s",
                         checking->path, where,
                         json_is_number(value) ? dl2_text("%.6g", number)
                         : other               ? other
                                               : "?",
                         describe(figure),
                         figure->high == 1 && number > 1 && number <= 100
                             ? dl2_text("; %g%% is %g", number, number / 100)
                             : "");
}

static int check_field(const struct checking *checking, const json_t *at, const char *field,
                       const struct way *way);

/* A member, or the elements of one; `after` is what follows its name in the field. */
static int check_member(const struct checking *checking, const json_t *members, const char *name,
                        const char *after, const struct way *before)
{
    const json_t *value = json_object_get(members, name), *item;
    const struct way own = {before, name, 0};
    size_t i;
    if (strncmp(after, "[]", 2) != 0)
        return *after ? check_field(checking, value, after + 1, &own)
                      : check_value(checking, value, members, &own);
    json_array_foreach(value, i, item)
    {
        const struct way element = {&own, NULL, i};
        DL2_TRY(after[2] ? check_field(checking, item, after + 3, &element)
                         : check_value(checking, item, NULL, &element));
    }
    return DL2_OK;
}

/* All that `field` names below `at`. */
static int check_field(const struct checking *checking, const json_t *at, const char *field,
                       const struct way *way)
{
    const char *after = field + strcspn(field, ".["), *key;
    char name[64];
    json_t *ignored;
    if (*field == '*') {
        json_object_foreach((json_t *)at, key, ignored)
            DL2_TRY(check_member(checking, at, key, after, way));
        return DL2_OK;
    }
    for (size_t length; field < after; field += length + (field[length] == '|')) {
        length = strcspn(field, "|.[");
        snprintf(name, sizeof name, "%.*s", (int)length, field);
        DL2_TRY(check_member(checking, at, name, after, way));
    }
    return DL2_OK;
}

/* ---- Metrics of other trainers than dl2-train: any name, and a range that the unit tells */

/* Numbers of this size have no digits left for what is after the point. */
#define LARGEST 1e12

static const struct figure by_unit[] = {
    {NULL, "fraction", FRACTION, 0, 1},
    {NULL, "percent", "percent", 0, 100},
    {NULL, NULL, NULL, -LARGEST, LARGEST}, /* of any other unit */
};

static bool is_plain(const json_t *text, size_t least)
{
    return json_is_string(text) && json_string_length(text) >= least &&
           dl2_accuracy_name_is_plain(json_string_value(text));
}

static int fail_set(const struct checking *checking, const struct way *way, const char *name,
                    const char *expected)
{
    char where[256] = "";
    write_way(&(struct way){way, name, 0}, where, sizeof where);
    return dl2_error_set(checking->error, DL2_ERR_FORMAT, "%s: %s: expected %s", checking->path,
                         where, expected);
}

static int check_resamples(const struct checking *checking, const json_t *set,
                           const struct way *way)
{
    const json_t *list = json_object_get(set, "resamples"), *value;
    const struct way own = {way, "resamples", 0};
    size_t i;
    if (list && (!json_is_array(list) || json_array_size(list) < DL2_LEAST_RESAMPLES ||
                 json_array_size(list) > DL2_MOST_RESAMPLES))
        return fail_set(
            checking, way, "resamples",
            dl2_text("a list of %d to %d numbers", DL2_LEAST_RESAMPLES, DL2_MOST_RESAMPLES));
    json_array_foreach(list, i, value)
    {
        const struct way element = {&own, NULL, i};
        if (json_is_null(value))
            return fail_set(checking, way, "resamples", "numbers alone");
        DL2_TRY(check_value(checking, value, NULL, &element));
    }
    return DL2_OK;
}

/* A set of validation images: nothing where it has no metric of its own. */
static int check_set(struct checking *checking, json_t *set, const struct way *way)
{
    static const char *const others[] = {"top1", "top5",      "loss",       "miou",
                                         "dice", "mean_dice", "predictions"};
    json_t *metric = json_object_get(set, "metric");
    const json_t *outcomes = json_object_get(set, "outcomes");
    const struct way own = {way, "metric", 0};
    const char *unit = dl2_json_get_text(metric, "unit", "");
    if (!metric) {
        checking->has_own = true;
        return checking->metric ? fail_set(checking, way, "metric", "that of the other sets")
                                : DL2_OK;
    }
    if (checking->has_own)
        return fail_set(checking, way, "metric", "none, as other sets of this training have none");
    if (checking->metric && !json_equal(checking->metric, metric))
        return fail_set(checking, way, "metric", "that of the other sets of this training");
    if (!is_plain(json_object_get(metric, "name"), 1))
        return fail_set(checking, &own, "name",
                        dl2_text("a name of up to %d bytes without any of %s and control "
                                 "characters",
                                 DL2_MAX_METRIC_NAME, DL2_ODD_IN_METRIC_NAMES));
    if (!is_plain(json_object_get(metric, "unit"), 0))
        return fail_set(checking, &own, "unit",
                        "fraction, percent, or a plain text such as nats, or \"\"");
    if (!json_is_boolean(json_object_get(metric, "higher_is_better")))
        return fail_set(checking, &own, "higher_is_better", "true or false");
    checking->metric = metric;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(set, others[i]))
            return fail_set(checking, way, others[i], "none beside a metric");
    if (outcomes && (!json_is_string(outcomes) || strchr(json_string_value(outcomes), '/') ||
                     json_string_value(outcomes)[0] == '.' || !json_string_length(outcomes)))
        return fail_set(checking, way, "outcomes", "the name of a file beside this one");
    checking->figure = by_unit;
    while (checking->figure->field && strcmp(checking->figure->field, unit) != 0)
        checking->figure++;
    DL2_TRY(
        check_value(checking, json_object_get(set, "value"), set, &(struct way){way, "value", 0}));
    return check_resamples(checking, set, way);
}

static int check_sets(struct checking *checking, const json_t *at, const char *name,
                      const struct way *before)
{
    const struct way own = {before, name, 0};
    json_t *set;
    size_t i;
    json_array_foreach(json_object_get(at, name), i, set)
        DL2_TRY(check_set(checking, set, &(struct way){&own, NULL, i}));
    return DL2_OK;
}

/* All sets of validation images that a training or an evaluation has. */
static int check_metrics(const json_t *json, const char *path, struct dl2_error *error)
{
    struct checking checking = {.path = path, .error = error};
    const struct way epochs = {NULL, "epochs", 0}, best = {NULL, "best", 0};
    json_t *epoch;
    size_t i;
    json_array_foreach(json_object_get(json, "epochs"), i, epoch)
        DL2_TRY(check_sets(&checking, epoch, "val", &(struct way){&epochs, NULL, i}));
    DL2_TRY(check_sets(&checking, json, "final", NULL));
    DL2_TRY(check_sets(&checking, json_object_get(json, "best"), "val", &best));
    return check_sets(&checking, json, "val", NULL);
}

int dl2_result_check(const json_t *json, const char *schema, const char *path,
                     struct dl2_error *error)
{
    for (size_t i = 0; i < FIGURES; i++)
        if (strcmp(figures[i].schema, schema) == 0)
            DL2_TRY(
                check_field(&(struct checking){.figure = &figures[i], .path = path, .error = error},
                            json, figures[i].field, NULL));
    return strcmp(schema, RUN) == 0 || strcmp(schema, EVALUATION) == 0
               ? check_metrics(json, path, error)
               : DL2_OK;
}

int dl2_result_load(const char *path, const char *schema, json_t **out, struct dl2_error *error)
{
    DL2_TRY(dl2_json_load(path, schema, out, error));
    const int status = dl2_result_check(*out, schema, path, error);
    if (status < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

int dl2_result_is_of(const json_t *json, const char *path, const char *field, const char *name,
                     struct dl2_error *error)
{
    const json_t *value = json_object_get(json, field);
    const char *own = json_is_string(value) ? json_string_value(value)
                      : json_is_integer(value)
                          ? dl2_text("%lld", (long long)json_integer_value(value))
                          : name;
    return strcmp(own, name) == 0
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: its %s is %s, where the folder's is %s: expected the same",
                               path, field, own, name);
}

void dl2_result_figures_print(void)
{
    for (size_t i = 0; i < FIGURES; i++)
        printf("%s\t%s\t%s\t%g\t%g\t%s\t%s\n", figures[i].schema, figures[i].field,
               figures[i].unit ? figures[i].unit : "-", figures[i].low, figures[i].high,
               figures[i].whole ? "whole" : "real", figures[i].at_most ? figures[i].at_most : "-");
}
