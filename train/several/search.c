/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/search_state.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"
#include "train/several/search_space.h"
#include "train/train_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two positions closer than this are one. */
#define SAME 1e-9

const char *const dl2_search_words[] = {[DL2_SEARCH_GRID] = "grid",
                                        [DL2_SEARCH_RANDOM] = "random",
                                        [DL2_SEARCH_HALVING] = "halving",
                                        [DL2_SEARCH_ASHA] = "asha",
                                        NULL};

const char *const dl2_search_goal_words[] = {
    [DL2_SEARCH_ACCURACY] = "accuracy", [DL2_SEARCH_LOSS] = "loss", NULL};

static int search_failed(const struct dl2_search *search, const struct dl2_error *error)
{
    fprintf(stderr, "%s: %s\n", search->base.program->name, error->message);
    return DL2_EXIT_FAILED;
}

static int search_memory(const struct dl2_search *search)
{
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_error_memory(&error, "a search");
    return search_failed(search, &error);
}

static int make_trials(struct dl2_search *search)
{
    int status = dl2_search_space_open(search->base.program, search->options,
                                       search->settings.config.seed, &search->space);
    if (status != 0)
        return status;
    const size_t count = dl2_search_space_trials(search->space);
    search->trials = dl2_calloc(count, sizeof *search->trials);
    search->ranking = dl2_calloc(count, sizeof *search->ranking);
    if (!search->trials || !search->ranking)
        return search_memory(search);
    for (size_t i = 0; i < count; i++) {
        json_auto_t *settings = dl2_search_space_settings(search->space, i);
        char origin[4096];
        snprintf(origin, sizeof origin, "%s: trial %zu", search->options->space, i);
        status = dl2_configs_add(&search->configs, &search->base, settings, origin);
        if (status == DL2_EXIT_USAGE && json_object_size(settings) > 2)
            fprintf(stderr,
                    "%s: settings that do not go together belong in spaces of their own: [{\"lr\": "
                    "[0.1], \"nesterov\": [true]}, {\"lr\": [0.001], \"optimizer\": "
                    "[\"adamw\"]}]\n",
                    search->base.program->name);
        if (status != 0)
            return status;
        search->trials[i] = (struct dl2_trial){.goal = -1, .accuracy = NAN, .loss = NAN};
    }
    return 0;
}

/* Epochs that a trial's whole run comes to. */
static double trial_length(const struct dl2_search *search, size_t trial)
{
    return search->configs.models[trial].config.data.stages[0].epochs;
}

/* The best of the trials that came to their end, the first of equals; -1: none. */
static long best_trained(const struct dl2_search *search)
{
    long best = -1;
    for (size_t i = 0; i < search->configs.count; i++) {
        const struct dl2_trial *trial = &search->trials[i];
        if (trial->status == DL2_TRIAL_TRAINED && isfinite(trial->loss) &&
            (best < 0 ||
             dl2_search_is_better(search, trial->accuracy, trial->loss,
                                  search->trials[best].accuracy, search->trials[best].loss)))
            best = (long)i;
    }
    return best;
}

static double trained_epochs(const struct dl2_search *search)
{
    double epochs = 0;
    for (size_t i = 0; i < search->configs.count; i++)
        epochs += search->trials[i].epochs;
    return epochs;
}

static double all_epochs(const struct dl2_search *search)
{
    double epochs = 0;
    for (size_t i = 0; i < search->configs.count; i++)
        epochs += trial_length(search, i);
    return epochs;
}

/* Epochs at the end of the round; the last one is the run's. */
static double round_end(const struct dl2_search *search, size_t trial, size_t round)
{
    const double length = trial_length(search, trial);
    return round < search->round_count ? fmin(search->rounds[round].until, length) : length;
}

/* The rounds but the last that any has come to the end of. */
static json_t *round_list(const struct dl2_search *search)
{
    json_t *list = json_array();
    for (size_t i = 0; i < search->round_count && search->rounds[i].count; i++) {
        const struct dl2_search_round *round = &search->rounds[i];
        json_t *names = json_array();
        for (size_t k = 0; k < round->count; k++) {
            const size_t number = round->entries[k].trial;
            json_array_append_new(names,
                                  json_string(search->configs.models[number].config.run.name));
        }
        json_array_append_new(list,
                              json_pack("{s:f, s:o, s:I}", "epochs", round->until, "ranking", names,
                                        "kept", (json_int_t)dl2_search_count_kept(search, i)));
    }
    return list;
}

