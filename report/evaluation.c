/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/evaluation.h"

#include "common/file.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The variant that a validation set is of, or study->variant_count. A dataset may be called like
 * one of its variants: then it comes first, as dl2-study has it. */
static size_t variant_of_set(const struct dl2_study *study, const char *name, const char *original,
                             const double *accuracy)
{
    const size_t raw = dl2_study_find(study, "raw");
    if (original && strcmp(name, original) == 0 && raw < study->variant_count &&
        isnan(accuracy[raw]))
        return raw;
    return strcmp(name, "raw") ? dl2_study_find(study, name) : study->variant_count;
}

int dl2_evaluation_read(const struct dl2_study *study, const struct dl2_study_run *run,
                        const char *original, double *accuracy, bool *found,
                        struct dl2_error *error)
{
    char path[4608];
    struct stat info;
    for (size_t v = 0; v < study->variant_count; v++)
        accuracy[v] = NAN;
    *found = false;
    snprintf(path, sizeof path, "%.*sevaluation/evaluation_report.json",
             (int)(dl2_path_base(run->path) - run->path), run->path);
    if (stat(path, &info) != 0)
        return DL2_OK;
    if (dl2_mtime_ns(&info) < run->made_ns)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: it is older than the training beside it; make matrix again",
                             path);
    json_auto_t *report = NULL;
    json_t *set;
    DL2_TRY(dl2_json_load(path, "dl2-evaluation/1", &report, error));
    size_t i;
    json_array_foreach(json_object_get(report, "val"), i, set)
    {
        const size_t v =
            variant_of_set(study, dl2_json_get_text(set, "name", ""), original, accuracy);
        const double own = dl2_accuracy_of(set);
        if (v < study->variant_count && own >= 0 && own <= 1) {
            accuracy[v] = own;
            *found = true;
        }
    }
    return DL2_OK;
}
