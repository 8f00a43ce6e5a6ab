/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/search_results.h"

#include "common/accuracy_kind.h"
#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "report/result_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the validations out of a model's own report. A model that has not begun has none. */
static void read_curve(const char *folder, const json_t *trial, struct dl2_searched *model,
                       struct dl2_error *broken)
{
    json_auto_t *report = NULL;
    size_t i;
    json_t *epoch;
    const char *path = dl2_text("%s/%s", folder, dl2_json_get_text(trial, "report", ""));
    if (!dl2_is_file(path) ||
        dl2_unless_memory(dl2_result_load(path, "dl2-experiment/1", &report, broken), broken) < 0)
        return;
    const json_t *epochs = json_object_get(report, "epochs");
    const size_t most = json_array_size(epochs) + 1;
    model->position = dl2_keep(most, sizeof *model->position, "%s", path);
    model->val_accuracy = dl2_keep(most, sizeof *model->val_accuracy, "%s", path);
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *val = json_array_get(json_object_get(epoch, "val"), 0);
        model->position[model->count] = dl2_json_get_real(epoch, "position", NAN);
        model->val_accuracy[model->count] = dl2_accuracy_of(val);
        model->count +=
            isfinite(model->position[model->count]) && isfinite(model->val_accuracy[model->count]);
    }
}

static enum dl2_searched_outcome outcome_of(const char *status)
{
    return strcmp(status, "trained") == 0    ? DL2_SEARCHED_TRAINED
           : strcmp(status, "diverged") == 0 ? DL2_SEARCHED_DIVERGED
                                             : DL2_SEARCHED_STOPPED;
}

/* qsort_r()'s: those without a rank come last. */
static int compare_ranks(const void *a, const void *b, void *models)
{
    const size_t left = *(const size_t *)a, right = *(const size_t *)b;
    const double one = ((struct dl2_searched *)models)[left].rank;
    const double other = ((struct dl2_searched *)models)[right].rank;
    if (isfinite(one) != isfinite(other))
        return isfinite(one) ? -1 : 1;
    if (isfinite(one) && one != other)
        return one < other ? -1 : 1;
    return left < right ? -1 : 1;
}

static void read_models(const char *folder, struct dl2_search_results *results)
{
    const json_t *trials = json_object_get(results->report, "trials");
    const char *best = dl2_json_get_text(results->report, "best", "");
    size_t i;
    json_t *trial;
    results->models =
        dl2_keep(json_array_size(trials), sizeof *results->models, "the search in %s", folder);
    results->ranked =
        dl2_keep(json_array_size(trials), sizeof *results->ranked, "the search in %s", folder);
    json_array_foreach(trials, i, trial)
    {
        struct dl2_searched *model = &results->models[results->count];
        results->ranked[results->count] = results->count;
        results->count++;
        *model = (struct dl2_searched){.name = dl2_json_get_text(trial, "name", "(unnamed)"),
                                       .status = dl2_json_get_text(trial, "status", ""),
                                       .settings = json_object_get(trial, "settings"),
                                       .epochs = dl2_json_get_real(trial, "epochs", NAN),
                                       .accuracy = dl2_json_get_real(trial, "accuracy", NAN),
                                       .loss = dl2_json_get_real(trial, "loss", NAN),
                                       .rank = dl2_json_get_real(trial, "rank", NAN)};
        model->outcome = outcome_of(model->status);
        if (*best && strcmp(model->name, best) == 0 && !results->best) {
            model->outcome = DL2_SEARCHED_BEST;
            results->best = model;
        }
        read_curve(folder, trial, model, &results->broken);
    }
    qsort_r(results->ranked, results->count, sizeof *results->ranked, compare_ranks,
            results->models);
}

/* The path of search.json in one of the folders that may hold it, `number` 0 and 1. */
static const char *search_path(const char *folder, size_t number)
{
    return dl2_text("%s%s/search.json", folder, number ? "/search" : "");
}

bool dl2_search_results_exist(const char *folder)
{
    return dl2_is_file(search_path(folder, 0)) || dl2_is_file(search_path(folder, 1));
}

