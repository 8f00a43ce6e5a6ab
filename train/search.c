/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/search.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"
#include "train/train_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two positions closer than this are one. */
#define SAME 1e-9

/* With an eta of 2, the last rung is more than 2^30 epochs long. */
enum { MOST_AXES = 32, MOST_TRIALS = 4096, MOST_POINTS = 1000, MOST_RUNGS = 32 };

const char *const dl2_search_words[] = {[DL2_SEARCH_GRID] = "grid",
                                        [DL2_SEARCH_RANDOM] = "random",
                                        [DL2_SEARCH_HALVING] = "halving",
                                        [DL2_SEARCH_ASHA] = "asha",
                                        NULL};

/* A setting and its values: a list of them, or else a range. */
struct axis {
    const char *key;
    json_t *list; /* NULL: a range */
    double min, max;
    bool log;
};

enum trial_status { WAITING, TRAINED, STOPPED, DIVERGED };
static const char *const status_words[] = {"waiting", "trained", "stopped", "diverged"};

struct trial {
    enum trial_status status;
    double epochs;     /* that it was trained for */
    double top1, loss; /* on the first validation set, in the last round that it was in */
};

/* The end of a round of asha, and the trials that have come to it, the best first. */
struct rung {
    double until;
    struct rung_entry {
        size_t trial;
        double top1, loss; /* here; NAN: diverged */
        bool went_on;
    } * entries;
    size_t count;
};

struct search {
    const struct dl2_search_options *options;
    struct dl2_configs_base base;
    int (*train)(struct dl2_train_model *models, size_t count);
    struct dl2_configs *configs;
    struct dl2_train_config config; /* base.config is this one */
    json_t *space, *identity, *rounds;
    struct axis axes[MOST_AXES];
    size_t axis_count;
    uint32_t *order;      /* of the combinations of lists that are drawn; NULL: a grid, or ranges */
    struct trial *trials; /* one for each configuration */
    struct rung rungs[MOST_RUNGS]; /* of asha */
    size_t rung_count, begun;      /* begun: trials that were given to the first rung */
    char *report;
    bool completed;
};

/* Models are compared before their end. */
static bool has_rounds(const struct search *search)
{
    return search->options->algorithm == DL2_SEARCH_HALVING ||
           search->options->algorithm == DL2_SEARCH_ASHA;
}

static int search_failed(const struct search *search, const struct dl2_error *error)
{
    fprintf(stderr, "%s: %s\n", search->base.program->name, error->message);
    return DL2_EXIT_FAILED;
}

static int search_memory(const struct search *search)
{
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_error_memory(&error, "a search");
    return search_failed(search, &error);
}

/* -- the space -- */

static int axis_error(const struct search *search, const char *key, const char *reason)
{
    return dl2_program_usage_error(search->base.program, "%s: \"%s\": %s", search->options->space,
                                   key, reason);
}

/* The value at `share`, 0 to 1, of a range, with four digits, as a reader would write it. */
static double range_at(const struct axis *axis, double share)
{
    char text[32];
    const double value = axis->log ? axis->min * pow(axis->max / axis->min, share)
                                   : axis->min + (axis->max - axis->min) * share;
    snprintf(text, sizeof text, "%.4g", value);
    return fmin(axis->max, fmax(axis->min, strtod(text, NULL)));
}

