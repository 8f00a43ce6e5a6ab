/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/equal_bytes.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double train_bytes(const struct dl2_study_run *run)
{
    return dl2_json_get_real(run->report, "train_bytes", NAN);
}

/* Trainings of one variant and network, in a study. */
static bool is_of(const struct dl2_study_run *run, size_t variant, const char *arch)
{
    return run->variant == variant && strcmp(run->arch, arch) == 0 && isfinite(run->accuracy);
}

/* The accuracies of a variant's trainings; the last one's size. *values has room for all runs. */
static struct dl2_estimate estimate(const struct dl2_study *study, size_t variant, const char *arch,
                                    double *values, double *bytes, double *images)
{
    size_t count = 0;
    *bytes = *images = NAN;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (!is_of(run, variant, arch))
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
    size_t count = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const struct dl2_study_run *other = dl2_study_run_of(subset, raw, arch, run->seed);
        if (other && is_of(run, variant, arch))
            values[count++] = 100 * (run->accuracy - other->accuracy);
    }
    return dl2_estimate_mean(values, count);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct dl2_equal_bytes *x = a, *y = b;
    return (x->subset_percent > y->subset_percent) - (x->subset_percent < y->subset_percent);
}

/* A variant and the study of its counterpart; `original` is the original's bytes. */
static int make_pair(const struct dl2_study *study, const struct dl2_condition *condition,
                     const char *arch, double original, struct dl2_equal_bytes *pair,
                     struct dl2_error *error)
{
    const struct dl2_study *subset = &condition->study;
    DL2_AUTO_FREE double *values = NULL;
    DL2_TRY(DL2_NEW(&values, subset->run_count + study->run_count + 1,
                    "the trainings at equal bytes", error));
    pair->variant = dl2_study_find(study, condition->name);
    pair->accuracy = estimate(study, pair->variant, arch, values, &pair->percent, &pair->images);
    pair->subset_accuracy = estimate(subset, dl2_study_find(subset, "raw"), arch, values,
                                     &pair->subset_percent, &pair->subset_images);
    pair->difference = estimate_difference(study, pair->variant, subset, arch, values);
    pair->percent *= 100 / original;
    pair->subset_percent *= 100 / original;
    return DL2_OK;
}

/* The bytes of the original's training images. */
static double original_bytes(const struct dl2_study *study, const char *arch)
{
    const size_t raw = dl2_study_find(study, "raw");
    double bytes = NAN;
    for (size_t i = 0; i < study->run_count; i++)
        if (is_of(&study->runs[i], raw, arch))
            bytes = train_bytes(&study->runs[i]);
    return bytes;
}

int dl2_equal_bytes_find(const struct dl2_study *study, const struct dl2_conditions *conditions,
                         const char *arch, struct dl2_equal_bytes **pairs, size_t *count,
                         struct dl2_error *error)
{
    const double original = original_bytes(study, arch);
    *count = 0;
    DL2_TRY(DL2_NEW(pairs, conditions->count + 1, "the trainings at equal bytes", error));
    for (size_t c = 0; c < conditions->count; c++) {
        struct dl2_equal_bytes *pair = &(*pairs)[*count];
        if (strcmp(conditions->items[c].goal, "bytes") != 0)
            continue;
        DL2_TRY(make_pair(study, &conditions->items[c], arch, original, pair, error));
        *count += isfinite(pair->percent) && isfinite(pair->subset_percent);
    }
    qsort(*pairs, *count, sizeof **pairs, compare_pairs);
    return DL2_OK;
}
