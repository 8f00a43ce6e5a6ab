/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/search_space.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = 32, MAX_TRIALS = 4096, MAX_POINTS = 1000, MAX_SUBSPACES = 32 };

/* A setting and its values: a list of them, or else a range. */
struct axis {
    const char *key;
    json_t *list; /* NULL: a range */
    double min, max;
    bool log, integer;
};

/* One of the objects of a file, whose settings go together. */
struct subspace {
    struct axis axes[MAX_AXES];
    size_t axis_count;
    size_t combinations; /* of its lists; 0: there are ranges, or too many */
};

struct dl2_search_space {
    const struct dl2_program *program;
    const struct dl2_search_options *options;
    uint64_t seed;
    json_t *json;
    struct subspace *subspaces;
    size_t subspace_count;
    size_t trials;
    uint32_t *order; /* of the combinations of lists that are drawn; NULL: a grid, or ranges */
};

static int space_failed(const struct dl2_search_space *space, const struct dl2_error *error)
{
    fprintf(stderr, "%s: %s\n", space->program->name, error->message);
    return DL2_EXIT_FAILED;
}

static int axis_error(const struct dl2_search_space *space, const char *key, const char *reason)
{
    if (json_is_array(space->json))
        return dl2_program_usage_error(space->program, "%s: space %zu: \"%s\": %s",
                                       space->options->space, space->subspace_count, key, reason);
    return dl2_program_usage_error(space->program, "%s: \"%s\": %s", space->options->space, key,
                                   reason);
}

/* The value at `share`, 0 to 1, of a range: a whole number, or one with four digits, as a reader
 * would write it. */
static json_t *range_at(const struct axis *axis, double share)
{
    char text[32];
    const double value = axis->log ? axis->min * pow(axis->max / axis->min, share)
                                   : axis->min + (axis->max - axis->min) * share;
    if (axis->integer)
        return json_integer((json_int_t)fmin(axis->max, fmax(axis->min, round(value))));
    snprintf(text, sizeof text, "%.4g", value);
    return json_real(fmin(axis->max, fmax(axis->min, strtod(text, NULL))));
}

/* A value of a range, drawn. Whole numbers of a linear one are equally likely. */
static json_t *draw_in_range(const struct axis *axis, struct dl2_random *random)
{
    if (axis->integer && !axis->log)
        return json_integer((json_int_t)axis->min +
                            dl2_random_below(random, (uint32_t)(axis->max - axis->min) + 1));
    return range_at(axis, dl2_random_uniform(random));
}

static int check_integers(const struct dl2_search_space *space, const struct axis *axis)
{
    if (!axis->integer || (axis->min == floor(axis->min) && axis->max == floor(axis->max) &&
                           axis->min >= -1e9 && axis->max <= 1e9))
        return 0;
    return axis_error(space, axis->key,
                      "an \"integer\" range has whole numbers min and max, from -1e9 to 1e9");
}

/* {"min": A, "max": B, "scale": "log", "integer": true, "points": N} */
static int read_range(struct dl2_search_space *space, struct axis *axis, json_t *value)
{
    static const char *const known[] = {"min", "max", "scale", "integer", "points", NULL};
    const char *key, *scale = dl2_json_get_text(value, "scale", "linear");
    const json_t *points = json_object_get(value, "points");
    const json_t *integer = json_object_get(value, "integer");
    json_t *unused;
    axis->min = dl2_json_get_real(value, "min", NAN);
    axis->max = dl2_json_get_real(value, "max", NAN);
    axis->log = strcmp(scale, "log") == 0;
    json_object_foreach(value, key, unused)
    {
        if (dl2_parse_word(key, known, NULL) < 0)
            return axis_error(space, axis->key,
                              "a range has min, max, scale, integer and points alone");
    }
    axis->integer = json_is_true(integer);
    if (integer && !json_is_boolean(integer))
        return axis_error(space, axis->key, "\"integer\" is true or false");
    if (!isfinite(axis->min) || !isfinite(axis->max) || !(axis->min <= axis->max))
        return axis_error(space, axis->key, "a range needs numbers min and max, not below it");
    if (!axis->log && strcmp(scale, "linear") != 0)
        return axis_error(space, axis->key, "\"scale\" is linear or log");
    if (axis->log && axis->min <= 0)
        return axis_error(space, axis->key, "a range with the scale log is above 0");
    const int status = check_integers(space, axis);
    if (status != 0)
        return status;
    if (!points && space->options->algorithm == DL2_SEARCH_GRID)
        return axis_error(space, axis->key, "a range in a grid needs \"points\", how many");
    if (!points)
        return 0;
    const json_int_t count = json_integer_value(points);
    if (count < 2 || count > MAX_POINTS)
        return axis_error(space, axis->key, "\"points\" is a whole number, from 2 to 1000");
    axis->list = json_array();
    for (json_int_t i = 0; i < count; i++) {
        json_t *point = range_at(axis, (double)i / (double)(count - 1));
        const size_t size = json_array_size(axis->list);
        if (size && json_equal(point, json_array_get(axis->list, size - 1))) /* of integers */
            json_decref(point);
        else
            json_array_append_new(axis->list, point);
    }
    return 0;
}