static json_t *trial_list(const struct dl2_search *search)
{
    json_t *list = json_array();
    dl2_search_rank(search);
    for (size_t i = 0; i < search->configs.count; i++) {
        const struct dl2_trial *trial = &search->trials[i];
        const char *name = search->configs.models[i].config.run.name;
        json_t *settings = json_copy(search->configs.settings[i]);
        json_object_del(settings, "name");
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:s, s:o, s:f, s:o, s:o, s:o}", "name", name, "settings",
                            settings, "status", dl2_trial_status_words[trial->status], "goal",
                            trial->goal < 0 ? json_null()
                                            : json_real(round_end(search, i, (size_t)trial->goal)),
                            "epochs", trial->epochs, "accuracy", dl2_json_real(trial->accuracy),
                            "loss", dl2_json_real(trial->loss), "report",
                            json_sprintf("%s/%s", name, DL2_EXPERIMENT_FILE)));
    }
    for (size_t i = 0; i < search->configs.count; i++) {
        const size_t number = search->ranking[i];
        const bool ranked = dl2_trial_is_ranked(&search->trials[number]);
        json_object_set_new(json_array_get(list, number), "rank",
                            ranked ? json_integer((json_int_t)i + 1) : json_null());
    }
    return list;
}

static int save_search(const struct dl2_search *search, struct dl2_error *error)
{
    const long best = best_trained(search);
    json_auto_t *report = json_pack(
        "{s:s, s:O, s:o, s:o, s:o, s:f, s:f, s:b}", "schema", DL2_SEARCH_SCHEMA, "search",
        search->identity, "rounds", round_list(search), "trials", trial_list(search), "best",
        search->completed && best >= 0 ? json_string(search->configs.models[best].config.run.name)
                                       : json_null(),
        "epochs", trained_epochs(search), "all_epochs", all_epochs(search), "completed",
        search->completed);
    if (report && search->data_hashes)
        json_object_set(report, "data_hashes", search->data_hashes);
    if (report && search->validated_on)
        json_object_set(report, "validated_on", search->validated_on);
    DL2_TRY(dl2_search_save_table(search, error));
    return dl2_json_save(search->report, report, error);
}

/* The options that a run cannot change when it is resumed, as the first trial has them, but for the
 * number of ranks, which --task leaves open. */
static json_t *make_options(const struct dl2_search *search)
{
    struct dl2_train_settings settings = *search->base.settings;
    settings.config = search->configs.models[0].config;
    settings.freeze = settings.config.data.stages[0].freeze;
    json_auto_t *all = dl2_options_json(dl2_train_options, &settings);
    json_object_set_new(all, "epochs", json_real(trial_length(search, 0)));
    json_object_del(all, "ranks");
    return dl2_options_select(dl2_train_options, all, DL2_OPTION_FIXED);
}

/* What the search is; one that is resumed must be the same. */
static json_t *make_identity(const struct dl2_search *search)
{
    const struct dl2_search_options *options = search->options;
    const bool rounds = dl2_search_has_rounds(search->options);
    json_t *identity = json_pack(
        "{s:s, s:s, s:O, s:I, s:o, s:o, s:I, s:o}", "algorithm",
        dl2_search_words[options->algorithm], "objective", dl2_search_goal_words[options->goal],
        "space", dl2_search_space_json(search->space), "trials", (json_int_t)search->configs.count,
        "reduction_factor", rounds ? json_integer(options->eta) : json_null(), "min_epochs",
        rounds ? json_real(options->first_epochs) : json_null(), "seed",
        (json_int_t)search->settings.config.seed, "options", make_options(search));
    if (options->algorithm == DL2_SEARCH_ASHA) /* who goes on depends on who has come along */
        json_object_set_new(identity, "max_concurrent", json_integer(options->at_once));
    return identity;
}

/* -- files of the runs -- */

static bool has_file(const struct dl2_search *search, size_t trial, const char *name, bool gone)
{
    DL2_AUTO_FREE char *path = dl2_path_join(search->configs.folders[trial], name);
    const bool there = path && dl2_is_file(path);
    if (there && gone)
        unlink(path);
    return there;
}

