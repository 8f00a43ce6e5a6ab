/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/result.h"

#include "common/accuracy_kind.h"
#include "common/file.h"
#include "common/json.h"
#include "common/nearest.h"
#include "study/text.h"

#include <string.h>

enum { FEWEST_RESAMPLES = 100, MOST_RESAMPLES = 100000, LARGEST_TABLE = 1 << 30 };

/* ---- dl2-result/1 */

struct reading {
    const char *path;
    const struct dl2_result_source *source;
    struct dl2_result_metric metric;
    size_t resamples; /* how many each set has; 0: none */
    struct dl2_error *error;
};

static int wrong(const struct reading *reading, const char *key, const char *why)
{
    return dl2_error_set(reading->error, DL2_ERR_FORMAT, "%s: %s: %s", reading->path, key, why);
}

/* Nothing but what is known: a misspelled name would be ignored. `prefix` is "" or "original.". */
static int check_members(const struct reading *reading, const json_t *object, const char *prefix,
                         const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        struct dl2_nearest nearest = {.given = key};
        bool is_known = false;
        for (size_t i = 0; known[i]; i++) {
            is_known |= strcmp(key, known[i]) == 0;
            dl2_nearest_try(&nearest, known[i], NULL);
        }
        if (!is_known)
            return wrong(reading, dl2_text("%s%.60s", prefix, key),
                         nearest.name
                             ? dl2_text("there is no such field; did you mean %s?", nearest.name)
                             : "there is no such field; numbers of your own go into settings");
    }
    return DL2_OK;
}

static int take_number(const struct reading *reading, const json_t *value, const char *key,
                       double *out)
{
    if (!value)
        return wrong(reading, key, "it is missing");
    if (!json_is_number(value))
        return wrong(reading, key,
                     json_is_null(value) ? "it is null, or NaN, and not a number"
                                         : "it is not a number");
    *out = json_number_value(value);
    return DL2_OK;
}

/* A value of the metric. */
static int take_value(const struct reading *reading, const json_t *json, const char *key,
                      double *out)
{
    DL2_TRY(take_number(reading, json, key, out));
    return dl2_result_check_value(&reading->metric, *out, dl2_text("%s: %s", reading->path, key),
                                  reading->error);
}

static int take_text(const struct reading *reading, const json_t *result, const char *key,
                     bool may_be_empty, const char **out)
{
    const json_t *value = json_object_get(result, key);
    if (!json_is_string(value))
        return wrong(reading, key, value ? "it is not a text" : "it is missing");
    *out = dl2_text("%s", json_string_value(value));
    if (!**out && !may_be_empty)
        return wrong(reading, key, "it is empty");
    if (!dl2_accuracy_name_is_plain(*out))
        return wrong(reading, key,
                     "it is longer than 64 bytes, or has a control character or one "
                     "of " DL2_ODD_IN_METRIC_NAMES);
    return DL2_OK;
}

static int check_resamples(struct reading *reading, const json_t *list, const char *key)
{
    const size_t count = json_array_size(list);
    const json_t *value;
    double number;
    size_t i;
    if (!json_is_array(list) || count < FEWEST_RESAMPLES || count > MOST_RESAMPLES)
        return wrong(reading, key, "it is not a list of 100 to 100000 numbers");
    if (reading->resamples && count != reading->resamples)
        return wrong(reading, key, "it has another number of resamples than the metric beside it");
    reading->resamples = count;
    json_array_foreach(list, i, value)
        DL2_TRY(take_value(reading, value, dl2_text("%s[%zu]", key, i), &number));
    return DL2_OK;
}

/* Copies a file of the folder for results beside the report, under another name. */
static int copy_beside(const struct reading *reading, const char *given, const char *name)
{
    const char *path;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    DL2_TRY(dl2_result_find(given, reading->source, &path, reading->error));
    int status = dl2_file_read(path, LARGEST_TABLE, &bytes, reading->error);
    if (status == DL2_OK && !bytes.size)
        status = dl2_error_set(reading->error, DL2_ERR_FORMAT, "%s: it is empty", path);
    if (status == DL2_OK)
        status = dl2_file_write(dl2_text("%s/%s", reading->source->kept, name), bytes.data,
                                bytes.size, reading->error);
    dl2_bytes_free(&bytes);
    return status;
}

/* Copies outcomes beside the report, under a name of dl2's own, which becomes the set's. */
static int take_outcomes(const struct reading *reading, const json_t *file, const char *key,
                         const char *name, json_t *set)
{
    const char *given = json_string_value(file);
    if (!given || !*given || strpbrk(given, "/*?[\\"))
        return wrong(reading, key, "it is not the name of a file beside it");
    const char *extension = dl2_path_extension(given);
    if (strcmp(extension, "csv") != 0 && strcmp(extension, "npy") != 0)
        return wrong(reading, key, "it is neither a .csv nor a .npy file");
    const char *own = dl2_text("%s.%s", name, extension);
    DL2_TRY(copy_beside(reading, given, own));
    dl2_put(set, "outcomes", dl2_text_json(own));
    return DL2_OK;
}