/* {"min": A, "max": B, "scale": "log", "points": N} */
static int read_range(struct search *search, struct axis *axis, json_t *value)
{
    static const char *const known[] = {"min", "max", "scale", "points", NULL};
    const char *key, *scale = dl2_json_get_text(value, "scale", "linear");
    const json_t *points = json_object_get(value, "points");
    json_t *unused;
    axis->min = dl2_json_get_real(value, "min", NAN);
    axis->max = dl2_json_get_real(value, "max", NAN);
    axis->log = strcmp(scale, "log") == 0;
    json_object_foreach(value, key, unused)
    {
        if (dl2_parse_word(key, known, NULL) < 0)
            return axis_error(search, axis->key, "a range has min, max, scale and points alone");
    }
    if (!isfinite(axis->min) || !isfinite(axis->max) || !(axis->min <= axis->max))
        return axis_error(search, axis->key, "a range needs numbers min and max, not below it");
    if (!axis->log && strcmp(scale, "linear") != 0)
        return axis_error(search, axis->key, "\"scale\" is linear or log");
    if (axis->log && axis->min <= 0)
        return axis_error(search, axis->key, "a range with the scale log is above 0");
    if (!points && search->options->algorithm == DL2_SEARCH_GRID)
        return axis_error(search, axis->key, "a range in a grid needs \"points\", how many");
    if (!points)
        return 0;
    const json_int_t count = json_integer_value(points);
    if (count < 2 || count > MOST_POINTS)
        return axis_error(search, axis->key, "\"points\" is a whole number, from 2 to 1000");
    axis->list = json_array();
    for (json_int_t i = 0; i < count; i++)
        json_array_append_new(axis->list,
                              json_real(range_at(axis, (double)i / (double)(count - 1))));
    return 0;
}

static int read_axis(struct search *search, const char *key, json_t *value)
{
    struct axis *axis = &search->axes[search->axis_count];
    if (search->axis_count == MOST_AXES)
        return axis_error(search, key, "there are too many settings");
    if (strcmp(key, "name") == 0 || strcmp(key, "export") == 0)
        return axis_error(search, key, "a search makes the models' names and places");
    if (has_rounds(search) && strcmp(key, "epochs") == 0)
        return axis_error(search, key,
                          "halving and asha compare models after as many epochs; give -e");
    search->axis_count++;
    axis->key = key;
    if (json_is_object(value))
        return read_range(search, axis, value);
    if (json_array_size(value) == 0)
        return axis_error(search, key, "it is neither a list of values nor a range");
    axis->list = json_incref(value);
    return 0;
}

static int read_space(struct search *search)
{
    const char *path = search->options->space;
    struct dl2_error error = DL2_ERROR_INIT;
    const char *key;
    json_t *value;
    if (dl2_json_load(path, NULL, &search->space, &error) < 0)
        return search_failed(search, &error);
    int status = 0;
    json_object_foreach(search->space, key, value)
    {
        status = status ? status : read_axis(search, key, value);
    }
    if (status == 0 && search->axis_count == 0)
        status = dl2_program_usage_error(search->base.program, "%s has no settings", path);
    return status;
}

/* -- configurations -- */

/* Combinations of the lists; 0: there are ranges, or too many. */
static size_t count_combinations(const struct search *search)
{
    size_t count = 1;
    for (size_t i = 0; i < search->axis_count && count; i++) {
        const size_t values = json_array_size(search->axes[i].list);
        count = values && count <= MOST_TRIALS / values ? count * values : 0;
    }
    return count;
}

/* The settings of trial `number`; the last setting of a grid changes fastest. */
static json_t *make_settings(const struct search *search, size_t number)
{
    const bool combination = search->options->algorithm == DL2_SEARCH_GRID || search->order;
    json_t *settings = json_object();
    size_t rest = search->order ? search->order[number] : number;
    json_object_set_new(settings, "name", json_sprintf("trial-%03zu", number));
    for (size_t i = 0; i < search->axis_count; i++) /* in the order of the file */
        json_object_set_new(settings, search->axes[i].key, json_null());
    for (size_t i = search->axis_count; i-- > 0;) {
        const struct axis *axis = &search->axes[i];
        const size_t values = json_array_size(axis->list);
        struct dl2_random random;
        dl2_random_init(&random, search->config.seed, DL2_RANDOM_SEARCH, number, i);
        json_t *value = combination  ? json_incref(json_array_get(axis->list, rest % values))
                        : axis->list ? json_incref(json_array_get(
                                           axis->list, dl2_random_below(&random, (uint32_t)values)))
                                     : json_real(range_at(axis, dl2_random_uniform(&random)));
        rest = combination ? rest / values : 0;
        json_object_set_new(settings, axis->key, value);
    }
    return settings;
}