static int read_axis(struct dl2_search_space *space, const char *key, json_t *value)
{
    struct subspace *subspace = &space->subspaces[space->subspace_count - 1];
    struct axis *axis = &subspace->axes[subspace->axis_count];
    if (subspace->axis_count == MAX_AXES)
        return axis_error(space, key, "there are more than 32 settings");
    if (strcmp(key, "name") == 0 || strcmp(key, "export") == 0)
        return axis_error(space, key, "a search makes the models' names and places");
    if (dl2_search_has_rounds(space->options) && strcmp(key, "epochs") == 0)
        return axis_error(space, key,
                          "halving and asha compare models after as many epochs; give -e");
    subspace->axis_count++;
    axis->key = key;
    if (json_is_object(value))
        return read_range(space, axis, value);
    if (json_array_size(value) == 0)
        return axis_error(space, key,
                          "it is neither a list of values nor a range, such as [0.1, 0.3] or "
                          "{\"min\": 0.01, \"max\": 0.3}");
    axis->list = json_incref(value);
    return 0;
}

static int read_part(struct dl2_search_space *space, json_t *object)
{
    const char *path = space->options->space;
    const char *key;
    json_t *value;
    int status = 0;
    if (!json_is_object(object))
        return dl2_program_usage_error(
            space->program,
            "--space: %s is not an object like {\"lr\": [0.1, 0.3]}, nor a list of such", path);
    space->subspace_count++;
    json_object_foreach(object, key, value)
    {
        status = status ? status : read_axis(space, key, value);
    }
    if (status == 0 && json_object_size(object) == 0)
        status = dl2_program_usage_error(space->program, "%s has no settings", path);
    return status;
}

static int read_space(struct dl2_search_space *space)
{
    const char *path = space->options->space;
    struct dl2_error error = DL2_ERROR_INIT;
    size_t i;
    json_t *object;
    const int loaded = dl2_json_load(path, NULL, &space->json, &error);
    if (loaded == DL2_ERR_FORMAT)
        return dl2_program_usage_error(space->program, "--space: %s", error.message);
    if (loaded < 0)
        return space_failed(space, &error);
    if (json_is_array(space->json) &&
        (json_array_size(space->json) == 0 || json_array_size(space->json) > MAX_SUBSPACES))
        return dl2_program_usage_error(space->program, "--space: %s has %zu spaces, not 1 to %d",
                                       path, json_array_size(space->json), MAX_SUBSPACES);
    space->subspaces = dl2_calloc(MAX_SUBSPACES, sizeof *space->subspaces);
    if (!space->subspaces) {
        dl2_error_memory(&error, "a search");
        return space_failed(space, &error);
    }
    if (!json_is_array(space->json))
        return read_part(space, space->json);
    int status = 0;
    json_array_foreach(space->json, i, object)
    {
        status = status ? status : read_part(space, object);
    }
    return status;
}

/* -- trials -- */

static size_t count_combinations_of(const struct subspace *subspace)
{
    size_t count = 1;
    for (size_t i = 0; i < subspace->axis_count && count; i++) {
        const size_t values = json_array_size(subspace->axes[i].list);
        count = values && count <= MAX_TRIALS / values ? count * values : 0;
    }
    return count;
}

/* Combinations of the lists of all subspaces; 0: there are ranges, or too many. */
static size_t count_combinations(struct dl2_search_space *space)
{
    size_t all = 0;
    bool countable = true;
    for (size_t i = 0; i < space->subspace_count; i++) {
        const size_t count = space->subspaces[i].combinations =
            count_combinations_of(&space->subspaces[i]);
        all += count;
        countable = countable && count > 0;
    }
    return countable && all <= MAX_TRIALS ? all : 0;
}

