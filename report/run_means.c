/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/run_means.h"

#include "common/json.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The first of the trainings from run `i` on; run_count: none. */
static size_t next(const struct dl2_run_means *means, size_t i)
{
    const struct dl2_study *study = means->study;
    while (i < study->run_count && (study->runs[i].variant != means->variant ||
                                    strcmp(study->runs[i].arch, means->arch) != 0))
        i++;
    return i;
}

size_t dl2_run_means_epochs(const struct dl2_run_means *means)
{
    const struct dl2_study *study = means->study;
    size_t epochs = 0;
    for (size_t i = next(means, 0); i < study->run_count; i = next(means, i + 1))
        epochs = study->runs[i].epochs > epochs ? study->runs[i].epochs : epochs;
    return epochs;
}

double dl2_run_means_accuracy(const struct dl2_run_means *means, size_t epoch)
{
    const struct dl2_study *study = means->study;
    double sum = 0;
    size_t count = 0;
    for (size_t i = next(means, 0); i < study->run_count; i = next(means, i + 1)) {
        const struct dl2_study_run *run = &study->runs[i];
        if (epoch >= run->epochs || !isfinite(run->val_accuracy[epoch]))
            continue;
        sum += run->val_accuracy[epoch];
        count++;
    }
    return count ? 100 * sum / (double)count : NAN;
}

double dl2_run_means_seconds(const struct dl2_run_means *means)
{
    const struct dl2_study *study = means->study;
    double sum = 0;
    size_t count = 0;
    for (size_t i = next(means, 0); i < study->run_count; i = next(means, i + 1)) {
        sum += dl2_study_run_shared(&study->runs[i]) ? NAN : study->runs[i].seconds;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static const json_t *epoch_at(const struct dl2_study_run *run, size_t epoch)
{
    return json_array_get(json_object_get(run->report, "epochs"), epoch);
}

double dl2_run_means_seen(const struct dl2_run_means *means)
{
    const struct dl2_study *study = means->study;
    double sum = 0;
    size_t count = 0;
    for (size_t i = next(means, 0); i < study->run_count; i = next(means, i + 1)) {
        const struct dl2_study_run *run = &study->runs[i];
        if (!run->epochs)
            continue;
        sum += dl2_json_get_real(epoch_at(run, run->epochs - 1), "position", NAN);
        count++;
    }
    return count ? sum / (double)count : NAN;
}

bool dl2_run_means_at(const struct dl2_run_means *means, size_t epoch, double *seconds,
                      double *accuracy)
{
    const struct dl2_study *study = means->study;
    size_t count = 0;
    *seconds = *accuracy = 0;
    for (size_t i = next(means, 0); i < study->run_count; i = next(means, i + 1)) {
        const struct dl2_study_run *run = &study->runs[i];
        const size_t last = epoch == SIZE_MAX ? run->epochs - 1 : epoch;
        if (!run->epochs || last >= run->epochs || !isfinite(run->val_accuracy[last]))
            return false;
        for (size_t e = 0; e <= last; e++)
            *seconds += dl2_json_get_real(epoch_at(run, e), "seconds", 0) +
                        dl2_json_get_real(epoch_at(run, e), "val_seconds", 0);
        *accuracy += run->val_accuracy[last];
        count++;
    }
    *seconds /= (double)count;
    *accuracy /= (double)count;
    return count > 0;
}