struct dl2_search_results dl2_search_results_collect(const char *folder)
{
    struct dl2_search_results results = {.report = NULL};
    for (size_t i = 0; i < 2 && !results.report; i++) {
        const char *path = search_path(folder, i);
        json_t *report = NULL;
        if (dl2_is_file(path) &&
            dl2_unless_memory(dl2_result_load(path, "dl2-search/1", &report, &results.broken),
                              &results.broken) == DL2_OK) {
            results.report = dl2_keep_json(report);
            read_models(i ? dl2_text("%s/search", folder) : folder, &results);
        }
    }
    return results;
}

/* Those that the list does not have yet. */
static void add_values(json_t *list, const json_t *values)
{
    size_t i, k;
    json_t *value, *other;
    json_array_foreach(values, i, value)
    {
        bool there = false;
        json_array_foreach(list, k, other) there = there || json_equal(value, other);
        if (!there)
            json_array_append(list, value);
    }
}

json_t *dl2_search_results_space(const struct dl2_search_results *results)
{
    json_t *space = json_object_get(json_object_get(results->report, "search"), "space");
    json_t *merged = dl2_keep_json(json_object()), *part, *values;
    const char *key;
    size_t i;
    if (json_is_object(space))
        json_object_update(merged, space);
    json_array_foreach(space, i, part) json_object_foreach(part, key, values)
    {
        json_t *before = json_object_get(merged, key);
        if (!before) {
            json_object_set_new(merged, key, json_copy(values));
        } else if (json_is_array(before)) {
            add_values(before, values);
        } else if (json_is_object(values)) {
            json_object_set_new(before, "min",
                                json_real(fmin(dl2_json_get_real(before, "min", NAN),
                                               dl2_json_get_real(values, "min", NAN))));
            json_object_set_new(before, "max",
                                json_real(fmax(dl2_json_get_real(before, "max", NAN),
                                               dl2_json_get_real(values, "max", NAN))));
        }
    }
    return merged;
}

static bool make_axis(const char *name, const json_t *values, struct dl2_search_axis *out)
{
    *out = (struct dl2_search_axis){.name = name, .list = json_is_array(values) ? values : NULL};
    out->min = dl2_json_get_real(values, "min", NAN);
    out->max = dl2_json_get_real(values, "max", NAN);
    out->logarithmic = strcmp(dl2_json_get_text(values, "scale", ""), "log") == 0;
    return out->list
               ? json_array_size(values) > 0
               : isfinite(out->min) && isfinite(out->max) && (!out->logarithmic || out->min > 0);
}

double dl2_search_axis_height(const struct dl2_search_axis *axis, const json_t *value)
{
    const double number = json_number_value(value);
    size_t i;
    json_t *other;
    if (axis->list) {
        const size_t last = json_array_size(axis->list) - 1;
        json_array_foreach(axis->list, i, other) if (json_equal(value, other)) return last
            ? (double)i / (double)last
            : 0.5;
        return NAN;
    }
    if (!json_is_number(value) || number < axis->min || number > axis->max)
        return NAN;
    if (axis->min == axis->max)
        return 0.5;
    return axis->logarithmic ? log(number / axis->min) / log(axis->max / axis->min)
                             : (number - axis->min) / (axis->max - axis->min);
}

size_t dl2_search_axes(const json_t *space, struct dl2_search_axis *axes, size_t room)
{
    size_t count = 0;
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)space, key, values)
    {
        if (count < room && make_axis(key, values, &axes[count]))
            count++;
    }
    return count;
}

struct dl2_search_axis dl2_search_accuracy(const struct dl2_search_results *results)
{
    struct dl2_search_axis axis = {.min = INFINITY, .max = -INFINITY};
    for (size_t i = 0; i < results->count; i++) {
        axis.min = fmin(axis.min, 100 * results->models[i].accuracy);
        axis.max = fmax(axis.max, 100 * results->models[i].accuracy);
    }
    return axis;
}