/* Draws the order in which random trials take the combinations. */
static bool draw_order(struct search *search, size_t combinations)
{
    struct dl2_random random;
    dl2_random_init(&random, search->config.seed, DL2_RANDOM_SEARCH, UINT64_MAX, UINT64_MAX);
    search->order = dl2_calloc(combinations, sizeof *search->order);
    if (search->order)
        dl2_random_permutation(&random, search->order, (uint32_t)combinations);
    return search->order != NULL;
}

static int make_trials(struct search *search)
{
    const size_t combinations = count_combinations(search);
    const bool grid = search->options->algorithm == DL2_SEARCH_GRID;
    size_t count = search->options->trials;
    if (grid && combinations == 0)
        return dl2_program_usage_error(search->base.program, "%s has more than %d combinations",
                                       search->options->space, MOST_TRIALS);
    if (combinations && (grid || combinations < count))
        count = combinations;
    if (combinations && !grid && !draw_order(search, combinations))
        return search_memory(search);
    search->trials = dl2_calloc(count, sizeof *search->trials);
    if (!search->trials)
        return search_memory(search);
    for (size_t i = 0; i < count; i++) {
        json_auto_t *settings = make_settings(search, i);
        char place[4096];
        snprintf(place, sizeof place, "%s: trial %zu", search->options->space, i);
        const int status = dl2_configs_add(search->configs, &search->base, settings, place);
        if (status != 0)
            return status;
        search->trials[i] = (struct trial){.top1 = NAN, .loss = NAN};
    }
    return 0;
}

/* Epochs that a trial's whole run comes to. */
static double trial_length(const struct search *search, size_t trial)
{
    return search->configs->models[trial].config.stages[0].epochs;
}

/* -- its report -- */

static bool is_good(const struct trial *trial)
{
    return trial->status != DIVERGED && isfinite(trial->loss);
}

static bool is_better(const struct trial *a, const struct trial *b)
{
    if (is_good(a) != is_good(b))
        return is_good(a);
    return a->top1 > b->top1 || (a->top1 == b->top1 && a->loss < b->loss);
}

/* The best of the trials that came to their end, the first of equals; -1: none. */
static long best_trial(const struct search *search)
{
    long best = -1;
    for (size_t i = 0; i < search->configs->count; i++)
        if (search->trials[i].status == TRAINED && is_good(&search->trials[i]) &&
            (best < 0 || is_better(&search->trials[i], &search->trials[best])))
            best = (long)i;
    return best;
}

static double trained_epochs(const struct search *search)
{
    double epochs = 0;
    for (size_t i = 0; i < search->configs->count; i++)
        epochs += search->trials[i].epochs;
    return epochs;
}

static double all_epochs(const struct search *search)
{
    double epochs = 0;
    for (size_t i = 0; i < search->configs->count; i++)
        epochs += trial_length(search, i);
    return epochs;
}

static json_t *trial_list(const struct search *search)
{
    json_t *list = json_array();
    for (size_t i = 0; i < search->configs->count; i++) {
        const struct trial *trial = &search->trials[i];
        const char *name = search->configs->models[i].config.name;
        json_t *settings = json_copy(search->configs->settings[i]);
        json_object_del(settings, "name");
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:s, s:f, s:o, s:o, s:o}", "name", name,
                                        "settings", settings, "status", status_words[trial->status],
                                        "epochs", trial->epochs, "top1", dl2_json_real(trial->top1),
                                        "loss", dl2_json_real(trial->loss), "report",
                                        json_sprintf("%s/%s", name, DL2_EXPERIMENT_FILE)));
    }
    return list;
}

static int save_search(const struct search *search)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const long best = best_trial(search);
    json_t *report = json_pack(
        "{s:s, s:O, s:O, s:o, s:o, s:f, s:f, s:b}", "schema", DL2_SEARCH_SCHEMA, "search",
        search->identity, "rounds", search->rounds, "trials", trial_list(search), "best",
        search->completed && best >= 0 ? json_string(search->configs->models[best].config.name)
                                       : json_null(),
        "epochs", trained_epochs(search), "all_epochs", all_epochs(search), "completed",
        search->completed);
    return dl2_json_save_new(search->report, report, &error) < 0 ? search_failed(search, &error)
                                                                 : 0;
}