/* A new search begins where no other's runs are, or, with --restart, without their files. */
static int claim_folders(const struct dl2_search *search, struct dl2_error *error)
{
    const bool restart = search->settings.config.run.restart;
    bool there = dl2_is_file(search->report);
    for (size_t i = 0; i < search->configs.count && (restart || !there); i++) {
        there |= has_file(search, i, DL2_CHECKPOINT_FILE, restart);
        there |= has_file(search, i, DL2_EXPERIMENT_FILE, restart);
    }
    if (restart || !there)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s: there is a search already: continue it with --resume, choose "
                         "another place with --out, or overwrite it with --restart",
                         search->settings.config.run.out);
}

/* -- what is known of trials -- */

static bool is_training(const struct dl2_trial *trial)
{
    return trial->goal >= (long)trial->done;
}

/* The trial comes to the end of a round, or, with NAN, has diverged in it. Equal ones are in the
 * order of their numbers. */
static void end_round(struct dl2_search *search, size_t number, double accuracy, double loss)
{
    struct dl2_trial *trial = &search->trials[number];
    struct dl2_search_round *round = &search->rounds[trial->done];
    if (trial->done++ == search->round_count) {
        trial->status =
            trial->status == DL2_TRIAL_DIVERGED ? DL2_TRIAL_DIVERGED : DL2_TRIAL_TRAINED;
        return;
    }
    size_t k = round->count++;
    for (; k > 0; k--) {
        const struct dl2_search_entry *before = &round->entries[k - 1];
        if (dl2_search_is_better(search, before->accuracy, before->loss, accuracy, loss) ||
            (before->trial < number &&
             !dl2_search_is_better(search, accuracy, loss, before->accuracy, before->loss)))
            break;
        round->entries[k] = *before;
    }
    round->entries[k] = (struct dl2_search_entry){number, accuracy, loss};
}

/* All models must have the data of the first. */
static void take_data(struct dl2_search *search, const json_t *report)
{
    if (!search->data_hashes)
        search->data_hashes = json_incref(json_object_get(report, "data_hashes"));
    if (!search->validated_on)
        search->validated_on = json_incref(json_object_get(report, "validated_on"));
}

/* Images of the set that the search's models before were not validated on; 0 where they are the
 * same, or older versions do not tell. */
static uint64_t other_images(struct dl2_search *search, const json_t *val)
{
    const char *sum = dl2_json_get_text(val, "images_sum", "");
    if (!search->validated_on && *sum)
        search->validated_on =
            json_pack("{s:O, s:s}", "images", json_object_get(val, "images"), "images_sum", sum);
    return *sum && strcmp(sum, dl2_json_get_text(search->validated_on, "images_sum", sum)) != 0
               ? (uint64_t)dl2_json_get_integer(val, "images", 0)
               : 0;
}

/* Figures on other images do not compare: no round ends by them. */
static int check_images(const struct dl2_search *search, struct dl2_error *error)
{
    const struct dl2_trial *first = NULL;
    char names[512] = "";
    for (size_t i = 0; i < search->configs.count; i++) {
        if (!search->trials[i].others)
            continue;
        first = first ? first : &search->trials[i];
        dl2_list_name(names, sizeof names, search->configs.models[i].config.run.name);
    }
    if (!first)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: validated on %llu images that are not the %lld of the models before, "
                         "since some of them could or cannot be read now, so they do not compare: "
                         "mend the images, remove the folders of these models in %s and go on by "
                         "--resume, which begins them anew; or begin all anew by --restart",
                         names, (unsigned long long)first->others,
                         dl2_json_get_integer(search->validated_on, "images", 0),
                         search->settings.config.run.out);
}

/* Takes over the rounds that the trial has come to the end of by its report. */
static void take_epochs(struct dl2_search *search, size_t number, const json_t *report)
{
    struct dl2_trial *trial = &search->trials[number];
    size_t i;
    json_t *record;
    json_array_foreach(json_object_get(report, "epochs"), i, record)
    {
        const json_t *val = json_array_get(json_object_get(record, "val"), 0);
        const double position = dl2_json_get_real(record, "position", 0);
        trial->epochs = fmax(trial->epochs, position);
        if (val && (trial->others = other_images(search, val)) > 0)
            return;
        while (is_training(trial) && val &&
               position >= round_end(search, number, trial->done) - SAME) {
            trial->accuracy = dl2_accuracy_of(val);
            trial->loss = dl2_json_get_real(val, "loss", NAN);
            end_round(search, number, trial->accuracy, trial->loss);
        }
    }
}

