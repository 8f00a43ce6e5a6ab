/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/target/target.h"

#include "common/quote.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dl2_target_rules[] = {"at-least", "nearest", NULL};
const char *const dl2_target_misses[] = {"best", "copy", "fail", NULL};

/* The score of identical images; INFINITY of dB. SSIMULACRA2's ends at 100. */
static double best_of(const struct dl2_metric *metric)
{
    return metric->of_mse ? INFINITY : metric->lower_is_better ? 0 : metric->one_is_best ? 1 : 100;
}

/* Sets name and metric by the first `length` letters; lists what there is. */
static void find_name(const char *text, size_t length, struct dl2_quality_target *out, char *known,
                      size_t size)
{
    static const char *const sizes[] = {"bytes", "bpp"};
    for (unsigned i = 0; dl2_metric_at(i); i++) {
        const struct dl2_metric *metric = dl2_metric_at(i);
        dl2_list_name(known, size, metric->name);
        if (strlen(metric->name) == length && !strncmp(metric->name, text, length)) {
            out->metric = metric;
            out->name = metric->name;
        }
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dl2_list_name(known, size, sizes[i]);
        if (strlen(sizes[i]) == length && !strncmp(sizes[i], text, length))
            out->name = sizes[i];
    }
}

int dl2_target_parse(const char *text, const struct dl2_quality_target *rest,
                     struct dl2_quality_target *out, struct dl2_error *error)
{
    const size_t length = strcspn(text, "=");
    char known[256] = "", shown[32], below[32] = "", *end = NULL;
    *out = *rest;
    find_name(text, length, out, known, sizeof known);
    if (!out->name || text[length] != '=')
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not a target and its value, as in ssim=0.95: %s", text,
                             known);
    if (!out->metric || !out->metric->of_input)
        out->input_size = 0;
    const char *number = text + length + 1;
    if (*number && strspn(number, "0123456789.") == strlen(number))
        out->value = strtod(number, &end);
    const double most =
        out->metric && !out->metric->lower_is_better ? best_of(out->metric) : INFINITY;
    if (isfinite(most))
        snprintf(below, sizeof below, " and below %g", most);
    if (!end || *end || !(out->value > 0) || !(out->value < most))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': the value is not a number above 0%s",
                             text, below);
    snprintf(shown, sizeof shown, "%g", out->value); /* as in the variant's name */
    if (strchr(shown, 'e') || strtod(shown, NULL) < out->value || strtod(shown, NULL) > out->value)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': give at most six digits", text);
    return DL2_OK;
}

bool dl2_target_equal(const struct dl2_quality_target *a, const struct dl2_quality_target *b)
{
    json_auto_t *one = dl2_target_json(a), *two = dl2_target_json(b);
    return json_equal(one, two);
}

json_t *dl2_target_json(const struct dl2_quality_target *target)
{
    json_t *json =
        json_pack("{s:s, s:f, s:[i,i], s:s, s:s, s:f, s:i}", "of", target->name, "value",
                  target->value, "qualities", target->low, target->high, "rule",
                  dl2_target_rules[target->rule], "on_miss", dl2_target_misses[target->miss],
                  "tolerance", target->tolerance, "probes", (int)target->probes);
    if (target->input_size)
        json_object_set_new(json, "input_size", json_integer((json_int_t)target->input_size));
    return json;
}

bool dl2_target_meets(const struct dl2_quality_target *target, double score)
{
    const bool at_most = !target->metric || target->metric->lower_is_better;
    return at_most ? score <= target->value : score >= target->value;
}

double dl2_target_even(const struct dl2_quality_target *target, double score)
{
    const double least = 1e-9; /* of what is lost */
    if (!target->metric)
        return log(score);
    if (target->metric->of_mse)
        return fmin(score, 99) * log(10) / 10;
    return -log(fmax(fabs(best_of(target->metric) - score), least));
}
