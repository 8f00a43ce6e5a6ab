/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/decisions.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "report/forecast.h"

#include <math.h>

static const char *state_of(const struct dl2_analysis *analysis, size_t v, size_t wanted)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (comparison->decided)
        return comparison->verdict == DL2_VERDICT_WITHIN ? "within" : "beyond";
    if (comparison->blocker == v)
        return wanted ? "open" : "undecided";
    return dl2_analysis_seeds_wanted(analysis, comparison->blocker) ? "waits" : "behind";
}

static void add_decision(json_t *list, const char *network, const char *variant, const char *state,
                         size_t seeds)
{
    json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:I}", "network", dl2_json_text(network),
                                          "variant", dl2_json_text(variant), "state", state,
                                          "seeds", (json_int_t)seeds));
}

json_t *dl2_decisions_make(const struct dl2_study *study, const struct dl2_analysis *analyses)
{
    const size_t raw = dl2_study_find(study, "raw");
    json_t *list = json_array();
    for (size_t a = 0; a < study->arch_count; a++) {
        size_t most = 0;
        for (size_t v = 0; v < study->variant_count; v++) {
            if (v == raw)
                continue;
            const size_t wanted = dl2_analysis_seeds_wanted(&analyses[a], v);
            most = wanted > most ? wanted : most;
            add_decision(list, study->archs[a], study->variants[v].name,
                         state_of(&analyses[a], v, wanted), wanted);
        }
        add_decision(list, study->archs[a], "raw", most ? "open" : "done", most);
    }
    return json_pack("{s:s, s:o}", "schema", "dl2-decisions/1", "decisions", list);
}

int dl2_forecasts_make(const struct dl2_study *study, const struct dl2_conditions *conditions,
                       json_t **out, struct dl2_error *error)
{
    DL2_AUTO_FREE struct dl2_forecast *forecasts =
        dl2_calloc(study->variant_count + 1, sizeof *forecasts);
    json_auto_t *list = json_array();
    if (!forecasts)
        return dl2_error_memory(error, "the forecast");
    for (size_t a = 0; a < study->arch_count; a++) {
        DL2_TRY(dl2_forecast_make(study, conditions, study->archs[a], forecasts, error));
        for (size_t v = 0; v < study->variant_count; v++)
            if (isfinite(forecasts[v].tuned + forecasts[v].half))
                json_array_append_new(list,
                                      json_pack("{s:o, s:o, s:f, s:f}", "network",
                                                dl2_json_text(study->archs[a]), "variant",
                                                dl2_json_text(study->variants[v].name), "loss",
                                                forecasts[v].tuned, "half", forecasts[v].half));
    }
    *out = json_pack("{s:s, s:O}", "schema", "dl2-forecasts/1", "forecasts", list);
    return *out ? DL2_OK : dl2_error_memory(error, "the forecast");
}