/* Looks how far the trial is. */
static void look_at_trial(struct dl2_search *search, size_t number)
{
    struct dl2_trial *trial = &search->trials[number];
    DL2_AUTO_FREE char *path = dl2_path_join(search->configs.folders[number], DL2_EXPERIMENT_FILE);
    json_auto_t *report = NULL;
    struct stat info;
    if (is_training(trial) && path && stat(path, &info) == 0 &&
        !(trial->seen.number == info.st_ino && trial->seen.mtime == dl2_mtime_ns(&info) &&
          trial->seen.goal == trial->goal) &&
        dl2_json_load(path, DL2_EXPERIMENT_SCHEMA, &report, NULL) == DL2_OK) {
        trial->seen.number = info.st_ino;
        trial->seen.mtime = dl2_mtime_ns(&info);
        trial->seen.goal = trial->goal;
        take_data(search, report);
        take_epochs(search, number, report);
    }
    if (is_training(trial) && trial->status == DL2_TRIAL_DIVERGED)
        end_round(search, number, NAN, NAN);
}

/* Takes over what a report of the search has decided: who trains how far. */
static void take_decisions(struct dl2_search *search, const json_t *report)
{
    take_data(search, report);
    for (size_t i = 0; i < search->configs.count; i++) {
        const json_t *its = json_array_get(json_object_get(report, "trials"), i);
        struct dl2_trial *trial = &search->trials[i];
        const double goal = dl2_json_get_real(its, "goal", 0);
        if (strcmp(dl2_json_get_text(its, "status", ""),
                   dl2_trial_status_words[DL2_TRIAL_DIVERGED]) == 0)
            trial->status = DL2_TRIAL_DIVERGED;
        for (long k = trial->goal + 1;
             k <= (long)search->round_count && goal >= round_end(search, i, (size_t)k) - SAME; k++)
            trial->goal = k;
        look_at_trial(search, i);
    }
    search->completed = json_is_true(json_object_get(report, "completed"));
}

/* Goes on with the search that is there. */
static int resume_search(struct dl2_search *search, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    DL2_TRY(dl2_json_load(search->report, DL2_SEARCH_SCHEMA, &report, error));
    if (!json_equal(json_object_get(report, "search"), search->identity))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is of another search: resume with the options and the space it "
                             "was begun with, or begin anew by --restart",
                             search->report);
    take_decisions(search, report);
    search->completed = false; /* a trial's report may have been lost */
    return check_images(search, error);
}

/* -- who trains next -- */

/* Does any trial train to the end of the round? */
static bool is_under_way(const struct dl2_search *search, size_t round)
{
    bool any = false;
    for (size_t i = 0; i < search->configs.count; i++)
        any |= is_training(&search->trials[i]) && search->trials[i].goal == (long)round;
    return any;
}

static size_t count_training(const struct dl2_search *search)
{
    size_t count = 0;
    for (size_t i = 0; i < search->configs.count; i++)
        count += is_training(&search->trials[i]);
    return count;
}

/* The best of the round's first `part` trials that has not gone on; -1: none. */
static long next_of_round(const struct dl2_search *search, size_t number, size_t part)
{
    const struct dl2_search_round *round = &search->rounds[number];
    for (size_t i = 0; i < round->count && i < part; i++) {
        const struct dl2_search_entry *entry = &round->entries[i];
        if (search->trials[entry->trial].goal == (long)number && isfinite(entry->loss))
            return (long)entry->trial;
    }
    return -1;
}

/* Who goes on from the highest round that has any: asha's rule, or with `all` be it not among the
 * best. */
static long next_of_highest(const struct dl2_search *search, bool all, size_t *round)
{
    for (size_t i = search->round_count; i-- > 0;) {
        const size_t count = search->rounds[i].count;
        const long next = next_of_round(search, i, all ? count : count / search->options->eta);
        *round = i + 1;
        if (next >= 0)
            return next;
    }
    return -1;
}

