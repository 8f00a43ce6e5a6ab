/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/forecast.h"

#include "common/scope.h"

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
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (run->variant != raw || strcmp(run->arch, arch) != 0 || !run->evaluated)
            continue;
        const double loss = 100 * (run->evaluated[raw] - run->evaluated[v]);
        if (isfinite(loss)) {
            sum += loss;
            count++;
        }
    }
    return count ? sum / (double)count : NAN;
}

static int compare_tuned(const struct dl2_study *study, const struct dl2_study *tuned,
                         const char *arch, struct dl2_forecast *forecasts, struct dl2_error *error)
{
    const struct dl2_question question = {.tolerance = 1};
    DL2_CLEANUP(dl2_analysis_free) struct dl2_analysis analysis = {0};
    DL2_TRY(dl2_analyse(tuned, arch, &question, &analysis, error));
    for (size_t v = 0; v < study->variant_count; v++) {
        const size_t own = dl2_study_find(tuned, study->variants[v].name);
        struct dl2_forecast *forecast = &forecasts[v];
        if (own == tuned->variant_count)
            continue;
        const struct dl2_comparison *comparison = &analysis.comparisons[own];
        forecast->tuned = -comparison->difference;
        forecast->half = dl2_comparison_half(comparison);
    }
    return DL2_OK;
}

int dl2_forecast_make(const struct dl2_study *study, const struct dl2_conditions *conditions,
                      const char *arch, struct dl2_forecast *forecasts, struct dl2_error *error)
{
    const struct dl2_study *tuned = find_tuned(conditions);
    for (size_t v = 0; v < study->variant_count; v++)
        forecasts[v] = (struct dl2_forecast){mean_loss(study, arch, v), NAN, NAN};
    return tuned ? compare_tuned(study, tuned, arch, forecasts, error) : DL2_OK;
}

bool dl2_forecast_any(const struct dl2_study *study, const struct dl2_forecast *forecasts)
{
    for (size_t v = 0; v < study->variant_count; v++)
        if (isfinite(forecasts[v].tuned))
            return true;
    return false;
}