/* What the search is; one that is resumed must be the same. */
static json_t *make_identity(const struct search *search)
{
    const struct dl2_search_options *options = search->options;
    const bool rounds = has_rounds(search);
    json_t *identity = json_pack("{s:s, s:O, s:I, s:o, s:o, s:I}", "algorithm",
                                 dl2_search_words[options->algorithm], "space", search->space,
                                 "trials", (json_int_t)search->configs->count, "eta",
                                 rounds ? json_integer(options->eta) : json_null(), "first_epochs",
                                 rounds ? json_real(options->first_epochs) : json_null(), "seed",
                                 (json_int_t)search->config.seed);
    if (options->algorithm == DL2_SEARCH_ASHA) /* who goes on depends on who has come along */
        json_object_set_new(identity, "at_once", json_integer(options->at_once));
    return identity;
}

/* -- files of the runs -- */

static bool has_file(const struct search *search, size_t trial, const char *name, bool gone)
{
    char *path = dl2_path_join(search->configs->folders[trial], name);
    const bool there = path && dl2_is_file(path);
    if (there && gone)
        unlink(path);
    free(path);
    return there;
}

/* A new search begins where no other's runs are, or, with --restart, without their files. */
static int claim_folders(const struct search *search)
{
    const bool restart = search->config.restart;
    bool there = dl2_is_file(search->report);
    for (size_t i = 0; i < search->configs->count && (restart || !there); i++) {
        there |= has_file(search, i, DL2_CHECKPOINT_FILE, restart);
        there |= has_file(search, i, DL2_EXPERIMENT_FILE, restart);
    }
    if (restart || !there)
        return 0;
    fprintf(stderr,
            "%s: %s: there is a search already: go on with it by --resume, name another place by "
            "--out, or give it up by --restart\n",
            search->base.program->name, search->config.out);
    return DL2_EXIT_FAILED;
}

/* Takes over what the search has found so far. */
static int resume_search(struct search *search)
{
    json_auto_t *report = NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    size_t i;
    json_t *trial;
    if (dl2_json_load(search->report, DL2_SEARCH_SCHEMA, &report, &error) < 0)
        return search_failed(search, &error);
    if (!json_equal(json_object_get(report, "search"), search->identity)) {
        fprintf(stderr,
                "%s: %s is of another search: resume with the options and the space it was begun "
                "with, or begin anew by --restart\n",
                search->base.program->name, search->report);
        return DL2_EXIT_FAILED;
    }
    json_array_foreach(json_object_get(report, "trials"), i, trial)
    {
        if (i < search->configs->count &&
            strcmp(dl2_json_get_text(trial, "status", ""), status_words[DIVERGED]) == 0)
            search->trials[i].status = DIVERGED;
    }
    return 0;
}

/* -- rounds -- */

/* Whether the trial has been trained and validated up to `until`; takes its figures there. */
static bool look_at_trial(struct search *search, size_t number, double until)
{
    struct trial *trial = &search->trials[number];
    char *path = dl2_path_join(search->configs->folders[number], DL2_EXPERIMENT_FILE);
    json_auto_t *report = NULL;
    size_t i;
    json_t *record;
    bool there = false;
    if (path && dl2_json_load(path, DL2_EXPERIMENT_SCHEMA, &report, NULL) == DL2_OK)
        json_array_foreach(json_object_get(report, "epochs"), i, record)
        {
            const json_t *val = json_array_get(json_object_get(record, "val"), 0);
            const double position = dl2_json_get_real(record, "position", 0);
            trial->epochs = fmax(trial->epochs, position);
            if (position < until - SAME || there || !val)
                continue;
            there = true;
            trial->top1 = dl2_json_get_real(val, "top1", NAN);
            trial->loss = dl2_json_get_real(val, "loss", NAN);
        }
    free(path);
    return there;
}