/* How many of those that went on from the round have failed in the next one. */
static size_t count_failed_after(const struct dl2_search *search, size_t round)
{
    size_t count = 0;
    for (size_t i = 0; i < search->configs.count; i++) {
        const struct dl2_trial *trial = &search->trials[i];
        count +=
            trial->goal == (long)round + 1 && !is_training(trial) && dl2_trial_has_failed(trial);
    }
    return count;
}

/* halving: who goes on from the first round that has any, once that is complete. The next best
 * takes the place of one that fails. */
static long next_of_halving(const struct dl2_search *search, size_t *round)
{
    for (size_t i = 0; i < search->round_count && !is_under_way(search, i); i++) {
        const size_t part = search->rounds[i].keep + count_failed_after(search, i);
        const long next = next_of_round(search, i, part);
        *round = i + 1;
        if (next >= 0)
            return next;
    }
    return -1;
}

/* Tells of a round of halving, when the first of its models goes on to the next one. */
static void tell_round(const struct dl2_search *search, size_t next)
{
    const struct dl2_search_options *options = search->options;
    char text[160];
    if (!options->tell || options->algorithm != DL2_SEARCH_HALVING || next == 0 ||
        dl2_search_count_kept(search, next - 1) != 1)
        return;
    const struct dl2_search_round *round = &search->rounds[next - 1];
    size_t good = 0;
    while (good < round->count && isfinite(round->entries[good].loss))
        good++;
    snprintf(text, sizeof text, "round %zu, to epoch %g: kept %zu of %zu", next, round->until,
             good < round->keep ? good : round->keep, round->count);
    options->tell(text);
}

/* Chooses the trial that trains next, to the end of *round. -1: none, as long as none of those that
 * train has come to its round's end. */
static long choose_next(const struct dl2_search *search, size_t *round)
{
    const bool asha = search->options->algorithm == DL2_SEARCH_ASHA;
    const long best = asha ? next_of_highest(search, false, round) : -1;
    if (best >= 0)
        return best;
    *round = 0;
    for (size_t i = 0; i < search->configs.count; i++)
        if (search->trials[i].goal < 0)
            return (long)i;
    const long kept = asha ? -1 : next_of_halving(search, round);
    if (kept >= 0 || count_training(search) || best_trained(search) >= 0)
        return kept;
    /* None was among the best up to its end, or all that were have failed: the best of the others
     * does without. */
    return next_of_highest(search, true, round);
}

static int make_rounds(struct dl2_search *search)
{
    const struct dl2_search_options *options = search->options;
    const double length = trial_length(search, 0);
    size_t left = search->configs.count;
    if (!dl2_search_has_rounds(search->options))
        return 0;
    for (double until = options->first_epochs;
         until < length - SAME && search->round_count < DL2_SEARCH_ROUNDS &&
         (left > 1 || options->algorithm == DL2_SEARCH_ASHA);
         until *= options->eta) {
        struct dl2_search_round *round = &search->rounds[search->round_count++];
        round->until = until;
        round->entries = dl2_calloc(search->configs.count, sizeof *round->entries);
        if (!round->entries)
            return search_memory(search);
        round->keep = left = left / options->eta ? left / options->eta : 1;
    }
    return 0;
}

/* Nothing is left to train. */
static int conclude(struct dl2_search *search, struct dl2_error *error)
{
    for (size_t i = 0; i < search->configs.count; i++)
        if (search->trials[i].status == DL2_TRIAL_WAITING)
            search->trials[i].status = DL2_TRIAL_STOPPED;
    search->completed = true;
    return save_search(search, error);
}

/* Where the model is to stop; NAN at its end. */
static double stop_of(const struct dl2_search *search, size_t number)
{
    const double end = round_end(search, number, (size_t)search->trials[number].goal);
    return end < trial_length(search, number) - SAME ? end : NAN;
}

/* -- in waves: trials of a round that train together, on one stream of batches -- */

/* First those that a wave was stopped with. Returns how many there are. */
static size_t choose_wave(struct dl2_search *search, size_t *wave)
{
    const size_t most = search->options->at_once;
    size_t count = 0, round;
    long next;
    for (size_t i = 0; i < search->configs.count && count < most; i++)
        if (is_training(&search->trials[i]) &&
            (count == 0 || search->trials[i].goal == search->trials[wave[0]].goal))
            wave[count++] = i;
    if (count)
        return count;
    while (count < most && (next = choose_next(search, &round)) >= 0 &&
           (count == 0 || (long)round == search->trials[wave[0]].goal)) {
        search->trials[next].goal = (long)round;
        tell_round(search, round);
        wave[count++] = (size_t)next;
    }
    return count;
}

