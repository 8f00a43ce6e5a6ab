/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/equal_bytes.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double train_bytes(const struct dl2_study_run *run)
{
    return dl2_json_get_real(run->report, "train_bytes", NAN);
}

/* The accuracies of a variant's trainings; the last one's size. *values has room for all runs. */
static struct dl2_estimate estimate(const struct dl2_study *study, size_t variant, const char *arch,
                                    double *values, double *bytes, double *images)
{
    const struct dl2_runs runs = dl2_study_runs(study, variant, arch);
    size_t count = 0;
    *bytes = *images = NAN;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        if (!isfinite(run->accuracy))
            continue;
        values[count++] = 100 * run->accuracy;
        *bytes = train_bytes(run);
        *images = run->train_images;
    }
    return dl2_estimate_mean(values, count);
}

static struct dl2_estimate estimate_difference(const struct dl2_study *study, size_t variant,
                                               const struct dl2_study *subset, const char *arch,
                                               double *values)
{
    const size_t raw = dl2_study_find(subset, "raw");
    const struct dl2_runs runs = dl2_study_runs(study, variant, arch);
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        const struct dl2_study_run *other = dl2_study_run_of(subset, raw, arch, run->seed);
        if (other && isfinite(run->accuracy))
            values[count++] = 100 * (run->accuracy - other->accuracy);
    }
    return dl2_estimate_mean(values, count);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct dl2_equal_bytes *x = a, *y = b;
    return (x->subset_percent > y->subset_percent) - (x->subset_percent < y->subset_percent);
}

/* A variant and the study of its counterpart; `original` is the original's bytes, `values` has room
 * for both's runs. */
static struct dl2_equal_bytes make_pair(const struct dl2_study *study,
                                        const struct dl2_condition *condition, const char *arch,
                                        double original, double *values)
{
    const struct dl2_study *subset = &condition->study;
    struct dl2_equal_bytes pair = {.variant = dl2_study_find(study, condition->name)};
    pair.accuracy = estimate(study, pair.variant, arch, values, &pair.percent, &pair.images);
    pair.subset_accuracy = estimate(subset, dl2_study_find(subset, "raw"), arch, values,
                                    &pair.subset_percent, &pair.subset_images);
    pair.difference = estimate_difference(study, pair.variant, subset, arch, values);
    pair.percent *= 100 / original;
    pair.subset_percent *= 100 / original;
    return pair;
}

struct dl2_equal_bytes *dl2_equal_bytes_find(const struct dl2_study *study,
                                             const struct dl2_conditions *conditions,
                                             const char *arch, size_t *count)
{
    static const char what[] = "the trainings at equal bytes";
    struct dl2_equal_bytes *pairs = dl2_keep(conditions->count + 1, sizeof *pairs, what);
    double original, ignored;
    DL2_AUTO_FREE double *all = dl2_room(study->run_count, sizeof *all, what);
    estimate(study, dl2_study_find(study, "raw"), arch, all, &original, &ignored);
    *count = 0;
    for (size_t c = 0; c < conditions->count; c++) {
        const struct dl2_condition *condition = &conditions->items[c];
        if (strcmp(condition->goal, "bytes") != 0)
            continue;
        DL2_AUTO_FREE double *values =
            dl2_room(condition->study.run_count + study->run_count, sizeof *values, what);
        pairs[*count] = make_pair(study, condition, arch, original, values);
        *count += isfinite(pairs[*count].percent) && isfinite(pairs[*count].subset_percent);
    }
    qsort(pairs, *count, sizeof *pairs, compare_pairs);
    return pairs;
}