static json_t *metric_json(const struct dl2_result_metric *metric)
{
    json_t *json = dl2_need(json_object());
    dl2_put(json, "name", dl2_text_json(metric->name));
    dl2_put(json, "unit", dl2_text_json(metric->unit));
    dl2_put(json, "higher_is_better", json_boolean(!metric->lower_is_better));
    return json;
}

/* The value, outcomes and resamples of an object, for a set of validation images. */
static int take_set(struct reading *reading, const json_t *from, const char *prefix,
                    const char *outcomes_name, json_t *set)
{
    double value;
    DL2_TRY(
        take_value(reading, json_object_get(from, "value"), dl2_text("%svalue", prefix), &value));
    dl2_put(set, "metric", metric_json(&reading->metric));
    dl2_put(set, "value", json_real(value));
    const json_t *outcomes = json_object_get(from, "outcomes");
    json_t *resamples = json_object_get(from, "resamples");
    if (outcomes)
        DL2_TRY(
            take_outcomes(reading, outcomes, dl2_text("%soutcomes", prefix), outcomes_name, set));
    if (resamples) {
        DL2_TRY(check_resamples(reading, resamples, dl2_text("%sresamples", prefix)));
        dl2_put(set, "resamples", json_incref(resamples));
    }
    return DL2_OK;
}

/* An epoch of a report. */
static json_t *epoch_json(const struct dl2_result_metric *metric, size_t number, double value)
{
    json_t *epoch = dl2_need(json_object()), *set = dl2_need(json_object());
    json_t *sets = dl2_need(json_array());
    dl2_put(set, "metric", metric_json(metric));
    dl2_put(set, "value", json_real(value));
    if (json_array_append_new(sets, set) < 0)
        dl2_need(NULL);
    dl2_put(epoch, "epoch", json_integer((json_int_t)number));
    dl2_put(epoch, "val", sets);
    return epoch;
}

static int take_epochs(const struct reading *reading, const json_t *list, json_t *epochs)
{
    static const char *const known[] = {"value", "seconds", "images", NULL};
    const json_t *own;
    size_t i;
    if (!json_is_array(list))
        return wrong(reading, "epochs", "it is not a list");
    json_array_foreach(list, i, own)
    {
        const char *prefix = dl2_text("epochs[%zu].", i);
        double value, number = 0;
        if (!json_is_object(own))
            return wrong(reading, dl2_text("epochs[%zu]", i), "it is not an object");
        DL2_TRY(check_members(reading, own, prefix, known));
        DL2_TRY(take_value(reading, json_object_get(own, "value"), dl2_text("%svalue", prefix),
                           &value));
        json_t *epoch = epoch_json(&reading->metric, i + 1, value);
        for (size_t k = 1; known[k]; k++) {
            const json_t *json = json_object_get(own, known[k]);
            const char *key = dl2_text("%s%s", prefix, known[k]);
            if (!json)
                continue;
            if (take_number(reading, json, key, &number) < 0 || number < 0) {
                json_decref(epoch);
                return wrong(reading, key, "it is not a number of 0 or more");
            }
            dl2_put(epoch, known[k], json_real(number));
        }
        if (json_array_append_new(epochs, epoch) < 0)
            dl2_need(NULL);
    }
    return DL2_OK;
}

static int check_seed(const struct reading *reading, const json_t *seed)
{
    if (!seed ||
        (json_is_integer(seed) && (uint64_t)json_integer_value(seed) == reading->source->seed))
        return DL2_OK;
    return wrong(reading, "seed",
                 dl2_text("it is of another training: %%s is %llu",
                          (unsigned long long)reading->source->seed));
}

static int take_settings(const struct reading *reading, json_t *settings, json_t *report)
{
    if (settings && !json_is_object(settings))
        return wrong(reading, "settings", "it is not an object");
    if (settings)
        dl2_put(json_object_get(report, "comparable"), "settings", json_incref(settings));
    return DL2_OK;
}

static int take_metric(struct reading *reading, const json_t *result)
{
    struct dl2_result_metric *metric = &reading->metric;
    DL2_TRY(take_text(reading, result, "metric", false, &metric->name));
    DL2_TRY(take_text(reading, result, "unit", true, &metric->unit));
    const json_t *higher = json_object_get(result, "higher_is_better");
    if (!json_is_boolean(higher))
        return wrong(reading, "higher_is_better", "it is neither true nor false");
    metric->lower_is_better = json_is_false(higher);
    return DL2_OK;
}

