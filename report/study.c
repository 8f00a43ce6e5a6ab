/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/study.h"

#include <string.h>

size_t dl2_study_find(const struct dl2_study *study, const char *name)
{
    size_t i = 0;
    while (i < study->variant_count && strcmp(study->variants[i].name, name) != 0)
        i++;
    return i;
}

bool dl2_study_starts_codec(const struct dl2_study *study, size_t v)
{
    return strcmp(study->variants[v].name, "raw") != 0 &&
           (v == 0 || strcmp(study->variants[v].codec, study->variants[v - 1].codec) != 0);
}

bool dl2_study_run_shared(const struct dl2_study_run *run)
{
    return run->trainers != 1;
}