/* The subspace that a trial is of: by its number among the combinations, which becomes that among
 * the subspace's; or one of them drawn. */
static const struct subspace *subspace_of(const struct dl2_search_space *space, bool combination,
                                          size_t number, size_t *rest)
{
    const struct subspace *subspace = space->subspaces;
    struct dl2_random random;
    if (space->subspace_count == 1)
        return subspace;
    dl2_random_init(&random, space->seed, DL2_RANDOM_SEARCH, number, MAX_AXES);
    if (!combination)
        return subspace + dl2_random_below(&random, (uint32_t)space->subspace_count);
    for (; *rest >= subspace->combinations; subspace++)
        *rest -= subspace->combinations;
    return subspace;
}

/* The last setting of a grid changes fastest. */
json_t *dl2_search_space_settings(const struct dl2_search_space *space, size_t number)
{
    const bool combination = space->options->algorithm == DL2_SEARCH_GRID || space->order;
    json_t *settings = json_object();
    size_t rest = space->order ? space->order[number] : number;
    const struct subspace *subspace = subspace_of(space, combination, number, &rest);
    json_object_set_new(settings, "name", json_sprintf("trial-%03zu", number));
    for (size_t i = 0; i < subspace->axis_count; i++) /* in the order of the file */
        json_object_set_new(settings, subspace->axes[i].key, json_null());
    for (size_t i = subspace->axis_count; i-- > 0;) {
        const struct axis *axis = &subspace->axes[i];
        const size_t values = json_array_size(axis->list);
        struct dl2_random random;
        dl2_random_init(&random, space->seed, DL2_RANDOM_SEARCH, number, i);
        json_t *value = combination  ? json_incref(json_array_get(axis->list, rest % values))
                        : axis->list ? json_incref(json_array_get(
                                           axis->list, dl2_random_below(&random, (uint32_t)values)))
                                     : draw_in_range(axis, &random);
        rest = combination ? rest / values : 0;
        json_object_set_new(settings, axis->key, value);
    }
    return settings;
}

/* Draws the order in which random trials take the combinations. */
static bool draw_order(struct dl2_search_space *space, size_t combinations)
{
    struct dl2_random random;
    dl2_random_init(&random, space->seed, DL2_RANDOM_SEARCH, UINT64_MAX, UINT64_MAX);
    space->order = dl2_calloc(combinations, sizeof *space->order);
    if (space->order)
        dl2_random_permutation(&random, space->order, (uint32_t)combinations);
    return space->order != NULL;
}

static int count_trials(struct dl2_search_space *space)
{
    const size_t combinations = count_combinations(space);
    const bool grid = space->options->algorithm == DL2_SEARCH_GRID;
    struct dl2_error error = DL2_ERROR_INIT;
    space->trials = space->options->trials;
    if (grid && combinations == 0)
        return dl2_program_usage_error(space->program, "%s has more than %d combinations",
                                       space->options->space, MAX_TRIALS);
    if (combinations && (grid || combinations < space->trials))
        space->trials = combinations;
    if (!combinations || grid || draw_order(space, combinations))
        return 0;
    dl2_error_memory(&error, "a search");
    return space_failed(space, &error);
}

int dl2_search_space_open(const struct dl2_program *program,
                          const struct dl2_search_options *options, uint64_t seed,
                          struct dl2_search_space **out)
{
    struct dl2_search_space *space = *out = dl2_calloc(1, sizeof *space);
    if (!space) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        return DL2_EXIT_FAILED;
    }
    space->program = program;
    space->options = options;
    space->seed = seed;
    const int status = read_space(space);
    return status ? status : count_trials(space);
}

size_t dl2_search_space_trials(const struct dl2_search_space *space)
{
    return space->trials;
}

json_t *dl2_search_space_json(const struct dl2_search_space *space)
{
    return space->json;
}

void dl2_search_space_close(struct dl2_search_space *space)
{
    if (!space)
        return;
    for (size_t k = 0; k < space->subspace_count; k++)
        for (size_t i = 0; i < space->subspaces[k].axis_count; i++)
            json_decref(space->subspaces[k].axes[i].list);
    free(space->subspaces);
    json_decref(space->json);
    free(space->order);
    free(space);
}
