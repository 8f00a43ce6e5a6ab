/* SPDX-License-Identifier: BSD-2-Clause */
/* The report: a document of sections, which dl2_document_render() makes one HTML page. */
#ifndef DL2_REPORT_PAGE_H
#define DL2_REPORT_PAGE_H

#include "report/accuracy_sizes.h"
#include "report/analysis.h"
#include "report/brief.h"
#include "report/class_harm.h"
#include "report/codec_sizes.h"
#include "report/conditions.h"
#include "report/loading.h"
#include "report/loss_change.h"
#include "report/page/document.h"
#include "report/page/plot.h"
#include "report/plan.h"
#include "report/search_results.h"
#include "report/several_studies.h"
#include "report/speed.h"

/* What a network's classes lose. */
struct dl2_page_classes {
    struct dl2_classes classes;
    struct dl2_class_harm *harms; /* [variant_count] */
    size_t shown;                 /* of dl2_class_harm_shown() */
};

/* What a page shows: all that is known of a study. Zero it first. */
struct dl2_page {
    const char *title;                   /* what was studied */
    const char *folder;                  /* where the results lie */
    const char *command;                 /* what makes the study again, or NULL */
    const char *about;                   /* sentences about the dataset, or NULL */
    struct dl2_plotter *plotter;         /* borrowed; NULL: the page has no plots */
    const struct dl2_study *study;       /* borrowed */
    const struct dl2_question *question; /* what was asked of all networks */
    struct dl2_codec_choice codecs;      /* how codecs are compared */
    struct dl2_conditions conditions;
    struct dl2_loading loading;
    struct dl2_search_results search; /* without a report: there is none */
    struct dl2_plan plan;             /* whose notes stand on the first screen */
    struct dl2_analysis *analyses;    /* [arch_count] */
    struct dl2_speeds *speeds;        /* [arch_count] */
    struct dl2_brief *briefs;         /* [arch_count] */
    struct dl2_page_classes *classes; /* [arch_count] */
    bool *fronts;                     /* of dl2_pareto_of_bytes() */
    struct dl2_loss_change *losses;   /* of dl2_loss_changes_find(); NULL: none are known */
    struct dl2_image_scores scores;
    struct dl2_codec_sizes sizes;
    struct dl2_accuracy_size *accuracy_sizes; /* [arch_count][variant_count] */
};

/* Fills in what follows from the study, its analyses and speeds: from `briefs` on, but the plan. */
void dl2_page_complete(struct dl2_page *page);

/* The page of a study. Draws the plots into the plotter's folder; a failure is in plotter->error.
 */
const json_t *dl2_page_make(const struct dl2_page *page);

/* The page of several studies: what they say together, and each beside the others. Of `page` it
 * shows the title (NULL: how many they are), and of its study what went wrong, and what was left
 * out. */
const json_t *dl2_several_page_make(const struct dl2_page *page,
                                    const struct dl2_several_studies *several);

#define DL2_PAGE_SCHEMA "dl2-report/1"

/* For these two: a document with its title, kept; a section of it; and its end, which takes out the
 * empty ones, and tells first why there are no plots, if so. */
json_t *dl2_page_begin(const char *format, ...) DL2_PRINTF(1, 2);
json_t *dl2_page_section(json_t *document, const char *id);
void dl2_page_end(json_t *document, const struct dl2_plotter *plotter);

#endif