static int take_own(json_t *report, const struct dl2_result_source *source, json_t *epochs,
                    struct dl2_error *error)
{
    static const char *const known[] = {"schema",           "metric",   "value",  "unit",
                                        "higher_is_better", "settings", "epochs", "outcomes",
                                        "resamples",        "original", "seed",   NULL};
    static const char *const of_original[] = {"value", "outcomes", "resamples", NULL};
    struct reading reading = {.source = source, .error = error};
    const char *text;
    json_error_t why;
    DL2_TRY(dl2_result_find(DL2_RESULT_FILE, source, &reading.path, error));
    DL2_TRY(dl2_result_text(reading.path, &text, error));
    json_auto_t *result = dl2_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, &why);
    if (!result)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: line %d: it is not JSON: %s", reading.path,
                             why.line, why.text);
    if (strcmp(dl2_json_get_text(result, "schema", ""), "dl2-result/1") != 0)
        return wrong(&reading, "schema", "it is not dl2-result/1");
    DL2_TRY(check_members(&reading, result, "", known));
    DL2_TRY(check_seed(&reading, json_object_get(result, "seed")));
    DL2_TRY(take_metric(&reading, result));
    json_t *sets = json_object_get(report, "final"),
           *original = json_object_get(result, "original");
    DL2_TRY(take_set(&reading, result, "", "outcomes", json_array_get(sets, 0)));
    if (original) { /* which a training on the original may have, too */
        double value;
        if (!json_is_object(original))
            return wrong(&reading, "original", "it is not an object");
        DL2_TRY(check_members(&reading, original, "original.", of_original));
        DL2_TRY(take_value(&reading, json_object_get(original, "value"), "original.value", &value));
    }
    if (original && json_array_size(sets) > 1)
        DL2_TRY(take_set(&reading, original, "original.", "outcomes-original",
                         json_array_get(sets, 1)));
    if (json_object_get(result, "epochs"))
        DL2_TRY(take_epochs(&reading, json_object_get(result, "epochs"), epochs));
    return take_settings(&reading, json_object_get(result, "settings"), report);
}

/* ---- dl2-evaluation/1 */

/* Copies the set of the one place that dl2-train validated on, and its predictions. */
static int take_evaluation(json_t *report, const struct dl2_result_source *source,
                           struct dl2_error *error)
{
    struct reading reading = {.source = source, .error = error};
    const char *key;
    json_t *value;
    DL2_TRY(dl2_result_find(DL2_RESULT_OF_DL2, source, &reading.path, error));
    json_auto_t *evaluation = NULL;
    DL2_TRY(dl2_json_load(reading.path, "dl2-evaluation/1", &evaluation, error));
    const json_t *sets = json_object_get(evaluation, "val");
    json_t *own = json_array_get(json_object_get(report, "final"), 0);
    if (json_array_size(sets) != 1)
        return wrong(&reading, "val", "it is not of one set of images");
    json_object_foreach(json_array_get(sets, 0), key, value) if (strcmp(key, "name") != 0)
        dl2_put(own, key, json_incref(value));
    dl2_put(report, "network", dl2_text_json(dl2_json_get_text(evaluation, "arch", "")));
    dl2_put(report, "versions", dl2_need(json_incref(json_object_get(evaluation, "versions"))));
    const char *name = dl2_json_get_text(own, "predictions", NULL);
    return name ? copy_beside(&reading, dl2_path_base(name), dl2_path_base(name)) : DL2_OK;
}

/* ---- Either */

static int take_values(json_t *report, const char *setting, const struct dl2_result_source *source,
                       json_t *epochs, struct dl2_error *error)
{
    struct dl2_result_values values;
    DL2_TRY(dl2_result_read_values(setting, source, &values, error));
    json_t *set = json_array_get(json_object_get(report, "final"), 0);
    dl2_put(set, "metric", metric_json(&values.metric));
    dl2_put(set, "value", json_real(values.at[values.chosen]));
    if (values.is_best)
        dl2_put(set, "best", json_true());
    for (size_t i = 0; i < values.count; i++)
        if (json_array_append_new(epochs, epoch_json(&values.metric, i + 1, values.at[i])) < 0)
            dl2_need(NULL);
    return DL2_OK;
}

int dl2_result_take(json_t *report, const char *setting, const struct dl2_result_source *source,
                    struct dl2_error *error)
{
    json_t *epochs = dl2_need(json_array()), *sets = json_object_get(report, "final");
    dl2_put(report, "epochs", epochs);
    DL2_TRY(strcmp(setting, DL2_RESULT_FILE) == 0 ? take_own(report, source, epochs, error)
            : strcmp(setting, DL2_RESULT_OF_DL2) == 0
                ? take_evaluation(report, source, error)
                : take_values(report, setting, source, epochs, error));
    /* The original's images, where it was not validated on them. */
    if (json_array_size(sets) > 1 && !json_object_get(json_array_get(sets, 1), "value"))
        json_array_remove(sets, 1);
    return DL2_OK;
}
