/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hypotheses of (DL)2 ("The Art of Losing to Win", ICDE 2023), answered by a study's results,
 * each in a sentence beside what the paper found: "dl2-hypotheses/1" of docs/formats/report.md.
 *
 * Sentences are about one variant where the paper's are about one: the study's recommendation, or
 * the smallest that was trained on where nothing is recommended. So none is picked by its result.
 */
#ifndef DL2_REPORT_HYPOTHESES_H
#define DL2_REPORT_HYPOTHESES_H

#include "report/codec_sizes.h"
#include "report/conditions.h"
#include "report/loading.h"

struct dl2_hypotheses_of {
    const char *title;
    const struct dl2_study *study;
    const struct dl2_analysis *analyses;     /* [study->arch_count] */
    const struct dl2_conditions *conditions; /* analyzed */
    const struct dl2_loading *loading;
    const struct dl2_codec_sizes *sizes;
};

/* An answer for each hypothesis and network; kept. */
const json_t *dl2_hypotheses_make(const struct dl2_hypotheses_of *of);
/* The same as Markdown; kept. */
const char *dl2_hypotheses_text(const json_t *hypotheses);

#endif
