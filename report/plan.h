/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was asked of a study whenever its results were seen: FOLDER/report/plan.json, "dl2-plan/1"
 * of docs/formats/report.md. Pages in FOLDER/report and decide are looks at the study. A page
 * elsewhere is shown as the look that it would be, and not recorded.
 *
 * The first report that shows a verdict is look 1, and its question is the plan: tolerance,
 * variants, networks, seeds. A report on other trainings, or with another question, is a further
 * look. All looks share the error of the claims (report/claims.h), network by network:
 *
 * - Planned looks, --interim, share what is left by the cubes of their numbers of seeds.
 * - Else a look gets the share of one that nobody planned. Where a network has neither other
 *   trainings nor another tolerance nor other groups of images since the last look, or one seed,
 *   so that nothing can be claimed, it spends nothing.
 * - A network that is added later begins with what the one that spent most has left.
 * - The same trainings and the same question are the same look again, with the same levels.
 *
 * What was claimed of a variant stands as long as its trainings and the original's are still there
 * with the same results, images are grouped as they were, and the tolerance is no smaller. Codecs
 * and networks of any earlier look keep their part of the error.
 */
#ifndef DL2_REPORT_PLAN_H
#define DL2_REPORT_PLAN_H

#include "report/analysis.h"

enum { DL2_MAX_PLAN_NOTES = 4 };

struct dl2_plan {
    struct dl2_question *questions; /* [arch_count]: what dl2_analyze() is to be asked; kept */
    size_t look;                    /* the number of this look, from 1; 0: no verdict is shown */
    /* Whole sentences for whoever sees the results: what was changed after results were seen, how
     * many plans were given up, that the error is spent, that the look could not be recorded. */
    char notes[DL2_MAX_PLAN_NOTES][1024];
    size_t note_count;
    /* -- its own -- */
    const char *path;
    json_t *file, *now, *trainings;
    bool *within;
    bool is_new, records;
    int lock; /* on the file's folder, -1: none */
};

/* What was asked of a study. */
struct dl2_asked {
    double tolerance;       /* in the metric's unit; NAN: no look was recorded */
    double percent;         /* above 0: the tolerance was so much of the original's */
    struct dl2_looks looks; /* planned ones, without shares */
    const char *group;      /* as --group has it; NULL: each image was by itself */
};

/* What the study's own page shows, FOLDER/report/answer.json; without it the last look. */
int dl2_plan_asked(const char *folder, struct dl2_asked *asked, struct dl2_error *error);

/*
 * Reads the plan and makes this look's questions of `question`, in which looks have no shares yet.
 * A file that is broken is an error: nobody knows what it has spent. Waits for another process that
 * has a plan of this folder open, until dl2_plan_record() or its end, if it `records` this look.
 */
int dl2_plan_open(const char *folder, const struct dl2_study *study,
                  const struct dl2_question *question, bool records, struct dl2_plan *plan,
                  struct dl2_error *error);

/* Writes this look and its claims down, unless it was seen before, and lets others have the plan.
 * For analyses [arch_count] of the plan's questions, before anybody sees them. A look that is not
 * recorded, also because the file can't be written, is a note. */
int dl2_plan_record(struct dl2_plan *plan, const struct dl2_study *study,
                    const struct dl2_analysis *analyses, struct dl2_error *error);

/* Ends the folder's plan, so that the next look is the first of another, in whose file that is
 * written. DL2_ERR_ARGUMENT where no look was recorded. */
int dl2_plan_give_up(const char *folder, struct dl2_error *error);

#endif