static int train_wave(struct dl2_search *search, const size_t *numbers, size_t count,
                      int (*train)(struct dl2_train_model *models, size_t count))
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_train_model *wave = dl2_calloc(count, sizeof *wave);
    if (!wave)
        return search_memory(search);
    for (size_t i = 0; i < count; i++) {
        wave[i] = search->configs.models[numbers[i]];
        struct dl2_train_config *config = &wave[i].config;
        config->run.resume = has_file(search, numbers[i], DL2_CHECKPOINT_FILE, false);
        config->run.restart = false;
        config->run.started = dl2_clock_wall();
        config->run.stop_at = stop_of(search, numbers[i]);
        config->run.data_hashes = search->data_hashes;
    }
    int status = train(wave, count);
    for (size_t i = 0; i < count; i++) {
        struct dl2_trial *trial = &search->trials[numbers[i]];
        if (wave[i].result.diverged)
            trial->status = DL2_TRIAL_DIVERGED;
        look_at_trial(search, numbers[i]);
        if (status == 0 && check_images(search, &error) < 0)
            status = search_failed(search, &error);
        if (status == 0 && is_training(trial)) {
            dl2_error_set(&error, DL2_ERR_FORMAT, "%s has no validation after epoch %g",
                          search->configs.models[numbers[i]].config.run.name,
                          round_end(search, numbers[i], (size_t)trial->goal));
            status = search_failed(search, &error);
        }
    }
    free(wave);
    return status;
}

int dl2_search_run(struct dl2_search *search,
                   int (*train)(struct dl2_train_model *models, size_t count))
{
    struct dl2_error error = DL2_ERROR_INIT;
    DL2_AUTO_FREE size_t *wave = dl2_calloc(search->options->at_once, sizeof *wave);
    size_t count;
    int status = wave ? 0 : search_memory(search);
    while (status == 0 && (count = choose_wave(search, wave)) > 0) {
        if (save_search(search, &error) < 0)
            status = search_failed(search, &error);
        if (status == 0)
            status = train_wave(search, wave, count, train);
        if (save_search(search, &error) < 0 && status == 0)
            status = search_failed(search, &error);
    }
    if (status == 0 && conclude(search, &error) < 0)
        status = search_failed(search, &error);
    return status;
}

/* -- by ranks, which train one model each at a time -- */

/* What other ranks have decided since the last look. */
static int read_decisions(struct dl2_search *search, bool anew, struct dl2_error *error)
{
    json_auto_t *report = NULL;
    struct stat now;
    if (stat(search->report, &now) != 0)
        return dl2_error_system(error, "can't read %s", search->report);
    if (!anew && now.st_ino == search->seen.st_ino &&
        dl2_mtime_ns(&now) == dl2_mtime_ns(&search->seen))
        return DL2_OK;
    DL2_TRY(dl2_json_load(search->report, DL2_SEARCH_SCHEMA, &report, error));
    take_decisions(search, report);
    search->seen = now;
    return DL2_OK;
}

/* struct dl2_hop_plan */
static int search_look(void *context, bool idle, bool *wanted, struct dl2_error *error)
{
    struct dl2_search *search = context;
    size_t round;
    /* Times of files are coarse: whoever decides must not miss a decision. */
    DL2_TRY(read_decisions(search, idle, error));
    for (size_t i = 0; i < search->configs.count; i++) {
        if (search->configs.models[i].result.diverged)
            search->trials[i].status = DL2_TRIAL_DIVERGED;
        look_at_trial(search, i);
    }
    DL2_TRY(check_images(search, error));
    const size_t training = count_training(search);
    if (idle && !search->completed && training < search->options->at_once) {
        const long next = choose_next(search, &round);
        if (next >= 0) {
            search->trials[next].goal = (long)round;
            tell_round(search, round);
            DL2_TRY(save_search(search, error));
        } else if (training == 0)
            DL2_TRY(conclude(search, error));
    }
    for (size_t i = 0; i < search->configs.count; i++) {
        wanted[i] = is_training(&search->trials[i]);
        search->configs.models[i].config.run.data_hashes = search->data_hashes;
        if (wanted[i])
            search->configs.models[i].config.run.stop_at = stop_of(search, i);
    }
    return search->completed;
}

