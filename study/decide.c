/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/decide.h"

#include "common/clock.h"
#include "common/json.h"
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

static double budget_of(const struct dl2_study_settings *study)
{
    const char *text = study->options.budget;
    return *text ? dl2_setting_seconds(text) : INFINITY;
}

/* Adds a variant's trainings from the smallest seeds, which a look goes by. */
static void add_runs(const struct dl2_study_settings *study, struct dl2_words *runs,
                     const char *variant, const char *arch, size_t count)
{
    const struct dl2_words seeds = dl2_seeds_in_order(study);
    for (size_t i = 0; i < seeds.count && i < count; i++) {
        const char *run = dl2_text("%s/%s/seed-%s", variant, arch, seeds.at[i]);
        if (!dl2_words_have(*runs, run))
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

/* What dl2-report finds about the trainings: a new reference to the list in its JSON; NULL, after a
 * message, if it failed. */
static json_t *ask(const struct dl2_study_settings *study, const struct dl2_words *runs,
                   const char *task, const char *list)
{
    struct dl2_words command =
        dl2_study_words(study, "dl2-report", task, "--variants", dl2_words_join(study->names, " "),
                        "--trainings", dl2_words_join(*runs, " "), NULL);
    if (strcmp(task, "decide") == 0) {
        dl2_words_more(&command, "--interim", dl2_decide_interim(study), "--tolerance",
                       study->options.tolerance, NULL);
        dl2_words_more(&command, "--group", study->group ? study->group : "none", NULL);
    }
    dl2_words_add(&command, study->out);
    const char *output, *messages;
    if (dl2_child_ask(command, &output, &messages) != 0) {
        fprintf(stderr, "%s%s", messages,
                *output ? "dl2-study: remove the files that are named here and run again: they are "
                          "made again\n"
                        : "");
        return NULL;
    }
    json_auto_t *all = json_loads(output, 0, NULL);
    json_t *found = NULL;
    const char *schema = dl2_text("dl2-%s/1", list);
    if (strcmp(dl2_json_get_text(all, "schema", ""), schema) == 0)
        found = json_incref(json_object_get(all, list));
    if (!found)
        fprintf(stderr, "dl2-study: dl2-report %s did not print %s\n", task, schema);
    return found;
}

/* Variants whose loss is not within the tolerance by any network's forecast, sorted. */
static struct dl2_words forecast_beyond(const struct dl2_study_settings *study,
                                        const json_t *forecasts)
{
    struct dl2_words beyond = {0}, within = {0}, both = {0};
    const double tolerance = strtod(study->options.tolerance, NULL);
    size_t i;
    const json_t *forecast;
    json_array_foreach(forecasts, i, forecast)
    {
        const double loss = dl2_json_get_real(forecast, "loss", NAN);
        const double half = dl2_json_get_real(forecast, "half", NAN);
        dl2_words_add(loss - half > tolerance ? &beyond : &within,
                      dl2_json_get_text(forecast, "variant", ""));
    }
    for (size_t v = 0; v < study->train_on.count; v++)
        if (dl2_words_have(beyond, study->train_on.at[v]) &&
            !dl2_words_have(within, study->train_on.at[v]))
            dl2_words_add(&both, study->train_on.at[v]);
    return both;
}

/* Adds what the verdicts want, and says what they are. */
static void add_wanted(const struct dl2_study_settings *study, const json_t *decisions,
                       struct dl2_words *runs)
{
    size_t i;
    const json_t *decision;
    json_array_foreach(decisions, i, decision)
    {
        const char *network = dl2_json_get_text(decision, "network", "");
        const char *variant = dl2_json_get_text(decision, "variant", "");
        const bool is_raw = strcmp(variant, "raw") == 0;
        if (!is_raw && !dl2_words_have(study->train_on, variant))
            continue;
        if (!is_raw)
            printf("%s, %s: %s\n", variant, network, dl2_json_get_text(decision, "state", ""));
        add_runs(study, runs, variant, network, (size_t)dl2_json_get_integer(decision, "seeds", 0));
    }
}

int dl2_decide(const struct dl2_study_settings *study,
               int (*run)(const struct dl2_words *runs, bool forecasts), struct dl2_words *runs)
{
    const double began = dl2_clock_wall(), budget = budget_of(study);
    struct dl2_words later = {0};
    *runs = (struct dl2_words){0};
    if (*study->options.forecast) {
        add_first(study, runs, "raw");
        const int status = run(runs, true);
        json_auto_t *forecasts = status ? NULL : ask(study, runs, "forecast", "forecasts");
        if (!forecasts)
            return status ? status : DL2_EXIT_FAILED;
        later = forecast_beyond(study, forecasts);
    }
    add_first(study, runs, "raw");
    for (size_t v = 0; v < study->train_on.count; v++)
        if (!dl2_words_have(later, study->train_on.at[v]))
            add_first(study, runs, study->train_on.at[v]);
    for (;;) {
        const int status = run(runs, false);
        json_auto_t *decided = status ? NULL : ask(study, runs, "decide", "decisions");
        if (!decided)
            return status ? status : DL2_EXIT_FAILED;
        struct dl2_words wanted = {0};
        dl2_words_add_all(&wanted, *runs);
        add_wanted(study, decided, &wanted);
        const bool is_spent = dl2_clock_wall() - began >= budget;
        if (wanted.count == runs->count && later.count && !is_spent) {
            printf("Next: what is forecast to lose more than %s: %s\n", study->options.tolerance,
                   dl2_words_join(later, " "));
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
               dl2_words_join(later, " "));
    return DL2_EXIT_OK;
}