/* Trains `count` trials together up to `until`, or to their end. */
static int train_wave(struct search *search, const size_t *numbers, size_t count, double until)
{
    struct dl2_train_model *wave = dl2_calloc(count, sizeof *wave);
    if (!wave)
        return search_memory(search);
    for (size_t i = 0; i < count; i++) {
        wave[i] = search->configs->models[numbers[i]];
        struct dl2_train_config *config = &wave[i].config;
        config->resume = has_file(search, numbers[i], DL2_CHECKPOINT_FILE, false);
        config->restart = false;
        config->started = dl2_clock_wall();
        config->stop_at = until < trial_length(search, numbers[i]) - SAME ? until : NAN;
    }
    const int status = search->train(wave, count);
    for (size_t i = 0; i < count; i++)
        if (wave[i].result.diverged)
            search->trials[numbers[i]].status = DIVERGED;
    free(wave);
    return status;
}

/* Where the round ends for a trial. */
static double trial_until(const struct search *search, size_t trial, double until)
{
    return fmin(until, trial_length(search, trial));
}

/* Trains the members that are not there yet up to `until`, INFINITY for the end. */
static int train_round(struct search *search, const size_t *members, size_t count, double until)
{
    const size_t at_once = search->options->at_once;
    size_t *wave = dl2_calloc(at_once, sizeof *wave);
    size_t size = 0;
    int status = wave ? 0 : search_memory(search);
    for (size_t i = 0; i < count && status == 0; i++) {
        const size_t number = members[i];
        const double end = trial_until(search, number, until);
        if (!look_at_trial(search, number, end) && search->trials[number].status != DIVERGED)
            wave[size++] = number;
        if (size == 0 || (size < at_once && i + 1 < count))
            continue;
        status = train_wave(search, wave, size, until);
        for (size_t k = 0; k < size; k++)
            look_at_trial(search, wave[k], trial_until(search, wave[k], until));
        const int saved = save_search(search);
        status = status ? status : saved;
        size = 0;
    }
    free(wave);
    return status;
}

/* The best come first; equal ones stay in order. */
static void rank_members(const struct search *search, size_t *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const size_t number = members[i];
        size_t k = i;
        for (; k > 0 && is_better(&search->trials[number], &search->trials[members[k - 1]]); k--)
            members[k] = members[k - 1];
        members[k] = number;
    }
}

/* Ends a round: only the first `kept` of the ranked members go on, and none that is no good. */
static size_t cut_members(struct search *search, const size_t *members, size_t count, size_t kept,
                          double until)
{
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++) {
        struct trial *trial = &search->trials[members[i]];
        json_array_append_new(names, json_string(search->configs->models[members[i]].config.name));
        kept = !is_good(trial) && i < kept ? i : kept;
        if (i >= kept && trial->status != DIVERGED)
            trial->status = STOPPED;
    }
    json_array_append_new(search->rounds, json_pack("{s:f, s:o, s:I}", "epochs", until, "ranking",
                                                    names, "kept", (json_int_t)kept));
    return kept;
}

static int run_rounds(struct search *search, size_t *members)
{
    const struct dl2_search_options *options = search->options;
    const bool halving = options->algorithm == DL2_SEARCH_HALVING;
    const double length = trial_length(search, 0);
    size_t count = search->configs->count;
    double until = options->first_epochs;
    int status = 0;
    for (; halving && until < length - SAME && count > 1 && status == 0; until *= options->eta) {
        status = train_round(search, members, count, until);
        if (status != 0)
            return status;
        rank_members(search, members, count);
        const size_t part = count / options->eta;
        count = cut_members(search, members, count, part ? part : 1, until);
        status = save_search(search);
    }
    if (status == 0)
        status = train_round(search, members, count, INFINITY);
    for (size_t i = 0; i < count && status == 0; i++)
        if (search->trials[members[i]].status != DIVERGED)
            search->trials[members[i]].status = TRAINED;
    if (status == 0) {
        search->completed = true;
        status = save_search(search);
    }
    return status;
}