struct dl2_hop_plan dl2_search_plan(struct dl2_search *search)
{
    return (struct dl2_hop_plan){search, search_look};
}

/* -- a search -- */

static int check_search(const struct dl2_search *search)
{
    const struct dl2_program *program = search->base.program;
    const struct dl2_train_config *config = &search->settings.config;
    const struct dl2_search_options *options = search->options;
    const struct dl2_option_rule rules[] = {
        {options->first_epochs != floor(options->first_epochs), "min-epochs",
         "is a whole number of epochs"},
    };
    if (config->run.skip_validation || config->data.synthetic)
        return dl2_program_usage_error(program, "a search needs validation: its goal is a "
                                                "figure of that");
    if (dl2_search_has_rounds(search->options) && config->run.validate_every != 1)
        return dl2_program_usage_error(program,
                                       "--algorithm %s needs --validate-every 1: it compares "
                                       "models between epochs",
                                       dl2_search_words[options->algorithm]);
    const int status = dl2_program_refuse(program, search->base.common, rules, 1);
    return status ? status : dl2_configs_check_base(&search->base);
}

int dl2_search_open(const struct dl2_search_options *options, const struct dl2_configs_base *base,
                    struct dl2_search **out)
{
    struct dl2_search *search = dl2_calloc(1, sizeof *search);
    *out = search;
    if (!search) {
        fprintf(stderr, "%s: out of memory\n", base->program->name);
        return DL2_EXIT_FAILED;
    }
    search->options = options;
    search->base = *base;
    search->settings = *base->settings;
    search->base.settings = &search->settings;
    const char *out_folder = search->settings.config.run.out;
    int status = check_search(search);
    if (status)
        return status;
    search->report = dl2_path_join(out_folder, DL2_SEARCH_FILE);
    search->table = dl2_path_join(out_folder, DL2_SEARCH_TABLE);
    status = search->report && search->table ? make_trials(search) : search_memory(search);
    status = status ? status : make_rounds(search);
    if (status == 0 && !(search->identity = make_identity(search)))
        status = search_memory(search);
    return status;
}

int dl2_search_begin(struct dl2_search *search, struct dl2_error *error)
{
    const bool resumed = search->settings.config.run.resume && dl2_is_file(search->report);
    DL2_TRY(resumed ? resume_search(search, error) : claim_folders(search, error));
    DL2_TRY(dl2_make_folders(search->settings.config.run.out, error));
    return save_search(search, error);
}

struct dl2_configs *dl2_search_configs(struct dl2_search *search)
{
    return &search->configs;
}

/* The best in the last round that any has come to the end of and has not failed after; -1: none. */
static long best_so_far(const struct dl2_search *search)
{
    const long best = best_trained(search);
    for (size_t i = search->round_count; i-- > 0 && best < 0;)
        for (size_t k = 0; k < search->rounds[i].count; k++)
            if (!dl2_trial_has_failed(&search->trials[search->rounds[i].entries[k].trial]))
                return (long)search->rounds[i].entries[k].trial;
    return best;
}

struct dl2_search_result dl2_search_result(struct dl2_search *search)
{
    read_decisions(search, true, NULL); /* where other ranks decide, too */
    for (size_t i = 0; i < search->configs.count; i++)
        look_at_trial(search, i);
    const long best = best_so_far(search);
    struct dl2_search_result result = {.trained = trained_epochs(search),
                                       .all = all_epochs(search)};
    if (best < 0)
        return result;
    result.name = search->configs.models[best].config.run.name;
    result.settings = search->configs.settings[best];
    result.accuracy = search->trials[best].accuracy;
    result.loss = search->trials[best].loss;
    return result;
}

void dl2_search_close(struct dl2_search *search)
{
    if (!search)
        return;
    dl2_search_space_close(search->space);
    json_decref(search->identity);
    json_decref(search->data_hashes);
    json_decref(search->validated_on);
    for (size_t i = 0; i < search->round_count; i++)
        free(search->rounds[i].entries);
    dl2_configs_free(&search->configs);
    free(search->trials);
    free(search->ranking);
    free(search->report);
    free(search->table);
    free(search);
}
