/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/decide.h"

#include "common/clock.h"
#include "study/child.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *dl2_decide_interim(const struct dl2_study_settings *study)
{
    const char *list = "2";
    for (size_t count = 3; count <= study->seeds.count; count++)
        list = dl2_text("%s,%zu", list, count);
    return list;
}

/* Seconds of 90s, 30m or 2h. */
static double budget_of(const struct dl2_study_settings *study)
{
    const char *text = study->options.budget;
    char *unit;
    const double number = strtod(text, &unit);
    return !*text ? INFINITY : number * (*unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1);
}

/* Adds a variant's trainings from the smallest seeds, which a look goes by. */
static void add_runs(const struct dl2_study_settings *study, struct dl2_words *runs,
                     const char *variant, const char *arch, size_t count)
{
    const struct dl2_words seeds = dl2_seeds_in_order(study);
    for (size_t i = 0; i < seeds.count && i < count; i++) {
        const char *run = dl2_text("%s/%s/seed-%s", variant, arch, seeds.at[i]);
        if (!dl2_words_have(runs, run))
            dl2_words_add(runs, run);
    }
}

static void add_first(const struct dl2_study_settings *study, struct dl2_words *runs,
                      const char *variant)
{
    for (size_t a = 0; a < study->archs.count; a++)
        add_runs(study, runs, variant, study->archs.at[a], 2);
}

void dl2_decide_first(const struct dl2_study_settings *study, struct dl2_words *runs)
{
    add_first(study, runs, "raw");
    for (size_t v = 0; v < study->train_on.count; v++)
        add_first(study, runs, study->train_on.at[v]);
}

/* What dl2-report says of the trainings, line by line. */
static const char *ask(const struct dl2_decision *rounds, const struct dl2_words *runs,
                       const char *option)
{
    const struct dl2_study_settings *study = rounds->study;
    struct dl2_words command = dl2_study_words(study, "dl2-report", option, "--variants",
                                               dl2_words_join(&study->names, " "), "--trainings",
                                               dl2_words_join(runs, " "), NULL);
    if (strcmp(option, "--decide") == 0) {
        dl2_words_more(&command, "--interim", rounds->interim, "--tolerance",
                       study->options.tolerance, NULL);
        if (study->group)
            dl2_words_more(&command, "--group", study->group, NULL);
    }
    dl2_words_add(&command, study->out);
    const char *output, *messages;
    if (dl2_child_ask(&command, &output, &messages) == 0)
        return output;
    fputs(messages, stderr);
    return NULL;
}

/* Variants whose loss is not within the tolerance by any network's forecast, sorted. */
static struct dl2_words forecast_beyond(const struct dl2_study_settings *study,
                                        const char *forecasts)
{
    struct dl2_words beyond = {0}, within = {0}, both = {0};
    const double tolerance = strtod(study->options.tolerance, NULL);
    for (; *forecasts; forecasts += strcspn(forecasts, "\n"), forecasts += *forecasts == '\n') {
        const struct dl2_words line =
            dl2_words_split(dl2_text("%.*s", (int)strcspn(forecasts, "\n"), forecasts));
        if (line.count != 4)
            continue;
        const double loss = strtod(line.at[2], NULL), half = strtod(line.at[3], NULL);
        dl2_words_add(loss - half <= tolerance ? &within : &beyond, line.at[1]);
    }
    for (size_t v = 0; v < study->train_on.count; v++)
        if (dl2_words_have(&beyond, study->train_on.at[v]) &&
            !dl2_words_have(&within, study->train_on.at[v]))
            dl2_words_add(&both, study->train_on.at[v]);
    return both;
}

/* Adds what the verdicts want, and says what they are. */
static void add_wanted(const struct dl2_study_settings *study, const char *decided,
                       struct dl2_words *runs)
{
    for (; *decided; decided += strcspn(decided, "\n"), decided += *decided == '\n') {
        const struct dl2_words line =
            dl2_words_split(dl2_text("%.*s", (int)strcspn(decided, "\n"), decided));
        if (line.count != 4)
            continue;
        const char *arch = line.at[0], *variant = line.at[1];
        const bool is_raw = strcmp(variant, "raw") == 0;
        if (!is_raw && !dl2_words_have(&study->train_on, variant))
            continue;
        if (!is_raw)
            printf("%s, %s: %s\n", variant, arch, line.at[2]);
        add_runs(study, runs, variant, arch, strtoul(line.at[3], NULL, 10));
    }
}

int dl2_decide(const struct dl2_decision *rounds, struct dl2_words *runs)
{
    const struct dl2_study_settings *study = rounds->study;
    const double began = dl2_clock_wall(), budget = budget_of(study);
    struct dl2_words later = {0};
    *runs = (struct dl2_words){0};
    if (*study->options.forecast) {
        add_first(study, runs, "raw");
        const int status = rounds->run(rounds, runs, true);
        const char *forecasts = status ? NULL : ask(rounds, runs, "--forecast");
        if (!forecasts)
            return status ? status : DL2_EXIT_FAILED;
        later = forecast_beyond(study, forecasts);
    }
    add_first(study, runs, "raw");
    for (size_t v = 0; v < study->train_on.count; v++)
        if (!dl2_words_have(&later, study->train_on.at[v]))
            add_first(study, runs, study->train_on.at[v]);
    for (;;) {
        const int status = rounds->run(rounds, runs, false);
        const char *decided = status ? NULL : ask(rounds, runs, "--decide");
        if (!decided)
            return status ? status : DL2_EXIT_FAILED;
        struct dl2_words wanted = {0};
        dl2_words_add_all(&wanted, runs);
        add_wanted(study, decided, &wanted);
        const bool is_spent = dl2_clock_wall() - began >= budget;
        if (wanted.count == runs->count && later.count && !is_spent) {
            printf("Next: what is forecast to lose more than %s: %s\n", study->options.tolerance,
                   dl2_words_join(&later, " "));
            for (size_t v = 0; v < later.count; v++)
                add_first(study, &wanted, later.at[v]);
            later = (struct dl2_words){0};
        }
        printf("%zu trainings so far, %zu to come\n", runs->count, wanted.count - runs->count);
        if (wanted.count == runs->count)
            break;
        if (is_spent) {
            printf("BUDGET is spent: what is open stays so\n");
            break;
        }
        *runs = wanted;
    }
    if (later.count)
        printf("Not trained, forecast to lose more than %s: %s\n", study->options.tolerance,
               dl2_words_join(&later, " "));
    return DL2_EXIT_OK;
}
