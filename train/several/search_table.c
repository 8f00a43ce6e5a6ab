/* SPDX-License-Identifier: BSD-2-Clause */
/* All trials of a search, the best first: for people, and as a table. */
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "train/several/search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dl2_trial_status_words[] = {[DL2_TRIAL_WAITING] = "waiting",
                                              [DL2_TRIAL_TRAINED] = "trained",
                                              [DL2_TRIAL_STOPPED] = "stopped",
                                              [DL2_TRIAL_DIVERGED] = "diverged"};

bool dl2_search_is_better(const struct dl2_search *search, double accuracy, double loss,
                          double other_accuracy, double other_loss)
{
    if (!isfinite(loss) || !isfinite(other_loss))
        return isfinite(loss) && !isfinite(other_loss);
    if (search->options->goal == DL2_SEARCH_LOSS && loss != other_loss)
        return loss < other_loss;
    return accuracy > other_accuracy || (accuracy == other_accuracy && loss < other_loss);
}

bool dl2_trial_has_failed(const struct dl2_trial *trial)
{
    return trial->status == DL2_TRIAL_DIVERGED || (trial->done > 0 && !isfinite(trial->loss));
}

/* In this order. */
enum { WITH_FIGURES, FAILED, WITHOUT_FIGURES };

static int standing_of(const struct dl2_trial *trial)
{
    return dl2_trial_has_failed(trial) ? FAILED : trial->done > 0 ? WITH_FIGURES : WITHOUT_FIGURES;
}

bool dl2_trial_is_ranked(const struct dl2_trial *trial)
{
    return standing_of(trial) == WITH_FIGURES;
}

/* qsort_r()'s: those that came further are ahead, then the better ones, then the first. */
static int compare_trials(const void *a, const void *b, void *context)
{
    const struct dl2_search *search = context;
    const size_t left = *(const size_t *)a, right = *(const size_t *)b;
    const struct dl2_trial *one = &search->trials[left], *other = &search->trials[right];
    if (standing_of(one) != standing_of(other))
        return standing_of(one) - standing_of(other);
    if (one->done != other->done)
        return one->done > other->done ? -1 : 1;
    if (dl2_search_is_better(search, one->accuracy, one->loss, other->accuracy, other->loss))
        return -1;
    if (dl2_search_is_better(search, other->accuracy, other->loss, one->accuracy, one->loss))
        return 1;
    return left < right ? -1 : 1;
}

void dl2_search_rank(const struct dl2_search *search)
{
    for (size_t i = 0; i < search->configs.count; i++)
        search->ranking[i] = i;
    qsort_r(search->ranking, search->configs.count, sizeof *search->ranking, compare_trials,
            (void *)search);
}

/* A value of a setting, as a reader would write it: to be freed. */
static char *value_text(const json_t *value)
{
    return json_is_string(value)
               ? strdup(json_string_value(value))
               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
}

static void write_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.17g", value);
    else
        fputc(',', out);
}

static void write_row(const struct dl2_search *search, size_t rank, const json_t *columns,
                      FILE *out)
{
    const size_t number = search->ranking[rank];
    const struct dl2_trial *trial = &search->trials[number];
    const json_t *settings = search->configs.settings[number];
    const char *key, *name = search->configs.models[number].config.run.name;
    json_t *unused;
    if (dl2_trial_is_ranked(trial))
        fprintf(out, "%zu", rank + 1);
    fprintf(out, ",%s,%s,%.17g", name, dl2_trial_status_words[trial->status], trial->epochs);
    write_real(out, trial->accuracy);
    write_real(out, trial->loss);
    fprintf(out, ",%s/%s", name, DL2_EXPERIMENT_FILE);
    json_object_foreach((json_t *)columns, key, unused)
    {
        DL2_AUTO_FREE char *text =
            json_object_get(settings, key) ? value_text(json_object_get(settings, key)) : NULL;
        fputc(',', out);
        dl2_csv_field(out, text ? text : "");
    }
    fputc('\n', out);
}

/* The settings that any trial has, as members. */
static json_t *setting_names(const struct dl2_search *search)
{
    json_t *names = json_object();
    for (size_t i = 0; i < search->configs.count; i++)
        json_object_update_missing(names, search->configs.settings[i]);
    json_object_del(names, "name");
    return names;
}

int dl2_search_save_table(const struct dl2_search *search, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    const char *key;
    size_t size;
    json_t *unused;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "%s", search->table);
    json_auto_t *columns = setting_names(search);
    fputs("rank,name,status,epochs,accuracy,loss,report", out);
    json_object_foreach(columns, key, unused)
    {
        fputc(',', out);
        dl2_csv_field(out, key);
    }
    fputc('\n', out);
    for (size_t i = 0; i < search->configs.count; i++)
        write_row(search, i, columns, out);
    return fclose(out) == 0 ? dl2_file_write(search->table, text, size, error)
                            : dl2_error_memory(error, "%s", search->table);
}

static void print_figure(FILE *out, int width, int digits, double value)
{
    if (isfinite(value))
        fprintf(out, "  %*.*f", width, digits, value);
    else
        fprintf(out, "  %*s", width, "-");
}

static void print_settings(FILE *out, const json_t *settings)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)settings, key, value)
    {
        DL2_AUTO_FREE char *text = strcmp(key, "name") != 0 ? value_text(value) : NULL;
        if (text)
            fprintf(out, " %s=%s", key, DL2_SHOWN(text));
    }
}

size_t dl2_search_count_kept(const struct dl2_search *search, size_t round)
{
    size_t kept = 0;
    for (size_t i = 0; i < search->configs.count; i++)
        kept += search->trials[i].goal > (long)round;
    return kept;
}

void dl2_search_print(const struct dl2_search *search, size_t most, FILE *out)
{
    const size_t count = search->configs.count;
    dl2_search_rank(search);
    for (size_t i = 0; i < search->round_count && search->rounds[i].count &&
                       search->options->algorithm == DL2_SEARCH_ASHA;
         i++)
        fprintf(out, "round %zu, to epoch %g: kept %zu of %zu\n", i + 1, search->rounds[i].until,
                dl2_search_count_kept(search, i), search->rounds[i].count);
    fprintf(out, "%4s  %-9s  %11s  %10s  %7s  %-8s  %s\n", "rank", "model", "accuracy, %", "loss",
            "epochs", "status", "settings");
    for (size_t i = 0; i < count && i < most; i++) {
        const size_t number = search->ranking[i];
        const struct dl2_trial *trial = &search->trials[number];
        if (dl2_trial_is_ranked(trial))
            fprintf(out, "%4zu", i + 1);
        else
            fprintf(out, "%4s", "-");
        fprintf(out, "  %-9s", search->configs.models[number].config.run.name);
        print_figure(out, 11, 2, 100 * trial->accuracy);
        print_figure(out, 10, 4, trial->loss);
        fprintf(out, "  %7.4g  %-8s ", trial->epochs, dl2_trial_status_words[trial->status]);
        print_settings(out, search->configs.settings[number]);
        fputc('\n', out);
    }
    if (count > most)
        fprintf(out, "%zu more are in %s\n", count - most, DL2_SHOWN(search->table));
}