/* -- asha -- */

static bool entry_is_better(const struct rung_entry *a, const struct rung_entry *b)
{
    if (isfinite(a->loss) != isfinite(b->loss))
        return isfinite(a->loss);
    return a->top1 > b->top1 || (a->top1 == b->top1 && a->loss < b->loss);
}

/* The trial has come to the rung, or has diverged on its way. Equal ones stay in order. */
static void enter_rung(const struct search *search, struct rung *rung, size_t number)
{
    const struct trial *trial = &search->trials[number];
    const bool good = is_good(trial);
    const struct rung_entry entry = {number, good ? trial->top1 : NAN, good ? trial->loss : NAN,
                                     false};
    size_t k = rung->count++;
    for (; k > 0 && entry_is_better(&entry, &rung->entries[k - 1]); k--)
        rung->entries[k] = rung->entries[k - 1];
    rung->entries[k] = entry;
}

/* The rungs as rounds of the report. */
static json_t *rung_list(const struct search *search)
{
    json_t *list = json_array();
    for (size_t i = 0; i < search->rung_count && search->rungs[i].count; i++) {
        const struct rung *rung = &search->rungs[i];
        json_t *names = json_array();
        json_int_t kept = 0;
        for (size_t k = 0; k < rung->count; k++) {
            const struct rung_entry *entry = &rung->entries[k];
            json_array_append_new(names,
                                  json_string(search->configs->models[entry->trial].config.name));
            kept += entry->went_on;
        }
        json_array_append_new(list, json_pack("{s:f, s:o, s:I}", "epochs", rung->until, "ranking",
                                              names, "kept", kept));
    }
    return list;
}

/* Takes up to `most` of the rung's first `part` trials that have not gone on yet. */
static size_t take_on(struct rung *rung, size_t part, size_t *wave, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < rung->count && i < part && count < most; i++) {
        struct rung_entry *entry = &rung->entries[i];
        if (entry->went_on || !isfinite(entry->loss))
            continue;
        entry->went_on = true;
        wave[count++] = entry->trial;
    }
    return count;
}

/*
 * Chooses who trains next, all to the same rung, *next, so that they share batches: those that may
 * go on from the highest rung that has any; else new ones; else, where none has come to its end,
 * the best one of the highest rung. Returns how many.
 */
static size_t choose_wave(struct search *search, size_t *wave, size_t *next)
{
    const size_t most = search->options->at_once;
    size_t count = 0;
    for (size_t i = search->rung_count; i-- > 0 && count == 0; *next = i + 1)
        count =
            take_on(&search->rungs[i], search->rungs[i].count / search->options->eta, wave, most);
    if (count)
        return count;
    *next = 0;
    while (count < most && search->begun < search->configs->count)
        wave[count++] = search->begun++;
    for (size_t i = search->rung_count; i-- > 0 && count == 0 && best_trial(search) < 0;
         *next = i + 1)
        count = take_on(&search->rungs[i], search->rungs[i].count, wave, 1);
    return count;
}

/* Trains the wave to the rung, or to the end. */
static int climb(struct search *search, const size_t *wave, size_t count, size_t next)
{
    const bool to_end = next == search->rung_count;
    const int status =
        train_round(search, wave, count, to_end ? INFINITY : search->rungs[next].until);
    for (size_t i = 0; i < count && status == 0; i++)
        if (!to_end)
            enter_rung(search, &search->rungs[next], wave[i]);
        else if (search->trials[wave[i]].status != DIVERGED)
            search->trials[wave[i]].status = TRAINED;
    json_decref(search->rounds);
    search->rounds = rung_list(search);
    return status ? status : save_search(search);
}

static int make_rungs(struct search *search)
{
    const double length = trial_length(search, 0);
    for (double until = search->options->first_epochs;
         until < length - SAME && search->rung_count < MOST_RUNGS; until *= search->options->eta) {
        struct rung *rung = &search->rungs[search->rung_count++];
        rung->until = until;
        rung->entries = dl2_calloc(search->configs->count, sizeof *rung->entries);
        if (!rung->entries)
            return search_memory(search);
    }
    return 0;
}

