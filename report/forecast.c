/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/forecast.h"

#include <math.h>
#include <string.h>

/* The trainings that were tuned, or NULL. */
static const struct dl2_study *find_tuned(const struct dl2_conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++)
        if (strcmp(conditions->items[i].goal, "forecast") == 0 &&
            strcmp(conditions->items[i].name, "tuned") == 0)
            return &conditions->items[i].study;
    return NULL;
}

/* Points that the original's networks lose on variant `v`, mean over those that were evaluated. */
static double mean_loss(const struct dl2_study *study, const char *arch, size_t v)
{
    const size_t raw = dl2_study_find(study, "raw");
    const struct dl2_runs runs = dl2_study_runs(study, raw, arch);
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const double *evaluated = runs.at[i].evaluated;
        const double loss = evaluated ? 100 * (evaluated[raw] - evaluated[v]) : NAN;
        if (isfinite(loss)) {
            sum += loss;
            count++;
        }
    }
    return count ? sum / (double)count : NAN;
}

static void compare_tuned(const struct dl2_study *study, const struct dl2_study *tuned,
                          const char *arch, struct dl2_forecast *forecasts)
{
    const struct dl2_question question = {.tolerance = 1};
    const struct dl2_analysis analysis = dl2_analyze(tuned, arch, &question);
    for (size_t v = 0; v < study->variant_count; v++) {
        const size_t own = dl2_study_find(tuned, study->variants[v].name);
        if (own == tuned->variant_count)
            continue;
        forecasts[v].tuned = -analysis.comparisons[own].difference;
        forecasts[v].half = dl2_comparison_half(&analysis.comparisons[own]);
    }
}

struct dl2_forecast *dl2_forecast_make(const struct dl2_study *study,
                                       const struct dl2_conditions *conditions, const char *arch)
{
    const struct dl2_study *tuned = find_tuned(conditions);
    struct dl2_forecast *forecasts =
        dl2_keep(study->variant_count, sizeof *forecasts, "the forecast");
    for (size_t v = 0; v < study->variant_count; v++)
        forecasts[v] = (struct dl2_forecast){mean_loss(study, arch, v), NAN, NAN};
    if (tuned)
        compare_tuned(study, tuned, arch, forecasts);
    return forecasts;
}

bool dl2_forecast_any(const struct dl2_study *study, const struct dl2_forecast *forecasts)
{
    for (size_t v = 0; v < study->variant_count; v++)
        if (isfinite(forecasts[v].tuned))
            return true;
    return false;
}
