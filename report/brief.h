/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer in brief, as a terminal shows it: a table of a few variants, and two sentences. */
#ifndef DL2_REPORT_BRIEF_H
#define DL2_REPORT_BRIEF_H

#include "report/speed.h"

struct dl2_brief { /* of one network; all of it is kept */
    /* [line_count]: the table with its heads, and what its marks mean: the original, what is
     * recommended, and what is open or comes nearest. None where nothing was compared. */
    const char **lines;
    size_t line_count;
    const char *use;   /* what to use */
    size_t open_count; /* variants that are open */
    const char *open;  /* what is open, and what would settle it; NULL where nothing was compared */
};

struct dl2_brief dl2_brief_make(const struct dl2_study *study, const struct dl2_analysis *analysis,
                                const struct dl2_speeds *speeds);

#endif