static int run_asha(struct search *search, size_t *wave)
{
    size_t count, next = 0;
    int status = make_rungs(search);
    while (status == 0 && (count = choose_wave(search, wave, &next)) > 0)
        status = climb(search, wave, count, next);
    for (size_t i = 0; i < search->configs->count && status == 0; i++)
        if (search->trials[i].status == WAITING)
            search->trials[i].status = STOPPED;
    search->completed = status == 0;
    return status ? status : save_search(search);
}

/* -- a search -- */

static int check_search(const struct search *search)
{
    const struct dl2_program *program = search->base.program;
    const struct dl2_train_config *config = search->base.config;
    const struct dl2_search_options *options = search->options;
    if (dl2_option_given(program, search->base.common, "run-epochs"))
        return dl2_program_usage_error(program, "--run-epochs has no use with --search: a signal "
                                                "stops one, and --resume goes on");
    if (config->skip_validation || config->synthetic)
        return dl2_program_usage_error(program, "--search needs validation: it is by top-1");
    if (has_rounds(search) && config->validate_every != 1)
        return dl2_program_usage_error(program,
                                       "--algorithm %s needs --validate-every 1: it compares "
                                       "models between epochs",
                                       dl2_search_words[options->algorithm]);
    if (options->first_epochs != floor(options->first_epochs))
        return dl2_program_usage_error(program, "--first-epochs is a whole number of epochs");
    return dl2_configs_check_base(&search->base);
}

static int search_space(struct search *search)
{
    struct dl2_error error = DL2_ERROR_INIT;
    search->identity = make_identity(search);
    search->rounds = json_array();
    const bool resumed = search->config.resume && dl2_is_file(search->report);
    int status = resumed ? resume_search(search) : claim_folders(search);
    if (status == 0 && dl2_make_folders(search->config.out, &error) < 0)
        status = search_failed(search, &error);
    if (status == 0)
        status = save_search(search);
    const size_t at_once = search->options->at_once, all = search->configs->count;
    size_t *members = dl2_calloc(all > at_once ? all : at_once, sizeof *members);
    if (status == 0 && !members)
        status = search_memory(search);
    for (size_t i = 0; members && i < all; i++)
        members[i] = i;
    if (status == 0)
        status = search->options->algorithm == DL2_SEARCH_ASHA ? run_asha(search, members)
                                                               : run_rounds(search, members);
    free(members);
    return status;
}

int dl2_search(const struct dl2_search_options *options, const struct dl2_configs_base *base,
               int (*train)(struct dl2_train_model *models, size_t count),
               struct dl2_configs *configs, struct dl2_search_result *result)
{
    struct search search = {.options = options, .base = *base, .train = train, .configs = configs};
    search.config = *base->config;
    search.base.config = &search.config;
    if (!search.config.out)
        search.config.out = "experiments/search";
    int status = check_search(&search);
    if (status == 0 && !(search.report = dl2_path_join(search.config.out, DL2_SEARCH_FILE)))
        status = search_memory(&search);
    if (status == 0)
        status = read_space(&search);
    if (status == 0)
        status = make_trials(&search);
    if (status == 0)
        status = search_space(&search);
    *result = (struct dl2_search_result){.name = NULL};
    const long best = status == 0 ? best_trial(&search) : -1;
    if (best >= 0) {
        *result =
            (struct dl2_search_result){configs->models[best].config.name, configs->settings[best],
                                       search.trials[best].top1, 0, 0};
    }
    result->trained = trained_epochs(&search);
    result->all = all_epochs(&search);
    for (size_t i = 0; i < search.axis_count; i++)
        json_decref(search.axes[i].list);
    json_decref(search.space);
    json_decref(search.identity);
    json_decref(search.rounds);
    for (size_t i = 0; i < search.rung_count; i++)
        free(search.rungs[i].entries);
    free(search.order);
    free(search.trials);
    free(search.report);
    return status;
}
