/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/regimens.h"

#include "common/json.h"
#include "report/sentence.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

const struct dl2_study_run *dl2_regimen_run(const struct dl2_regimens *group, size_t v)
{
    return dl2_study_first_run(&group->condition->study, v, group->analysis->arch);
}

/* What reports call the original: its folder's name. */
static const char *name_of_original(const struct dl2_regimens *group)
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_study_run *run = dl2_regimen_run(group, dl2_study_find(study, "raw"));
    return run ? dl2_json_get_text(run->report, "variant", "") : "";
}

const char *dl2_regimen_label(const struct dl2_regimens *group, size_t v,
                              char out[DL2_REGIMEN_LABEL])
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_study_run *run = dl2_regimen_run(group, v);
    struct dl2_sentence label = {out, DL2_REGIMEN_LABEL, 0};
    size_t i;
    json_t *stage;
    out[0] = '\0';
    if (strcmp(study->variants[v].name, "raw") == 0)
        return strcpy(out, "original");
    json_array_foreach(run ? json_object_get(run->report, "stages") : NULL, i, stage)
    {
        const json_t *size = json_object_get(stage, "image_size");
        const char *variant = dl2_json_get_text(stage, "variant", "?");
        if (strcmp(variant, name_of_original(group)) == 0)
            variant = "raw";
        dl2_say(&label, "%s%s:%g", i ? "," : "", variant, dl2_json_get_real(stage, "epochs", NAN));
        if (json_is_string(size))
            dl2_say(&label, ":size=%s", json_string_value(size));
        else if (size)
            dl2_say(&label, ":size=%g", json_number_value(size));
        if (json_is_true(json_object_get(stage, "freeze")))
            dl2_say(&label, ":freeze");
    }
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(":,=.-+", *c))
            *c = '_';
    return out;
}

struct dl2_run_means dl2_regimen_means(const struct dl2_regimens *group, size_t v)
{
    return (struct dl2_run_means){&group->condition->study, v, group->analysis->arch};
}

double dl2_regimen_seconds(const struct dl2_regimens *group, size_t v)
{
    const struct dl2_run_means means = dl2_regimen_means(group, v);
    return dl2_run_means_seconds(&means);
}
